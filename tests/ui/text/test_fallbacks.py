"""What fell back to the CPU, as it is printed at the end of a run."""

import pytest

from mpsbar.core.fallbacks import FallbackOperation, Fallbacks
from mpsbar.core.native_operations import NativeOperations
from mpsbar.ui.text.fallbacks import render_fallbacks, say_remedy

NATIVE = NativeOperations({"new": (2, 14), "old": (2, 2)}, (2, 15))


def render(*operations, **values):
    given = {"torch": "2.13.0", "is_profiled": True} | values
    return render_fallbacks(Fallbacks(operations, **given), NATIVE, "/work")


def test_the_whole():
    assert render(
        FallbackOperation("aten::new", 1204, "/work/src/train.py:31", 2.5, 3 << 20),
        FallbackOperation("aten::never", 1, "/lib/x.py:4"),
    ) == [
        "CPU fallbacks: 2 operations, 1,205 times",
        "  aten::new: 1,204 times, 2.5 s, 3.0 MB copied, first at src/train.py:31",
        "    → native on MPS from torch 2.14: upgrade torch (this is 2.13.0)",
        "  aten::never: once, first at /lib/x.py:4",
        "    → no torch up to 2.15 has it on MPS: replace it, or put this step on the CPU, so that its copies are "
        "under your control",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aten::old", "but not for this dtype or size"), ("aten::new", "native on MPS from torch 2.14"),
        ("MPS: passing divisor", "in another way"), ("aten::never", "no torch up to 2.15"),
    ],
)  # fmt: skip
def test_what_to_do(name, words):
    assert words in say_remedy(name, "2.13.0", NATIVE)


def test_what_is_not_known_is_said():
    assert render(torch=None) == ["CPU fallbacks: not known, no connected process imported torch"]
    assert render() == ["CPU fallbacks: none"]
    warned = "  Counted by torch's warnings: what a program does with warnings off is missing."
    assert render(is_profiled=False) == ["CPU fallbacks: none", warned]
    lines = render(FallbackOperation("aten::old", 1), is_profiled=False, is_complete=False)
    assert lines[0] == "CPU fallbacks: 1 operation, once"
    assert lines[-3:] == [
        "  How long they took is not known: torch 2.13.0 printed no profile.",
        "  A process ended before it could report all: there may be more.",
        warned,
    ]


def test_a_long_list_is_cut():
    lines = render(*(FallbackOperation(f"aten::x{n}", 1) for n in range(25)))
    assert lines[-1] == "  … and 5 more"
