"""README and docs: every link leads somewhere, every command exists, and the README stays short."""

import re

import pytest
import yaml
from worker_kit import ROOT

from mpsbar.cli.main import VERBS

PAGES = [ROOT / "README.md", ROOT / "CODE_OF_CONDUCT.md", *sorted((ROOT / "docs").glob("*.md"))]
KOREAN = [ROOT / "README.ko.md", *sorted((ROOT / "docs/ko").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)|src(?:set)?=\"([^\"]+)\"")


def anchors(page):
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES + KOREAN, ids=lambda page: page.name)
def test_every_link_within_the_repository_leads_somewhere(page):
    for found in LINK.findall(page.read_text(encoding="utf-8")):
        link, _, anchor = "".join(found).partition("#")
        if "://" in link:
            continue
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


@pytest.mark.parametrize("page", PAGES + KOREAN, ids=lambda page: page.name)
def test_every_command_is_one(page):
    text = page.read_text(encoding="utf-8")
    for verb in re.findall(r"(?:^\$ |`)mpsbar ([a-z]+)", text, re.MULTILINE):
        assert verb in (*VERBS, "help"), verb


def test_every_page_of_docs_is_reached_from_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[2:] if f"docs/{page.name}" not in readme] == []


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
