"""The rows of the commands."""

from dataclasses import replace

from samples import make_snapshot
from ui.menu_kit import APP, rows

from mpsbar.core.actions import Command
from mpsbar.ui.menu import build_menu


def test_a_report_being_made_is_reported():
    found = rows(build_menu(make_snapshot(), replace(APP, is_reporting=True)))
    assert (found["report"].text, found["report"].actions) == ("Creating Report…", ())
    assert rows(build_menu(make_snapshot(), APP))["report"].actions == (Command.OPEN_REPORT,)
