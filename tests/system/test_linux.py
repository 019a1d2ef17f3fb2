"""Linux as it really is: processes of every kind found by what they have loaded, and a whole /proc of hard cases."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path

import pytest
from read_timeouts_kit import hurry
from worker_kit import ROOT, TIMEOUT, need_module, wait_for

from mpsbar.core.machine import Problem
from mpsbar.system.linux import (
    _CHARGED,
    LinuxComputer,
    parse_kilobytes,
    parse_maps,
    parse_pressure,
    parse_stat,
)
from mpsbar.system.scan import FOUND_WAIT, LONGEST_WAIT, Scanner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

READY = "\nprint('ready', flush=True)\nimport time\ntime.sleep(3600)\n"
# What an import of torch maps into its process, without the second of a core that Python's part of it takes.
LOAD_TORCH = """
import ctypes, importlib.util, os
ctypes.CDLL(os.path.dirname(importlib.util.find_spec("torch").origin) + "/lib/libtorch_cpu.so")
"""


@pytest.fixture
def started():
    """Start processes, wait until they are ready, end them."""
    processes = []

    def start(*command, env=None, **popen):
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            env=os.environ | (env or {}),
            start_new_session=True,
            **popen,
        )
        processes.append(process)
        assert process.stdout.readline().strip() == b"ready"
        return process

    yield start
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(TIMEOUT)
        process.stdout.close()


def python(code, *arguments):
    return (sys.executable, "-c", code + READY, *arguments)


def look_for(*pids):
    """A fresh look, as far as it concerns these processes: name, frameworks by pid."""
    scanner = Scanner(LinuxComputer())
    try:
        found = scanner.scan(TIMEOUT).processes
    finally:
        scanner.close()
    return {process.pid: process for process in found if process.pid in pids}


def test_found_by_what_is_loaded_never_by_a_name(started, tmp_path):
    """torch and MLX in several shapes are found; everything that only looks like it is not."""
    need_module("mlx")
    mlx = "import mlx.core"
    # A program that is no python: torch's library in a renamed copy of nothing but an interpreter.
    frozen = tmp_path / "Paint"
    frozen.write_bytes(Path(os.path.realpath(sys.executable)).read_bytes())
    frozen.chmod(0o755)
    home = {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    loader = textwrap.dedent("""\
        import os
        if not os.fork():
            import time; time.sleep(3600)
        """)
    data = tmp_path / "libtorch_cpu.so"
    data.write_bytes(b"x" * 10_000)
    mapping = f"import mmap; f = open({str(data)!r}, 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)"
    expected = {
        started(*python("import torch")).pid: ("torch",),
        started(*python(LOAD_TORCH), env={"RANK": "1", "WORLD_SIZE": "2"}).pid: ("torch",),
        started(*python(mlx)).pid: ("mlx",),
        started(*python(f"{LOAD_TORCH}\n{mlx}")).pid: ("torch", "mlx"),
        started(*python(LOAD_TORCH + loader)).pid: ("torch",),
        started(str(frozen), "-c", LOAD_TORCH + READY, env=home).pid: ("torch",),
    }
    not_it = {
        started(*python("torch = 1"), "torch").pid,
        started(*python("import json")).pid,
        started(*python(mapping)).pid,  # as data: what a linker or grep does
        started("sh", "-c", "echo ready; sleep 3600").pid,
    }
    found = look_for(*expected, *not_it)
    assert {pid: process.frameworks for pid, process in found.items()} == expected
    names = {process.name for process in found.values()}
    assert {"python -c", "python -c rank 1 of 2", "Paint"} <= names


def test_what_is_known_of_one(started):
    env = {
        "PYTORCH_ENABLE_MPS_FALLBACK": "1",
        "SECRET_TOKEN": "hunter2",
        "PYTORCH_X": "a\nb\x1b[31m",
    }
    process = started(*python("import torch"), env=env)
    (found,) = look_for(process.pid).values()
    assert found.settings == {"PYTORCH_ENABLE_MPS_FALLBACK": "1", "PYTORCH_X": "***"}
    assert "hunter2" not in repr(found)
    assert (found.parent, found.footprint_kind) == (os.getpid(), "rss")
    assert (found.python, found.environment) == (sys.executable, sys.prefix)
    assert found.executable == os.path.realpath(sys.executable)
    assert found.footprint_peak >= found.footprint > 50 << 20
    read = LinuxComputer().read_footprint
    assert read(process.pid, with_peak=False).peak is None

    def is_the_same():  # the kernel counts in batches, and may take pages away meanwhile
        weighed, examined = (read(process.pid, with_peak) for with_peak in (False, True))
        return abs(weighed.now - examined.now) < 1 << 20

    wait_for(is_the_same, "the same size both ways")
    assert abs(found.started - time.time()) < 3600
    assert found.command[0] == sys.executable
    assert (found.gpu_client, found.gpu_percent) == (None, None)  # nobody can tell here


def test_a_footprint_that_is_read_often_is_of_the_process_that_runs_now():
    computer = LinuxComputer()
    processes = [subprocess.Popen(["sleep", "3600"]) for _ in range(30)]
    try:
        for _ in range(2):
            footprints = [computer.read_footprint(p.pid, with_peak=False) for p in processes]
            assert all(footprint.now for footprint in footprints)
        files = set(computer._statm)
        assert 0 < len(files) < len(processes)  # some files stay open, not one for each
    finally:
        for process in processes:
            process.kill()
            process.wait(TIMEOUT)
    first = min(files)
    with pytest.raises((ProcessLookupError, FileNotFoundError)):
        computer.read_footprint(first, with_peak=False)
    assert set(computer._statm) == files - {first}
    own = os.getpid()
    computer._statm[own] = computer._statm.pop(max(files))  # its pid is another process's by now
    assert computer.read_footprint(own, with_peak=False).now
    computer.list_processes()
    assert not computer._statm.keys() & files


# Makes a mapping of 64 MB its command line and its environment, for /proc and whoever reads that;
# prctl(PR_SET_MM, PR_SET_MM_MAP) takes no privilege.
HUGE = """
import ctypes, mmap
size = 64 << 20
memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.write(b"RANK=1\\0\\0" * (size // 8))
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None)
libc.sbrk.restype = ctypes.c_void_p
with open("/proc/self/stat") as file:
    stat = [0, 0, 0, *file.read().rpartition(")")[2].split()]  # numbered as in man proc
code, data, brk, stack = stat[26:28], stat[45:47], [stat[47], libc.sbrk(0)], [stat[28]]
places = [*code, *data, *brk, *stack, start, start + size, start, start + size, 0]
words = (ctypes.c_uint64 * 13)(*map(int, places), 0xFFFFFFFF << 32)  # no auxv, no other program
libc.prctl(35, 14, words, ctypes.sizeof(words), 0)
"""


def test_a_command_line_of_64_megabytes_is_not_read_whole(started):
    """psutil would, which is why it is not used here."""
    hostile = started(sys.executable, "-c", HUGE + READY)
    with Path(f"/proc/{hostile.pid}/cmdline").open("rb") as file:
        if file.read(6) != b"RANK=1":
            pytest.skip("a kernel without PR_SET_MM_MAP")
    tracemalloc.start()
    try:
        details = LinuxComputer().read_details(hostile.pid)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert details.command == ("RANK=1", "") * 10
    assert details.variables == {"RANK": "1"}
    assert peak < 32 << 20


def find_session(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def test_none_missed_and_none_invented_among_five_hundred(started):
    """Some of them fork, exec and die while they are looked at."""
    crowd = textwrap.dedent("""\
        import os, time
        for _ in range(250):
            if not os.fork(): os.execvp("sleep", ["sleep", "3600"])
        for _ in range(240):
            if not os.fork(): time.sleep(3600); os._exit(0)
        if not os.fork():
            while True:
                for _ in range(5):
                    if not os.fork(): os._exit(0)
                    if not os.fork(): os.execvp("true", ["true"])
                for _ in range(10): os.wait()
        print("ready", flush=True)
        time.sleep(3600)
        """)
    expected = {started(*python(LOAD_TORCH)).pid for _ in range(3)}
    ours = expected | {started(sys.executable, "-c", crowd).pid}  # each leads a session
    scanner = Scanner(LinuxComputer())
    for _ in range(20):
        scan = scanner.scan(TIMEOUT)
        # Others may start and end torch here meanwhile.
        assert {p.pid for p in scan.processes if find_session(p.pid) in ours} == expected
        assert [problem for problem in scan.problems if problem.reader != "machine"] == []
    scanner.close()


def test_torch_imported_late_and_then_exec(started):
    """A negative answer expires, and so does a positive one."""
    code = textwrap.dedent("""\
        import os
        print("ready", flush=True); input()
        exec(os.environ["LOAD_TORCH"])
        print("imported", flush=True); input()
        os.execvp("sh", ["sh", "-c", "echo became; read x"])
        """)
    env = {"LOAD_TORCH": LOAD_TORCH}
    process = started(sys.executable, "-c", code, stdin=subprocess.PIPE, env=env)
    now = [1000.0]
    scanner = Scanner(LinuxComputer(), clock=lambda: now[0])

    def frameworks():
        found = {p.pid: p.frameworks for p in scanner.scan(TIMEOUT).processes}
        return found.get(process.pid)

    def go_on(word):
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline().strip() == word

    assert frameworks() is None
    go_on(b"imported")
    assert frameworks() is None  # asked a moment ago
    now[0] += LONGEST_WAIT + 1
    assert frameworks() == ("torch",)
    go_on(b"became")
    now[0] += FOUND_WAIT + 1
    assert frameworks() is None
    scanner.close()


# The next pid is chosen, so these processes are alone: elsewhere, others would get pids that were just used.
REUSE = """
import subprocess, sys
from pathlib import Path
from mpsbar.system.linux import LinuxComputer
from mpsbar.system.scan import Scanner
scanner = Scanner(LinuxComputer())
def is_found(): return first.pid in {process.pid for process in scanner.scan(120).processes}
first = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
first.stdout.readline()
was_found = is_found()
first.kill()
first.wait()
Path("/proc/sys/kernel/ns_last_pid").write_text(str(first.pid - 1))
second = subprocess.Popen(["sleep", "3600"])
print(was_found, second.pid == first.pid, is_found())
second.kill()
scanner.close()
"""


def test_pid_reuse_is_noticed():
    """A pid of a torch process, used again by one that has nothing to do with it."""
    alone = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*alone, "true"], capture_output=True).returncode
    ):
        pytest.skip("needs root to choose the next pid")
    done = subprocess.run(
        [*alone, sys.executable, "-c", REUSE, LOAD_TORCH + READY], cwd=ROOT,
        capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True True False\n", "")


def test_zombies_and_the_dead_are_left_out(started):
    code = LOAD_TORCH + "if not os.fork(): os._exit(0)"
    process = started(*python(code))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    (zombie,) = map(int, children.read_text().split())
    wait_for(lambda: " Z " in Path(f"/proc/{zombie}/stat").read_text(), "a zombie")
    assert set(look_for(process.pid, zombie)) == {process.pid}
    for with_peak in (True, False):
        with pytest.raises(ProcessLookupError):
            LinuxComputer().read_footprint(zombie, with_peak)
    gone = subprocess.Popen(["true"])
    gone.wait()
    for read in (
        LinuxComputer().read_libraries,
        LinuxComputer().read_details,
        LinuxComputer().read_footprint,
    ):
        with pytest.raises((ProcessLookupError, FileNotFoundError)):
            read(gone.pid)


def test_another_users_process_is_nobodys_business(started):
    if os.geteuid():
        pytest.skip("only root can become another user")
    other = LOAD_TORCH + "os.setgid(65534); os.setuid(65534)"
    changed = started(*python(other))
    ran = started("sh", "-c", "echo ready; exec sleep 3600", user=65534, group=65534)
    assert look_for(changed.pid, ran.pid) == {}
    for process in (changed, ran):
        with pytest.raises(PermissionError):
            LinuxComputer().read_libraries(process.pid)


def test_a_process_that_cannot_be_read_does_not_stop_the_rest(tmp_path):
    """A /proc whose pid 7 hangs on open, as a process stuck in the kernel does."""
    for pid in (6, 7, 8):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
    os.mkfifo(tmp_path / "proc/7/maps")
    (tmp_path / "proc/7/statm").write_bytes(b"100 50 0 0 0 0 0")
    maps = b"7f01-7f02 r-xp 00000000 08:01 42   /v/libtorch_cpu.so\n"
    stat = b"6 (x) S 1 " + b"0 " * 17 + b"500 0"
    status = b"VmHWM:\t 9 kB\nVmRSS:\t 4 kB\n"
    for pid in (6, 8):
        files = {"maps": maps, "stat": stat, "status": status, "cmdline": b"a\0", "environ": b""}
        files["statm"] = b"100 1 0 0 0 0 0"
        for name, content in files.items():
            (tmp_path / f"proc/{pid}/{name}").write_bytes(content)
    now = [0.0]
    scanner = Scanner(LinuxComputer(str(tmp_path)), clock=lambda: now[0])
    hurry(scanner)

    def misses_only_that_one():
        now[0] += 2
        scan = scanner.scan(TIMEOUT)
        problems = [problem for problem in scan.problems if problem.reader != "machine"]
        footprints = {process.pid: process.footprint for process in scan.processes or ()}
        is_alone = problems == [Problem("process 7", "does not answer")]
        return is_alone and footprints == {6: 4096, 8: 4096}

    for _ in range(2):
        wait_for(misses_only_that_one, "the two that can be read")
    with open(tmp_path / "proc/7/maps", "wb") as writer:  # it comes back
        writer.write(maps)
    scanner.close()


def test_a_recorded_proc(tmp_path):
    """Everything read_machine reads, from files: a laptop on battery, under pressure, swapping."""
    write = {
        "proc/meminfo": "MemTotal:       16000000 kB\nMemFree:  100 kB\nMemAvailable:     500000 kB\nSwapTotal:       2000 kB\nSwapFree:  500 kB\n",
        "proc/pressure/memory": "some avg10=42.50 avg60=9.00 avg300=1.00 total=1\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=0\n",
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu hypervisor sse\n",
        "etc/os-release": 'NAME="X"\nPRETTY_NAME="Some Linux 12"\n',
        "sys/class/dmi/id/product_name": "Laptop 3\n",
        "sys/class/power_supply/AC/type": "Mains\n",
        "sys/class/power_supply/AC/online": "0\n",
        "sys/class/power_supply/BAT0/type": "Battery\n",
    }
    for name, text in write.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    machine = LinuxComputer(str(tmp_path)).read_machine()
    assert (machine.os, machine.model, machine.chip) == ("Some Linux 12", "Laptop 3", "Some CPU")
    assert (machine.memory_total, machine.memory_available) == (16000000 << 10, 500000 << 10)
    assert (machine.swap_used, machine.pressure) == (1500 << 10, "warning")
    assert (machine.on_battery, machine.is_virtual) == (True, True)
    (tmp_path / "sys/class/power_supply/AC/online").write_text("1\n")
    assert LinuxComputer(str(tmp_path)).read_machine().on_battery is False


def test_nothing_to_read_is_unknown_never_zero(tmp_path):
    (tmp_path / "proc").mkdir()
    machine = LinuxComputer(str(tmp_path)).read_machine()
    assert machine.memory_total is machine.memory_available is machine.swap_used is None
    assert machine.pressure is machine.on_battery is machine.chip is machine.is_virtual is None
    nowhere = LinuxComputer(str(tmp_path))
    assert nowhere.list_processes() == nowhere.list_processes() == {}
    assert LinuxComputer(str(tmp_path)).read_gpu_clients() is None


def test_what_is_unknown_is_reported_with_its_reason(tmp_path):
    """Not every kernel counts pressure; a file that comes back is read again."""
    (tmp_path / "proc/pressure").mkdir(parents=True)
    computer = LinuxComputer(str(tmp_path))
    computer.read_machine()
    assert computer.problems == (
        Problem("machine", "/proc/meminfo: No such file or directory"),
        Problem("machine", "/proc/pressure/memory: No such file or directory"),
    )
    (tmp_path / "proc/meminfo").write_text("MemTotal:  7 kB\n")
    (tmp_path / "proc/pressure/memory").write_text("some avg10=0.00 x\n")
    machine = computer.read_machine()
    assert (machine.memory_total, machine.memory_available) == (7 << 10, None)
    assert computer.problems == (Problem("machine", "/proc/meminfo: not understood"),)
    lines = "MemTotal: 7 kB\nMemAvailable: 5 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
    (tmp_path / "proc/meminfo").write_text(lines)
    computer.read_machine()
    assert computer.problems == ()


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("some avg10=0.00 a\nfull avg10=0.00 a", "normal"),
        ("some avg10=9.99 a\nfull avg10=9.99 a", "normal"),
        ("some avg10=10.00 a\nfull avg10=0.00 a", "warning"),
        ("some avg10=60.00 a\nfull avg10=10.00 a", "critical"),
        ("some avg10=60.00 a", "warning"),  # the root cgroup of older kernels has no "full"
        ("", None),
        ("garbage", None),
    ],
)
def test_pressure(text, level):
    assert parse_pressure(text.encode()) == level


def test_pressure_does_not_flicker():
    level, levels = None, []
    for some in (9.9, 10.1, 9.9, 10.1, 5.1, 4.9, 9.9):
        level = parse_pressure(f"some avg10={some} x\nfull avg10=0.00 x".encode(), level)
        levels.append(level)
    assert levels == ["normal", "warning", "warning", "warning", "warning", "normal", "normal"]
    assert parse_pressure(b"some avg10=30.0 x\nfull avg10=6.0 x", "critical") == "critical"
    assert parse_pressure(b"some avg10=30.0 x\nfull avg10=4.0 x", "critical") == "warning"


def test_a_process_in_a_container_has_paths_of_its_own(started):
    """The same path here may be another file, or nothing."""
    command = ("unshare", "--mount", sys.executable, "-c", LOAD_TORCH + READY)
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"]).returncode:
        pytest.skip("needs the right to make a mount namespace")
    process = started(*command)
    (found,) = look_for(process.pid).values()
    assert (found.frameworks, found.executable, found.python) == (("torch",), None, None)


def test_processes_are_listed_when_nobody_seems_to_have_come(tmp_path, monkeypatch):
    """Not every kernel tells the last pid in /proc/loadavg."""
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/loadavg").write_text("0.1 0.1 0.1 1/100 42")
    computer = LinuxComputer(str(tmp_path))
    assert set(computer.list_processes()) == {7}
    assert computer.list_processes() is None
    (tmp_path / "proc/8").mkdir()
    later = time.monotonic() + 31
    monkeypatch.setattr("mpsbar.system.linux.time.monotonic", lambda: later)
    assert set(computer.list_processes()) == {7, 8}


def test_a_name_may_hold_anything():
    fields = b" ".join([b"S", b"77", *[b"0"] * 17, b"4242", b"0"])
    assert parse_stat(b"12 (a) b) 3 (c)) " + fields) == (77, 4242)
    for broken in (b"", b"12 (x", b"12 (x) S", b"12 (x) S y " + b"0 " * 30):
        with pytest.raises(ProcessLookupError):
            parse_stat(broken)


def test_only_code_counts_and_paths_may_hold_anything():
    maps = (
        b"7f00-7f01 r--p 00000000 08:01 42   /v/libtorch_cpu.so\n"
        b"7f01-7f02 r-xp 00000000 08:01 42   /my venv/libc10.so (deleted)\n"
        b"7f02-7f03 r-xp 00000000 08:01 42   /caf\xe9/libmlx.so\n"
        b"7f03-7f04 rw-p 00000000 00:00 0    [heap]\n"
    )
    found = parse_maps(maps)
    assert found["torch"] == "/my venv/libc10.so (deleted)"
    assert os.fsencode(found["mlx"]) == b"/caf\xe9/libmlx.so"
    assert parse_maps(maps.splitlines(keepends=True)[0]) == {}
    assert parse_maps(b"") == {}


def test_meminfo_lines_that_are_none():
    status = b"VmHWM: 1 kB\nHugePages: 7\nVmSize: 9 kB\nVmRSS:\t x kB\nVmRSS:\t 2 kB\n"
    assert parse_kilobytes(status, _CHARGED) == {b"VmHWM": 1024, b"VmRSS": 2048}
