"""How `mpsbar why` prints the runs that ended."""

from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from mpsbar.core.events import EndedProcess
from mpsbar.core.naming import is_called, printable
from mpsbar.language import _
from mpsbar.system.native_operations import read_native_operations
from mpsbar.ui.text import endings, wording
from mpsbar.ui.text.fallbacks import build_fallbacks, render_fallbacks


def choose(ends: list[EndedProcess], which: str | None) -> list[EndedProcess]:
    """The runs with this PID or name; where there is none, those whose names contain it."""
    if which is None:
        return ends
    if which.isascii() and which.isdigit():
        return [end for end in ends if end.pid == int(which)]
    called = [end for end in ends if is_called(which, end.name)]
    # Nothing is done to them, so a part of the name is enough.
    return called or [end for end in ends if which.lower() in end.name.lower()]


def render(end: EndedProcess) -> str:
    time = datetime.fromtimestamp(end.ended).astimezone()
    when = _("{time:%a %d %b, %H:%M:%S}").format(time=time)
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
        lines.append("  " + _("Certainty: {words}").format(words=endings.say_sureness(end.verdict)))
        lines += [
            "  " + _("Evidence: {words}").format(words=text)
            for text in endings.say_basis(end.verdict)
        ]
        lines += [f"  → {step}" for step in endings.say_next_steps(end.verdict, end.name, end.pid)]
        if end.verdict.fallbacks is not None:
            home = str(Path.home())
            shown = render_fallbacks(end.verdict.fallbacks, read_native_operations(), home=home)
            lines += [f"  {line}" for line in shown]
    return "\n".join(lines)


def build_json(end: EndedProcess) -> dict[str, object]:
    plain = replace(end, verdict=None)
    record = asdict(plain) | {"sentence": endings.say_verdict(end.verdict, end.name, end.how)}
    record["verdict"] = None if end.verdict is None else asdict(end.verdict)
    if end.verdict is not None:
        record["sureness"] = endings.say_sureness(end.verdict)
        record["evidence"] = endings.say_basis(end.verdict)
    if end.verdict is not None and end.verdict.fallbacks is not None:
        record["fallbacks"] = build_fallbacks(end.verdict.fallbacks, read_native_operations())
    record["next_steps"] = endings.say_next_steps(end.verdict, end.name, end.pid)
    return {name: value for name, value in record.items() if name != "is_settled"}
