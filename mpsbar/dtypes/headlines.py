"""The first lines about a probe: surprises, wrong guides, changes since the last one. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpsbar.core.dtype_results import Probe
from mpsbar.core.findings import Level, Reason
from mpsbar.dtypes.text import check_title, say_known_bug, say_surprise, states, support_levels
from mpsbar.dtypes.verdicts import Change, Verdict, find_changes, find_surprises, judge_dtypes
from mpsbar.language import _, ngettext
from mpsbar.ui.text import wording

_MAX_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Headline:
    text: str
    level: Level = "ok"


def find_headlines(probe: Probe, last: Probe | None = None) -> tuple[Headline, ...]:
    """Lists at least one, the most important first; `last` is the probe before this one."""
    lines = [Headline(_say_in_full(reason), reason.level) for reason in find_surprises(probe)]
    differing = [v for v in judge_dtypes(probe) if v.differs_from_guides]
    lines += [Headline(text) for text in _say_guides(differing)]
    if not lines:
        lines.append(Headline(_say_as_expected(probe)))
    if last is not None:
        lines.append(_say_since(last, probe))
    return tuple(lines)


def _say_in_full(reason: Reason) -> str:
    """A surprise with its details: the operations, or the known bug."""
    text = say_surprise(reason)
    if "check" in reason.values:
        details = reason.values.get("text")
        known = say_known_bug(str(reason.values["check"]))
        text = f"{text}: {details}" if details else text
        return f"{text} ({known})" if known else text
    operations = reason.values.get("operations")
    return f"{text}: {operations}" if operations else text


def _say_as_expected(probe: Probe) -> str:
    if probe.ended != "ok":
        return _("As expected so far.")
    if probe.device == "mps":
        return _("All results match the guides and torch.")
    return _("Everything works as expected.")


def _say_guides(differing: Sequence[Verdict]) -> list[str]:
    """Returns sentences such as "bfloat16 works here; guides say it does not"."""
    by_claim: dict[tuple[str | None, str], list[str]] = {}
    for verdict in differing:
        by_claim.setdefault((verdict.guides, verdict.support), []).append(verdict.dtype)
    order = ("unsupported", "supported", "limited")
    return [
        _say_claim(guides or "", here, dtypes)
        for (guides, here), dtypes in sorted(
            by_claim.items(), key=lambda item: order.index(item[0][0] or "limited")
        )
    ]


def _say_claim(guides: str, here: str, dtypes: Sequence[str]) -> str:
    count = len(dtypes)
    words = {
        ("unsupported", "supported"): ngettext(
            "{dtypes} works here; guides say it does not",
            "{dtypes} work here; guides say they do not",
            count,
        ),
        ("unsupported", "limited"): ngettext(
            "{dtypes} works here in most operations; guides say it does not",
            "{dtypes} work here in most operations; guides say they do not",
            count,
        ),
        ("limited", "supported"): ngettext(
            "{dtypes} works here in every operation tried; guides call it limited",
            "{dtypes} work here in every operation tried; guides call them limited",
            count,
        ),
    }.get((guides, here))
    if words is None:
        words = ngettext(
            "{dtypes} is {here} here; guides call it {guides}",
            "{dtypes} are {here} here; guides call them {guides}",
            count,
        )
    return words.format(
        dtypes=join_names(dtypes), here=support_levels().get(here, here),
        guides=support_levels().get(guides, guides),
    )  # fmt: skip


def join_names(names: Sequence[str]) -> str:
    """Returns a list in words, such as "float16, int64 and int32"."""
    if len(names) < 2:
        return "".join(names)
    return _("{names} and {last}").format(names=", ".join(names[:-1]), last=names[-1])


def _say_since(last: Probe, probe: Probe) -> Headline:
    changes = find_changes(last, probe)
    since = wording.ago(last.time or 0.0, probe.time or 0.0)
    worst = [change for change in changes if change.kind in ("check", "dtype")]
    subjects = [change for change in changes if change.kind == "subject"]
    cells = sum(change.kind == "cell" for change in changes)
    if not worst and not cells:
        subject = "".join(f", {c.name} {c.before}" for c in subjects)
        return Headline(
            _("No operation changed since the last probe ({since}{subject})").format(
                since=since, subject=subject
            )
        )
    texts = [say_change(change) for change in (*subjects, *worst)[:_MAX_CHANGES]]
    if cells and len(texts) < _MAX_CHANGES:
        text = ngettext("{n} operation changed", "{n} operations changed", cells)
        texts.append(text.format(n=cells))
    return Headline(
        _("Since the last probe ({since}): {changes}").format(
            since=since, changes="; ".join(texts)
        ),
        "warning",
    )


def say_change(change: Change) -> str:
    """Returns one change, such as "bfloat16: unsupported → supported"."""
    words = support_levels() | states()
    return _("{name}: {before} → {after}").format(
        name=check_title(change.name) if change.kind == "check" else change.name,
        before=words.get(change.before, change.before),
        after=words.get(change.after, change.after),
    )
