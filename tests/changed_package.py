"""A copy of mpsbar with one change in it, as someone would make it, and a Python that runs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


class ChangedPackage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / "mpsbar", folder / "mpsbar", ignore=leave_out)
        shutil.copytree(REPOSITORY / "resources", folder / "resources")

    def insert(self, file: str, before: str, line: str) -> None:
        """Put a line before the only one that begins with `before`."""
        path = self.folder / "mpsbar" / file
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (at,) = (number for number, text in enumerate(lines) if text.startswith(before))
        path.write_text("".join([*lines[:at], line, "\n", *lines[at:]]), encoding="utf-8")

    def replace(self, file: str, old: str, new: str) -> None:
        """Put `new` where the only `old` is."""
        path = self.folder / "mpsbar" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, (file, old, text.count(old))
        path.write_text(text.replace(old, new), encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        (self.folder / "mpsbar" / file).write_text(text, encoding="utf-8")

    def run(self, code: str) -> str:
        """What the code prints; it fails where the code does."""
        paths = [str(self.folder), str(REPOSITORY / "tests")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        for name in ("CONFIG", "DATA", "LOG", "RUN"):
            environment[f"MPSBAR_{name}_DIR"] = str(self.folder / name.lower())
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            env=environment, cwd=self.folder, capture_output=True, text=True, timeout=500,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout
