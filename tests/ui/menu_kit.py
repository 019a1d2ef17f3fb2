"""The menu of the app as its rows by their keys, and a worker for it."""

from functools import partial

from samples import GB, make_training

from mpsbar.ui.rows import UiState

APP = UiState(is_clickable=True, login="off")
MAX_ROWS = APP.most
COUNTERS = {"allocated": 2 * GB, "reserved": 5 * GB, "driver": 6 * GB}
worker = partial(make_training, **COUNTERS)


def rows(menu):
    found, left = {}, list(menu.rows)
    while left:
        row = left.pop(0)
        assert row.key not in found, f"two rows are called {row.key}"
        found[row.key] = row
        left += row.children
    return found
