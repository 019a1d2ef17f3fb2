"""Everyday changes, made in a copy of the package in the one or two files where one would look.

A framework, a counter and a column: tests/agent/test_frameworks.py, tests/core/test_counters.py,
tests/ui/test_columns.py.
"""

import json
from importlib.util import find_spec

import pytest
from changed_package import ChangedPackage
from system.fakemac.double import build as build_fake_mac


@pytest.fixture
def package(tmp_path):
    return ChangedPackage(tmp_path)


def test_how_long_history_is_kept_is_one_number(package):
    package.replace("history/retention.py", "KEEP = 7 * 24 * _HOUR", "KEEP = 30 * 24 * _HOUR")
    told = package.run("""
from pathlib import Path
from mpsbar.history import database, retention
from mpsbar.history.report import build

connection = database.open_database(Path("history.sqlite"), 50_000_000)
day = 86_400_000
for days in (10, 29, 31):
    connection.execute("INSERT INTO minutes (time, run) VALUES (?, 1)", ((100 - days) * day,))
retention.drop(connection, 100 * day)
print(connection.execute("SELECT 100 - time / 86400000 FROM minutes ORDER BY 1").fetchall())
build.read_start = lambda: 0.0
build.read_period = lambda since, until, points: round((until - since) / 3600)
print(build._read_periods(100 * 86400.0))
""")
    assert told.splitlines() == ["[(10,), (29,)]", "(1, 720)"]


def test_a_new_value_of_iokit_is_read_named_and_shown(package, build_once):
    """Its key where IOKit's are and a field of Gpu; a Mac's driver is read, JSON has both then."""
    package.insert(
        "system/macos/accelerator.py",
        "        memory_in_use=_memory_in_use(statistics),",
        """        temperature=_count(statistics.get("Temperature(C)")),
        plugin=_text(properties.get("MetalPluginName")),""",
    )
    package.replace(
        "system/macos/accelerator.py",
        "FIXED = (MODEL, CORES)",
        'FIXED = (MODEL, CORES, "MetalPluginName")',
    )
    package.insert(
        "core/machine.py",
        "    memory_in_use:",
        "    temperature: int | None = None\n    plugin: str | None = None",
    )
    _, library = build_once("fakemac", lambda folder: str(build_fake_mac(folder) or ""))
    if not library:
        pytest.skip("no C compiler to build the fake Mac with")
    told = package.run(f"""
import json
from pathlib import Path
from readings_kit import read_accelerators
from system.fakemac.double import FakeMac
from mpsbar.core.snapshot import Snapshot
from mpsbar.system.macos import MacComputer
from mpsbar.ui.text.status_json import build_status

mac = FakeMac(Path({library!r}))
recorded = read_accelerators("macos27-m4.ioreg.txt")[0]
statistics = {{**recorded["PerformanceStatistics"], "Temperature(C)": 61}}
mac.add_accelerator({{**recorded, "PerformanceStatistics": statistics, "MetalPluginName": "AGXMetalG16G"}})
computer = MacComputer(mac.libraries, lambda: None)
print(json.dumps(build_status(Snapshot(0.0, machine=computer.read_machine()))["machine"]["gpu"]))
assert mac.faults == "", mac.faults
""")
    shown = json.loads(told)
    assert (shown["name"], shown["utilization"]) == ("Apple M4", 17.0)
    assert (shown["temperature"], shown["plugin"]) == (61, "AGXMetalG16G")


def test_a_word_more_about_the_gpu_is_in_the_menu_status_and_report(package):
    package.replace(
        "ui/text/wording.py",
        'words = [_("GPU {percent}")',
        'words = ["61 degrees", _("GPU {percent}")',
    )
    told = package.run("""
from mpsbar.core.machine import Gpu, Machine
from mpsbar.core.snapshot import Snapshot
from mpsbar.history.report.page import Report
from mpsbar.history.report.page import render_report
from mpsbar.ui.menu import build_menu
from mpsbar.ui.text.status import render_status

snapshot = Snapshot(0.0, machine=Machine(gpu=Gpu(utilization=40.0)))
shown = str(build_menu(snapshot)), render_status(snapshot), render_report(Report("1", snapshot, None), "", "")
print(*("61 degrees" in text for text in shown))
""")
    assert told == "True True True\n"


def test_the_words_of_the_leak_notice(package):
    """Its titles, the settings' name of it and its end in ui/text/alerts, its sentence in findings."""
    package.replace("ui/text/alerts.py", "erhaps a leak", "ossible memory leak")
    package.replace("ui/text/alerts.py", "Perhaps a Leak", "Possible Memory Leak")
    package.replace("ui/text/findings.py", "perhaps a leak", "a possible memory leak")
    told = package.run("""
from pathlib import Path
import mpsbar
left = [p.name for p in Path(mpsbar.__file__).parent.rglob("*.py") if "perhaps a leak" in p.read_text().lower()]
print(left)
""")
    assert told == "[]\n"


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not here")
def test_one_more_operation_in_the_probe(package):
    package.insert(
        "dtypes/operations.py",
        '    "sum": (',
        '    "doubled": (lambda p: p.make(3).double, FLOATS),',
    )
    told = package.run("""
import json, subprocess, sys
done = subprocess.run(
    [sys.executable, "-m", "mpsbar", "probe", "--device", "cpu", "--json", "--force"],
    capture_output=True, text=True,
)
print(done.stdout, done.stderr)
""")
    assert "doubled" in told
