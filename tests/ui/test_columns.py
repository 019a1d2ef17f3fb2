"""One list of columns: a row more is shown by `status`, `top` and the report."""

import pytest
from changed_package import ChangedPackage

from mpsbar.ui.columns import COLUMNS, REPORTED

ROW = '    Column("STARTED", "Parent", lambda one: one.parent, lambda _, parent: f"by {parent}", 19, is_outside=True),'


@pytest.fixture
def with_parent(tmp_path):
    package = ChangedPackage(tmp_path)
    package.insert("ui/columns.py", '    Column("NOTE"', ROW)
    return package


def test_each_has_a_key_and_a_rank_of_its_own():
    keys = [column.key for column in COLUMNS]
    ranks = [column.rank for column in COLUMNS if column.rank]
    assert len(set(keys)) == len(keys)
    assert len(set(ranks)) == len(ranks)
    assert [column.key for column in COLUMNS if not column.rank] == ["NAME", "NOTE"]
    assert REPORTED[0].key == "NAME"  # the first of an HTML row names it


def test_one_more_column_is_shown_everywhere(with_parent):
    output = with_parent.run("""
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.history.report.page import build_unconnected, build_workers
from mpsbar.ui.process_table import build_rows, choose_columns
from mpsbar.ui.terminal.order import arrange
from mpsbar.ui.status_table import render_table as render_status

workers = tuple(Worker(pid, f"{pid}.py", "live", 0.0, parent=parent) for pid, parent in ((7, 41), (8, 43)))
snapshot = Snapshot(0.0, workers, processes=(Process(9, 1.0, "x.py", ("torch",), parent=42),))
for line in render_status(snapshot).splitlines():
    print("STARTED" in line, *(f"by {n}" for n in (41, 42, 43) if f"by {n}" in line))
rows = arrange(build_rows(snapshot), "STARTED", True)
print(*(row.cells["STARTED"] for row in rows))
for width in (160, 60):
    print("STARTED" in [one.header for one in choose_columns(rows, snapshot, width, "top")])
print(">Parent<" in build_workers(snapshot), ">by 41<" in build_workers(snapshot))
print(">Parent<" in build_unconnected(snapshot, ""), ">by 42<" in build_unconnected(snapshot, ""))
""")
    assert output.splitlines() == [
        "True", "False by 41", "False by 43", "False by 42",  # status, in its own order
        "by 43 by 42 by 41",  # top, sorted by it
        "True", "False", "True True", "True True",
    ]  # fmt: skip
