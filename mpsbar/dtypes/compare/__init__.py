"""mpsbar.compare(): a model on the CPU and on the device, module by module.

Runs in the user's Python: 3.9 and newer, torch and the standard library only, relative imports
only. `mpsbar compare FILE.py:make` hands these files to a Python that has no mpsbar. Only text.py
and render.py do without torch.
"""
