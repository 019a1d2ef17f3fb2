"""A real executable in a desktop program's place, which writes down how it was called."""

import json
import stat
import sys
import threading
import time
from pathlib import Path

_SCRIPT = """#!{python}
import json, os, sys, time
given = sys.stdin.buffer.read()
call = dict(argv=[os.fsencode(word).hex() for word in sys.argv[1:]], stdin=given.hex(), pid=os.getpid())
with open({record!r}, "a") as file:
    file.write(json.dumps(call) + "\\n")
sys.stderr.write({words!r})
if {background!r}:
    os.fork() or time.sleep(600)
time.sleep({seconds!r})
sys.exit({code!r})
"""


class StandIn:
    def __init__(self, folder: Path, name: str, *, code=0, words="", seconds=0.0, background=False):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / name
        self._record = folder / f"{name}.calls"
        self.path.write_text(
            _SCRIPT.format(
                python=sys.executable, record=str(self._record), words=words,
                seconds=seconds, background=background, code=code,
            )
        )  # fmt: skip
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    @property
    def calls(self) -> list[list[bytes]]:
        return [[bytes.fromhex(word) for word in call["argv"]] for call in self._read()]

    @property
    def inputs(self) -> list[bytes]:
        return [bytes.fromhex(call["stdin"]) for call in self._read()]

    @property
    def pids(self) -> list[int]:
        return [call["pid"] for call in self._read()]

    def _read(self):
        if not self._record.exists():
            return []
        lines = self._record.read_text().splitlines(keepends=True)
        return [
            json.loads(line) for line in lines if line.endswith("\n")
        ]  # one may be half written


def wait_for(condition, seconds=120):
    """Generous for a loaded machine."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not so in time"
        time.sleep(0.01)


def in_thread(work):
    """What it raised there."""
    caught = []

    def run():
        try:
            work()
        except BaseException as problem:
            caught.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=60)
    return caught
