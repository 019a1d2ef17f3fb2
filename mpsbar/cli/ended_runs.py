"""Chooses and renders the ended runs that `mpsbar why` prints."""

from dataclasses import asdict, replace
from pathlib import Path

from mpsbar.core.events import EndedProcess
from mpsbar.core.host_readings import EndInWords
from mpsbar.core.naming import is_called, printable
from mpsbar.system.native_operations import read_native_operations
from mpsbar.ui.text import endings
from mpsbar.ui.text.fallbacks import build_fallbacks


def choose(ends: list[EndedProcess], which: str | None) -> list[EndedProcess]:
    """Returns the runs with this PID or name; if there are none, those whose names contain it."""
    if which is None:
        return ends
    if which.isascii() and which.isdigit():
        return [end for end in ends if end.pid == int(which)]
    called = [end for end in ends if is_called(which, end.name)]
    # A part of the name is enough, because nothing is done to these runs.
    return called or [end for end in ends if which.lower() in end.name.lower()]


def render(end: EndedProcess) -> str:
    verdict, sentence = end.verdict, endings.say_verdict(end.verdict, end.name, end.how)
    words = EndInWords(
        end.pid, printable(end.name), sentence, end.ended, end.ran, end.peak, None, (), ()
    )
    if verdict is not None:
        words = replace(
            words,
            certainty=endings.say_certainty(verdict),
            evidence=tuple(endings.say_basis(verdict)),
            next_steps=tuple(endings.say_next_steps(verdict, end.name, end.pid)),
            fallbacks=verdict.fallbacks,
        )
    is_time_sure = end.was_seen or (verdict is not None and verdict.code != "unknown")
    return endings.render_end(words, read_native_operations, str(Path.home()), is_time_sure)


def build_json(end: EndedProcess) -> dict[str, object]:
    plain = replace(end, verdict=None)
    record = asdict(plain) | {"sentence": endings.say_verdict(end.verdict, end.name, end.how)}
    record["verdict"] = None if end.verdict is None else asdict(end.verdict)
    if end.verdict is not None:
        record["certainty"] = endings.say_certainty(end.verdict)
        record["evidence"] = endings.say_basis(end.verdict)
    if end.verdict is not None and end.verdict.fallbacks is not None:
        record["fallbacks"] = build_fallbacks(end.verdict.fallbacks, read_native_operations())
    record["next_steps"] = endings.say_next_steps(end.verdict, end.name, end.pid)
    return {name: value for name, value in record.items() if name != "is_settled"}
