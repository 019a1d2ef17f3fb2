"""Hosts with windows: Tcl, Tk and Qt end the process when their objects die on a foreign thread."""

import importlib.util
import subprocess
import sys

import interpreters
import pytest
from host_kit import ALONE, CANARIES, Load, ask_for_report, start_host
from screen_kit import start_screen, why_no_screen
from worker_kit import wait_for

each_kind_of_python = pytest.mark.parametrize("version", interpreters.EACH_KIND)


@pytest.fixture(scope="module")
def display():
    if why := why_no_screen():
        pytest.skip(why)
    with start_screen() as display:
        yield display


HOLDERS = """
import torch, mpsbar
ticks = itertools.count()
class Holder(Cycle): pass
def keep_in_cycle(**things):
    vars(Holder()).update(things)
def is_enough(): return number(ticks) > 5
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


# PyQt ends a widget where its Python object ends. It survives a collection anywhere on main.
PYQT = """
from PyQt6 import QtCore, QtWidgets
app = QtWidgets.QApplication([])
window = QtWidgets.QMainWindow()
window.show()
def tick():
    other = QtWidgets.QWidget()
    layout = QtWidgets.QVBoxLayout(other)
    button = QtWidgets.QPushButton("x")
    button.clicked.connect(lambda: other.close())
    layout.addWidget(button)
    other.show()
    keep_in_cycle(other=other, timer=QtCore.QTimer())
    del other
    next(ticks)
    fill(12)  # PyQt makes some objects on its way to its wait
timer = QtCore.QTimer()
timer.timeout.connect(tick)
timer.start(30)
assert mpsbar.attach()
app.exec()
"""
# wx ends its windows itself and what they draw with where the Python object ends.
WX = """
import wx
app = wx.App()
frame = wx.Frame(None, title="here")
frame.Show()
def tick(_):
    other = wx.Frame(frame)
    other.Bind(wx.EVT_CLOSE, lambda event: other.Hide())
    other.Show()
    picture = wx.Bitmap(8, 8)
    canvas = wx.MemoryDC(picture)
    keep_in_cycle(other=other, picture=picture, canvas=canvas, timer=wx.Timer(frame), menu=wx.Menu())
    other.Destroy()
    next(ticks)
    fill(12)  # so does wx
timer = wx.Timer(frame)
frame.Bind(wx.EVT_TIMER, tick, timer)
timer.Start(30)
assert mpsbar.attach()
app.MainLoop()
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


def check_survival(worker, rounds=3, frees=2, toolkit=None, *, must_free=False):
    """Polled and freed, the host goes on, and all its objects died at home."""
    with Load(worker) as load:
        for _ in range(rounds):
            load.poll(100)
            load.free(frees, seconds=0.5)
            load.poll_slowly(0.2)
        if must_free:
            load.free_until_done()
    check_end(worker)
    notes = {(free["collected"], free["gui_toolkit"]) for free in load.frees}
    assert ALONE or notes == {(False, toolkit)}


def check_end(worker):
    """It has gone on until now, and all its objects died at home."""
    found = ask_for_report(worker, when_enough=True)
    wait_for(lambda: worker.process.poll() is not None, "end")
    assert (worker.process.returncode, worker.end()) == (0, "")
    assert (found["foreign"], found["kinds"]) == (0, [])
    assert found["ticks"] > 5


@each_kind_of_python
def test_tcl_interpreters(workers, version):
    check_survival(start_host(workers, CANARIES + HOLDERS + TCL, version), toolkit="Tk")


@each_kind_of_python
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


@each_kind_of_python
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
    check_survival(worker, rounds=4, frees=10, toolkit="PySide6", must_free=True)


@pytest.mark.parametrize("platform", ["xcb", "offscreen"])
def test_pyqt_windows(workers, display, platform):
    if importlib.util.find_spec("PyQt6") is None:
        pytest.skip("no PyQt6 in this Python")
    worker = start_host(
        workers, CANARIES + HOLDERS + PYQT,
        DISPLAY=display, QT_QPA_PLATFORM=platform, QT_LOGGING_RULES="default.warning=false",
    )  # fmt: skip
    check_survival(worker, rounds=4, frees=10, toolkit="PyQt6", must_free=True)


def test_wx_windows(workers, display):
    worker = start_host(
        workers, CANARIES + HOLDERS + WX, python=find_python_with_wx(),
        DISPLAY=display, GDK_BACKEND="x11", NO_AT_BRIDGE="1",
    )  # fmt: skip
    check_survival(worker, rounds=4, frees=10, toolkit="wxPython", must_free=True)


def find_python_with_wx():
    """PyPI has no wheel of it for Linux; Debian's own Python has it (python3-wxgtk4.0)."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import wx"], capture_output=True).returncode == 0:
            return python
    pytest.skip("no Python here has wx")


# Half way to a collection: the agent's objects of one look would start it, if they may. What it
# leaves behind is less: the collector goes on counting those whose memory Python keeps for reuse.
QT_HALF_WAY = QT.replace("get_count()[0] < 200", "get_count()[0] < 400")


def test_a_look_at_qt_windows(workers, display):
    if importlib.util.find_spec("PySide6") is None:
        pytest.skip("no PySide6 in this Python")
    host = CANARIES + HOLDERS + QT_HALF_WAY
    worker = start_host(workers, host, DISPLAY=display, QT_QPA_PLATFORM="xcb")
    if not ALONE:
        with worker.connect() as client:
            for _ in range(40):
                client.ask("stats", unknown=[[] for _ in range(600)])
    check_end(worker)
