"""The sentences of `mpsbar doctor`, one for each code of rules.py. Pure."""

from mpsbar.core.findings import Reason
from mpsbar.language import _
from mpsbar.ui.text.wording import UNKNOWN


def sentence(reason: Reason) -> str:
    """Returns one line; an error message of torch or Python comes last."""
    values = {name: _shown(value) for name, value in reason.values.items()}
    if "stage" in values:
        values["stage"] = stages().get(values["stage"], values["stage"])
    text = sentences().get(reason.code, reason.code).format_map(values)
    error = reason.values.get("error")
    return f"{text}: {error}" if error else text


# Functions, not constants: a language is chosen after this module is imported.
def stages() -> dict[str, str]:
    return {
        "python": _("starting"),
        "torch": _("looking for torch"),
        "import": _("importing torch"),
        "built": _("checking torch for MPS"),
        "available": _("checking which devices are available"),
        "chosen": _("choosing a device"),
        "computed": _("computing on the device"),
        "capability": _("checking torch's dtypes"),
    }


def sentences() -> dict[str, str]:
    return {
        # how the check ended
        "no_torch": _("no torch"),
        "no_python": _("there is no Python at this path"),
        "not_python": _("this is not a usable Python"),
        "unsafe": _("not run"),
        "broken_torch": _("torch can't be imported"),
        "crashed": _("crashed with {signal} while {stage}"),
        "exited": _("exited while {stage}"),
        "hung": _("hung while {stage}"),
        # the device
        "device_works": _(
            "{device} is the first available of cuda, mps and cpu; a small computation on it works"
        ),
        "compute_failed": _("{device} is chosen, but a small computation on it fails"),
        "compute_wrong": _(
            "{device} is chosen, but ones(2, 2) @ ones(2, 2) sums to {result}, not 8"
        ),
        "cuda_check_failed": _("checking for CUDA failed"),
        # why there is no MPS
        "mps_not_on_this_system": _("no MPS: only torch for macOS includes it"),
        "mps_rosetta": _(
            "no MPS: this is an Intel (x86_64) Python running under Rosetta; the last torch for "
            "it is {last}. Install an arm64 Python"
        ),
        "mps_intel": _("no MPS: this is an Intel Mac; the last torch for it is {last}"),
        "mps_not_built": _(
            "no MPS: torch {torch} was built without it; the one from pip install torch includes it"
        ),
        "mps_check_failed": _("checking for MPS failed"),
        "mps_macos_too_old": _("no MPS: torch {torch} requires macOS {needed}; this is {have}"),
        "mps_virtual": _("no MPS: this virtual machine has no Metal device that torch can use"),
        "mps_no_gpu": _("no MPS: torch found no Metal device, and mpsbar found no GPU"),
        "mps_unavailable": _(
            "no MPS: torch includes it but found no Metal device; the reason is unknown (pytorch "
            "issue 177819 is a similar case)"
        ),
        # torch against this macOS and chip
        "macos_below_stated": _(
            "torch {torch} is meant for macOS {needed} or later; this is {have}"
        ),
        "torch_too_old": _("torch {torch} is older than 2.1: its MPS support is an early version"),
        "long_matmul_wrong": _(
            "torch {torch} on {chip}: matmul over more than 32768 elements can be silently wrong "
            "(pytorch issue 193487); fixed in 2.14"
        ),
        "bfloat16_needs_torch": _("bfloat16 on MPS requires torch 2.3 or later"),
        "bfloat16_needs_macos": _("bfloat16 requires macOS 14 or later with this torch"),
        "newer_torch": _("torch {newest} is the newest for this Mac and Python; this is {torch}"),
        "torch_preloaded": _(
            "a startup file of this Python imports torch: setting PYTORCH_ENABLE_MPS_FALLBACK in "
            "a script is too late"
        ),
        # PYTORCH_* variables
        "fallback_on": _(
            "PYTORCH_ENABLE_MPS_FALLBACK is on: operations that MPS lacks run on the CPU, which "
            "is slower, and only the first one prints a warning. It is read when torch is "
            "imported; setting os.environ after that is too late"
        ),
        "fallback_unclear": _(
            "{name}={value} means different things to different torch releases: use 1 or 0"
        ),
        "watermarks_set": _(
            "{settings}: read when MPS is first used; setting os.environ after that is too late"
        ),
        "watermark_no_number": _("{name}={value} is not a number; torch reads it as {read}"),
        "watermark_out_of_range": _(
            "{name}={value} is not between 0 and 2: the first use of MPS fails"
        ),
        "watermark_unlimited": _(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO is 0 (no limit): the whole system may run out of "
            "memory"
        ),
        "watermark_high_alone": _(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO={high} is below the default low watermark, {low}: "
            "the first use of MPS fails. Also set PYTORCH_MPS_LOW_WATERMARK_RATIO to {high} or "
            "less"
        ),
        "watermark_low_above_high": _(
            "PYTORCH_MPS_LOW_WATERMARK_RATIO={low} is above the high watermark, {high}: the first "
            "use of MPS fails"
        ),
        "prefer_metal_on": _("PYTORCH_MPS_PREFER_METAL is on: matmul uses Metal kernels"),
        "prefer_metal_not_off": _("{name}={value} turns it on: any value does"),
        "fast_math_on": _("PYTORCH_MPS_FAST_MATH is on: faster but less accurate"),
        "setting_misspelt": _("torch doesn't know {name}: did you mean {near}?"),
        "setting_unknown": _("torch doesn't know {name}; it has no effect"),
    }


def _shown(value: object) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:g}" if isinstance(value, float) else str(value)
