"""Hosts with windows: Tcl, Tk and Qt end the process when their objects die on a foreign thread."""

import importlib.util
import os
import shutil
import subprocess

import interpreters
import pytest
from host_kit import CANARIES, Load, ask_for_report, start_host
from worker_kit import wait_for

every_python = pytest.mark.parametrize("version", interpreters.VERSIONS)


@pytest.fixture(scope="module")
def display():
    """A screen in memory on a free number, for this machine's own processes only."""
    if shutil.which("Xvfb") is None:
        pytest.skip("no Xvfb on this machine")
    read, write = os.pipe()
    screen = ["-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"]
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), *screen], pass_fds=[write], stderr=subprocess.DEVNULL
    )
    os.close(write)
    with os.fdopen(read) as file:
        number = file.readline().strip()
    assert number, "Xvfb ended at its start"
    yield f":{number}"
    server.terminate()
    server.wait()


HOLDERS = """
import torch, mpsbar
ticks = itertools.count()
class Holder(Cycle): pass
def keep_in_cycle(**things):
    vars(Holder()).update(things)
def report(usual=report): return dict(usual(), ticks=number(ticks))
"""
TCL = """
import tkinter
assert mpsbar.attach()
while True:
    keep_in_cycle(tcl=tkinter.Tcl())
    fill()
    next(ticks)
    time.sleep(0.02)
"""
# Its own window lives on; a second one, an image and a variable are dropped again and again.
TK = """
import tkinter
root = tkinter.Tk()
label = tkinter.Label(root, text="here")
label.pack()
def tick():
    other = tkinter.Tk()
    other.update()
    other.destroy()
    keep_in_cycle(
        other=other, variable=tkinter.StringVar(root), image=tkinter.PhotoImage(master=root))
    del other
    label["text"] = str(next(ticks))
    root.after(30, tick)
    fill(12)  # tkinter makes some objects on its way to its wait
root.after(1, tick)
assert mpsbar.attach()
root.mainloop()
"""
# PySide does not survive a collection in the midst of its own calls, on whichever thread: this host
# collects first of all, and between its ticks leaves room for the objects that Qt makes on main and
# those that an agent has at the time.
QT = """
from PySide6 import QtCore, QtWidgets
app = QtWidgets.QApplication([])
window = QtWidgets.QMainWindow()
window.show()
def tick():
    del kept[:]
    gc.collect()
    other = QtWidgets.QWidget()
    other.show()
    keep_in_cycle(other=other)
    del other
    next(ticks)
    fill(200)
timer = QtCore.QTimer()
timer.timeout.connect(tick)
timer.start(30)
assert mpsbar.attach()
app.exec()
"""


def check_survival(worker, rounds=3, frees=2):
    """Polled and freed, the host goes on, and all its objects died at home."""
    with Load(worker) as load:
        for _ in range(rounds):
            load.poll(100)
            load.free(frees, seconds=0.1)
            load.poll_slowly(0.2)
    found = ask_for_report(worker)
    wait_for(lambda: worker.process.poll() is not None, "end")
    assert (worker.process.returncode, worker.end()) == (0, "")
    assert (found["foreign"], found["kinds"]) == (0, [])
    assert found["ticks"] > 5


@every_python
def test_tcl_interpreters(workers, version):
    check_survival(start_host(workers, CANARIES + HOLDERS + TCL, version))


@every_python
def test_tk_windows(workers, display, version):
    check_survival(start_host(workers, CANARIES + HOLDERS + TK, version, DISPLAY=display))


@pytest.mark.parametrize("platform", ["xcb", "offscreen"])
def test_qt_windows(workers, display, platform):
    if importlib.util.find_spec("PySide6") is None:
        pytest.skip("no PySide6 in this Python")
    host = CANARIES + HOLDERS + QT
    worker = start_host(workers, host, DISPLAY=display, QT_QPA_PLATFORM=platform)
    # Looked at only: a Free collects on main between two bytecodes, and those of PySide's own Python
    # code are in the midst of its calls, where a collection of the host's own ends it too.
    check_survival(worker, rounds=6, frees=0)
