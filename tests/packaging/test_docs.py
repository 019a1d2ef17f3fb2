"""README and docs: every link leads somewhere, every command exists, and the README stays short."""

import importlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
import yaml
from worker_kit import ROOT, TIMEOUT

from mpsbar.cli.main import COMMANDS

PAGES = [
    *(ROOT / name for name in ("README.md", "README.ko.md", "CODE_OF_CONDUCT.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LONG = 4 * TIMEOUT  # four seconds of a core
LINK = re.compile(r"\]\(([^)\s]+)\)|src(?:set)?=\"([^\"]+)\"")


def anchors(page):
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_repository_leads_somewhere(page):
    for found in LINK.findall(page.read_text(encoding="utf-8")):
        link, _, anchor = "".join(found).partition("#")
        if "://" in link:
            continue
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_one(page):
    text = page.read_text(encoding="utf-8")
    for command in re.findall(r"(?:^\$ |`)mpsbar ([a-z]+)", text, re.MULTILINE):
        assert command in (*COMMANDS, "help"), command


class SitePage(HTMLParser):
    """The links of one built page, and what can be linked to in it."""

    def __init__(self, file):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        self.links |= {values[key] for key in ("href", "src", "srcset") if values.get(key)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built as `make docs` does it, with warnings as errors."""
    pytest.importorskip("furo")
    folder = tmp_path_factory.mktemp("site")
    code = "import sys; from pathlib import Path; import build_docs; sys.exit(build_docs.build(Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, folder],
        cwd=ROOT / "packaging",
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "site"


def test_every_link_of_the_site_leads_somewhere(site):
    """Within the site to a file and an anchor, to the repository to a file that is there."""
    pages = {file: SitePage(file) for file in site.rglob("*.html")}
    assert len(pages) > 30
    repository = build_docs().REPOSITORY
    broken = []
    for file, page in pages.items():
        for link in page.links:
            path, _, anchor = link.partition("#")
            if link.startswith(repository):
                is_right = (ROOT / path.removeprefix(f"{repository}/")).exists()
            elif re.match("[a-z]+:", link):
                is_right = link.startswith(("https://", "data:"))
            else:
                target = (file.parent / path.partition("?")[0]).resolve() if path else file
                is_right = target.exists()
                if anchor and target in pages:
                    is_right = unquote(anchor) in pages[target].anchors
            if not is_right:
                broken.append(f"{file.relative_to(site)}: {link}")
    assert broken == []


def test_the_site_has_every_page_and_needs_no_network(site):
    docs = build_docs()
    listed = {f"{page}.html" for pages in docs.CONTENTS.values() for page in pages}
    ours = {docs.to_site(str(page.relative_to(ROOT))).replace(".md", ".html") for page in PAGES}
    assert ours - {"index.html"} <= listed
    for file in site.rglob("*.html"):
        fetched = re.findall(
            r'<(?:script|img|source|iframe)[^>]+(?:src|srcset)="(\w+:[^"]+)', file.read_text()
        )
        styles = re.findall(r'<link rel="stylesheet"[^>]+href="(\w+:[^"]+)', file.read_text())
        assert [*fetched, *styles] == []


def test_a_warning_of_sphinx_fails_the_build(tmp_path, monkeypatch):
    docs = build_docs()
    monkeypatch.setattr(docs, "CONTENTS", {"Tutorial": ["tutorial", "nowhere"]})
    assert docs.build(tmp_path) != 0


def test_links_lead_to_the_same_place_as_on_github():
    find = build_docs().find_target
    assert find("README.md", "docs/free.md") == "free.md"
    assert find("docs/reference/json.md", "../endings.md") == "../endings.md"
    assert find("docs/trust.md", "../SECURITY.md") == "project/security.md"
    assert find("SECURITY.md", "README.md") == "../index.md"
    assert find("docs/fleet.md", "../resources/grafana").endswith("/blob/main/resources/grafana")
    assert find("README.md", "https://example.org/x.md") == "https://example.org/x.md"


def build_docs():
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        return importlib.import_module("build_docs")
    finally:
        sys.path.remove(str(ROOT / "packaging"))


def test_the_korean_readme_is_that_of_the_english_one():
    """Section by section, with the same links to docs, commands and pictures."""
    english, korean = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md")
    )
    for part in (r"^(#+) ", r"(docs/[\w-]+\.(?:md|png))", r"(make [a-z]+)", r"`(mpsbar [a-z]+)"):
        found = [re.findall(part, text, re.MULTILINE) for text in (english, korean)]
        assert set(found[0]) <= set(found[1])
    titles = [re.findall(r"^(#+) ", text, re.MULTILINE) for text in (english, korean)]
    assert titles[0] == titles[1]
    rows = [len(re.findall(r"^\|", text, re.MULTILINE)) for text in (english, korean)]
    assert rows[0] == rows[1]
    assert "(README.ko.md)" in english
    assert "(README.md)" in korean


def test_the_readme_is_read_in_minutes():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 165


def test_issue_forms_have_what_github_asks_for():
    forms = [f for f in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if f.stem != "config"]
    assert {form.stem for form in forms} == {"bug", "reading", "idea"}
    for form in forms:
        data = yaml.safe_load(form.read_text(encoding="utf-8"))
        assert data["name"]
        assert data["description"]
        ids = [field["id"] for field in data["body"]]
        assert len(ids) == len(set(ids))
    bug = (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text(encoding="utf-8")
    assert "mpsbar doctor" in bug
