"""What the report files of macOS say: crashes, jetsam events, panics, GPU restarts. Pure.

Written by the system, yet read like anybody's: cut, of another version, or not what it is called.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from signal import Signals
from typing import Any

from mpsbar.agent.secrets import mask
from mpsbar.core.endings import CrashReport, GpuEvent, Panic
from mpsbar.core.naming import printable
from mpsbar.core.untrusted import clean_text, is_whole, parse_object

CRASH, JETSAM, GPU_EVENT = "309", "298", "284"
# name-2026-09-23-000228.ips, with or without .000; local time
_NAME = re.compile(r"(.{1,200}?)-(\d{4}-\d\d-\d\d-\d{6})(?:\.\d{1,4})?\.(ips|panic)")
_MAX_ROWS = 20_000
_MAX_FRAMES = 100
_MAX_TEXT = 200
# Frames of every abort, and the interpreter's own, which call everything.
_SYSTEM_IMAGES = re.compile(r"libsystem_|libdispatch|libc\+\+|dyld|libobjc|Python|python|libpython")
_SYSTEM_SYMBOLS = re.compile(
    r"__pthread_kill|pthread_kill|abort$|__abort|raise$|_sigtramp|__cxa|std::|demangling_|_objc_|"
    r"os_abort|_Py|Py[A-Z]|cfunction_|faulthandler|_pthread|start_wqthread|thread_start|_dispatch|__assert"
)
_ASSERTION = re.compile(r"\S*/([\w.+-]+:\d+: failed assertion.*)")
_TEXT_PROCESS = re.compile(r"(?m)^Process:\s+(.{1,100}?) \[(\d{1,10})\]$")
_TEXT_LAUNCHED = re.compile(r"(?m)^Launch Time:\s+(.{10,40})$")
_TEXT_SIGNAL = re.compile(r"(?m)^Exception Type:.{0,80}?\((SIG[A-Z]{2,8})\)")
_TEXT_CRASHED = re.compile(r"(?m)^Thread \d+ Crashed:.*$")
_TEXT_FRAME = re.compile(r"(?m)^\d{1,3}\s+(\S{1,100})\s+0x[0-9a-f]+ (\S{1,300})(?: \+ \d+)?$")
_PIECES = {
    "pid": re.compile(r'"pid"\s*:\s*(\d{1,10})\b'),
    "procLaunch": re.compile(r'"procLaunch"\s*:\s*"([^"]{10,40})"'),
    "signal": re.compile(r'"signal"\s*:\s*"(SIG[A-Z]{2,8})"'),
    "asi": re.compile(r'"asi"\s*:\s*\{[^{}]{0,200}?\[\s*"((?:[^"\\]|\\.){0,2000})"'),
}
_PANIC = re.compile(r'panic\(cpu \d+[^)]{0,60}\): "?(.{1,300}?)(?:"? @(\S{1,80}))?$', re.MULTILINE)
_TASK = re.compile(r"(?m)^Panicked task[^:\n]{0,40}:.*?pid \d+: (\S{1,40})")


@dataclass(frozen=True, slots=True)
class CrashedProcess:
    """Whose crash it was, to match it, and the report itself."""

    pid: int | None
    launched: float | None
    report: CrashReport


@dataclass(frozen=True, slots=True)
class ReportName:
    process: str
    local_time: float  # seconds since the epoch, as this computer's clock shows it
    kind: str  # "ips" or "panic"


def parse_name(name: str) -> ReportName | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        when = datetime.strptime(match[2], "%Y-%m-%d-%H%M%S").timestamp()  # noqa: DTZ007 - local
    except (ValueError, OverflowError, OSError):
        return None
    return ReportName(match[1], when, match[3])


def split_report(text: str) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """The header line and the body; None for a body that is no JSON object."""
    first, _, rest = text.partition("\n")
    header, body = parse_object(first), parse_object(rest)
    if header is None:  # one object alone
        whole = parse_object(text)
        return (whole or {}, whole)
    if body is None and not rest.strip():
        body = header
    return header, body


def find_type(text: str) -> str:
    header, body = split_report(text)
    kind = header.get("bug_type") or (body or {}).get("bug_type")
    return kind if isinstance(kind, str) else ""


def parse_crash(text: str) -> CrashedProcess | None:
    """A crash report, whole, cut, or as Console shows it; None if it says nothing."""
    _, body = split_report(text)
    if body is not None and ("exception" in body or "pid" in body):
        return _parse_crash_body(body)
    if _TEXT_PROCESS.search(text):
        return _parse_crash_text(text)
    pieces = {name: match[1] for name, p in _PIECES.items() if (match := p.search(text))}
    if not pieces.keys() & {"pid", "signal", "asi"}:
        return None
    sentence = _clean_sentence(_unescape(pieces.get("asi", "")))
    return CrashedProcess(
        int(pieces["pid"]) if "pid" in pieces else None,
        parse_time(pieces.get("procLaunch")),
        CrashReport(_signal(pieces.get("signal")), sentence),
    )


def _parse_crash_body(body: Mapping[str, Any]) -> CrashedProcess:
    exception, termination = _object(body.get("exception")), _object(body.get("termination"))
    number = _signal(exception.get("signal"))
    if number is None and termination.get("namespace") == "SIGNAL":
        number = _count(termination.get("code"))
    frames = _find_crashed(body)
    library, symbol = _choose_frame(frames)
    return CrashedProcess(
        _count(body.get("pid")),
        parse_time(body.get("procLaunch")),
        CrashReport(
            number if number is not None and 0 < number < 65 else None,
            _find_sentence(body.get("asi"), termination.get("reasons")),
            library,
            symbol,
            any(symbol.startswith("faulthandler") for _, symbol in frames),
        ),
    )


def _parse_crash_text(text: str) -> CrashedProcess:
    process = _TEXT_PROCESS.search(text)
    launched = _TEXT_LAUNCHED.search(text)
    signal = _TEXT_SIGNAL.search(text)
    crashed = _TEXT_CRASHED.search(text)
    rest = text[crashed.end() :] if crashed else ""
    frames = [(_text(image), _text(symbol)) for image, symbol in _TEXT_FRAME.findall(rest)]
    library, symbol = _choose_frame(frames[:_MAX_FRAMES])
    return CrashedProcess(
        int(process[2]) if process else None,
        parse_time(launched[1]) if launched else None,
        CrashReport(
            _signal(signal[1] if signal else None), "", library, symbol,
            has_python_traceback=any(s.startswith("faulthandler") for _, s in frames),
        ),
    )  # fmt: skip


def _find_crashed(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the frames of the crashed thread as (library, function)."""
    threads = body.get("threads")
    threads = threads[:_MAX_ROWS] if isinstance(threads, list) else []
    at = body.get("faultingThread")
    thread = next((t for t in threads if _object(t).get("triggered") is True), None)
    if thread is None and isinstance(at, int) and 0 <= at < len(threads):
        thread = threads[at]
    thread = _object(thread)
    images = body.get("usedImages")
    names = (
        [_text(_object(i).get("name")) for i in images[:5000]] if isinstance(images, list) else []
    )
    frames = thread.get("frames")
    rows = []
    for frame in frames[:_MAX_FRAMES] if isinstance(frames, list) else ():
        number = _object(frame).get("imageIndex")
        symbol = _text(_object(frame).get("symbol"))
        is_known = isinstance(number, int) and 0 <= number < len(names)
        rows.append((names[int(number or 0)] if is_known else "", symbol))
    return rows


def _choose_frame(frames: list[tuple[str, str]]) -> tuple[str, str]:
    """The first that is neither the system's way to abort nor the interpreter."""
    for library, symbol in frames:
        is_usual = not symbol or _SYSTEM_SYMBOLS.match(symbol)
        if not is_usual and not _SYSTEM_IMAGES.match(library):
            return library[:80], symbol[:120]
    return "", ""


def _find_sentence(*sources: Any) -> str:
    """What a library said before it aborted; "abort() called" says nothing."""
    for source in sources:
        values = source.values() if isinstance(source, Mapping) else [source]
        for value in list(values)[:20]:
            for text in value[:20] if isinstance(value, list) else ():
                if isinstance(text, str) and (sentence := _clean_sentence(text)):
                    return sentence
    return ""


def _clean_sentence(text: str) -> str:
    line = " ".join(text[:4000].split())
    if line in ("", "abort() called"):
        return ""
    match = _ASSERTION.search(line)
    return mask(printable(match[1] if match else line, _MAX_TEXT))


def find_jetsam(text: str, pid: int) -> str | None:
    """Why this pid was killed; None where the report does not say that it was.

    All processes are listed, the largest is named: only those with a reason were killed.
    """
    _, body = split_report(text)
    rows = body.get("processes") if body is not None else None
    for row in rows[:_MAX_ROWS] if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("pid") == pid and not isinstance(row.get("pid"), bool):
            reason = row.get("reason")
            return printable(reason, 60) if isinstance(reason, str) and reason else None
    return None


def parse_gpu_event(text: str, local_time: float) -> GpuEvent | None:
    _, body = split_report(text)
    if body is None:
        return None
    analysis = _object(body.get("analysis"))
    when = body.get("timestamp")
    is_time = isinstance(when, int | float) and not isinstance(when, bool) and 0 < when < 1e11
    return GpuEvent(
        float(when) if is_time and when is not None else local_time,
        _text(body.get("process_name"))[:16],
        _text(analysis.get("restart_reason_desc"))[:80],
    )


def parse_panic(text: str) -> Panic | None:
    _, body = split_report(text)
    panic_text = body.get("panicString") if body is not None else None
    words = panic_text if isinstance(panic_text, str) else text
    match = _PANIC.search(words[:20_000])
    if match is None:
        return None
    reason = match[1].strip().rstrip('"') + (f" @{match[2]}" if match[2] else "")
    task = _TASK.search(words[:20_000])
    return Panic(printable(reason, _MAX_TEXT), printable(task[1], 40) if task else "")


def parse_time(value: Any) -> float | None:
    """Parses a time such as "2026-09-23 00:02:28.5379 +0200" to seconds since the epoch."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        return datetime.strptime(value.strip(), "%Y-%m-%d %H:%M:%S.%f %z").timestamp()
    except (ValueError, OverflowError):
        return None


def _signal(name: Any) -> int | None:
    """By macOS's own numbers: SIGBUS is 10 there, 7 on Linux."""
    if name == "SIGBUS":
        return 10
    try:
        return int(Signals[name]) if isinstance(name, str) else None
    except KeyError:
        return None


def _unescape(text: str) -> str:
    try:
        value = json.loads(f'"{text}"')
    except ValueError:
        return text
    return value if isinstance(value, str) else ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    return value if is_whole(value, 1 << 31) else None


_text = partial(clean_text, masked=False)
