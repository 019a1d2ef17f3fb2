"""What several hosts answered, in words and as JSON. Pure."""

from collections.abc import Callable, Sequence
from typing import Any

from mpsbar.core.host_readings import EndInWords, HostProblem, HostReading
from mpsbar.core.naming import printable
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.language import _, ngettext
from mpsbar.ui.text import wording
from mpsbar.ui.text.endings import render_end
from mpsbar.ui.text.status_json import build_status

# Of the JSON of one computer; health is in the words that the host itself sent.
_HOST_KEYS = ("schema", "time", "machine", "workers", "processes")


def say_answering(readings: Sequence[HostReading]) -> str:
    """All hosts in one line: how many answer, what runs there, how much they hold."""
    known = [r.status.snapshot for r in readings if r.status and r.problem is None]
    held = [snapshot.held for snapshot in known if snapshot.held is not None]
    count = sum(len(snapshot.workers) + len(snapshot.unconnected) for snapshot in known)
    words = [
        _("{n} of {total} hosts answer").format(n=len(known), total=len(readings)),
        ngettext("{n} process", "{n} processes", count).format(n=count),
    ]
    if held:
        words.append(_("{size} held").format(size=wording.size(sum(held))))
    return " · ".join(words)


def say_condition(reading: HostReading) -> str:
    """What there is to know of one host in a few words; nothing where all is well."""
    if reading.problem is not None:
        return say_silence(reading)
    if reading.status is None:
        return _("connecting…")
    if reading.status.level in ("warning", "critical"):
        return "; ".join(reading.status.reasons) or str(reading.status.level)
    return ""


def say_silence(reading: HostReading) -> str:
    reason = f" ({printable(reading.problem)})" if reading.problem else ""
    return say_since(reading) + reason


def say_since(reading: HostReading) -> str:
    if reading.answered_at is None:
        return _("no answer")
    at = wording.clock(reading.answered_at, seconds=True)
    return _("no answer since {at}").format(at=at)


def render_ends(
    host: str,
    ends: list[EndInWords] | HostProblem,
    which: str | None,
    read_native: Callable[[], NativeOperations],
    days: int,
) -> str:
    """How runs ended on one host in the last days, newest first, in that host's own words."""
    if isinstance(ends, HostProblem):
        return _("{host}: no answer ({problem})").format(host=host, problem=ends.text)
    if not ends and which is not None:
        text = _("{host}: no run that ended in the last {n} days matches {name!r}")
        return text.format(host=host, n=days, name=printable(which, 60))
    if not ends:
        text = _("{host}: mpsbar knows of no run that ended there in the last {n} days")
        return text.format(host=host, n=days)
    return "\n\n".join(f"{host}: {render_end(end, read_native)}" for end in ends)


def build_hosts(readings: list[HostReading]) -> dict[str, Any]:
    """The JSON of `status --host` (schema 1): of what each host said only what we understood."""
    return {"schema": 1, "hosts": {reading.host: _build_host(reading) for reading in readings}}


def _build_host(reading: HostReading) -> dict[str, Any]:
    status: dict[str, Any] | None = None
    if reading.status is not None:
        whole = build_status(reading.status.snapshot)
        status = {key: whole[key] for key in _HOST_KEYS}
        status["health"] = {"level": reading.status.level, "reasons": list(reading.status.reasons)}
    return {"problem": reading.problem, "answered_at": reading.answered_at, "status": status}
