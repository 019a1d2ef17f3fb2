"""Builds the documentation as a site, by Sphinx: build/site/index.html.

    python packaging/build_docs.py      (or: make docs)

The pages are those of docs/ and some files beside it, and read as well on GitHub. They are copied
to build/docs with their links turned to where they lead on the site. A warning is an error.
"""

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/mpsbar/mpsbar/blob/main"
SETTINGS = {
    "project": "mpsbar",
    "extensions": "myst_parser",
    "html_theme": "furo",
    "html_title": "mpsbar",
    "html_copy_source": "0",
    "myst_heading_anchors": "3",
    "exclude_patterns": "",
}
# Files of the repository that are pages of the site.
PAGES = {
    "README.md": "index.md",
    "README.ko.md": "ko/index.md",
    "examples/README.md": "project/examples.md",
    "UNINSTALL.md": "project/uninstall.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
}
# The order of the pages. Sphinx complains of a page that is not here.
CONTENTS = {
    "Tutorial": ["tutorial"],
    "How-to": [
        "notebook", "server", "cluster", "ci", "fleet", "experiment-tracking", "limits",
        "status-lines", "project/examples", "project/uninstall",
    ],
    "Reference": [
        "reference/commands", "reference/settings", "menu-and-terminal", "reference/json",
        "reference/metrics", "reference/protocol", "reference/probe",
    ],
    "Explanation": [
        "numbers", "how-it-works", "free", "in-your-process", "endings", "check", "architecture",
        "scale", "figures", "project/security", "trust",
    ],
    "Project": ["project/changelog", "project/contributing", "project/code-of-conduct"],
    "한국어": ["ko/index", "ko/quick-start"],
}  # fmt: skip
_LINK = re.compile(r'(\]\(|src="|srcset=")([^)"#\s]+)')
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def to_site(page: str) -> str:
    return PAGES.get(page) or page.removeprefix("docs/")


def find_target(page: str, link: str) -> str:
    """Returns where a link of a page leads on the site; `page` is its path in the repository."""
    if "://" in link:
        return link
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    if path in PAGES or path.startswith("docs/"):
        return posixpath.relpath(to_site(path), posixpath.dirname(to_site(page)) or ".")
    return f"{REPOSITORY}/{path}"


def rewrite_links(page: str, text: str) -> str:
    """Outside of code."""
    parts, end = [], 0
    for fence in [*_FENCE.finditer(text), None]:
        prose = text[end : fence.start() if fence else len(text)]
        parts.append(_LINK.sub(lambda match: match[1] + find_target(page, match[2]), prose))
        if fence:
            parts.append(fence[0])
            end = fence.end()
    return "".join(parts)


def write_source(folder: Path) -> None:
    """Everything that Sphinx reads."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = [*PAGES, *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]
    for page in pages:
        target = folder / to_site(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = rewrite_links(page, (ROOT / page).read_text(encoding="utf-8"))
        if page == "README.md":
            text += _list_contents()
        target.write_text(text, encoding="utf-8")
    for picture in _list_pictures():
        shutil.copy(picture, folder)


def _list_contents() -> str:
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in CONTENTS.items()
    )


def _list_pictures() -> list[Path]:
    return sorted(p for p in (ROOT / "docs").iterdir() if p.suffix in (".png", ".svg"))


def build(folder: Path) -> int:
    """The exit code of Sphinx; the site is in `folder`/site."""
    source, site = folder / "docs", folder / "site"
    write_source(source)
    shutil.rmtree(site, ignore_errors=True)
    settings = [f"-D{name}={value}" for name, value in SETTINGS.items()]
    options = ["-C", "-W", "--keep-going", "-n", "-q", "-E", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", "-b", "html", *options, *settings]
    code = subprocess.run([*command, str(source), str(site)], check=False).returncode
    for picture in _list_pictures():  # what HTML in a page refers to, Sphinx does not copy
        shutil.copy(picture, site)
    return code


if __name__ == "__main__":
    failed = build(ROOT / "build")
    if not failed:
        print(f"written: {ROOT / 'build/site/index.html'}")
    sys.exit(failed)
