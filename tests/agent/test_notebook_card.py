"""The card of %mpsbar, %mpsbar tensors and %%mpsbar, in a real kernel and as pure text."""

import pytest
from agent.test_notebook import kernels  # noqa: F401 - the fixture
from worker_kit import NO_MPS

from mpsbar.agent.notebook_card import describe_cell, describe_tensors, render_card

MB = 1 << 20
on_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
BACKEND = {
    "state": "in use", "allocated": 100 * MB, "reserved": 150 * MB, "driver": 200 * MB, "peak": 300 * MB,
    "budget": 400 * MB,
}  # fmt: skip


def test_the_card_has_a_bar_of_the_budget():
    card = render_card({"mps": BACKEND, "<b>": {"state": "not initialised"}}, None)
    assert "width:25.0%" in card  # tensors
    assert "width:12.5%" in card  # cached
    assert "200 MB held of 400 MB · 100 MB in tensors · 50.0 MB cached" in card
    assert "<b>" not in card


def test_unknown_numbers_and_hostile_names_do_not_break_it():
    nothing = {"state": "in use"} | dict.fromkeys(
        ("allocated", "reserved", "driver", "peak", "budget")
    )
    card = render_card({"<script>": nothing}, None)
    assert "&lt;script&gt;" in card
    assert "? held · ? in tensors" in card
    assert render_card({}, None) == ""


def test_one_cell():
    assert describe_cell((None, None), (None, None), 0.5) == "cell: 500 ms · no allocator in use"
    counted = describe_cell((100 * MB, 200 * MB), (150 * MB, 900 * MB), 2.0)
    assert counted == "cell: 2.0 s · tensors +50.0 MB (now 150 MB) · peak 900 MB"
    for peak in (900 * MB, None):  # an earlier peak was higher, or none is counted
        not_known = describe_cell((100 * MB, peak), (50 * MB, peak), 2.0)
        assert not_known == "cell: 2.0 s · tensors −50.0 MB (now 50.0 MB) · peak at least 100 MB"


def test_tensors_as_text():
    group = {"device": "mps", "dtype": "float32", "shape": "10x20", "count": 3, "bytes": 5 * MB}
    found = {
        "state": "done", "groups": [group] * 14, "others": {"count": 1, "bytes": MB}, "not_visible": {"mps": MB},
        "cut_short": False,
    }  # fmt: skip
    lines = describe_tensors(found).splitlines()
    assert lines[0] == "  5.0 MB  3 × float32 10x20  mps"
    assert lines[-2:] == [" 11.0 MB  other tensors", "  1.0 MB  not visible from Python"]
    # What was not looked at is not said to be invisible.
    cut = describe_tensors({**found, "cut_short": True}).splitlines()
    assert cut[-2:] == [" 11.0 MB  other tensors", "There are more: counting stopped early"]
    empty = {**found, "groups": [], "others": {"count": 0, "bytes": 0}, "not_visible": {}}
    assert describe_tensors(empty) == "No live tensors"
    busy = {"state": "busy", "reason": {"code": "thread_computing", "where": "a.py:1"}}
    assert (
        describe_tensors(busy) == "busy: another thread is computing (a.py:1); nothing was counted"
    )


@on_mps
def test_in_a_real_kernel(kernels):  # noqa: F811 - the fixture
    kernel = kernels()
    kernel.run(
        # Of what was there before nothing is listed: on busy cores that alone takes too long.
        "%load_ext mpsbar\nimport gc, torch\ngc.freeze()\nx = torch.ones(64 << 20, dtype=torch.uint8, device='mps')"
    )
    shown = kernel.run("%mpsbar")
    assert "held" in shown
    assert "mps" in shown
    assert "1 × uint8 67108864  mps" in kernel.run("%mpsbar tensors")
    said = kernel.run(
        "%%mpsbar\ny = torch.ones(32 << 20, dtype=torch.uint8, device='mps')\nprint(len(y))"
    )
    assert said.startswith("33554432\n")
    assert "tensors +32.0 MB (now 96.0 MB)" in said
    assert kernel.run("%%mpsbar\n1 / 0").endswith("ZeroDivisionError")
    assert kernel.run("print(y.sum().item() == 32 << 20)") == "True"


FINALIZERS = """%%mpsbar
import gc, threading, time
class Cycle:
    seen = set()
    def __init__(self): self.me = self
    def __del__(self): self.seen.add(threading.current_thread().name)
host = gc.get_threshold()
gc.set_threshold(3)  # any thread that makes a few objects collects
for _ in range(200):
    Cycle(), Cycle()
    time.sleep(0.005)
gc.set_threshold(*host)
"""


def test_a_cells_finalizers_run_on_its_own_thread(kernels):  # noqa: F811 - the fixture
    """Or on one of the kernel's own, which make objects too: never on one that mpsbar has started."""
    kernel = kernels()
    names = "import threading; print(*(each.name for each in threading.enumerate()), sep=chr(10))"
    of_the_kernel = set(kernel.run(names).splitlines())
    assert kernel.run("%load_ext mpsbar") == ""
    assert "cell: " in kernel.run(FINALIZERS)
    seen = set(kernel.run("print(*Cycle.seen, sep=chr(10))").splitlines())
    assert "MainThread" in seen <= of_the_kernel


def test_what_a_cell_says_when_it_fails_or_cannot_run(kernels):  # noqa: F811 - the fixture
    kernel = kernels()
    assert kernel.run("%load_ext mpsbar") == ""
    assert kernel.run("%%mpsbar\ndef f():\n    return 1 / 0\nf()").endswith("ZeroDivisionError")
    shown = "import sys, traceback; print(*traceback.format_tb(sys.last_traceback)[-2:])"
    said = kernel.run(shown)
    for words in ("line 4, in <module>", "line 3, in f", "return 1 / 0"):
        assert words in said
    assert kernel.run("%%mpsbar free\nx = 1") == (
        "mpsbar: %%mpsbar takes no options, not 'free'; the cell was not run"
    )
    assert kernel.run("%%mpsbar\nimport asyncio\nawait asyncio.sleep(0)") == (
        "mpsbar: %%mpsbar doesn't support await outside a function; the cell was not run"
    )
    assert kernel.run("print('x' in globals())") == "False"
    assert kernel.run("%%mpsbar\n1 +").endswith("SyntaxError")
    assert kernel.run("%%mpsbar\nasync def g(): await h\n%pwd").startswith("cell: ")
    assert kernel.run(
        "%%mpsbar\nfrom __future__ import annotations\ndef k(a: nothing): ..."
    ).startswith("cell: ")
