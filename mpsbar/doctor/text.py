"""What the doctor says about a Python and its torch: one sentence for each code. Pure."""

from mpsbar.core.findings import Reason
from mpsbar.ui.text.wording import _

UNKNOWN = "?"


def sentence(reason: Reason) -> str:
    """In one line; somebody's own error message comes last."""
    values = {name: _shown(value) for name, value in reason.values.items()}
    if "stage" in values:
        values["stage"] = stages().get(values["stage"], values["stage"])
    said = words().get(reason.code, reason.code).format_map(values)
    error = reason.values.get("error")
    return f"{said}: {error}" if error else said


# Functions, not constants: a language is chosen after this module is imported.
def stages() -> dict[str, str]:
    return {
        "python": _("starting"),
        "torch": _("looking for torch"),
        "import": _("importing torch"),
        "built": _("asking torch about MPS"),
        "available": _("asking torch which devices are available"),
        "chosen": _("choosing a device"),
        "computed": _("computing on the device"),
        "capability": _("asking torch for its dtypes"),
    }


def words() -> dict[str, str]:
    return {
        # how the look ended
        "no_torch": _("no torch"),
        "no_python": _("there is no Python at this path"),
        "not_python": _("this is not a Python that can be asked"),
        "unsafe": _("not run"),
        "broken_torch": _("torch cannot be imported"),
        "crashed": _("crashed with {signal} while {stage}"),
        "exited": _("ended by itself while {stage}"),
        "hung": _("hung while {stage}"),
        # the device
        "device_works": _(
            "cuda, then mps, then cpu gives {device}; a small computation there works"
        ),
        "compute_failed": _("{device} is chosen, but a small computation on it fails"),
        "compute_wrong": _(
            "{device} is chosen, but ones(2, 2) @ ones(2, 2) sums to {result}, not 8"
        ),
        "cuda_check_failed": _("asking for CUDA failed"),
        # why there is no MPS
        "mps_not_on_this_system": _("no MPS: only torch for macOS has it"),
        "mps_rosetta": _(
            "no MPS: this Python is for Intel (x86_64) and runs under Rosetta; torch for it ends "
            "at {last}. Install an arm64 Python"
        ),
        "mps_intel": _("no MPS: this is an Intel Mac; torch for it ends at {last}"),
        "mps_not_built": _("no MPS: torch {torch} was built without it; pip install torch has it"),
        "mps_check_failed": _("asking for MPS failed"),
        "mps_macos_too_old": _("no MPS: torch {torch} needs macOS {needed}, this is {have}"),
        "mps_virtual": _("no MPS: this virtual machine has no Metal device that torch can use"),
        "mps_no_gpu": _("no MPS: torch finds no Metal device, and mpsbar no GPU"),
        "mps_unavailable": _(
            "no MPS: torch has it built in and finds no Metal device; why is not known "
            "(pytorch issue 177819 is such a case)"
        ),
        # torch against this macOS and chip
        "macos_below_stated": _("torch {torch} asks for macOS {needed}, this is {have}"),
        "torch_too_old": _("torch {torch} is older than 2.1: MPS was a first version then"),
        "long_matmul_wrong": _(
            "torch {torch} on {chip}: matmul over more than 32768 elements can be silently wrong "
            "(pytorch issue 193487); fixed in 2.14"
        ),
        "bfloat16_needs_torch": _("bfloat16 needs torch 2.3 or newer on MPS"),
        "bfloat16_needs_macos": _("bfloat16 needs macOS 14 or newer with this torch"),
        "newer_torch": _("torch {newest} is the newest for this Mac and Python; this is {torch}"),
        "torch_preloaded": _(
            "a start-up file of this Python imports torch: "
            "PYTORCH_ENABLE_MPS_FALLBACK set in a script comes too late"
        ),
        # PYTORCH_* variables
        "fallback_on": _(
            "PYTORCH_ENABLE_MPS_FALLBACK is on: what MPS lacks runs on the CPU, slower, and only "
            "the first is told. It is read when torch is imported: os.environ after that is too "
            "late"
        ),
        "fallback_unclear": _(
            "{name}={value} is read differently by torch's releases: write 1 or 0"
        ),
        "watermarks_set": _(
            "{settings}: read when MPS is used first, os.environ after that is too late"
        ),
        "watermark_no_number": _("{name}={value} is not a number; torch reads {read}"),
        "watermark_out_of_range": _(
            "{name}={value} is not between 0 and 2: first use of MPS fails"
        ),
        "watermark_unlimited": _(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO is 0, no limit: "
            "the whole system may run out of memory"
        ),
        "watermark_high_alone": _(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO={high} is below the low watermark's default {low}: "
            "first use of MPS fails. Set PYTORCH_MPS_LOW_WATERMARK_RATIO too, to {high} or less"
        ),
        "watermark_low_above_high": _(
            "PYTORCH_MPS_LOW_WATERMARK_RATIO={low} is above the high one, {high}: "
            "first use of MPS fails"
        ),
        "prefer_metal_on": _("PYTORCH_MPS_PREFER_METAL is on: Metal kernels for matmul"),
        "prefer_metal_not_off": _("{name}={value} turns it on: it counts that it is set at all"),
        "fast_math_on": _("PYTORCH_MPS_FAST_MATH is on: faster and less accurate"),
        "setting_misspelt": _("{name} is not known to torch: {near} is meant?"),
        "setting_unknown": _("{name} is not known to torch and has no effect"),
    }


def _shown(value: object) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:g}" if isinstance(value, float) else str(value)
