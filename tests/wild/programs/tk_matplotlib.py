"""matplotlib on Tk: a window with a live curve, redrawn at each step; figures end in cycles."""

import matplotlib.pyplot as plt
from small_model import show, steps

plt.switch_backend("TkAgg")
plt.ion()
figure, axes = plt.subplots(figsize=(2, 2))
(curve,) = axes.plot([])
losses = []
for number, loss in enumerate(steps()):
    losses.append(loss)
    curve.set_data(range(len(losses)), losses)
    axes.relim()
    axes.autoscale_view()
    plt.pause(0.03)
    if number % 20 == 10:  # its window, toolbar and images are garbage in cycles afterwards
        other = plt.figure(figsize=(1, 1))
        other.add_subplot().plot([1, 2])
        plt.pause(0.01)
        plt.close(other)
        del other
plt.close("all")
show(losses)
