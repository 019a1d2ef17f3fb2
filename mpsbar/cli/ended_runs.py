"""What `mpsbar why` knows of runs that ended, and how it prints them."""

import sqlite3
from contextlib import closing
from dataclasses import asdict, replace
from datetime import datetime

from mpsbar.core.endings import EndEvidence, LastWords
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import SAME_START
from mpsbar.core.naming import printable
from mpsbar.core.verdicts import judge_end
from mpsbar.end_follower import explain_unseen
from mpsbar.history.reader import open_to_read
from mpsbar.history.writer import read_ends
from mpsbar.language import _
from mpsbar.system import paths, this_computer
from mpsbar.system.last_words import read_last_words
from mpsbar.ui.text import endings, wording

_KEEP_SECONDS = 7 * 86400.0
_MOST_READ = 500


def read_all_ends(now: float) -> list[EndedProcess]:
    """From the history, and of runs that nobody watched from their last words."""
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
        if not any(_is_same(words, end) for end in ends):
            ends.append(_explain_words(words))
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
    return started - SAME_START <= words.attached <= max(end.ended, words.attached)


def _explain_words(words: LastWords) -> EndedProcess:
    held, peak = words.memory.get("held"), words.memory.get("peak")
    evidence = EndEvidence(
        was_seen=False, is_connected=True, words=words, held=held, peak=peak,
        torch=words.frameworks.get("torch"),
    )  # fmt: skip
    verdict = judge_end(evidence)
    name = words.name or f"process {words.pid}"
    return EndedProcess(
        words.pid, None, name, words.ended, was_seen=False, peak=peak, held=held, how=verdict.code,
        verdict=verdict,  # how long it ran is not known: it attached when a framework was imported
    )  # fmt: skip


def fits(end: EndedProcess, which: str | None) -> bool:
    if which is None:
        return True
    if which.isascii() and which.isdigit():
        return end.pid == int(which)
    return which.lower() in end.name.lower()


def render(end: EndedProcess) -> str:
    when = datetime.fromtimestamp(end.ended).astimezone().strftime("%a %d %b, %H:%M:%S")
    is_sure = end.was_seen or (end.verdict is not None and end.verdict.code != "unknown")
    facts = [(_("ended {time}") if is_sure else _("last seen {time}")).format(time=when)]
    if end.ran is not None:
        facts.append(_("ran for {time}").format(time=wording.duration(end.ran)))
    if end.peak is not None:
        facts.append(_("peak {size}").format(size=wording.size(end.peak)))
    lines = [
        endings.say_verdict(end.verdict, end.name, end.how) + ".",
        f"  {printable(end.name)} ({end.pid}), {', '.join(facts)}",
    ]
    if end.verdict is not None:
        lines.append(_("  How sure: {sureness}").format(sureness=endings.say_sureness(end.verdict)))
        lines += [
            _("  Evidence: {evidence}").format(evidence=text)
            for text in endings.say_basis(end.verdict)
        ]
        lines += [f"  → {step}" for step in endings.say_next_steps(end.verdict, end.name, end.pid)]
    return "\n".join(lines)


def build_json(end: EndedProcess) -> dict[str, object]:
    plain = replace(end, verdict=None)
    record = asdict(plain) | {"sentence": endings.say_verdict(end.verdict, end.name, end.how)}
    record["verdict"] = None if end.verdict is None else asdict(end.verdict)
    if end.verdict is not None:
        record["sureness"] = endings.say_sureness(end.verdict)
        record["evidence"] = endings.say_basis(end.verdict)
    record["next_steps"] = endings.say_next_steps(end.verdict, end.name, end.pid)
    return {name: value for name, value in record.items() if name != "is_settled"}
