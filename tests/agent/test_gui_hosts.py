"""Hosts with windows: Tcl, Tk and Qt end the process when their objects die on a foreign thread."""

import importlib.util
import os
import shutil
import subprocess

import interpreters
import pytest
from host_kit import ALONE, CANARIES, Load, ask_for_report, start_host
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
# those that an agent has during a Free: all threads' objects count for the next collection.
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
    drop_cycles(3)
    while gc.get_count()[0] < 200: kept.append([])  # of 700; see fill
timer = QtCore.QTimer()
timer.timeout.connect(tick)
timer.start(30)
assert mpsbar.attach()
app.exec()
"""


# Widgets in cycles, dropped in the midst of everything Qt does. With the collector off: PySide does
# not survive a collection in the midst of its own calls, whoever starts it.
QT_FREED = """
from PySide6 import QtCore, QtWidgets
gc.disable()
app = QtWidgets.QApplication([])
window = QtWidgets.QMainWindow()
window.show()
def tick():
    for _ in range(3):
        other = QtWidgets.QWidget()
        layout = QtWidgets.QVBoxLayout(other)
        layout.addWidget(QtWidgets.QPushButton("x", clicked=lambda: None))
        other.show()
        keep_in_cycle(other=other, layout=layout)
    if next(ticks) % 20 == 19: gc.collect()
timer = QtCore.QTimer()
timer.timeout.connect(tick)
timer.start(5)
assert mpsbar.attach()
app.exec()
"""


def check_survival(worker, rounds=3, frees=2, toolkit=None):
    """Polled and freed, the host goes on, and all its objects died at home."""
    with Load(worker) as load:
        for _ in range(rounds):
            load.poll(100)
            load.free(frees, seconds=0.5)
            load.poll_slowly(0.2)
    found = ask_for_report(worker)
    wait_for(lambda: worker.process.poll() is not None, "end")
    assert (worker.process.returncode, worker.end()) == (0, "")
    assert (found["foreign"], found["kinds"]) == (0, [])
    assert found["ticks"] > 5
    notes = {(free["collected"], free["gui_toolkit"]) for free in load.frees}
    assert ALONE or notes == {(False, toolkit)}
    return load


@every_python
def test_tcl_interpreters(workers, version):
    check_survival(start_host(workers, CANARIES + HOLDERS + TCL, version), toolkit="Tk")


@every_python
def test_tk_windows(workers, display, version):
    worker = start_host(workers, CANARIES + HOLDERS + TK, version, DISPLAY=display)
    check_survival(worker, toolkit="Tk", frees=20)


TK_THREAD = """
import tkinter
stopping, stopped = threading.Event(), threading.Event()
def report(usual=report):  # it collects, on main: not beside a window that waits for its own thread
    stopping.set()
    stopped.wait()
    return usual()
def gui():
    while not stopping.is_set():
        root = tkinter.Tk()
        root.after(5, root.quit)
        root.mainloop()
        root.destroy()
        keep_in_cycle(root=root)
        del root
        time.sleep(0.02)  # the moment in which a collection on main is fatal
        gc.collect()  # here, where it must be
        next(ticks)
    stopped.set()
gc.disable()
torch._C._has_mps = False  # whose rule is never to do anything beside such a thread
start(gui)
assert mpsbar.attach()
while True: event.wait(0.001)
"""


@every_python
def test_tk_windows_of_another_thread(workers, display, version):
    # A collection on main would end their interpreters there: Tcl aborts.
    worker = start_host(workers, CANARIES + HOLDERS + TK_THREAD, version, DISPLAY=display)
    check_survival(worker, toolkit="Tk", frees=20)


@pytest.mark.parametrize("platform", ["xcb", "offscreen"])
@pytest.mark.parametrize("host", [QT, QT_FREED], ids=["collecting", "not collecting"])
def test_qt_windows(workers, display, platform, host):
    if importlib.util.find_spec("PySide6") is None:
        pytest.skip("no PySide6 in this Python")
    host = CANARIES + HOLDERS + host
    quiet = "default.warning=false"  # "offscreen" writes a line for each window
    worker = start_host(
        workers, host, DISPLAY=display, QT_QPA_PLATFORM=platform, QT_LOGGING_RULES=quiet
    )
    load = check_survival(worker, rounds=4, frees=10, toolkit="PySide6")
    assert ALONE or load.done() > 0
