"""The torch worker under a name that says so: its "mps" is softmps, software, not a GPU."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).with_name("torch_worker.py")), run_name="__main__")
