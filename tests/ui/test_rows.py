"""A row as text, its bar, and what is left of it when its process has ended."""

import pytest
from samples import make_snapshot
from ui.menu_kit import APP, rows, worker

from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import Row


def test_what_ended_says_so_and_cannot_be_clicked():
    row = rows(build_menu(make_snapshot(worker()), APP))["worker-4711"].ended()
    assert (row.text, row.cells) == ("train.py, ended", ("train.py", "", "", "ended"))
    assert not any(child.actions or child.opens for child in row.children)
    found = rows(build_menu(make_snapshot(), APP))["found"].ended()
    assert (found.text, found.actions) == ("", ())


@pytest.mark.parametrize(
    ("share", "bar"),
    [(None, ""), (0.0, "─────"), (0.01, "━────"), (0.5, "━━───"), (0.9, "━━━━─"), (1.0, "━━━━━")],
)
def test_the_bar_of_a_row(share, bar):
    """Rounded, but what is there is seen."""
    assert Row("a", "a", share=share).share_bar == bar
