"""What a notification says: an Alert as a title and a sentence. Pure."""

from mpsbar.core.events import Alert
from mpsbar.core.findings import Value
from mpsbar.core.naming import printable
from mpsbar.ui.text.findings import say_reason
from mpsbar.ui.text.wording import _, shorten, size

# About what a banner shows before it cuts by itself.
_TITLE_WIDTH = 60
_TEXT_WIDTH = 240
_NAME_WIDTH = 40


def say_alert(alert: Alert) -> tuple[str, str]:
    """The title says what kind of news it is, the text the whole of it."""
    if alert.kind == "ended":
        values = {} if alert.reason is None else alert.reason.values
        return say_ended(alert.name, alert.pid, values.get("held"), values.get("peak"))
    title, text = _concern(alert)
    return shorten(title, _TITLE_WIDTH), shorten(text, _TEXT_WIDTH)


def _concern(alert: Alert) -> tuple[str, str]:
    if alert.reason is None:
        return _("mpsbar"), printable(alert.code)
    if alert.kind == "recovered":
        return _("Better again"), _recovered(alert)
    text = say_reason(alert.reason, alert.name)
    title = _("Critical: {topic}") if alert.level == "critical" else _("Warning: {topic}")
    return title.format(topic=_topic(alert.code)), text


def say_cause(code: str) -> str:
    """What one may be alerted to, in the settings."""
    return {
        "pressure": _("Memory Pressure"),
        "memory": _("GPU Memory Filling Up"),
        "swap": _("Swap Growing"),
        "leak": _("Perhaps a Leak"),
        "cache": _("Large Caches"),
    }.get(code, code)


def _topic(code: str) -> str:
    """For the title, which is often all that is read."""
    return {
        "pressure": _("memory pressure"),
        "memory_filling": _("memory is filling up"),
        "gpu_filling": _("GPU memory is filling up"),
        "gpu_memory": _("GPU memory"),
        "process_memory": _("GPU memory"),
        "swap_growing": _("swapping"),
        "leak": _("perhaps a leak"),
        "cache": _("a large cache"),
    }.get(code, printable(code))


def _recovered(alert: Alert) -> str:
    name = _name(alert.name, alert.pid)
    words = {
        "pressure": _("Memory pressure is back to normal"),
        "memory_filling": _("Memory is no longer filling up"),
        "gpu_filling": _("The GPU's memory is no longer filling up"),
        "gpu_memory": _("The GPU's memory has room again"),
        "process_memory": _("{name} no longer fills the GPU's memory"),
        "swap_growing": _("Swap no longer grows"),
        "leak": _("{name} no longer grows beside its tensors"),
        "cache": _("{name} keeps less than before, or there is room for it"),
    }.get(alert.code, _("It is over"))
    return words.format(name=name)


def say_ended(
    name: str | None, pid: int | None, held: Value = None, peak: Value = None
) -> tuple[str, str]:
    words = []
    if isinstance(held, int):
        words.append(_("it held {size} when last seen").format(size=size(held)))
    if isinstance(peak, int):
        words.append(_("memory peak {size}").format(size=size(peak)))
    text = _("Process {pid} is no longer running").format(pid=pid)
    title = _("{name} ended").format(name=_name(name, pid))
    text = "; ".join([text, ", ".join(words)] if words else [text])
    return shorten(title, _TITLE_WIDTH), shorten(text, _TEXT_WIDTH)


def _name(name: str | None, pid: int | None) -> str:
    if name:
        return shorten(printable(name), _NAME_WIDTH)
    return _("process {pid}").format(pid=pid)
