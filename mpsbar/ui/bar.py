"""What the menu bar shows: the icon's shape by health, and text of constant width. Pure."""

from mpsbar.core.findings import Health
from mpsbar.core.snapshot import Snapshot
from mpsbar.language import _
from mpsbar.ui.rows import Bar
from mpsbar.ui.text import progress, wording
from mpsbar.ui.text.alerts import is_unknown, say_health

# As wide as a digit, so that the text does not jump: "99.9 GB" and "100%" are the widest.
_FIGURE_SPACE = "\N{FIGURE SPACE}"
_SIZE_WIDTH, _PERCENT_WIDTH = len("99.9 GB"), len("100%")
# Different without colour too; hollow while nothing is known.
DOTS = {"ok": "●", "warning": "▲", "critical": "■", "unknown": "○"}
_MARKS = {"warning": "!", "critical": "‼"}


def build_bar(snapshot: Snapshot, shows: str = "memory") -> Bar:
    shape = _shape(snapshot.health)
    return Bar(
        text=_text(snapshot, shows, shape),
        shape=shape,
        is_dot=shows == "dot",
        label=_label(snapshot),
        tooltip="\n".join(filter(None, (_job(snapshot), _health(snapshot)))),
    )


def _shape(health: Health) -> str:
    return "unknown" if is_unknown(health) and health.level == "ok" else health.level


def _text(snapshot: Snapshot, shows: str, shape: str) -> str:
    if shows == "dot":
        return DOTS[shape]
    text = ""
    if shows == "memory" and snapshot.held is not None:
        text = wording.size(snapshot.held).rjust(_SIZE_WIDTH, _FIGURE_SPACE)
    elif shows == "gpu":
        text = wording.percent(snapshot.machine.gpu.utilization)
        text = text.rjust(_PERCENT_WIDTH, _FIGURE_SPACE)
    elif shows == "progress" and (job := snapshot.longest_job) is not None and job.progress:
        text = progress.say_fraction(job.progress.fraction)
        text = text.rjust(_PERCENT_WIDTH, _FIGURE_SPACE)
    return " ".join(filter(None, (text, _MARKS.get(shape))))


def _health(snapshot: Snapshot) -> str:
    return say_health(snapshot.health, snapshot.names)


def _job(snapshot: Snapshot) -> str:
    """Returns the progress of the longest job, such as train.py: 62% · 3.1 it/s · 4 min left."""
    job = snapshot.longest_job
    return "" if job is None else f"{job.name}: {progress.say_progress(job.progress)}"


def _label(snapshot: Snapshot) -> str:
    """The text for VoiceOver: what others see in the bar and at the top of the menu."""
    words = ["mpsbar", wording.workers_connected(len(snapshot.workers))]
    if snapshot.held is not None:
        words.append(_("{size} held").format(size=wording.size(snapshot.held)))
    if snapshot.machine.gpu.utilization is not None:
        words.append(_("GPU {p}").format(p=wording.percent(snapshot.machine.gpu.utilization)))
    words += filter(None, (_job(snapshot), _health(snapshot)))
    return ", ".join(words)
