"""A script that waits until it has no threads but its own."""

import threading

from small_model import show, train

losses = []
threading.Thread(target=lambda: losses.extend(train())).start()
while threading.active_count() > 1:
    threading.Event().wait(0.05)
show(losses)
