"""One list of counters: it fits the model, and a row more is seen on the wire, in JSON, tables and history."""

import sqlite3
from dataclasses import fields

import pytest
from changed_package import ChangedPackage

from mpsbar.core.counters import COUNTERS, RECORDED, SENT, Backend, sum_known
from mpsbar.history import database

ROW = '    Counter("graphs", "in compiled graphs", rank=9, recorded=4),'
FIELD = "    graphs: int | None = None"
WORKER = """
from mpsbar.core.snapshot import Snapshot
from mpsbar.workers.parse import parse_worker

backends = {"mps": {"framework": "torch", "state": "in use", "allocated": 1 << 30, "graphs": 77 << 20}}
worker = parse_worker(7, {"argv": ["python", "train.py"]}, {"backends": backends}, "live", 0.0)
snapshot = Snapshot(1000.0, (worker,))
"""


@pytest.fixture
def with_graphs(tmp_path):
    """The two lines that someone writes for a new counter."""
    package = ChangedPackage(tmp_path)
    package.insert("agent/counters.py", '    Counter("budget"', ROW)
    package.insert("core/counters.py", "    budget: int | None", FIELD)
    return package


def test_the_list_fits_the_model():
    sent = [field.name for field in fields(Backend)][3:]
    sent.remove("activity")  # nobody is shown it
    assert sorted(counter.name for counter in SENT) == sorted(sent)
    backend = Backend("mps", "torch", "in use", 1, 3, 6, 4, 9, 8)
    assert {counter.name: counter.read(backend) for counter in COUNTERS} == {
        "allocated": 1, "cached": 2, "other": 3, "reserved": 3, "driver": 6, "peak": 4, "held": 6,
        "budget": 9, "limit": 8,
    }  # fmt: skip
    assert RECORDED == ("allocated", "cached", "held", "footprint", "speed")


def test_one_more_counter_is_in_json_and_in_all_tables(with_graphs):
    output = with_graphs.run(f"""{WORKER}
from mpsbar.history.report.page import build_workers
from mpsbar.ui.columns import explain_counters
from mpsbar.ui.process_table import build_rows, choose_columns
from mpsbar.ui.status_table import render_table as render_status
from mpsbar.ui.text.status_json import build_status

shown = build_status(snapshot)["workers"][0]
print(shown["graphs"], shown["backends"][0]["graphs"])
for line in render_status(snapshot).splitlines():
    print(" ".join(line.split()))
rows = build_rows(snapshot)
for width in (60, 200):
    columns = choose_columns(rows, snapshot, width, "top")
    print("GRAPHS" in [column.key for column in columns], rows[0].cells["GRAPHS"])
page = build_workers(snapshot)
print(">Graphs<" in page, ">77.0 MB<" in page)
print(*explain_counters(), sep="; ")
""")
    head = "PID NAME DEVICE HELD ALLOCATED CACHED PEAK GRAPHS FOOTPRINT NOTE"
    row = "7 train.py mps 1.0 GB 1.0 GB ? ? 77.0 MB ?"
    assert output.splitlines() == [
        f"{77 << 20} {77 << 20}", head, row, "False 77.0 MB", "True 77.0 MB", "True True",
        "held: everything the driver gave the process; allocated: in live tensors; "
        "cached: kept for reuse; peak: the most that was ever allocated; "
        "graphs: in compiled graphs; limit: the limit that was set for the process",
    ]  # fmt: skip


def test_one_more_counter_is_in_memory_and_in_the_notebook(with_graphs):
    """The agent has the same list."""
    with_graphs.replace(
        "agent/backends/mlx.py", '"peak": _call("get_peak_memory")(),', '"peak": 9, "graphs": 7,'
    )
    output = with_graphs.run("""
import sys
from types import ModuleType

core = sys.modules["mlx.core"] = ModuleType("mlx.core")
core.get_active_memory, core.get_cache_memory = lambda: 4, lambda: 1

import mpsbar
from mpsbar.agent.backends import mlx
mlx.state = lambda gpu_client: "in use"
from mpsbar.agent import methods
from mpsbar.agent.notebook_text import describe_memory
print({name: value for name, value in mpsbar.memory().items() if name != "resident"})
print(describe_memory(methods.stats({})["backends"]))
""")
    assert output.splitlines() == [
        "{'allocated': 4, 'cached': 1, 'reserved': 5, 'peak': 9, 'held': 5, 'graphs': 7}",
        "device  held  allocated  cached  peak  graphs",
        "mlx      5 B        4 B     1 B   9 B     7 B",
    ]


def test_one_more_counter_is_recorded_also_in_an_older_file(with_graphs):
    output = with_graphs.run(f"""{WORKER}
import sqlite3
from pathlib import Path
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.history import database, reader, retention, writer
from mpsbar.history.report.charts import build_charts

file = Path("history.sqlite")
file.touch(0o600)
old = sqlite3.connect(file)
old.executescript(database.STEPS[0] + "; PRAGMA user_version = 1;")
old.execute("INSERT INTO runs (id, pid, name, connected, first, last) VALUES (1, 5, 'old', 1, 900000, 990000)")
old.execute("INSERT INTO samples VALUES (990000, 1, 10, 20, 30, 40)")
old.commit()
old.close()
(run,) = reader.read_period(0, 2000, 10, file).runs
print(run.series.columns["held"], run.series.columns["graphs"])

tracker, waiting = ProcessTracker(), writer.PendingRows()
waiting.add(snapshot, tracker.present.values(), tracker.update(snapshot))
waiting.add(snapshot, tracker.present.values(), [])
connection = database.open_database(file, 50_000_000)
print(database.read_version(connection), len(database.STEPS))
writer.RunWriter().write(connection, waiting)
retention.thin(connection, 10_000_000)
connection.close()
period = reader.read_period(0, 2000, 10, file)
print([(run.name, run.known["graphs"], run.series.columns["graphs"]) for run in period.runs])
print("graphs</" in build_charts((period,), None, ''))
""")
    graphs = 77 << 20
    assert output.splitlines() == [
        "(30,) (None,)",
        "4 3",
        str([("train.py", graphs, (graphs,)), ("old", None, (None,))]),
        "True",
    ]


def test_an_older_mpsbar_leaves_a_file_with_one_more_counter_alone(with_graphs, tmp_path):
    with_graphs.run("""
from pathlib import Path
from mpsbar.history.database import open_database
open_database(Path("history.sqlite"), 50_000_000).close()
""")
    file = tmp_path / "history.sqlite"
    with pytest.raises(database.NewerFormatError):
        database.open_database(file, 50_000_000)
    with sqlite3.connect(file) as connection:
        assert database.read_version(connection) == 4


def test_a_sum_of_what_is_known():
    assert (sum_known([1, None, 2]), sum_known([0, None]), sum_known([None]), sum_known([])) == (
        3,
        0,
        None,
        None,
    )
