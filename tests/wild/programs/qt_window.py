"""PySide6: widgets come and go in cycles while a timer trains."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
import torch  # noqa: F401
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget
from small_model import show, steps

application = QApplication([])
window = QWidget()
layout = QVBoxLayout(window)
window.show()
losses, training = [], steps()


def step():
    label = QLabel("step")
    label.me = label  # only the collector ends it
    label.show()
    try:
        losses.append(next(training))
    except StopIteration:
        application.quit()


timer = QTimer(interval=30, timeout=step)
timer.start()
application.exec()
show(losses)
