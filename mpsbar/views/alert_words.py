"""What a notification says: an Alert as a title and a sentence. Pure."""

from mpsbar.model.alerts import Alert
from mpsbar.model.text import printable
from mpsbar.views.language import _
from mpsbar.views.reasons import say_reason
from mpsbar.views.wording import shorten, size

# About what a banner shows before it cuts by itself.
_TITLE_WIDTH = 60
_TEXT_WIDTH = 240
_NAME_WIDTH = 40


def say_alert(alert: Alert) -> tuple[str, str]:
    """The title says what kind of news it is, the text the whole of it."""
    title, text = _ended(alert) if alert.kind == "ended" else _concern(alert)
    return shorten(title, _TITLE_WIDTH), shorten(text, _TEXT_WIDTH)


def _concern(alert: Alert) -> tuple[str, str]:
    if alert.reason is None:
        return _("mpsbar"), printable(alert.code)
    if alert.kind == "recovered":
        return _("Better again"), _recovered(alert)
    text = say_reason(alert.reason, alert.name)
    title = _("Critical: {topic}") if alert.level == "critical" else _("Warning: {topic}")
    return title.format(topic=_topic(alert.code)), text


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
    name = _name(alert)
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


def _ended(alert: Alert) -> tuple[str, str]:
    values = {} if alert.reason is None else alert.reason.values
    held, peak = values.get("held"), values.get("peak")
    words = []
    if isinstance(held, int):
        words.append(_("it held {size} when last seen").format(size=size(held)))
    if isinstance(peak, int):
        words.append(_("memory peak {size}").format(size=size(peak)))
    text = _("Process {pid} is no longer running").format(pid=alert.pid)
    title = _("{name} ended").format(name=_name(alert))
    return title, "; ".join([text, ", ".join(words)] if words else [text])


def _name(alert: Alert) -> str:
    if alert.name:
        return shorten(printable(alert.name), _NAME_WIDTH)
    return _("process {pid}").format(pid=alert.pid)
