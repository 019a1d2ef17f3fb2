"""Loops written in C that call the program back: idle they are waits, in a callback they are not."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import interpreters
import pytest
from host_kit import start_host
from worker_kit import ROOT, TIMEOUT, UNPACED, need_module, wait_for

every_python = pytest.mark.parametrize("version", interpreters.VERSIONS)

# A function of ctypes lets go of the GIL and takes it again by PyGILState_Ensure, as Qt's loop does.
COUNTS = """
import ctypes, json, sys, threading, time
from mpsbar.agent import c_callbacks
assert c_callbacks._has_layout
def callback_of(function): return ctypes.CFUNCTYPE(ctypes.c_int)(function)
def look(): return c_callbacks._read_counts(ident), c_callbacks.is_outside_callbacks(ident)
told, lock, idle = {}, threading.Lock(), threading.Event()
def run():
    idle.wait()
    told["in Python"] = look()
    callback_of(lock.acquire)()  # the lock's own method, with no frame
    told["after"] = look()
    callback_of(callback_of(lambda: told.update({"twice": look()}) or 0))()
lock.acquire()
thread = threading.Thread(target=run)
thread.start()
ident = thread.ident
told["idle"] = look()
idle.set()
while look()[0] == [1]: time.sleep(0.001)
told["in C"] = look()
lock.release()
thread.join()
told["ended"] = look()
ident = threading.get_ident()
told["main"] = look()
# Thread states come and go while they are read.
def brief(): pass
end = time.monotonic() + 1
while time.monotonic() < end:
    for _ in range(20): threading.Thread(target=brief, daemon=True).start()
    for _ in range(200): assert look() == ([1], True)
print(json.dumps(told))
"""


@every_python
def test_calls_from_c_are_counted_as_python_counts_them(version):
    done = subprocess.run(
        [interpreters.need(version), "-W", "error", "-c", COUNTS],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "idle": [[1], True],
        "in Python": [[1], True],
        "in C": [[2], False],
        "after": [[1], True],
        "twice": [[3], False],
        "ended": [[], False],
        "main": [[1], True],
    }


# At any other place than the right one the count does not follow.
PLACES = """
from mpsbar.agent import c_callbacks
right = c_callbacks._count_at
for c_callbacks._count_at in range(2, 30):
    assert c_callbacks._counts_itself() is (c_callbacks._count_at == right)
"""


@every_python
def test_a_python_that_keeps_the_count_elsewhere_is_found_out(version):
    done = subprocess.run(
        [interpreters.need(version), "-c", PLACES],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


# Runs code as a program does that has Python in it and makes the thread's state itself.
EMBEDS = r"""
void *PyInterpreterState_Get(void), *PyThreadState_New(void *), *PyThreadState_Swap(void *);
void PyThreadState_Clear(void *), PyThreadState_Delete(void *);
int PyRun_SimpleString(const char *);

int run(const char *code) {
    void *own = PyThreadState_New(PyInterpreterState_Get());
    void *before = PyThreadState_Swap(own);
    int failed = PyRun_SimpleString(code);
    PyThreadState_Clear(own);
    PyThreadState_Swap(before);
    PyThreadState_Delete(own);
    return failed;
}
"""
# With a subinterpreter Python's own check of the state no longer says anything.
EMBEDDED = """
import ctypes, sys
try: import _interpreters
except ImportError: import _xxsubinterpreters as _interpreters
other = _interpreters.create()
code = b"from mpsbar.agent import c_callbacks; print(c_callbacks._has_layout, flush=True)"
failed = ctypes.PyDLL(sys.argv[1]).run(code)
_interpreters.destroy(other)
sys.exit(failed)
"""


@every_python
def test_a_thread_with_a_state_of_its_own_neither_hangs_nor_is_believed(version, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "embeds.c", tmp_path / "embeds.so"
    source.write_text(EMBEDS)
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    subprocess.run(["cc", "-shared", "-fPIC", *undefined, "-o", library, source], check=True)
    done = subprocess.run(
        [interpreters.need(version), "-c", EMBEDDED, library],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


# The loop idles; a call from C that lasts is in it from SIGUSR1 on, written by the program in C too.
LOOP = f"""
import functools, os, signal, sys, threading, time
{UNPACED}
import torch, mpsbar
sys.path.append(os.environ.get("QT_PACKAGES", ""))
lock = threading.Lock()
lock.acquire()
waker = os.pipe()
os.set_blocking(waker[1], False)
signal.set_wakeup_fd(waker[1])
signal.signal(signal.SIGUSR1, lambda *_: None)
"""
QT = """
from BINDING import QtCore, QtWidgets
app = QtWidgets.QApplication([])
window = QtWidgets.QMainWindow()
window.show()
notifier = QtCore.QSocketNotifier(waker[0], QtCore.QSocketNotifier.Type.Read)
timer = QtCore.QTimer(singleShot=True)
timer.timeout.connect(lock.acquire)
def begin(*_):
    notifier.setEnabled(False)
    timer.start(0)
notifier.activated.connect(begin)
assert mpsbar.attach()
app.exec()
"""
QT_DIALOG = QT.replace("app.exec()", "dialog = QtWidgets.QDialog()\ndialog.exec()")
QT_LOOP = QT.replace("app.exec()", "loop = QtCore.QEventLoop()\nloop.exec()")
# An attribute of its own in place of Qt's: whatever it is, it is not Qt's loop.
QT_SHADOWED = QT.replace("app.exec()", "app.exec = functools.partial(app.exec)\napp.exec()")
QT_SUBCLASS = QT.replace("QtWidgets.QApplication(", "App(").replace(
    "app =", "class App(QtWidgets.QApplication): pass\napp ="
)


def check_loop(worker, refused="main_unproven"):
    """Freed beside the idle loop; busy while a function of C runs in it."""
    with worker.connect() as client:
        # The first may meet main on its way there.
        wait_for(lambda: client.ask("free")["backends"]["mps"].get("on_main") is False, "its loop")
    worker.process.send_signal(signal.SIGUSR1)
    answer = worker.ask_until_refused(refused, seconds=0.3)
    assert answer["state"] == "busy"
    assert worker.end() == ""


def start_qt(workers, binding, code, version=None):
    need_module(binding)
    extra = {"QT_QPA_PLATFORM": "offscreen", "QT_LOGGING_RULES": "default.warning=false"}
    if version is not None:
        extra["QT_PACKAGES"] = str(share_packages(workers.folder, "PySide6", "shiboken6"))
    return start_host(workers, LOOP + code.replace("BINDING", binding), version, **extra)


def share_packages(folder: Path, *names):
    """A place with these packages alone: they are made for all Pythons from some version on."""
    place = folder / "packages"
    place.mkdir(exist_ok=True)
    for name in names:
        spec = importlib.util.find_spec(name)
        (place / name).symlink_to(Path(spec.origin).parent)
    return place


@pytest.mark.parametrize("binding", ["PySide6", "PyQt6"])
@pytest.mark.parametrize("code", [QT, QT_DIALOG, QT_LOOP, QT_SUBCLASS])
def test_an_idle_qt_loop_is_freed_and_a_callback_of_c_is_not(workers, binding, code):
    check_loop(start_qt(workers, binding, code))


@pytest.mark.parametrize("version", [each for each in interpreters.VERSIONS if each != "3.9"])
def test_an_idle_qt_loop_in_every_python_that_pyside_has(workers, version):
    interpreters.need(version)
    check_loop(start_qt(workers, "PySide6", QT, version))


@pytest.mark.parametrize("binding", ["PySide6", "PyQt6"])
def test_what_hides_the_loop_of_qt_stays_busy(workers, binding):
    worker = start_qt(workers, binding, QT_SHADOWED)
    answer = worker.ask_until_refused("main_unproven", seconds=0.3)
    assert answer["backends"]["mps"]["busy"]["code"] == "main_unproven"


UVLOOP = """
import asyncio, uvloop
loop = uvloop.new_event_loop()
loop.add_reader(waker[0], functools.partial(lock.acquire, True, 1000))
async def serve(): await asyncio.sleep(1000)
threading.Thread(target=lambda: RUN, daemon=True).start()
assert mpsbar.attach()
time.sleep(1000)
"""


@pytest.mark.parametrize("run", ["loop.run_forever()", "loop.run_until_complete(serve())"])
def test_an_idle_uvloop_of_another_thread_is_freed_and_a_callback_of_c_is_not(workers, run):
    need_module("uvloop")
    check_loop(start_host(workers, LOOP + UVLOOP.replace("RUN", run)), "thread_unproven")
