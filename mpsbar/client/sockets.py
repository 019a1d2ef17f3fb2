"""The workers' socket files, listed anew only when one has come or gone."""

import os
import time

from mpsbar.agent import places

# File systems stamp directories by a clock that may stand still for some milliseconds; what was
# listed sooner after the last change may have missed the next one.
_SETTLED = 0.5


class Sockets:
    def __init__(self) -> None:
        self._folders = places.candidates()  # asks the password database: once is enough
        self._stamps: list[int | None] | None = None
        self._found: list[tuple[int, str]] = []

    def list(self) -> list[tuple[int, str]]:
        """(pid, path) of each."""
        stamps = [_read_stamp(folder) for folder in self._folders]
        if stamps != self._stamps:
            self._found = places.list_sockets(self._folders)
            newest = max((stamp for stamp in stamps if stamp is not None), default=0)
            is_settled = time.time() - newest / 1e9 > _SETTLED
            self._stamps = stamps if is_settled else None
        return self._found


def _read_stamp(folder: str) -> int | None:
    """When something in it came or went; None where it is not, or not safely ours."""
    try:
        places.check(folder)
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - at every look
    except OSError:
        return None
