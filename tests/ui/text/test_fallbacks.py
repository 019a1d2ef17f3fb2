"""What fell back to the CPU, as it is printed at the end of a run."""

import pytest

from mpsbar.core.fallbacks import FallbackOperation, Fallbacks
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.ui.text.fallbacks import build_fallbacks, render_fallbacks, say_remedy

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
        "    → no torch up to 2.15 has it on MPS: replace it, or put this step on the CPU, where you control "
        "the copies",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aten::old", "but not for this dtype or size"), ("aten::new", "native on MPS from torch 2.14"),
        ("MPS: passing divisor", "another way"), ("aten::never", "no torch up to 2.15"),
    ],
)  # fmt: skip
def test_what_to_do(name, words):
    assert words in say_remedy(name, "2.13.0", NATIVE)


def test_what_is_not_known_is_said():
    assert render(torch=None) == [
        "CPU fallbacks: unknown, because no connected process imported torch"
    ]
    assert render() == ["CPU fallbacks: none"]
    warned = "  Counted from torch's warnings: operations that ran while warnings were turned off are missing."
    assert render(is_profiled=False) == ["CPU fallbacks: none", warned]
    lines = render(FallbackOperation("aten::old", 1), is_profiled=False, is_complete=False)
    assert lines[0] == "CPU fallbacks: 1 operation, once"
    assert lines[-3:] == [
        "  How long they took is not known: torch 2.13.0 printed no profile.",
        "  A process ended before it could report everything: there may be more.",
        warned,
    ]


def test_without_explain_only_the_first_is_known():
    first = FallbackOperation("aten::new", 1, "/home/ada/train.py:4")
    assert render(first, is_counted=False) == [
        "CPU fallbacks: at least one",
        "  aten::new, at /home/ada/train.py:4",
        "    → native on MPS from torch 2.14: upgrade torch (this is 2.13.0)",
        "  Without mpsbar run --explain, only the first operation of each process is known.",
    ]
    found = Fallbacks((first,), "2.13.0", is_counted=False)
    assert render_fallbacks(found, NATIVE, home="/home/ada")[1] == "  aten::new, at ~/train.py:4"
    assert render(FallbackOperation("aten::new", 1), is_counted=False)[1] == "  aten::new"
    count = "  mpsbar run --explain counts them."
    assert render(is_counted=False) == ["CPU fallbacks: none known", count]
    assert render(is_counted=False, is_complete=False) == [
        "CPU fallbacks: unknown (none found, but the check was cut short)",
        count,
    ]


def test_for_programs():
    found = Fallbacks((FallbackOperation("aten::new", 2, "a.py:1", 0.5, 9),), "2.13.0")
    assert build_fallbacks(found, NATIVE) == [
        {
            "name": "aten::new", "count": 2, "where": "a.py:1", "seconds": 0.5, "copied": 9, "native_since": "2.14",
            "remedy": "native on MPS from torch 2.14: upgrade torch (this is 2.13.0)",
        }
    ]  # fmt: skip
    unknown = Fallbacks((FallbackOperation("aten::new", 2), FallbackOperation("aten::never", 1)))
    remedies = [one["remedy"] for one in build_fallbacks(unknown, NATIVE)]
    assert remedies[0] == "native on MPS from torch 2.14"
    assert build_fallbacks(unknown, NATIVE)[1]["native_since"] is None


def test_a_long_list_is_cut():
    lines = render(*(FallbackOperation(f"aten::x{n}", 1) for n in range(25)))
    assert lines[-1] == "  … and 5 more"
