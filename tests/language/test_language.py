"""Which language is chosen, from the environment and from the catalogues that there are."""

import gettext
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from report_kit import make_page
from worker_kit import ROOT

from mpsbar import language
from mpsbar.agent import language as agent_language
from mpsbar.agent.language import find_catalogue, list_wanted


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, []),
        ({"LANG": ""}, []),
        ({"LANG": "ko_KR.UTF-8"}, ["ko_KR.UTF-8"]),
        ({"LANG": "ko_KR.UTF-8", "LC_MESSAGES": "C"}, ["C"]),
        ({"LC_ALL": "de_DE", "LC_MESSAGES": "C", "LANG": "ko"}, ["de_DE"]),
        ({"LC_CTYPE": "ko_KR.UTF-8"}, []),  # what characters are, not the language
        ({"LANG": "de_DE.UTF-8", "LANGUAGE": "fr:ko"}, ["fr", "ko", "de_DE.UTF-8"]),
        ({"LC_ALL": "C.UTF-8", "LANGUAGE": "ko"}, ["C.UTF-8"]),
        ({"LC_ALL": "POSIX", "LANGUAGE": "ko"}, ["POSIX"]),
        ({"LC_ALL": "C", "LANGUAGE": "fr", "MPSBAR_LANG": "ko"}, ["ko"]),
        ({"LANG": "ko_KR.UTF-8", "MPSBAR_LANG": "en"}, ["en"]),
        ({"LANG": "ko_KR.UTF-8", "MPSBAR_LANG": ""}, ["ko_KR.UTF-8"]),
    ],
)
def test_what_the_environment_asks_for(environment, wanted):
    assert list_wanted(environment) == wanted


@pytest.mark.parametrize(
    ("wanted", "language"),
    [
        (["ko"], "ko"),
        (["ko_KR.UTF-8"], "ko"),
        (["ko-KR"], "ko"),
        (["ko.eucKR@x"], "ko"),
        (["zh-Hant-TW"], "zh_Hant"),
        (["zh-Hans"], None),
        (["fr_FR", "ko-KR", "en-KR"], "ko"),
        (["en-KR", "ko-KR"], None),  # English is one of ours: the next choices do not count
        (["C"], None),
        (["C.UTF-8"], None),
        (["POSIX"], None),
        (["fr"], None),
        ([""], None),
        ([], None),
        (["../ko", "/ko", "ko/../ko", "ko\0"], None),
        (["kok"], None),  # Konkani
    ],
)
def test_the_first_language_that_there_is_a_catalogue_of(wanted, language, tmp_path):
    for name in ("ko", "zh_Hant"):
        path = tmp_path / name / "LC_MESSAGES/mpsbar.mo"
        path.parent.mkdir(parents=True)
        path.touch()
    found = find_catalogue(wanted, tmp_path)
    assert (found and Path(found).relative_to(tmp_path).parts[0]) == language


def speak(folder: Path, **environment: str) -> str:
    """A text and the language of a fresh Python, with the package in this folder and nothing set but this."""
    code = """if True:
        from mpsbar import language
        text = language._("memory pressure high")
        print(ascii(text), language.get_translations().info().get("language"))"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), **environment},
        capture_output=True, text=True, check=True, timeout=100, cwd=folder,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize("content", [b"", b"no catalogue", None])
def test_a_catalogue_that_cannot_be_read_costs_the_language_only(content, tmp_path):
    for folder in ("agent", "language"):
        shutil.copytree(ROOT / "mpsbar" / folder, tmp_path / "mpsbar" / folder)
    (tmp_path / "mpsbar/__init__.py").touch()
    path = tmp_path / "mpsbar/resources/locale/ko/LC_MESSAGES/mpsbar.mo"
    path.parent.mkdir(parents=True)
    if content is None:
        shutil.copy(ROOT / "resources/locale/ko/LC_MESSAGES/mpsbar.mo", path)
        assert speak(tmp_path, LANG="ko_KR.UTF-8").endswith(" ko")
    else:
        path.write_bytes(content)
        assert speak(tmp_path, LANG="ko_KR.UTF-8") == "'memory pressure high' None"


@pytest.mark.parametrize(
    ("encoding", "spoken"),
    [("utf-8", "ko"), ("euc-kr", "ko"), ("ascii", "None"), ("latin-1", "None")],
)
def test_a_terminal_without_its_letters_is_spoken_to_in_english(encoding, spoken):
    """Instead of a row of question marks."""
    told = speak(ROOT, MPSBAR_LANG="ko", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert told.split()[-1] == spoken


def test_english_for_programs_ends_with_its_block(monkeypatch):
    class Shouting(gettext.NullTranslations):
        def gettext(self, message):
            return message.upper()

        def ngettext(self, msgid1, msgid2, n):
            return "MANY"

    monkeypatch.setattr(agent_language, "_translations", Shouting())
    with language.english():
        assert language._("a") == "a"
        assert [language.ngettext("1 a", "{n} a", n) for n in (1, 2)] == ["1 a", "{n} a"]
    assert (language._("a"), language.ngettext("1 a", "{n} a", 1)) == ("A", "MANY")


@pytest.mark.parametrize("name", ["ko", "zh_Hant"])
def test_a_page_names_its_language_as_html_does(name, monkeypatch):
    class Named(gettext.NullTranslations):
        def info(self):
            return {"language": name}

    monkeypatch.setattr(agent_language, "_translations", Named())
    assert language.get_code() == name.replace("_", "-")
    assert f'<html lang="{language.get_code()}">' in make_page()
    with language.english():
        assert language.get_code() == "en"
        assert '<html lang="en">' in make_page()


def test_english_costs_no_catalogue():
    """`mpsbar status` is measured against an empty Python: nothing is read where nothing is needed."""
    code = "import sys; sys.addaudithook(lambda name, args: name == 'open' and print(args[0])); import mpsbar.language"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "MPSBAR_LANG": "en"}, cwd=ROOT,
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    assert ".mo" not in done.stdout
    assert "language" in done.stdout
