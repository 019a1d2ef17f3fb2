"""The language of what a notebook shows: chosen by the environment, read when the first text is shown."""

import os
import subprocess
import sys

import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.agent import language


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": os.environ["PATH"], "PYTHONUTF8": "1", **environment},
        cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT, check=True,
    )  # fmt: skip
    return done.stdout


CARD = """
from mpsbar.agent.notebook_card import describe_cell, render_card
from mpsbar.agent.notebook_text import describe_memory, describe_progress
MB = 1 << 20
used = {"state": "in use", "allocated": 100 * MB, "reserved": 150 * MB, "driver": 200 * MB, "peak": 300 * MB, "budget": 400 * MB}
print(describe_memory({"mps": used, "cuda": {"state": "not known"}}))
print(describe_cell((0, 0), (50 * MB, 60 * MB), 2.0))
print(render_card({"mps": used}, None)[-120:])
"""


def test_a_notebook_speaks_the_language_of_the_environment():
    shown = run_python(CARD, LANG="ko_KR.UTF-8").splitlines()
    assert shown[:4] == [
        "장치        점유    할당     캐시    최대",
        "mps       200 MB  100 MB  50.0 MB  300 MB",
        "cuda  알 수 없음",
        "셀: 2.0초 · 텐서 +50.0 MB (현재 50.0 MB) · 최대 60.0 MB",
    ]
    assert "점유 200 MB / 400 MB · 텐서 100 MB · 캐시 50.0 MB" in shown[4]


@pytest.mark.parametrize(
    "environment", [{}, {"LANG": "fr_FR.UTF-8"}, {"LANG": "ko_KR.UTF-8", "MPSBAR_LANG": "en"},
                    {"MPSBAR_LANG": "ko", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:replace"}],
)  # fmt: skip
def test_english_where_there_is_no_other(environment):
    """Also where the letters of another language could not be written."""
    assert run_python(CARD, **environment).startswith(
        "device     held  allocated   cached    peak\n"
    )


def test_nothing_is_read_or_imported_before_a_text_is_shown():
    code = """
import sys
opened = []
sys.addaudithook(lambda name, values: opened.append(str(values[0])) if name == "open" else None)
import mpsbar.agent.methods, mpsbar.agent.notebook, mpsbar.agent.notebook_card
print("gettext" in sys.modules, [name for name in opened if name.endswith(".mo")])
mpsbar.agent.wording.duration(1)
print("gettext" in sys.modules, len([name for name in opened if name.endswith(".mo")]))
"""
    assert run_python(code, MPSBAR_LANG="ko") == "False []\nTrue 1\n"


def test_a_copied_agent_has_its_own_catalogues(tmp_path, monkeypatch):
    """And does not look at a folder `resources` beside it, which is somebody else's."""
    agent = tmp_path / "site-packages/mpsbar_agent"
    (agent / "locale").mkdir(parents=True)
    (tmp_path / "site-packages/resources/locale").mkdir(parents=True)
    monkeypatch.setattr(language, "__file__", str(agent / "language.py"))
    assert language.find_locale_folder() == str(agent / "locale")


def test_widths_are_cells():
    assert [language.measure(text) for text in ("held", "점유", "− ≤ ·")] == [4, 4, 5]
    assert language.pad("점유", 6, to_right=True) == "  점유"
