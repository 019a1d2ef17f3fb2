"""The dtype probe in short: a headline of its surprises, rows, progress, JSON. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mpsbar.core.dtype_results import Probe, Progress, build_probe_json
from mpsbar.core.findings import NOT_PROBED, DtypeHealth
from mpsbar.dtypes.checks import BUGS
from mpsbar.dtypes.headlines import find_headlines
from mpsbar.dtypes.text import (
    affected_releases,
    check_title,
    draw_bar,
    say_surprise,
    say_why,
    support_levels,
)
from mpsbar.dtypes.verdicts import (
    Change,
    Verdict,
    count_failures,
    find_safe,
    find_surprises,
    is_busy,
    judge_dtypes,
)
from mpsbar.language import _
from mpsbar.ui.text import wording

DASH = "–"


@dataclass(frozen=True, slots=True)
class DtypeRow:
    """One dtype in a menu: its verdict, and the reason."""

    dtype: str
    text: str
    why: str


def say_headline(probe: Probe | None) -> str:
    """The headline for the menu's row "dtypes: …" and for status."""
    if probe is None or not probe.cells:
        return _("not probed yet")
    surprises = find_surprises(probe)
    if not surprises:
        return (
            _("as expected")
            if probe.ended == "ok"
            else _("as expected so far; the probe did not finish")
        )
    more = len(surprises) - 1
    text = say_surprise(surprises[0])
    return _("{text}, and {n} more").format(text=text, n=more) if more else text


def build_rows(probe: Probe) -> tuple[DtypeRow, ...]:
    """The rows of the submenu: each dtype with its reason."""
    rows = []
    for verdict in judge_dtypes(probe):
        words = [support_levels()[verdict.support], say_speed(verdict)]
        if verdict.differs_from_guides and verdict.guides:
            words.append(_("guides say {word}").format(word=support_levels()[verdict.guides]))
        if verdict.differs_from_torch:
            words.append(_("torch says yes") if verdict.torch_says else _("torch says no"))
        text = f"{verdict.dtype:14} " + ", ".join(w for w in words if w != DASH)
        rows.append(DtypeRow(verdict.dtype, text, say_why(verdict)))
    return tuple(rows)


def render_brief(probe: Probe | None) -> str:
    """The headline and a line for each dtype, for a bug report; empty without a probe."""
    if probe is None:
        return ""
    text = _("dtypes, torch {version} on {device}: {headline}")
    title = text.format(version=probe.torch, device=probe.device, headline=say_headline(probe))
    lines = [f"  {row.text}" + (f": {row.why}" if row.why else "") for row in build_rows(probe)]
    return "\n".join([title, *lines])


def say_progress(progress: Progress) -> str:
    if progress.total is None:
        return _("Probing… (importing torch)")
    return _("Probing… {percent}").format(percent=wording.percent(progress.percent))


def draw_progress(progress: Progress) -> str:
    """The progress as a bar for a terminal."""
    return f"{draw_bar(progress.part)} {say_progress(progress)}"


def say_speed(verdict: Verdict) -> str:
    """Says the speed relative to float32: 0.5× takes twice as long."""
    if verdict.speed is None:
        return DASH
    text = f"{verdict.speed:.1f}×" if verdict.speed > 0.95 else f"{verdict.speed:.2f}×"
    return f"~{text}" if verdict.is_speed_rough else text


def build_probe(
    probe: Probe, changes: Sequence[Change] | None = None, last: Probe | None = None
) -> dict[str, Any]:
    """The whole probe with its verdicts, as JSON of schema 1. Fields are only added."""
    checks = [
        {
            **asdict(check), "title": check_title(check.name), "issues": bug.issues if bug else (),
            "known_for": affected_releases(bug) if bug else None,
        }
        for check in probe.checks
        for bug in (BUGS.get(check.name),)
    ]  # fmt: skip
    return {
        **build_probe_json(probe),
        "checks": checks,
        "safe": find_safe(probe),
        **_build_summary(probe),
        "headlines": [headline.text for headline in find_headlines(probe, last)],
        "is_busy": is_busy(probe),
        "changes": None if changes is None else [asdict(change) for change in changes],
    }


def build_dtypes(probe: Probe | None) -> DtypeHealth:
    """The last probe without its cells, for status and for advice."""
    if probe is None:
        return NOT_PROBED
    names = ("python", "version", "torch", "os", "system", "device", "device_name", "time", "ended")
    values = {name: getattr(probe, name) for name in names}
    return DtypeHealth(
        summary={**values, "safe": find_safe(probe), **_build_summary(probe)},
        surprise=say_headline(probe) if find_surprises(probe) else "",
        failed=count_failures(probe),
    )


def _build_summary(probe: Probe) -> dict[str, Any]:
    return {
        "headline": say_headline(probe),
        "surprises": [
            {"code": r.code, "level": r.level, "values": r.values, "text": say_surprise(r)}
            for r in find_surprises(probe)
        ],
        "verdicts": {
            verdict.dtype: {
                "verdict": verdict.support, "why": say_why(verdict), "expected": verdict.expected,
                "guides": verdict.guides, "torch_says": verdict.torch_says, "speed": verdict.speed,
            }
            for verdict in judge_dtypes(probe)
        },
    }  # fmt: skip
