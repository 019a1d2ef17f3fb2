"""Everyday changes, made in a copy of the package in the one or two files where one would look.

A framework, a counter and a column of `top`: tests/agent/test_frameworks.py,
tests/core/test_counters.py, tests/ui/test_columns.py.
"""

import json
import re
from importlib.util import find_spec

import appkit
import pytest
from changed_package import REPOSITORY, ChangedPackage
from system.fakemac.double import build as build_fake_mac


@pytest.fixture
def package(tmp_path):
    return ChangedPackage(tmp_path)


def test_how_long_history_is_kept_is_one_number(package):
    package.replace("history/retention.py", "KEEP_DAYS = 7", "KEEP_DAYS = 30")
    output = package.run("""
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

import contextlib, sys, time
from mpsbar.cli.main import run
from mpsbar.end_reader import read_all_ends
from mpsbar.system import paths
now = time.time()
connection = database.open_database(paths.history_file(), 50_000_000)
for days in (10, 31):
    ended = int(now - days * 86400) * 1000
    connection.execute(
        "INSERT INTO runs (pid, name, head, connected, first, last, ended, how) VALUES (?, 'train.py', 1, 1, ?, ?, ?, 'finished')",
        (4_000_000 + days, ended - 60_000, ended, ended),
    )
print([end.pid for end in read_all_ends(now)])
with contextlib.redirect_stderr(sys.stdout):
    run(["why", "serve.py"])
""")
    assert output.splitlines() == [
        "[(10,), (29,)]",
        "(1, 720)",
        "[4000010]",
        "mpsbar: no run that ended in the last 30 days matches 'serve.py'; to see all: mpsbar why",
    ]


def test_a_value_of_the_gpu_from_iokit_to_the_menu(package, build_once):
    """Its key where IOKit's are, and a field of Gpu with its words: JSON has it too.

    It would be the same for a temperature, but none of the recorded Macs has one in IOKit: Apple
    silicon gives it to the SMC and to HID sensors, which mpsbar does not read.
    """
    package.insert(
        "system/macos/iokit_values.py",
        "        memory_in_use=_memory_in_use(statistics),",
        """        renderer=_count(statistics.get("Renderer Utilization %")),
        plugin=_text(properties.get("MetalPluginName")),""",
    )
    package.replace(
        "system/macos/iokit_values.py",
        "FIXED = (MODEL, CORES, MATCHED_CLASS)",
        'FIXED = (MODEL, CORES, MATCHED_CLASS, "MetalPluginName")',
    )
    package.insert(
        "core/gpu.py",
        "    memory_in_use:",
        """    renderer: int | None = shown(mark("renderer {value}%"), "number")
    plugin: str | None = None""",
    )
    _, library = build_once("fakemac", lambda folder: str(build_fake_mac(folder) or ""))
    if not library:
        pytest.skip("no C compiler to build the fake Mac with")
    output = package.run(f"""
import json
from pathlib import Path
from readings_kit import read_accelerators
from system.fakemac.double import FakeMac
from mpsbar.core.snapshot import Snapshot
from mpsbar.history.report.page import Report, render_report
from mpsbar.system.macos import MacComputer
from mpsbar.ui.menu import build_menu
from dataclasses import replace
from mpsbar.ui.text.machine import describe_gpu
from mpsbar.ui.status_table import render_status
from mpsbar.ui.text.status_json import build_status

mac = FakeMac(Path({library!r}))
recorded = read_accelerators("macos27-m4.ioreg.txt")[0]
mac.add_accelerator({{**recorded, "MetalPluginName": "AGXMetalG16G"}})
computer = MacComputer(mac.libraries, lambda: None)
snapshot = Snapshot(0.0, machine=computer.read_machine())
print(json.dumps(build_status(snapshot)["machine"]["gpu"]))
texts = str(build_menu(snapshot)), render_status(snapshot), render_report(Report("1", snapshot), "", "")
print(*("GPU 17% · renderer 15%" in text for text in texts))
print(describe_gpu(replace(snapshot.machine.gpu, renderer=None)))
assert mac.faults == "", mac.faults
""")
    values, in_texts, unknown = output.splitlines()
    shown = json.loads(values)
    assert (shown["name"], shown["utilization"]) == ("Apple M4", 17.0)
    assert (shown["renderer"], shown["plugin"]) == (15, "AGXMetalG16G")
    assert in_texts == "True True True"
    assert unknown.startswith("GPU 17% · renderer ?% · ")


def test_the_words_of_the_leak_notice(package):
    """Its sentence, its titles, the settings' name of it and its end are one file."""
    package.replace("ui/text/alerts.py", "Possible Memory Leak", "Memory Keeps Growing")
    package.replace("ui/text/alerts.py", "possible memory leak", "memory keeps growing")
    output = package.run("""
from pathlib import Path
import mpsbar
left = [p.name for p in Path(mpsbar.__file__).parent.rglob("*.py") if "possible memory leak" in p.read_text().lower()]
print(left)
from mpsbar.core.events import Alert
from mpsbar.core.findings import Reason
from mpsbar.ui.text.alerts import say_alert
leak = Reason("leak", "warning", {"growth": 1 << 30, "seconds": 400.0}, 7)
print(*say_alert(Alert("leak", "warning", 7, 100.0, leak, "raised", "key", "train.py")), sep="\\n")
""")
    assert output.splitlines() == [
        "[]",
        "Warning: Memory Keeps Growing",
        "train.py grew by 1.0 GB more than its tensors in 7 min: memory keeps growing",
    ]


def test_free_by_a_part_of_the_name(package):
    """Which processes a command means is one file."""
    package.replace(
        "cli/targets.py",
        "if is_called(name, *_names_of(worker, snapshot))",
        "if any(name in each for each in _names_of(worker, snapshot))",
    )
    output = package.run("""
import os
os.environ["MPSBAR_REPLAY"] = "m1-8gb"
from mpsbar import snapshot as read_snapshot
from mpsbar.cli.targets import find_pids
print(find_pids(["tune"], read_snapshot()))
""")
    assert output == "[5000101]\n"


def test_a_new_command_of_the_command_line(package):
    package.insert(
        "cli/main.py", '        "free":', '        "held": "print what all workers hold",'
    )
    package.write(
        "cli/held.py",
        """
from mpsbar import snapshot as read_snapshot

DESCRIPTION, EXAMPLES = "Prints what all workers hold.", ("mpsbar held",)

def add_arguments(parser):
    parser.add_argument("--bytes", action="store_true", help="print bytes")

def run(options):
    print("bytes" if options.bytes else "units", read_snapshot().held)
    return 0
""",
    )
    output = package.run("""
import os, subprocess, sys
os.environ["MPSBAR_REPLAY"] = "m1-8gb"
for arguments in (["--help"], ["held", "--help"], ["held", "--bytes"]):
    subprocess.run([sys.executable, "-m", "mpsbar", *arguments])
""")
    assert re.search(r"^\w* +held +print what all workers hold$", output, re.MULTILINE)
    assert "usage: mpsbar held [-h] [--bytes]\n\nPrints what all workers hold.\n" in output
    assert output.splitlines()[-1].split()[0] == "bytes"
    assert int(output.split()[-1]) > 2**30


@pytest.mark.skipif(find_spec("textual") is None, reason="textual is not here")
def test_a_new_key_of_top(package):
    package.insert(
        "ui/terminal/keys.py",
        '    KeyBinding("v", "tree"',
        """    KeyBinding("D", "menu('diagnostics')", "copy diagnostics", "Diagnose"),""",
    )
    output = package.run("""
from samples import make_snapshot
from ui.fake_monitor import FakeMonitor
from ui.terminal_kit import play

async def person(p):
    print("D Diagnose" in p.screen())
    await p.press("D")
    print(p.asked)
    await p.press("question_mark")
    print(" D " in p.screen() and "copy diagnostics" in p.screen())

play(FakeMonitor(make_snapshot()), person, (200, 50))
""")
    assert output == "True\n[InspectPythons()]\nTrue\n"


def test_the_icon_on_a_warning(package):
    """The mark beside it in ui/bar, its picture in ui/menubar/icon."""
    if why := appkit.why_no_rumps():
        pytest.skip(why)
    package.replace("ui/bar.py", '"warning": "!"', '"warning": "?"')
    package.replace("ui/menubar/icon.py", '"warning": "icon-warning"', '"warning": "icon-other"')
    resources = package.folder / "resources"
    (resources / "icon-warning.png").rename(resources / "icon-other.png")
    for scale in ("@2x", "@3x"):
        (resources / f"icon-warning{scale}.png").rename(resources / f"icon-other{scale}.png")
    (package.folder / "pyproject.toml").touch()  # the mark of a checkout
    output = package.run("""
import appkit
from samples import make_snapshot, make_training
from ui.menubar_kit import play
from mpsbar.core.findings import Health, Reason

with appkit.installed(bundle="io.github.mpsbar", forget=("mpsbar.ui", "mpsbar.desktop")) as mac:
    def person(user):
        print(mac.bar(), mac.item().button().image().isTemplate())
    health = Health("warning", (Reason("pressure", "warning"),))
    play(mac, make_snapshot(make_training(), health=health), person)
""")
    assert output.split() == ["6.0", "GB", "?", "True"]


# The line that someone writes for a new operation of the probe.
DOUBLED = '    "doubled": (lambda t: t.make(3).double, FLOATS),'


@pytest.fixture
def with_doubled(package):
    package.insert("dtypes/operations.py", '    "sum": (', DOUBLED)
    return package


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not here")
def test_one_more_operation_in_the_probe(with_doubled):
    output = with_doubled.run("""
import json, subprocess, sys
done = subprocess.run(
    [sys.executable, "-m", "mpsbar", "probe", "--python", sys.executable, "--device", "cpu", "--json", "--force"],
    capture_output=True, text=True,
)
cells = json.loads(done.stdout)["cells"]
print([cell["state"] for cell in cells if (cell["operation"], cell["dtype"]) == ("doubled", "float32")])
""")
    assert output == "['works']\n"


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not here")
def test_one_more_operation_needs_no_test_edited(with_doubled):
    """The tests of the probe, its results, verdicts and tables pass in the changed package."""
    tests = REPOSITORY / "tests"
    files = [
        f"{tests}/core/test_dtype_results.py", f"{tests}/dtypes/test_verdicts.py",
        f"{tests}/dtypes/test_summary.py", f"{tests}/dtypes/test_table.py",
        f"{tests}/dtypes/test_headlines.py", f"{tests}/dtypes/test_text.py",
        f"{tests}/dtypes/test_preconditions.py", f"{tests}/dtypes/test_results.py",
        f"{tests}/dtypes/test_dtype_child.py::test_every_cell_is_reported_on_the_cpu",
    ]  # fmt: skip
    output = with_doubled.run(f"""
import os
for name in [name for name in os.environ if name.startswith("PYTEST")]:
    del os.environ[name]
import mpsbar, pytest
from mpsbar.dtypes.operations import OPERATIONS
code = pytest.main(["-q", "-p", "no:cacheprovider", "-c", {str(REPOSITORY / "pyproject.toml")!r}, *{files!r}])
print()
print("doubled" in OPERATIONS, int(code))
""")
    assert output.splitlines()[-1] == "True 0", output


def test_one_more_operation_is_on_one_page_that_make_reference_writes(with_doubled):
    """tests/cli/test_json_schema.py asks for `make reference` after it; no other made file changes."""
    code = f"""
import json, sys
import mpsbar
sys.path.append({str(REPOSITORY / "packaging")!r})
import build_reference
print(json.dumps(build_reference.build_files()))
"""
    changed = json.loads(with_doubled.run(code).splitlines()[-1])
    with_doubled.replace("dtypes/operations.py", DOUBLED + "\n", "")
    usual = json.loads(with_doubled.run(code).splitlines()[-1])
    assert [path for path in usual if changed[path] != usual[path]] == ["docs/reference/probe.md"]
    assert "| `doubled` | • | • |" in changed["docs/reference/probe.md"]
