"""What is said of the dtype probe: states, verdicts, surprises, known bugs. Pure."""

from mpsbar.core.dtype_results import Probe
from mpsbar.core.findings import Reason
from mpsbar.dtypes.checks import BUGS, Bug
from mpsbar.dtypes.verdicts import Verdict
from mpsbar.ui.text.wording import UNKNOWN, _

_MOST_NAMED = 4  # operations, in a row


# Functions, not constants: a language is chosen after this module is imported.
def states() -> dict[str, str]:
    """Of a cell or a check."""
    return {
        "works": _("works"), "inaccurate": _("wrong numbers"),
        "fallback": _("falls back to the CPU"), "unsupported": _("unsupported"),
        "crashed": _("crashes"), "hung": _("hangs"), "meaningless": _("not meaningful"),
        "no_memory": _("not measured: too little memory"), "unknown": _("not measured"),
        "right": _("right"), "wrong": _("WRONG"), "refused": _("refused by torch"),
    }  # fmt: skip


def standings() -> dict[str, str]:
    return {
        "supported": _("supported"), "limited": _("limited"), "unsupported": _("unsupported"),
        "unknown": _("not measured"),
    }  # fmt: skip


def say_surprise(reason: Reason) -> str:
    """In a headline: float16 wrong in 2 operations."""
    values = reason.values
    if "check" in values:
        return _say_check(reason)
    number = values.get("number")
    words = {
        "dtype_wrong": _("{dtype} wrong in {operations}"),
        "dtype_crashed": _("{dtype} crashes in {operations}"),
        "dtype_hung": _("{dtype} hangs in {operations}"),
        "dtype_refused": _("{dtype} unsupported in {operations}"),
        "dtype_falls_back": _("{dtype} falls back to the CPU in {operations}"),
        "dtype_slow": _("{dtype} {times}× slower than float32 in {operations}"),
        "dtype_unsupported": _("{dtype} unsupported"),
    }[reason.code]
    count = number if isinstance(number, int) else 0
    operations = _("1 operation") if count == 1 else _("{n} operations").format(n=count)
    return words.format(dtype=values.get("dtype"), operations=operations, times=_times(reason))


def say_why(verdict: Verdict) -> str:
    """In a row, in one line: somebody's own error message comes last."""
    parts = [_say_reason(verdict)]
    if verdict.expected == "unsupported" and verdict.standing == "unsupported":
        parts[0] = _("as expected")
    slow = [r for r in verdict.surprises if r.code == "dtype_slow"]
    parts += [
        _("{times}× slower in {operations}").format(
            times=_times(r), operations=r.values["operations"]
        )
        for r in slow
    ]
    text = "; ".join(part for part in parts if part)
    is_told = verdict.reason.code == "dtype_falls_back"  # torch has no other words for it
    error = None if is_told else verdict.reason.values.get("error")
    return f"{text}: {error}" if error and text else str(error or text)


def title_of(check: str) -> str:
    return {
        "long_matmul": _("matmul over more than 32768 numbers"),
        "addcdiv": _("addcdiv_ and addcmul_ into a transposed tensor"),
        "adam": _("an Adam step on a transposed parameter"),
        "rprop": _("an Rprop step on a transposed parameter"),
        "random": _("random numbers drawn into a transposed tensor"),
        "linear_weight": _("linear with a transposed weight"),
        "linear_bias": _("linear with a bias and few input features"),
        "matmul_out": _("matmul into a part of a tensor (out=)"),
        "repeated_sum": _("the same sum a thousand times"),
        "sum_uint8": _("sum in uint8"),
        "cumsum": _("cumsum of integers and bool"),
        "argmax": _("argmax over two columns"),
        "unique": _("unique of large int64 numbers"),
        "mask_assignment": _("assignment under a mask"),
        "layer_norm_grads": _("gradients of layer_norm's parameters"),
        "conv_batch": _("gradients of a convolution over more than 65535 inputs"),
        "conv_channels": _("a convolution with more than 65536 channels"),
        "attention_dropout": _("dropout in scaled_dot_product_attention"),
        "draws": _("bernoulli and multinomial"),
        "bitwise": _("bitwise_and_ into a transposed tensor"),
        "fused_adam": _("fused Adam when an infinity was found"),
    }.get(check, check)


def known_for(check: str) -> str:
    """pytorch #118115, known for torch up to 2.3 on macOS before 15."""
    bug = BUGS.get(check)
    if bug is None:
        return ""
    issues = "pytorch " + ", ".join(f"#{number}" for number in bug.issues)
    return _("{issues}, known for {where}").format(issues=issues, where=say_where(bug))


def say_where(bug: Bug) -> str:
    first, last = (v and f"{v[0]}.{v[1]}" for v in (bug.first, bug.last))
    if first and last:
        words = f"torch {first}" if first == last else _("torch {first} to {last}")
    elif last:
        words = _("torch up to {last}")
    else:
        words = _("torch since {first}") if first else _("every torch until now")
    words = words.format(first=first, last=last)
    if bug.macos_below:
        words += _(" on macOS before {version}").format(version=bug.macos_below)
    return words + (_(" on {chips}").format(chips="/".join(bug.chips)) if bug.chips else "")


def say_end(probe: Probe) -> str:
    """Why nothing was measured, in one sentence."""
    words = {
        "no_python": _("there is no Python at {python}"),
        "not_python": _("{python} does not run as a Python"),
        "unsafe": _("{python} is not run"),
        "no_torch": _("{python} has no torch; --python PATH names one that has"),
        "broken_torch": _("torch cannot be imported in {python}"),
        "no_device": _("torch {torch} in {python} has no usable {device}"),
        "crashed": _("{python} crashed before the first operation"),
        "exited": _("{python} ended before the first operation"),
        "hung": _("{python} did not get as far as the first operation in time"),
    }.get(probe.ended, _("nothing could be measured in {python}"))
    text = words.format(
        python=probe.python or UNKNOWN, torch=probe.torch or UNKNOWN, device=probe.device or UNKNOWN
    )
    return f"{text}: {probe.error}" if probe.error else text


def say_none_found() -> str:
    return _("no Python with torch was found; --python PATH names one that has it")


def _say_check(reason: Reason) -> str:
    check = str(reason.values["check"])
    words = {
        "silently_wrong": _("WRONG NUMBERS without an error: {title}"),
        "check_crashed": _("torch crashes: {title}"),
        "check_hung": _("torch hangs: {title}"),
    }[reason.code]
    return words.format(title=title_of(check))


def _say_reason(verdict: Verdict) -> str:
    words = {
        "dtype_works": "",
        "dtype_wrong": _("wrong numbers in {operations}"),
        "dtype_crashed": _("crashes in {operations}"),
        "dtype_hung": _("hangs in {operations}"),
        "dtype_refused": _("not in {number} of {of} ({operations})"),
        "dtype_falls_back": _("on the CPU instead: {operations}"),
        "dtype_only_stored": _("can be stored and copied, but not computed with"),
        "dtype_unsupported": "",
        "dtype_not_measured": _("{number} of {of} operations were not measured"),
    }.get(verdict.reason.code, verdict.reason.code)
    operations = str(verdict.reason.values.get("operations")).split(", ")
    named = ", ".join(operations[:_MOST_NAMED]) + ("…" if len(operations) > _MOST_NAMED else "")
    return words.format_map({**verdict.reason.values, "operations": named})


def _times(reason: Reason) -> str:
    times = reason.values.get("times")
    return f"{times:.0f}" if isinstance(times, float) else UNKNOWN
