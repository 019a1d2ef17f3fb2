"""The metrics as a file for node_exporter's textfile collector: no port of ours at all."""

import contextlib
from pathlib import Path

from mpsbar.core.errors import UserError
from mpsbar.fleet.exporter import Exporter, NoReading
from mpsbar.system.files import replace_file


class TextFile:
    """Written whole each time, and removed at the end: old values would be served for ever."""

    def __init__(self, exporter: Exporter, path: str) -> None:
        self._exporter, self._path = exporter, Path(path)
        if self._path.suffix != ".prom":
            raise UserError(f"{path} must end in .prom: node_exporter reads no other files")
        if not self._path.parent.is_dir():
            raise UserError(f"{self._path.parent} is not a folder")

    def write(self) -> None:
        """UserError if it cannot be written."""
        try:
            page = self._exporter.render()
        except NoReading:
            return
        try:
            # node_exporter runs as another user. A link at its place is replaced, not followed.
            replace_file(self._path, page, mode=0o644, follow_links=False)
        except OSError as problem:
            reason = problem.strerror or problem
            raise UserError(f"{self._path} cannot be written: {reason}") from None

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
