"""What people read of a comparison, as literals; made of plain data, without torch."""

import re

import pytest

from mpsbar.dtypes.compare import text
from mpsbar.dtypes.compare.render import _size as compared_size
from mpsbar.dtypes.compare.render import render_html, render_text, say_seconds
from mpsbar.dtypes.compare.text import build_headline, say_share
from mpsbar.language import ngettext
from mpsbar.ui.text.cells import width
from mpsbar.ui.text.wording import size

NOTHING = {
    "state": "works", "eps": 0.00098, "largest_number": 65504.0, "culprits": [], "followers": [], "raised": None,
    "nonfinite": None, "fallbacks": [], "output": {"largest": 1e-7, "typical": 1e-8, "same_top1": 1.0}, "unexplained": None,
    "loss": None, "gradients": None, "unchecked": [], "seconds": 0.010, "spread": 0.01, "speed_to_float32": 1.0,
    "speed_to_cpu": 3.0, "peak": 2 << 20, "peak_is_sampled": False, "peak_to_float32": 1.0, "notes": [],
}  # fmt: skip
DIFFERENCE = {
    "label": "output",
    "largest": 2.5,
    "typical": 0.0001,
    "tolerance": 0.04,
    "share": 0.01,
    "longest_sum": 64,
}
WRONG = {
    "module": "head",
    "type": "Linear",
    "kind": "differs",
    "call": 0,
    "text": None,
    "largest_right": 3.0,
    "difference": DIFFERENCE,
}
DATA = {
    "model": "Net", "modules": 9, "parameters": 1_500_000, "device": "mps", "torch": "2.13.0", "steps": 4.0,
    "reference": {"device": "cpu", "dtype": "float32", "seconds": 0.03, "loss": None},
    "dtypes": {
        "float32": NOTHING,
        "bfloat16": {**NOTHING, "seconds": 0.00525, "speed_to_float32": 1.9, "speed_to_cpu": 5.7, "peak": 1 << 20, "peak_to_float32": 0.52},
        "float16": {**NOTHING, "state": "nonfinite", "nonfinite": {"module": "layers.7.norm", "what": "NaN"}, "seconds": None,
                    "speed_to_cpu": None, "speed_to_float32": None, "peak": None, "output": None},
        "autocast float16": {**NOTHING, "state": "differs", "culprits": [WRONG], "followers": ["tail"],
                             "fallbacks": [{"module": "a", "operation": "cumsum", "times": 2}, {"module": "b", "operation": "cumsum", "times": 1}]},
    },
    "slowest": [], "notes": [], "not_restored": [],
}  # fmt: skip

UNEXPLAINED = {**DIFFERENCE, "nonfinite": None}
UNCHECKED = [{"module": "a", "text": "its inputs are too large to keep"}]
STEP = {
    "loss": 0.5, "unchecked": UNCHECKED, "gradients": {"missing": ["w"], "worst": "w", "compared": 3, "largest": 0.1},
}  # fmt: skip
# One dtype for each sentence that DATA does not have; what torch says is made of numbers.
EVERY_TEXT = {
    **DATA, "parameters": 7_000_000_000, "modules": 1,
    "reference": {**DATA["reference"], "loss": 0.25},
    "dtypes": {
        "float32": {**NOTHING, **STEP, "notes": ["its time could not be measured: 1", "two copies of the model don't fit in memory: compared piece by piece"]},
        "d1": {**NOTHING, "output": None, "speed_to_cpu": None, "speed_to_float32": None, "peak_to_float32": None},
        "d2": {**NOTHING, "output": {"largest": 20.0, "same_top1": 0.5}, "spread": 1.5, "peak_is_sampled": True},
        "d3": {**NOTHING, "spread": 0.3, "output": {"largest": 20.0, "same_top1": None}, "fallbacks": [{"module": "", "operation": "mm", "times": 1}]},
        "d4": {**NOTHING, "state": "crashed", "text": "1"},
        "d5": {**NOTHING, "state": "unchecked", "not_run": {"module": "", "text": "1"}},
        "d6": {**NOTHING, "state": "raised", "raised": {"module": "", "text": "1. 2"}},
        "d7": {**NOTHING, "state": "differs", "unexplained": {**UNEXPLAINED, "label": "gradient of w"}},
        "d8": {**NOTHING, "state": "differs", "unexplained": {**UNEXPLAINED, "nonfinite": "NaN"}},
        "d9": {**NOTHING, "state": "differs", "gradients": {"missing": ["w"]}, "followers": ["a", "b"]},
        "d10": {**NOTHING, "state": "differs", "culprits": [
            {**WRONG, "kind": "raised", "text": "1"}, {**WRONG, "kind": "parameter", "largest_right": 1e9},
            {**WRONG, "kind": "NaN", "largest_right": 1e9}, {**WRONG, "kind": "Inf", "largest_right": 1.0},
            {**WRONG, "difference": {**DIFFERENCE, "label": "gradient of w", "largest": None}},
            *({**WRONG, "module": f"m{n}"} for n in range(3)),
        ]},
    },
    "slowest": [{"module": "", "type": "Linear", "seconds": {"cpu": 1.0}}],
    "notes": ["torch does not count memory on the CPU, so no peak is known"], "not_restored": ["1"],
}  # fmt: skip


def test_the_headline():
    assert build_headline(DATA) == (
        "float32 works: same top-1, 3.0× the CPU's speed. "
        "bfloat16 works: same top-1, 1.9× float32's speed, 0.52× its memory. "
        "float16: NaN from layers.7.norm. "
        "autocast float16: wrong results from head (Linear): off by up to 250%; rounding explains only 4%."
    )


def test_the_whole_text():
    assert render_text(DATA).splitlines() == [
        "Net (9 modules, 1.5 million parameters) on mps against cpu float32, torch 2.13.0",
        "",
        "float32 works: same top-1, 3.0× the CPU's speed.",
        "bfloat16 works: same top-1, 1.9× float32's speed, 0.52× its memory.",
        "float16: NaN from layers.7.norm.",
        "autocast float16: wrong results from head (Linear): off by up to 250%; rounding explains only 4%.",
        "    typical error 0.01%; 1% of the values exceed rounding: 4 roundings of 0.00098 in each operation, more in sums (of up to 64 numbers)",
        "    1 other module differs only because its input does: tail",
        "    cumsum fell back to the CPU 3 times: in a, b",
        "",
        "                  RUN TIME  VS CPU  VS FLOAT32  PEAK    ERROR",
        "cpu float32       30 ms",
        "float32           10 ms     3.0×    1.0×        2.0 MB  1.0e-07",
        "bfloat16          5.25 ms   5.7×    1.9×        1.0 MB  1.0e-07",
        "float16           –         –       –           –       –",
        "autocast float16  10 ms     3.0×    1.0×        2.0 MB  1.0e-07",
    ]


def test_it_is_english_until_it_is_given_a_language():
    """As in the user's process: there are no catalogues."""
    words = render_text(EVERY_TEXT)
    assert words.isascii() or set(words) - set(map(chr, range(128))) <= set("×≥–…")
    assert "float32 works: same top-1, 3.0× the CPU's speed." in words
    assert "its time could not be measured: 1" in words


def test_columns_hold_with_wide_characters(monkeypatch):
    for name in ("_translate", "_translate_count", "_measure"):
        monkeypatch.setattr(text, name, getattr(text, name))
    text.use_language(lambda words: {"RUN TIME": "실행 시간"}.get(words, words), ngettext, width)
    table = render_text(DATA).split("\n\n")[-1].splitlines()
    assert table[0] == "                  실행 시간  VS CPU  VS FLOAT32  PEAK    ERROR"
    assert table[3] == "bfloat16          5.25 ms    5.7×    1.9×        1.0 MB  1.0e-07"


def test_an_unsteady_clock_is_no_speed():
    unsteady = {**NOTHING, "spread": 1.5}
    assert build_headline({"dtypes": {"float32": unsteady}}) == (
        "float32 works: same top-1, its speed varied too much to measure."
    )
    about = {**NOTHING, "spread": 0.3}
    assert (
        build_headline({"dtypes": {"float32": about}})
        == "float32 works: same top-1, about 3.0× the CPU's speed."
    )


def test_html_escapes_what_a_model_is_called():
    page = render_html({**DATA, "model": "<b>Net"})
    assert "&lt;b&gt;Net" in page
    assert "<b>Net" not in page
    assert page.count("<li") == 4


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.5, "50%"),
        (0.0, "0%"),
        (1e-7, "1.0e-07"),
        (20.0, "20 times its size"),
        (None, "any amount"),
    ],
)
def test_shares(share, text):
    assert say_share(share) == text


def test_seconds():
    assert [say_seconds(s) for s in (None, 2e-5, 0.0123, 3.0)] == ["–", "20 µs", "12.3 ms", "3 s"]


def test_sizes_are_worded_as_everywhere():
    counts = [0, 999, 1000, 1 << 20, 99 << 20, 100 << 20, 5 << 30, 3 << 40]
    assert [compared_size(count) for count in counts] == [size(count) for count in counts]


def test_a_peak_that_was_sampled_is_a_lower_bound_and_says_so():
    sampled = {**DATA, "dtypes": {"float32": {**NOTHING, "peak_is_sampled": True}}}
    words = render_text(sampled)
    assert "≥ 2.0 MB" in words
    assert "≥: read between modules; torch counts peaks on MPS from 2.13." in words
    assert "≥" not in render_text(DATA)


@pytest.fixture
def shouting():
    """A language: every text in capitals, what is filled in stays."""
    before = text._translate, text._translate_count, text._measure

    def shout(words):
        parts = re.split(r"(\{.*?\})", words)
        return "".join(part if part.startswith("{") else part.upper() for part in parts)

    text.use_language(shout, lambda one, many, n: shout(one if n == 1 else many), len)
    yield
    text.use_language(*before)


@pytest.mark.parametrize(
    ("english", "shown"),
    [
        ("output", "OUTPUT"),
        ("output 1", "OUTPUT 1"),
        ("gradient of weight", "GRADIENT OF weight"),
        ("gradient of input 0", "GRADIENT OF INPUT 0"),
        ("gradient of the output of a.b, tensor 1", "GRADIENT OF THE OUTPUT OF a.b, TENSOR 1"),
        ("input 0 of a.b, call 2", "INPUT 0 OF a.b, CALL 2"),
        ("a.b was changed by the model", "a.b WAS CHANGED BY THE MODEL"),
        (
            "x, a tensor of shape (2, 3), was changed by the model",
            "x, A TENSOR OF SHAPE (2, 3), WAS CHANGED BY THE MODEL",
        ),
        ("exit code 3: Killed", "EXIT CODE 3: Killed"),
    ],
)
def test_what_the_data_says_in_english_is_shown_translated(shouting, english, shown):
    assert text.say_filled_in(english) == shown


def test_the_headline_for_programs_is_english_in_every_language(shouting):
    assert "float32 works: same top-1" in build_headline(DATA)
    assert "float32 WORKS: SAME TOP-1" in text.say_headline(DATA)
    assert "MODULE BY MODULE" in render_html(DATA)
