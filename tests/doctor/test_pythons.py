"""The doctor inspects real Pythons: five versions, torch, and packages named torch that crash or hang."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import interpreters
import psutil
import pytest
from fake_torch import working
from worker_kit import NO_MPS, TIMEOUT, wait_for

from mpsbar.doctor.pythons import inspect_python
from mpsbar.doctor.rules import STAGES

needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))


@pytest.mark.xdist_group("torch")  # imported into the test process
def test_torch_on_the_cpu(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("SOFTMPS", "0")
    monkeypatch.setenv("PYTORCH_MPS_FAST_MATH", "1")
    device = inspect_python(sys.executable)
    assert (device.ended, device.stage, device.error) == ("ok", None, None)
    assert (device.torch, device.torch_file) == (torch.__version__, torch.__file__)
    assert (device.prefix, device.system) == (sys.prefix, sys.platform)
    assert device.version == ".".join(map(str, sys.version_info[:3]))
    assert device.settings["PYTORCH_MPS_FAST_MATH"] == "1"
    assert device.torch_preloaded is False
    assert device.mps_built is torch.backends.mps.is_built()
    assert device.cuda_available is torch.cuda.is_available()
    assert device.computed == 8.0


@needs_mps
def test_torch_on_mps(monkeypatch):
    monkeypatch.setenv("SOFTMPS", "1")
    device = inspect_python(sys.executable)
    assert (device.ended, device.mps_built, device.mps_available) == ("ok", True, True)
    assert (device.chosen, device.computed) == ("mps", 8.0)
    assert device.dtypes is not None
    assert {"float32", "bfloat16"} <= set(device.dtypes)
    assert "float64" not in device.dtypes


@needs_mps
@pytest.mark.parametrize("version", ["2.2", "2.9", "2.12"])
def test_older_torch_on_mps(monkeypatch, version):
    monkeypatch.setenv("SOFTMPS", "1")
    monkeypatch.setenv("SOFTMPS_TORCH", version)
    device = inspect_python(sys.executable)
    assert (device.torch, device.chosen, device.computed) == (f"{version}.0+softmps", "mps", 8.0)
    assert (device.dtypes is not None) == (version == "2.12")


@needs_mps
def test_a_setting_that_breaks_the_first_use_of_mps_shows_as_torch_says_it(monkeypatch):
    monkeypatch.setenv("SOFTMPS", "1")
    monkeypatch.setenv("PYTORCH_MPS_HIGH_WATERMARK_RATIO", "0.7")
    device = inspect_python(sys.executable)
    assert (device.ended, device.chosen, device.computed) == ("ok", "mps", None)
    assert device.compute_error == "RuntimeError: invalid low watermark ratio 1.4"


@pytest.mark.parametrize("version", ["3.8", *interpreters.VERSIONS])
def test_a_python_without_torch(tmp_path, version):
    base = interpreters.need(version)
    subprocess.run([base, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    device = inspect_python(str(tmp_path / "venv" / "bin" / "python"))
    assert device.ended == "no_torch"
    assert device.version is not None
    assert device.version.startswith(f"{version}.")
    assert device.prefix == str(tmp_path / "venv")
    # Nothing is left behind, in the venv or beside the throwaway.
    assert not list((tmp_path / "venv").rglob("__pycache__"))


def test_a_torch_before_there_was_mps(inspect_with):
    device = inspect_with("__version__ = '1.11.0'\nones = None")
    assert (device.ended, device.torch) == ("ok", "1.11.0")
    assert (device.mps_built, device.mps_available, device.cuda_available) == (False, False, False)
    assert device.chosen == "cpu"
    assert device.compute_error is not None


def test_the_order_is_cuda_then_mps_then_cpu(inspect_with):
    assert inspect_with(working(cuda=True)).chosen == "cuda"


def test_a_driver_that_raises_hides_nothing_else(inspect_with):
    device = inspect_with(working(cuda="1 / 0"))
    assert (device.ended, device.chosen) == ("ok", "mps")
    assert device.cuda_error == "ZeroDivisionError: division by zero"


def test_a_wrong_result_is_reported(inspect_with):
    assert inspect_with(working(result="float('nan')")).computed not in (8.0, None)


@pytest.mark.parametrize(
    ("code", "ended", "stage", "error"),
    [
        ("raise ImportError('no libc10')", "broken_torch", None, "ImportError: no libc10"),
        ("import sys; sys.exit(3)", "broken_torch", None, "SystemExit: 3"),
        ("def f(: pass", "broken_torch", None, "SyntaxError: invalid syntax (__init__.py, line 1)"),
        ("import os; os._exit(3)", "exited", "import", None),
        ("import os; os.write(2, b'x\\nlast words\\n'); os.abort()", "crashed", "import", "last words"),
    ],
)  # fmt: skip
def test_a_torch_that_cannot_be_imported(inspect_with, code, ended, stage, error):
    device = inspect_with(code)
    assert (device.ended, device.stage, device.error) == (ended, stage, error)
    assert device.signal == ("SIGABRT" if ended == "crashed" else None)
    # What came before is still known, the version from its metadata.
    assert device.version is not None
    assert device.torch == "2.5.1"
    assert device.mps_built is None


def test_a_crash_in_the_computation_leaves_all_before_it(inspect_with):
    device = inspect_with(working(result="__import__('os').kill(__import__('os').getpid(), 11)"))
    assert (device.ended, device.stage, device.signal) == ("crashed", "computed", "SIGSEGV")
    assert (device.chosen, device.mps_available) == ("mps", True)


def test_a_crash_on_the_way_out_is_none(inspect_with):
    device = inspect_with(working() + "import atexit, os; atexit.register(os.abort)")
    assert device.ended == "ok"


def test_a_hang_ends_with_all_it_started(inspect_with, tmp_path, monkeypatch):
    note = tmp_path / "pid"

    def tell_time():
        """Once it hangs in torch, the time for it is over."""
        hangs = note.exists() and note.read_text()
        return time.monotonic() + (2 * TIMEOUT if hangs else 0.0)

    clock = SimpleNamespace(monotonic=tell_time, sleep=time.sleep)
    monkeypatch.setattr("mpsbar.system.child_process.time", clock)
    device = inspect_with(
        f"import subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\ntime.sleep(600)",
        seconds=TIMEOUT,
    )
    assert (device.ended, device.stage) == ("hung", "import")
    wait_for(lambda: not psutil.pid_exists(int(note.read_text())), "end of its child")


def test_somebody_who_keeps_the_pipe_open_holds_nothing_up(inspect_with, tmp_path):
    note = tmp_path / "pid"
    device = inspect_with(
        f"import os, subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\nos.abort()",
        seconds=TIMEOUT,
    )
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(note.read_text()), signal.SIGKILL)
    assert (device.ended, device.stage) == ("crashed", "import")


def test_an_inspection_can_be_stopped(inspect_with, tmp_path):
    stop = threading.Event()
    threading.Thread(
        target=lambda: wait_for((tmp_path / "in").exists, "torch") and stop.set()
    ).start()
    code = f"open({str(tmp_path / 'in')!r}, 'w').close()\nimport time; time.sleep(600)"
    assert inspect_with(code, stop=stop, seconds=TIMEOUT).ended == "stopped"


def test_noise_of_start_up_files_and_of_torch_is_survived(inspect_with):
    noise = """
        import sys
        print("x" * 3_000_000, end="")
        print('\\x1empsbar {"stage": "chosen", broken')
        print('\\x1empsbar ["stage"]')
        sys.stderr.write("warned " * 1_000_000)
        sys.stdout.flush()
        sys.stdout = None
    """
    device = inspect_with(working() + "import os; os.write(1, b'no end of line')", startup=noise)
    assert (device.ended, device.chosen, device.computed) == ("ok", "mps", 8.0)


def test_more_marked_lines_than_there_are_stages_do_not_fill_memory(inspect_with):
    noise = """
        import os
        line = b'\\x1empsbar {"stage": "noise"}\\n' * 1000
        for _ in range(1000):
            os.write(1, line)
    """
    assert inspect_with(working(), startup=noise).ended == "not_python"


def test_torch_loaded_by_a_start_up_file_is_noticed(inspect_with):
    assert inspect_with(working(), startup="import torch").torch_preloaded is True


def test_it_runs_last_in_line_without_an_agent_and_reads_nothing(inspect_with):
    facts = "os.nice(0), os.environ['MPSBAR_DISABLE'], sys.stdin.read(), os.getcwd()"
    device = inspect_with(f"import os, sys\n__version__ = repr(({facts}))")
    assert device.torch == "(19, '1', '', '/')"


def test_its_own_folder_hides_nobodys_modules(inspect_with):
    code = "import importlib.util as u\n__version__ = str([u.find_spec(n) for n in ('runner', 'doctor_child', 'parse')])"
    assert inspect_with(code).torch == "[None, None, None]"


def test_no_python(tmp_path):
    assert inspect_python(str(tmp_path / "python")).ended == "no_python"
    assert inspect_python(__file__ + "/python").ended == "no_python"
    assert inspect_python("\0").ended == "not_python"
    assert inspect_python(str(tmp_path)).ended == "not_python"


@pytest.mark.parametrize(
    "script",
    ["#!/bin/sh\nexit 0\n", "#!/bin/sh\necho garbage; echo >&2 usage; exit 2\n", "no interpreter", ""],
)  # fmt: skip
def test_something_else_than_a_python(tmp_path, script):
    program = tmp_path / "python"
    program.write_text(script)
    program.chmod(0o755)
    device = inspect_python(str(program))
    assert device.ended == "not_python"
    if "usage" in script:
        assert device.error == "usage"


def test_whether_rosetta_runs_it_is_asked_of_the_system(inspect_with, tmp_path, monkeypatch):
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, or a Mac, where it is asked for real")
    source = tmp_path / "sysctl.c"
    source.write_text("""
        #include <errno.h>
        #include <stddef.h>
        #include <stdlib.h>
        #include <string.h>
        int sysctlbyname(const char *name, void *old, size_t *size, void *new, size_t new_size) {
            if (strcmp(name, "sysctl.proc_translated") || *size != sizeof(int) || new || new_size) abort();
            const char *answer = getenv("TRANSLATED");
            if (!answer) { errno = ENOENT; return -1; }
            *(int *)old = atoi(answer);
            return 0;
        }
    """)
    library = tmp_path / "sysctl.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    startup = "import sys; sys.platform = 'darwin'"
    assert inspect_with(working(), startup=startup).translated is False
    for answer, translated in (("1", True), ("0", False)):
        monkeypatch.setenv("TRANSLATED", answer)
        device = inspect_python(sys.executable)
        assert (device.system, device.translated) == ("darwin", translated)


def test_the_stages_are_those_the_child_process_reports():
    source = Path(inspect_python.__code__.co_filename).with_name("doctor_child.py").read_text()
    places = [source.index(f'_report("{stage}"') for stage in STAGES]
    assert places == sorted(places)
