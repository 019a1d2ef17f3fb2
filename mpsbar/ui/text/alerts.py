"""What is wrong, in words: the health in a sentence, and each alert as a notification. Pure."""

from collections.abc import Mapping

from mpsbar.core.events import Alert
from mpsbar.core.findings import Health, Reason, Value
from mpsbar.core.naming import printable
from mpsbar.core.verdicts import EndVerdict
from mpsbar.language import _
from mpsbar.ui.text.advice import fill_in, say_values
from mpsbar.ui.text.cells import cut_middle
from mpsbar.ui.text.progress import say_speeds
from mpsbar.ui.text.wording import clock, duration, size

# About what a banner shows before it cuts by itself.
_TITLE_WIDTH = 60
_TEXT_WIDTH = 240
_NAME_WIDTH = 40
# Reasons that say that not enough is known to call it well.
_UNKNOWN_CODES = ("unknown", "not_judged", "pressure_unknown")


def is_unknown(health: Health) -> bool:
    """Returns whether too little could be read to call it well."""
    return any(reason.code in _UNKNOWN_CODES for reason in health.reasons)


def say_health(health: Health, names: Mapping[int, str]) -> str:
    """One sentence, whatever the level; `names` by pid."""
    if not health.reasons:
        return _("No problems")
    worst = health.reasons[0]
    words = say_reason(worst, names.get(worst.pid) if worst.pid is not None else None)
    if health.level == "ok":
        is_well = worst.code not in _UNKNOWN_CODES
        return _("No problems; {reason}").format(reason=words) if is_well else words
    more = sum(reason.level != "ok" for reason in health.reasons) - 1
    return _("{reason} (and {n} more)").format(reason=words, n=more) if more else words


def say_reason(reason: Reason, name: str | None = None) -> str:
    words = say_values(reason.values, reason.pid, name)
    if reason.code == "slowed":
        words |= _slowed_words(reason.values, words)
    template = _reasons(reason.level).get(reason.code, _("{code} (no description)"))
    return fill_in(template, {**words, "code": printable(reason.code)})


def _slowed_words(values: Mapping[str, Value], words: Mapping[str, str]) -> dict[str, str]:
    """Two speeds in one unit, the time of day, and what coincided, if anything."""
    before, now, unit, since = (values.get(key) for key in ("before", "now", "unit", "since"))
    speeds = {}
    if isinstance(before, int | float) and isinstance(now, int | float) and before and now:
        speeds["before"], speeds["now"] = say_speeds(float(before), float(now), str(unit or ""))
    cause = {
        "nap": _("; macOS has slowed it down since, because its windows are hidden (App Nap)"),
        "swap": _("; at the same time, swap grew by {growth}"),
        "pressure": _("; at the same time, memory pressure rose"),
        "fallback": _("; more of its operations have run on the CPU since, because MPS lacks them"),
        "other": _("; {other} began to use the GPU"),
        "battery": _("; the computer has been on battery since"),
        "free": _("; its cache was freed shortly before"),
    }.get(str(values.get("cause")), "")
    at = clock(since if isinstance(since, int | float) else None)
    return speeds | {"at": at, "meanwhile": fill_in(cause, words)}


# A function, not a constant: a language is chosen after this module is imported.
def _reasons(level: str) -> dict[str, str]:
    return {
        "pressure": _("Memory pressure is critical")
        if level == "critical"
        else _("Memory pressure is high"),
        "memory_filling": _("At this rate, memory will be full in {seconds} ({available} left)"),
        "gpu_filling": _(
            "At this rate, GPU memory will be full in {seconds} ({used} of {budget} in use)"
        ),
        "process_memory": _("{name} is using {used} of the GPU's {budget}"),
        "gpu_memory": _("GPU memory is running low: {used} of {budget} in use"),
        "leak": _(
            "{name} grew by {growth} more than its tensors in {seconds}: possible memory leak"
        ),
        "swap_growing": _("Swap grew by {growth} in {seconds} (now {used})"),
        "swap_used": _(
            "Memory is running low: {used} of swap in use, {available} of {whole} available"
        ),
        "slowed": _("{name} slowed from {before} to {now} at {at}{meanwhile}"),
        "cache": _("{name} has a cache of {cached} that can be freed"),
        "gpu_reset": _(
            "The GPU was reset at {time}; results since then may be wrong: {names} (torch before "
            "2.15 does not raise an error)"
        ),
        "unknown": _("Couldn't read this computer's memory"),
        "pressure_unknown": _("Memory pressure is unknown; no other problems"),
        "not_judged": _("Status unknown"),
    }


def say_alert(alert: Alert) -> tuple[str, str]:
    """The title and the text of a notification."""
    if alert.kind == "ended":
        values = {} if alert.reason is None else alert.reason.values
        held, peak, ran = (values.get(key) for key in ("held", "peak", "ran"))
        return say_ended(alert.name, alert.pid, held, peak, alert.verdict, ran)
    if alert.reason is None:
        return _("mpsbar"), printable(alert.code)
    title = _severity(alert).format(text=_topic(alert.code))
    return cut_middle(title, _TITLE_WIDTH), cut_middle(_text(alert), _TEXT_WIDTH)


def say_alert_in_a_line(alert: Alert) -> str:
    """Returns a line for a log or a table, such as Warning: train.py grew by 1.4 GB …"""
    if alert.kind == "ended" or alert.reason is None:
        return ": ".join(say_alert(alert))
    return cut_middle(_severity(alert).format(text=_text(alert)), _TEXT_WIDTH)


def _severity(alert: Alert) -> str:
    if alert.kind == "recovered":
        return _("Resolved: {text}")
    return _("Critical: {text}") if alert.level == "critical" else _("Warning: {text}")


def _text(alert: Alert) -> str:
    if alert.kind == "recovered" or alert.reason is None:
        return _recovered(alert)
    return say_reason(alert.reason, alert.name)


def say_cause(code: str) -> str:
    """A cause of alerts, as a menu item of the settings."""
    return {
        "pressure": _("Memory Pressure"),
        "memory": _("GPU Memory Filling Up"),
        "swap": _("Swap Growing"),
        "leak": _("Possible Memory Leak"),
        "speed": _("Slow Runs"),
        "cache": _("Large Caches"),
        "ended": _("Failed Runs"),
        "reset": _("GPU Resets"),
    }.get(code, code)


def _topic(code: str) -> str:
    """What an alert is about, for the title of its notification."""
    return {
        "memory_filling": _("Memory Filling Up"),
        "gpu_filling": _("GPU Memory Filling Up"),
        "gpu_memory": _("GPU Memory Low"),
        "process_memory": _("High GPU Memory Use"),
        "swap_growing": _("Swap Growing"),
        "slowed": _("Run Slowed Down"),
        "cache": _("Large Cache"),
        "gpu_reset": _("GPU Was Reset"),
    }.get(code) or printable(say_cause(code))


def _recovered(alert: Alert) -> str:
    name = _name(alert.name, alert.pid)
    sentence = {
        "pressure": _("Memory pressure is back to normal"),
        "memory_filling": _("Memory is no longer filling up"),
        "gpu_filling": _("GPU memory is no longer filling up"),
        "gpu_memory": _("GPU memory is available again"),
        "process_memory": _("{name} is using less GPU memory"),
        "swap_growing": _("Swap is no longer growing"),
        "leak": _("{name} is no longer growing faster than its tensors"),
        "slowed": _("{name} is back to its usual speed"),
        "cache": _("The cache of {name} is smaller, or there is room for it"),
    }.get(alert.code, _("The problem is gone"))
    return sentence.format(name=name)


def say_ended(
    name: str | None,
    pid: int | None,
    held: Value = None,
    peak: Value = None,
    verdict: EndVerdict | None = None,
    ran: Value = None,
) -> tuple[str, str]:
    details = []
    if isinstance(ran, int | float):
        details.append(_("it ran for {time}").format(time=duration(ran)))
    if isinstance(held, int):
        words = _("last held {size}") if details else _("it last held {size}")
        details.append(words.format(size=size(held)))
    if isinstance(peak, int):
        details.append(_("peak {size}").format(size=size(peak)))
    text = _("Process {pid} is no longer running").format(pid=pid)
    if verdict is not None and verdict.code != "unknown":
        from mpsbar.ui.text.endings import say_verdict  # `mpsbar status` needs no words of ends

        text = say_verdict(verdict, _name(name, pid))
    title = _("{name} ended").format(name=_name(name, pid))
    if not name:
        title = _("Process {pid} ended").format(pid=pid)
    text = "; ".join([text, ", ".join(details)] if details else [text])
    return cut_middle(title, _TITLE_WIDTH), cut_middle(text, _TEXT_WIDTH)


def _name(name: str | None, pid: int | None) -> str:
    if name:
        return cut_middle(name, _NAME_WIDTH)
    return _("process {pid}").format(pid=pid)


def say_delivery(delivery: str) -> str:
    """Says what becomes of alerts and what to do about it; empty where nothing is known."""
    return {
        "shown": _("macOS shows mpsbar's alerts."),
        "off": _(
            "Notifications are turned off for mpsbar. To see alerts, turn them on in System "
            "Settings > Notifications > mpsbar."
        ),
        "script": _(
            "macOS doesn't accept notifications from this copy of mpsbar, so alerts are sent "
            "through Script Editor. If you see none, allow them in System Settings > Notifications "
            "> Script Editor. Past alerts are in the menu, under Recent Alerts."
        ),
        "failed": _(
            "macOS doesn't accept notifications from this copy of mpsbar, and they couldn't be "
            "sent through Script Editor. Past alerts are in the menu, under Recent Alerts."
        ),
    }.get(delivery, "")
