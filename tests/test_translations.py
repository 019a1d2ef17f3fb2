"""The catalogues: complete, up to date with the code, with the same things to fill in as the English text."""

import ast
import gettext
import io
import re
import string
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from pseudo_language import ROOT, load_update_messages

update_messages = load_update_messages()
CATALOGUES = update_messages.list_catalogues()
PACKAGE = ROOT / "mpsbar"
AFTER_A_CHANGE = "run `make messages`, translate what is new, remove the mark `fuzzy` where it fits, and run it again"


@pytest.fixture(scope="module")
def code():
    return update_messages.read_code()


def read(path: Path) -> Catalog:
    return update_messages.read_catalogue(path)


def list_texts(text: object) -> list[str]:
    return [text] if isinstance(text, str) else list(text or ())


def find_gaps(catalogue: Catalog, code: Catalog) -> list[str]:
    """What a translator has yet to do, or to drop."""
    wanted = {message.id for message in code if message.id}
    there = {message.id: message for message in catalogue if message.id}
    gaps = [f"not in the catalogue: {text!r}" for text in wanted - set(there)]
    gaps += [f"not in the code: {text!r}" for text in set(there) - wanted]
    gaps += [f"obsolete: {text!r}" for text in catalogue.obsolete]
    for text, message in there.items():
        if message.fuzzy:
            gaps.append(f"fuzzy: {text!r}")
        elif not update_messages.is_translated(message.string):
            gaps.append(f"not translated: {text!r}")
    return sorted(gaps)


def list_fields(text: str) -> list[str]:
    """{name}, {size:.1f}, {text!r}, %s, %(name)s and %%, however they are ordered; a date in any form."""
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as problem:
        return [f"broken: {problem}"]
    fields = [
        f"{name}!{conversion}:{'date' if '%' in spec else spec}"
        for _, name, spec, conversion in parsed
        if name is not None
    ]
    plain = "".join(literal for literal, *_ in parsed)
    return sorted([*fields, *re.findall(r"%(?:\(\w+\))?[srd%]", plain)])


def find_broken(catalogue: Catalog) -> list[str]:
    """Translations that cannot be filled in as the text can. One of a plural may leave its number out."""
    broken = []
    for message in catalogue:
        sources = [set(list_fields(text)) for text in list_texts(message.id)]
        for text in list_texts(message.string) if message.id else ():
            fields = list_fields(text)
            is_same = fields == list_fields(list_texts(message.id)[-1])
            if text and not is_same and (len(sources) == 1 or set(fields) not in sources):
                broken.append(f"{message.id!r}: {text!r}")
    return broken


def find_edges(catalogue: Catalog) -> list[str]:
    """A space or a line break at the end of a text stands before what follows it."""
    return [
        f"{message.id!r}: {message.string!r}"
        for message in catalogue
        if isinstance(message.id, str) and message.id and message.string
        if message.id[len(message.id.rstrip()) :] != message.string[len(message.string.rstrip()) :]
    ]


def test_there_is_korean():
    assert [path.parts[-3] for path in CATALOGUES] == ["ko"]


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_every_text_is_translated_and_none_is_unused(path, code):
    gaps = find_gaps(read(path), code)
    assert not gaps, f"{AFTER_A_CHANGE}:\n" + "\n".join(gaps)


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_a_translation_can_be_filled_in_as_its_text_can(path):
    assert find_broken(read(path)) == []
    assert find_edges(read(path)) == []


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_the_compiled_catalogue_is_that_of_the_texts(path):
    compiled = path.with_suffix(".mo").read_bytes()
    assert compiled == update_messages.render_compiled(read(path)), AFTER_A_CHANGE
    assert gettext.GNUTranslations(io.BytesIO(compiled)).info()["language"] == path.parts[-3]


def test_make_messages_twice_changes_nothing_more(code):
    catalogue = Catalog(locale="ko", header_comment="# Korean")
    catalogue.update(code)
    once = update_messages.render_catalogue(catalogue)
    again = read_po(io.BytesIO(once), locale="ko")
    again.update(code)
    assert update_messages.render_catalogue(again) == once
    assert b"Date" not in once[:1000]


def find_hidden(source: str, file: str = "x.py") -> list[str]:
    """Calls whose text `make messages` cannot see, or that hold a text ready to be filled in too early."""
    hidden = []
    for node in ast.walk(ast.parse(source)):
        name = (
            getattr(getattr(node, "func", None), "id", None) if isinstance(node, ast.Call) else None
        )
        if name not in ("_", "ngettext", "mark"):
            continue
        for text in node.args[: 2 if name == "ngettext" else 1]:
            if isinstance(text, ast.JoinedStr | ast.BinOp):
                hidden.append(f"{file}:{node.lineno} {ast.unparse(node)}: fill it in by .format()")
            elif isinstance(text, ast.Constant) and not str(text.value).strip():
                hidden.append(
                    f"{file}:{node.lineno} {ast.unparse(node)}: an empty text is the catalogue's header"
                )
            elif isinstance(text, ast.Call) and getattr(text.func, "attr", "") == "format":
                hidden.append(
                    f"{file}:{node.lineno} {ast.unparse(node)}: _(…).format(), not _(….format())"
                )
    return hidden


def test_no_text_hides_from_the_catalogue():
    files = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = [
        line
        for path, source in sorted(files.items())
        for line in find_hidden(source, path.relative_to(ROOT).as_posix())
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    ['_(f"{n} left")', '_("a" + b)', '_("%d left" % n)', '_("{n}".format(n=1))', '_("")', 'ngettext("a", f"{b}", 2)'],
)  # fmt: skip
def test_a_hidden_text_is_found(source):
    assert len(find_hidden(source)) == 1


@pytest.mark.parametrize(
    "source",
    ['_("a" "b")', "_(column.title)", 'ngettext("a", "b", len(f"{x}"))', '_("a").format()'],
)
def test_what_is_allowed(source):
    assert find_hidden(source) == []


def make(**texts):
    catalogue = Catalog(locale="ko")
    for text, string_ in texts.pop("pairs"):
        catalogue.add(text, string_, **texts)
    return catalogue


@pytest.mark.parametrize(
    ("catalogue", "gap"),
    [
        (make(pairs=[("a", "")]), "not translated: 'a'"),
        (make(pairs=[("a", "가")], flags=["fuzzy"]), "fuzzy: 'a'"),
        (make(pairs=[("a", "가"), ("b", "나")]), "not in the code: 'b'"),
        (make(pairs=[]), "not in the catalogue: 'a'"),
        (make(pairs=[("a", "가")]), None),
    ],
)
def test_a_gap_is_found(catalogue, gap):
    assert find_gaps(catalogue, make(pairs=[("a", "")])) == ([gap] if gap else [])


@pytest.mark.parametrize(
    ("text", "translated", "is_broken"),
    [
        ("{n} of {whole}", "{whole} 중 {n}", False),
        ("{n} left", "남음", True),
        ("{n} left", "{m} 남음", True),
        ("{n} left", "{n 남음", True),
        ("{n:.1f} GB", "{n} GB", True),
        ("{n} {n}", "{n}", True),
        ("%(name)s: %s", "%(name)s: %s", False),
        ("75%% of it", "75% 그중", True),
        ("on {day:%a %d %b}", "{day:%m월 %d일}", False),
        ("on {day:%a %d %b}", "%d일", True),
        (("1 process", "{n} processes"), ("프로세스 {n}개",), False),
        (("1 process", "{n} processes"), ("프로세스 {m}개",), True),
        (("{n} process of {host}", "{n} processes of {host}"), ("프로세스 {n}개",), True),
    ],
)
def test_a_broken_translation_is_found(text, translated, is_broken):
    assert bool(find_broken(make(pairs=[(text, translated)]))) == is_broken


def test_a_space_at_the_edge_stays():
    assert find_edges(make(pairs=[("usage: ", "사용법:")]))
    assert not find_edges(make(pairs=[("usage: ", "사용법: "), ("a", "가")]))
