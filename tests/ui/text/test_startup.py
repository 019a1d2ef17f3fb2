"""Why there is no icon, in words."""

from typing import get_args

import pytest

from mpsbar.desktop.icon_visibility import Doubt
from mpsbar.ui.text.startup import say_doubt, say_no_icon


def test_the_line_for_a_python_without_an_icon():
    assert say_no_icon("framework_python") == (
        "macOS 26 and later show no menu bar icon for this kind of Python (Homebrew, python.org):"
        " use mpsbar.app, or uv tool install --managed-python --python 3.13 '.[terminal]' in a checkout of mpsbar"
    )
    assert say_no_icon("new") == "Can't show an icon in the menu bar here (new)"


@pytest.mark.parametrize("doubt", get_args(Doubt))
def test_every_doubt_has_its_sentence(doubt):
    assert "he menu bar icon" in say_doubt(doubt)
    assert doubt not in say_doubt(doubt)


def test_no_doubt_needs_no_words():
    assert say_doubt(None) == ""
