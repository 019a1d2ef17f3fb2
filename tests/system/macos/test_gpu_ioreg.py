"""The command ioreg stands in for IOKit, and only then."""

import sys
from dataclasses import replace

import pytest
from readings_kit import FOLDER

from mpsbar.core.gpu import Gpu
from mpsbar.system.macos import MacComputer, gpu
from mpsbar.system.macos.native import Libraries

# A child that must start, print and end, on a busy machine.
PATIENT = 60.0


@pytest.fixture
def make_ioreg(tmp_path):
    """A command that notes each start and the arguments and environment it was given."""

    def make(code):
        path = tmp_path / "ioreg"
        note = f"import os, sys; open({str(tmp_path / 'runs')!r}, 'a').write("
        note += "f'{sys.argv[1:]} {os.environ.get(\"LC_ALL\")}\\n')"
        path.write_text(f"#!{sys.executable} -IS\n{note}\n{code}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def runs(tmp_path):
    def read():
        path = tmp_path / "runs"
        return path.read_text().splitlines() if path.exists() else []

    return read


@pytest.fixture(autouse=True)
def _long_timeout(monkeypatch):
    """The product's 5 s are for a Mac's own ioreg; here a Python has to start."""
    monkeypatch.setattr(gpu, "IOREG_SECONDS", PATIENT)


@pytest.fixture
def without_iokit(mac, clock):
    def make(path):
        mac.set_memory()
        libraries = replace(mac.libraries, iokit="/nowhere/IOKit", ioreg=path)
        return MacComputer(libraries, lambda: None, clock)

    return make


def show(reading):
    return f"sys.stdout.buffer.write(open({str(FOLDER / reading)!r}, 'rb').read())"


TREE = """\
<plist version="1.0"><array><dict>
<key>IOObjectClass</key><string>AGXAcceleratorG16G</string>
<key>PerformanceStatistics</key><dict><key>Device Utilization %</key><real>101</real></dict>
<key>IORegistryEntryChildren</key><array><dict>
<key>IOObjectClass</key><string>AGXDeviceUserClient</string>
<key>IORegistryEntryID</key><integer>99</integer>
<key>IOUserClientCreator</key><string>pid 123, a, b</string>
<key>AppUsage</key><array><dict><key>accumulatedGPUTime</key><integer>5</integer></dict></array>
</dict></array></dict></array></plist>"""


def test_the_command_stands_in_for_a_missing_iokit(without_iokit, make_ioreg, runs):
    computer = without_iokit(make_ioreg(show("macos-m4pro.ioreg.plist")))
    machine = computer.read_machine()
    assert machine.gpu == Gpu("Apple M4 Pro", 16, 12.0, 1270726656)
    assert machine.on_battery is False  # through psutil, which needs none of ours
    (problem,) = computer.problems
    assert problem.reader == "gpu"
    assert problem.text.startswith("IOKit: /nowhere/IOKit")
    assert problem.text.endswith("; read through ioreg, more seldom")
    expected = ["-a", "-l", "-r", "-d", "2", "-w", "0", "-c", "IOAccelerator"]
    assert runs() == [f"{expected} C"]


def test_it_runs_every_half_minute_at_most(without_iokit, make_ioreg, runs, clock):
    computer = without_iokit(make_ioreg(show("macos-m4pro.ioreg.plist")))
    for _ in range(3):
        assert computer.read_machine().gpu.utilization == 12.0
        computer.read_gpu_clients()
        clock.now += 9
    assert len(runs()) == 1
    clock.now += 9
    computer.read_machine()
    assert len(runs()) == 2


def test_it_runs_no_more_often_when_it_fails(without_iokit, make_ioreg, runs):
    computer = without_iokit(make_ioreg("sys.exit('ioreg: error')"))
    for _ in range(3):
        assert computer.read_machine().gpu == Gpu()
        assert computer.read_gpu_clients() is None
    assert len(runs()) == 1
    (problem,) = computer.problems
    assert problem.text.endswith("; OSError: ioreg: exit code 1")


def test_clients_are_not_known_by_the_command(without_iokit, make_ioreg):
    """Half a minute old, it would deny who has opened the GPU since."""
    computer = without_iokit(make_ioreg(f"print({TREE!r})"))
    assert computer.read_machine().gpu.utilization == 100.0
    assert computer.read_gpu_clients() is None


def test_it_is_asked_while_iokit_fails_and_no_longer(mac, make_computer, make_ioreg, clock, runs):
    mac.set_memory()
    computer = make_computer(libraries=replace(mac.libraries, ioreg=make_ioreg(f"print({TREE!r})")))
    for error in (1, 5):  # nothing to match with; a search that is refused
        mac.c.fake_registry_errors(error, 0, 0, 0)
        assert computer.read_machine().gpu.utilization == 100.0
        assert computer.read_machine().gpu.utilization == 100.0
        clock.now += 31
    mac.c.fake_registry_errors(0, 0, 0, 0)
    mac.add_accelerator({"IOObjectClass": "AGXAcceleratorG13G", "model": "Apple M1"})
    assert computer.problems
    assert computer.read_machine().gpu.name == "Apple M1"
    assert computer.problems == ()
    assert len(runs()) == 2
    mac.c.fake_registry_errors(0, 1, 0, 0)
    assert computer.read_gpu_clients() is None
    assert len(runs()) == 2
    assert mac.held == (0, 1)


def test_it_is_not_asked_where_there_is_no_accelerator(mac, make_computer, make_ioreg, runs):
    computer = make_computer(libraries=replace(mac.libraries, ioreg=make_ioreg("")))
    assert computer.read_machine().gpu == Gpu()
    assert computer.read_gpu_clients() is None
    assert runs() == []


@pytest.mark.parametrize(
    "code",
    [
        "print('<plist><array>')",
        "print('no list')",
        "print('<plist><dict></dict></plist>')",
        "print('<plist><array><integer>x</integer></array></plist>')",
        "sys.stdout.buffer.write(b'bplist00' + bytes(range(256)))",
    ],
)
def test_output_that_is_no_list(make_ioreg, code):
    with pytest.raises(OSError, match="ioreg: "):
        gpu.read_accelerators(make_ioreg(code), PATIENT)


def test_entries_that_are_no_dictionaries_are_left_out():
    assert gpu.parse_accelerators(b"<plist><array><integer>1</integer></array></plist>") == []


@pytest.mark.usefixtures("each_systems_sockets")
def test_no_output_is_no_accelerator(make_ioreg):
    assert gpu.read_accelerators(make_ioreg(show("macos-no-accelerator.ioreg.txt")), PATIENT) == []


@pytest.mark.usefixtures("each_systems_sockets")
def test_a_command_that_hangs_is_ended(make_ioreg):
    path = make_ioreg(
        "import time; sys.stdout.write('<plist>'); sys.stdout.flush(); time.sleep(999)"
    )
    with pytest.raises(TimeoutError):
        gpu.read_accelerators(path, 0.3)


@pytest.mark.usefixtures("each_systems_sockets")
def test_output_without_end_is_cut(make_ioreg, monkeypatch):
    monkeypatch.setattr(gpu, "_MAX_BYTES", 1 << 20)
    with pytest.raises(OSError, match="does not end"):
        gpu.read_accelerators(make_ioreg("while True: sys.stdout.write('x' * 65536)"), PATIENT)


def test_a_missing_command():
    with pytest.raises(FileNotFoundError):
        gpu.read_accelerators("/nowhere/ioreg", PATIENT)


def test_the_real_paths():
    """Of the system's own, none of a package manager's; the frameworks have no file on disk."""
    libraries = Libraries()
    for path in (libraries.system, libraries.iokit, libraries.core_foundation, libraries.ioreg):
        assert path.startswith(("/usr/lib/", "/usr/sbin/", "/System/Library/Frameworks/"))
