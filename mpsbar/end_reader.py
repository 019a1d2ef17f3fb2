"""All runs that ended, as far as is known: from the history, and what others left behind.

For `mpsbar why` and the report, which say the same.
"""

import sqlite3
from contextlib import closing
from dataclasses import replace

from mpsbar.core.endings import EndEvidence, LastWords
from mpsbar.core.events import EndedProcess
from mpsbar.core.verdicts import judge_end
from mpsbar.end_follower import explain_unseen, set_end
from mpsbar.history.reader import open_to_read
from mpsbar.history.writer import read_ends
from mpsbar.system import paths, this_computer
from mpsbar.system.last_words import read_last_words

_KEEP_SECONDS = 7 * 86400.0
_MOST_READ = 500
# Two readings of one start may differ by so much.
_SAME_START = 2.0
# Verdicts of whoever could not read the exit status.
_NOT_KNOWN = ("unknown", "exited")


def read_all_ends(now: float) -> list[EndedProcess]:
    """Reads ends from the history, and those of unwatched runs from their last words."""
    ends = _read_history(now)
    computer = this_computer()
    reports, boot = computer.read_reports(), computer.read_boot()
    is_mac = computer.footprint_kind == "footprint"
    ends = [
        explain_unseen(end, now, reports, boot, is_mac)
        if not end.was_seen and (end.verdict is None or end.verdict.code == "unknown")
        else end
        for end in ends
    ]
    for words in read_last_words(now - _KEEP_SECONDS)[:_MOST_READ]:
        same = next((at for at, end in enumerate(ends) if _is_same(words, end)), None)
        if same is None:
            ends.append(_explain_words(words))
        else:
            ends[same] = _complete(ends[same], words)
    return sorted(ends, key=lambda end: -end.ended)


def _read_history(now: float) -> list[EndedProcess]:
    since, until = int((now - _KEEP_SECONDS) * 1000), int((now + 60) * 1000)
    try:
        with closing(open_to_read(paths.history_file())) as connection:
            return list(read_ends(connection, since, until, _MOST_READ, with_children=True))
    except (sqlite3.Error, OSError):
        return []


def _is_same(words: LastWords, end: EndedProcess) -> bool:
    if words.pid != end.pid:
        return False
    started = end.ended if end.started is None else end.started
    # An end that nobody saw is dated by when it was last seen: its agent may have attached later.
    began = words.attached if end.was_seen or words.started is None else words.started
    return started - _SAME_START <= words.attached and began <= end.ended + _SAME_START


def _complete(end: EndedProcess, words: LastWords) -> EndedProcess:
    """`mpsbar run` completes a record after the end was seen: as the parent it knows the exit code,
    and with --explain how long operations took on the CPU, and how many bytes were copied."""
    if words.verdict is not None and (end.verdict is None or end.verdict.code in _NOT_KNOWN):
        end = replace(end, verdict=words.verdict, how=words.verdict.code)
        end = set_end(end, words.ended, words.started)
    if end.verdict is None or words.fallbacks is None:
        return end
    return replace(end, verdict=replace(end.verdict, fallbacks=words.fallbacks))


def _explain_words(words: LastWords) -> EndedProcess:
    held, peak = words.memory.get("held"), words.memory.get("peak")
    evidence = EndEvidence(
        was_seen=False, is_connected=True, words=words, held=held, peak=peak,
        torch=words.frameworks.get("torch"),
    )  # fmt: skip
    verdict = judge_end(evidence)
    if words.verdict is not None:
        verdict = replace(words.verdict, fallbacks=words.fallbacks)
    # Not since it attached: that was when a framework was imported.
    ran = None if words.started is None else words.ended - words.started
    name = words.name or f"process {words.pid}"
    return EndedProcess(
        words.pid, words.started, name, words.ended, was_seen=words.verdict is not None, peak=peak,
        held=held, how=verdict.code, verdict=verdict, ran=ran,
    )  # fmt: skip
