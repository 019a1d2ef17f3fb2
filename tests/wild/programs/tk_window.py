"""Tk: variables end in cycles while its loop trains (needs a display)."""

import tkinter as tk

from small_model import show, steps

root = tk.Tk()
losses, training = [], steps()


def step():
    variable = tk.StringVar(root, "step")
    variable.me = variable
    try:
        losses.append(next(training))
        root.after(30, step)
    except StopIteration:
        root.quit()


root.after(0, step)
root.mainloop()
show(losses)
