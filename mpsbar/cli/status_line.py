"""mpsbar status --format: one line, from a file if somebody asked a moment ago."""

import json
import time
from pathlib import Path
from typing import Any

from mpsbar.system import files, paths
from mpsbar.ui.text.status_line import FIELDS, build_fields, parse_format, render_line

# Several status bars ask every second or two; a reading costs more than all the rest.
FRESH_SECONDS = 2.0
_MOST_BYTES = 16 * 1024


def run(text: str) -> int:
    parsed = parse_format(text)
    fields = _read_fields(paths.status_line_file())
    if fields is None:
        fields = _measure()
        _keep(paths.status_line_file(), fields)
    print(render_line(parsed, fields))
    return 0


def _measure() -> dict[str, str]:
    from mpsbar.monitor import Monitor

    monitor = Monitor()
    try:
        return build_fields(monitor.tick())
    finally:
        monitor.close()


def _read_fields(path: Path) -> dict[str, str] | None:
    """None if there are none, or they are old, or not ours."""
    try:
        if not files.is_usable(path):
            return None
        record: Any = json.loads(files.read_bytes(path, _MOST_BYTES))
        age = time.time() - float(record["time"])
        fields = {str(name): str(value) for name, value in record["fields"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    # A clock that was set back makes a file from the future: it is old, too.
    return fields if 0 <= age <= FRESH_SECONDS and fields.keys() == FIELDS.keys() else None


def _keep(path: Path, fields: dict[str, str]) -> None:
    record = {"time": time.time(), "fields": fields}
    try:
        files.replace_own_file(path, json.dumps(record).encode())
    except OSError:
        return  # the next one reads for itself
