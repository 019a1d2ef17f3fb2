"""The biggest tensors of one worker, as rows. Pure."""

from mpsbar.model.action import FindTensors, TensorGroup, Tensors
from mpsbar.model.snapshot import Snapshot
from mpsbar.views import outcome_words, wording
from mpsbar.views.language import _
from mpsbar.views.row import Row

_MOST = 8
_WIDTH = 110
# The groups, others, what Python cannot see, and that it was cut short.
ROOM = _MOST + 3


def build_tensors(snapshot: Snapshot, pid: int) -> tuple[Row, ...]:
    """Never empty: it tells what is under way or why nothing can be told."""
    found = snapshot.tensors.get(pid)
    if found is None:
        is_pending = FindTensors(pid) in snapshot.pending
        words = [_("counting…") if is_pending else _("not counted yet")]
    elif found.state != "done":
        words = [outcome_words.tensors_refused(found)]
    else:
        words = _lines(found)
    lines = [wording.shorten(text, _WIDTH) for text in words]
    return tuple(Row(f"tensor-{pid}-{number}", text) for number, text in enumerate(lines))


def _lines(found: Tensors) -> list[str]:
    lines = [_line(group) for group in found.groups[:_MOST]]
    rest = sum(group.size for group in found.groups[_MOST:]) + (found.others or 0)
    if rest:
        lines.append(_("{size}  others").format(size=wording.size(rest)))
    unseen = sum(found.not_visible.values())
    if unseen:
        lines.append(_("{size}  not visible from Python").format(size=wording.size(unseen)))
    if found.cut_short:
        lines.append(_("There are more: the count was cut short"))
    return lines or [_("no live tensors")]


def _line(group: TensorGroup) -> str:
    many = f"{group.count} × " if group.count > 1 else ""
    shape = group.shape.replace("x", "×") if group.shape != "scalar" else _("scalar")
    return f"{wording.size(group.size)}  {many}{group.dtype} {shape}  {group.device}"
