"""All runs that ended, as far as is known: from the history, and what others left behind.

For `mpsbar why` and the report, which say the same.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from mpsbar.core.end_evidence import build_evidence
from mpsbar.core.endings import EndEvidence, LastWords
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import SAME_START
from mpsbar.core.verdicts import judge_end
from mpsbar.end_follower import explain_unseen, set_end
from mpsbar.history.reader import open_to_read
from mpsbar.history.retention import KEEP
from mpsbar.history.writer import read_ends
from mpsbar.system import paths, this_computer
from mpsbar.system.last_words import read_last_words

_MAX_READ = 500
# Verdicts of whoever could not read the exit status.
_NOT_KNOWN = ("unknown", "exited")


def read_all_ends(
    now: float, note_problem: Callable[[str], None] = lambda _problem: None
) -> list[EndedProcess]:
    """Reads ends from the history, and those of unwatched runs from their last words.

    `note_problem` gets the reason if there is a history that can't be read. The report does
    without it: history.reader logs the reason there, and the page shows it.
    """
    ends = _read_history(now, note_problem)
    computer = this_computer()
    reports, boot = computer.read_reports(), computer.read_boot()
    ends = [
        explain_unseen(end, now, reports, boot, computer.is_mac)
        if not end.was_seen and (end.verdict is None or end.verdict.code == "unknown")
        else end
        for end in ends
    ]
    for record in read_last_words(now - KEEP / 1000)[:_MAX_READ]:
        same = next((at for at, end in enumerate(ends) if _is_same(record, end)), None)
        if same is None:
            ends.append(_explain_record(record, computer.is_mac))
        else:
            ends[same] = _complete(ends[same], record)
    return sorted(ends, key=lambda end: -end.ended)


def _read_history(now: float, note_problem: Callable[[str], None]) -> list[EndedProcess]:
    since, until = int(now * 1000) - KEEP, int((now + 60) * 1000)
    try:
        with closing(open_to_read(paths.history_file())) as connection:
            return list(read_ends(connection, since, until, _MAX_READ, with_children=True))
    except FileNotFoundError:
        return []
    except (sqlite3.Error, OSError) as error:
        note_problem(str(error))
        return []


def _is_same(record: LastWords, end: EndedProcess) -> bool:
    if record.pid != end.pid:
        return False
    started = end.ended if end.started is None else end.started
    # An end that nobody saw is dated by when it was last seen: its agent may have attached later.
    began = record.attached if end.was_seen or record.started is None else record.started
    return started - SAME_START <= record.attached and began <= end.ended + SAME_START


def _complete(end: EndedProcess, record: LastWords) -> EndedProcess:
    """`mpsbar run` completes a record after the end was seen: as the parent it knows the exit code,
    and with --explain how long operations took on the CPU, and how many bytes were copied."""
    if record.verdict is not None and (end.verdict is None or end.verdict.code in _NOT_KNOWN):
        end = set_end(end.with_verdict(record.verdict), record.ended, record.started)
    if end.verdict is None or record.fallbacks is None:
        return end
    return replace(end, verdict=replace(end.verdict, fallbacks=record.fallbacks))


def _explain_record(record: LastWords, is_mac: bool) -> EndedProcess:
    known = EndEvidence(is_connected=True, words=record, is_mac=is_mac)
    verdict = judge_end(build_evidence(known, record.ended))
    if record.verdict is not None:
        verdict = replace(record.verdict, fallbacks=record.fallbacks)
    # Not since it attached: that was when a framework was imported.
    ran = None if record.started is None else record.ended - record.started
    name = record.name or f"process {record.pid}"
    return EndedProcess(
        record.pid, record.started, name, record.ended,
        was_seen=record.verdict is not None, peak=record.memory.get("peak"),
        held=record.memory.get("held"), ran=ran,
    ).with_verdict(verdict)  # fmt: skip
