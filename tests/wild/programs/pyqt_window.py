"""PyQt6: widgets come and go in cycles while a timer trains."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
import torch  # noqa: F401
from PyQt6.QtCore import QTimer
from PyQt6.QtWidgets import QApplication, QLabel, QWidget
from small_model import show, steps

application = QApplication([])
window = QWidget()
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


timer = QTimer()
timer.timeout.connect(step)
timer.start(30)
application.exec()
show(losses)
