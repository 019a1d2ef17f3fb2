"""Brings the translations up to date with the texts in the code: `make messages`.

    python packaging/update_messages.py [LANGUAGE]

Each catalogue in resources/locale gets the texts that are new and loses those that are gone. A text
that was changed keeps its old translation with the mark `fuzzy`: correct it and remove the mark.
The .mo files, which mpsbar reads, are written from the catalogues. tests/test_translations.py
fails until everything is translated.

With the code of a language, such as `ja`, that one gets a catalogue too.
"""

import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parents[1]
LOCALE = ROOT / "resources/locale"
# A comment above a text that begins so is for the translators.
COMMENT = "Translators:"


def list_catalogues() -> list[Path]:
    return sorted(LOCALE.glob("*/LC_MESSAGES/mpsbar.po"))


def read_code() -> Catalog:
    """Every text in `_()`, `mark()` and `ngettext()`, in the order of the files and lines."""
    texts = Catalog()
    for file, line, message, comments, _context in extract_from_dir(
        ROOT / "mpsbar",
        method_map=[("**.py", "python")],
        keywords={"_": None, "mark": None, "ngettext": (1, 2)},
        comment_tags=(COMMENT,),
        strip_comment_tags=True,
    ):
        texts.add(message, locations=[(f"mpsbar/{file}", line)], auto_comments=comments)
    return texts


def read_catalogue(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parts[-3], domain="mpsbar", abort_invalid=True)


class PlainCatalogue(Catalog):
    """A copy with a header that changes neither by the day nor by the version of Babel."""

    def __init__(self, catalogue: Catalog) -> None:
        super().__init__(
            locale=catalogue.locale, header_comment=catalogue.header_comment, fuzzy=False
        )
        for message in catalogue:
            if message.id:
                self[message.id] = message

    @property
    def mime_headers(self) -> list[tuple[str, str]]:  # type: ignore[override]
        return [
            ("Project-Id-Version", "mpsbar"),
            ("Language", str(self.locale_identifier)),
            ("Plural-Forms", self.plural_forms),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Transfer-Encoding", "8bit"),
        ]


def render_catalogue(catalogue: Catalog) -> bytes:
    """As in the repository: in the order of the code, without line numbers, each text on one line,
    so that few lines differ between two versions."""
    file = BytesIO()
    write_po(
        file, PlainCatalogue(catalogue), width=0, sort_by_file=True, include_lineno=False,
    )  # fmt: skip
    return file.getvalue()


def render_compiled(catalogue: Catalog) -> bytes:
    """The .mo file; without what is not translated yet or marked fuzzy."""
    file = BytesIO()
    write_mo(file, PlainCatalogue(catalogue))
    return file.getvalue()


def update() -> Iterator[str]:
    """Writes every catalogue and its .mo file; yields a line about each."""
    texts = read_code()
    for path in list_catalogues():
        catalogue = read_catalogue(path)
        catalogue.update(texts)
        path.write_bytes(render_catalogue(catalogue))
        catalogue = read_catalogue(path)
        path.with_suffix(".mo").write_bytes(render_compiled(catalogue))
        missing = sum(not is_translated(message.string) for message in catalogue if message.id)
        fuzzy = sum(message.fuzzy for message in catalogue if message.id)
        name = path.relative_to(ROOT)
        yield f"{name}: {len(catalogue)} texts, {missing} not translated, {fuzzy} marked fuzzy"


def is_translated(string: object) -> bool:
    return all(string) if isinstance(string, (tuple, list)) else bool(string)


def add_language(language: str) -> None:
    """An empty catalogue, unless there is one. Raises UnknownLocaleError."""
    path = LOCALE / str(Locale.parse(language)) / "LC_MESSAGES/mpsbar.po"
    if not path.exists():
        path.parent.mkdir(parents=True)
        comment = f"# The texts of mpsbar in {Locale.parse(language).english_name}.\n#"
        path.write_bytes(render_catalogue(Catalog(locale=language, header_comment=comment)))


if __name__ == "__main__":
    for language in sys.argv[1:]:
        add_language(language)
    for line in update():
        print(line)
