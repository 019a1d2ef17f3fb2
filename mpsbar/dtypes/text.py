"""The words of the dtype probe: states, verdicts, surprises, known bugs. Pure."""

import re

from mpsbar.core.dtype_results import Cell, Probe
from mpsbar.core.findings import Reason
from mpsbar.dtypes.checks import BUGS, Bug
from mpsbar.dtypes.deep_results import DeepProbe
from mpsbar.dtypes.verdicts import Verdict
from mpsbar.language import _, ngettext
from mpsbar.ui.text.wording import UNKNOWN

_BAR_WIDTH = 30
_MAX_NAMED = 4  # operations named in one row
# As torch's error messages call them.
_NAMES_IN_TORCH = {
    "float16": "Half", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
}  # fmt: skip


# Functions, not constants: a language is chosen after this module is imported.
def states() -> dict[str, str]:
    """Returns the words for each state of a cell or a check."""
    return {
        "works": _("works"), "inaccurate": _("wrong results"),
        "fallback": _("falls back to the CPU"), "unsupported": _("unsupported"),
        "crashed": _("crashes"), "hung": _("hangs"), "meaningless": _("not applicable"),
        "no_memory": _("not measured: not enough memory"), "unknown": _("not measured"),
        "right": _("correct"), "wrong": _("WRONG"), "refused": _("rejected by torch"),
    }  # fmt: skip


def say_count(number: int, state: str) -> str:
    """Says a count and a state, such as "2 wrong results"."""
    return _("{n} {state}").format(n=number, state=state)


def support_levels() -> dict[str, str]:
    return {
        "supported": _("supported"), "limited": _("limited"), "unsupported": _("unsupported"),
        "unknown": _("not measured"),
    }  # fmt: skip


def say_surprise(reason: Reason) -> str:
    """Says a surprise for a headline, such as "float16 gives wrong results in 2 operations"."""
    values = reason.values
    if "check" in values:
        return _say_check(reason)
    number = values.get("number")
    words = {
        "dtype_wrong": _("{dtype} gives wrong results in {operations}"),
        "dtype_crashed": _("{dtype} crashes in {operations}"),
        "dtype_hung": _("{dtype} hangs in {operations}"),
        "dtype_refused": _("{dtype} is unsupported in {operations}"),
        "dtype_falls_back": _("{dtype} falls back to the CPU in {operations}"),
        "dtype_slow": _("{dtype} is {times}× slower than float32 in {operations}"),
        "dtype_unsupported": _("{dtype} is unsupported"),
    }[reason.code]
    count = number if isinstance(number, int) else 0
    operations = ngettext("{n} operation", "{n} operations", count).format(n=count)
    return words.format(dtype=values.get("dtype"), operations=operations, times=_times(reason))


def say_why(verdict: Verdict, with_error: bool = True) -> str:
    """Says in one line why a dtype got its verdict; an error message of torch comes last."""
    parts = [_say_reason(verdict)]
    if verdict.expected == "unsupported" and verdict.support == "unsupported":
        parts[0] = _("as expected")
    slow = [r for r in verdict.surprises if r.code == "dtype_slow"]
    parts += [
        _("{times}× slower in {operations}").format(
            times=_times(r), operations=r.values["operations"]
        )
        for r in slow
    ]
    text = "; ".join(part for part in parts if part)
    # The warning of a fallback says nothing more.
    has_no_news = verdict.reason.code == "dtype_falls_back"
    error = verdict.reason.values.get("error") if with_error and not has_no_news else None
    return f"{text}: {error}" if error and text else str(error or text)


def generalise_error(cell: Cell) -> str | None:
    """Returns torch's sentence without the names of dtypes and kernels: the same for many cells."""
    if cell.text is None:
        return None
    names = (cell.dtype, _NAMES_IN_TORCH.get(cell.dtype, cell.dtype))
    text = re.sub("|".join(map(re.escape, names)), "…", cell.text, flags=re.IGNORECASE)
    return re.sub(r'"\w+"', "…", text)


def check_title(check: str) -> str:
    return {
        "long_matmul": _("matmul over more than 32768 elements"),
        "addcdiv": _("addcdiv_ and addcmul_ into a transposed tensor"),
        "adam": _("an Adam step on a transposed parameter"),
        "rprop": _("an Rprop step on a transposed parameter"),
        "random": _("random numbers written into a transposed tensor"),
        "linear_weight": _("linear with a transposed weight"),
        "linear_bias": _("linear with a bias and few input features"),
        "matmul_out": _("matmul into part of a tensor (out=)"),
        "repeated_sum": _("the same sum repeated 1000 times"),
        "sum_uint8": _("sum in uint8"),
        "cumsum": _("cumsum of integers and bool"),
        "argmax": _("argmax over two columns"),
        "unique": _("unique of large int64 values"),
        "mask_assignment": _("assignment through a mask"),
        "layer_norm_grads": _("gradients of layer_norm's parameters"),
        "conv_batch": _("gradients of a convolution over more than 65535 inputs"),
        "conv_channels": _("a convolution with more than 65536 channels"),
        "attention_dropout": _("dropout in scaled_dot_product_attention"),
        "draws": _("bernoulli and multinomial"),
        "bitwise": _("bitwise_and_ into a transposed tensor"),
        "fused_adam": _("a fused Adam step after an infinity was found"),
    }.get(check, check)


def say_known_bug(check: str) -> str:
    """Returns its issues, such as "pytorch #118115, affects torch up to 2.3"; "" for none."""
    bug = BUGS.get(check)
    if bug is None:
        return ""
    issues = "pytorch " + ", ".join(f"#{number}" for number in bug.issues)
    return _("{issues}, affects {where}").format(issues=issues, where=affected_releases(bug))


def affected_releases(bug: Bug) -> str:
    first, last = (v and f"{v[0]}.{v[1]}" for v in (bug.first, bug.last))
    if first and last:
        words = f"torch {first}" if first == last else _("torch {first} to {last}")
    elif last:
        words = _("torch up to {last}")
    else:
        words = _("torch since {first}") if first else _("all torch releases so far")
    words = words.format(first=first, last=last)
    if bug.macos_below:
        words += _(" on macOS before {version}").format(version=bug.macos_below)
    return words + (_(" on {chips}").format(chips="/".join(bug.chips)) if bug.chips else "")


def say_subject(probe: Probe | DeepProbe) -> str:
    """Returns what was probed: "torch 2.13.0 · mps (Apple M1) · Python 3.11.7 · macOS 15.1 · …"."""
    device = probe.device or UNKNOWN
    named = f"{device} ({probe.device_name})" if probe.device_name else device
    system = probe.system and f"{probe.os or UNKNOWN} {probe.system}"
    words = (f"torch {probe.torch}", named, f"Python {probe.version}", system, probe.python)
    return " · ".join(word for word in words if word)


def say_early_end(probe: Probe | DeepProbe, done: int, total: int) -> str:
    """Says how far a probe came that measured something, and was cancelled or stopped."""
    stopped = _("Canceled") if probe.ended == "cancelled" else _("Stopped early")
    text = _("{stopped}: measured {done} of {total}").format(
        stopped=stopped, done=done, total=total
    )
    return f"{text}: {probe.error}" if probe.error else text


def say_more(number: int) -> str:
    return _("… and {n} more").format(n=number)


def say_saved(path: str) -> str:
    return _("saved in {path}").format(path=path)


def draw_bar(part: float) -> str:
    """Draws a bar for a terminal, of which this part, from 0 to 1, is done."""
    full = int(_BAR_WIDTH * part)
    return f"{'█' * full}{'░' * (_BAR_WIDTH - full)}"


def say_end(probe: Probe | DeepProbe) -> str:
    """Says in one sentence why nothing was measured."""
    return say_failure(probe.ended, probe.python, probe.error, probe.torch, probe.device)


def say_failure(
    ended: str, python: str, error: str | None, torch: str | None = None, device: str | None = None
) -> str:
    """Says in one sentence why nothing was measured in this Python."""
    words = {
        "no_python": _("there is no Python at {python}"),
        "not_python": _("{python} can't be run as Python"),
        "unsafe": _("{python} was not run"),
        "no_torch": _("{python} has no torch; choose another with --python PATH"),
        "broken_torch": _("torch can't be imported in {python}"),
        "no_device": _("torch {torch} in {python} has no usable {device}"),
        "crashed": _("{python} crashed before the first operation"),
        "exited": _("{python} exited before the first operation"),
        "hung": _("{python} did not reach the first operation in time"),
    }.get(ended, _("nothing could be measured in {python}"))
    text = words.format(python=python or UNKNOWN, torch=torch or UNKNOWN, device=device or UNKNOWN)
    return f"{text}: {error}" if error else text


def say_no_torch_found() -> str:
    return _("no Python with torch was found; choose one with --python PATH")


def _say_check(reason: Reason) -> str:
    check = str(reason.values["check"])
    words = {
        "silently_wrong": _("WRONG RESULTS without an error: {title}"),
        "check_crashed": _("torch crashes: {title}"),
        "check_hung": _("torch hangs: {title}"),
    }[reason.code]
    return words.format(title=check_title(check))


def _say_reason(verdict: Verdict) -> str:
    words = {
        "dtype_works": "",
        "dtype_wrong": _("wrong results in {operations}"),
        "dtype_crashed": _("crashes in {operations}"),
        "dtype_hung": _("hangs in {operations}"),
        "dtype_refused": _("unsupported in {number} of {of} ({operations})"),
        "dtype_falls_back": _("falls back to the CPU in {operations}"),
        "dtype_only_stored": _("can be stored and copied, but not used in computations"),
        "dtype_unsupported": "",
        "dtype_not_measured": _("{number} of {of} operations were not measured"),
    }.get(verdict.reason.code, verdict.reason.code)
    operations = str(verdict.reason.values.get("operations")).split(", ")
    named = ", ".join(operations[:_MAX_NAMED]) + ("…" if len(operations) > _MAX_NAMED else "")
    return words.format_map({**verdict.reason.values, "operations": named})


def _times(reason: Reason) -> str:
    times = reason.values.get("times")
    return f"{times:.0f}" if isinstance(times, float) else UNKNOWN
