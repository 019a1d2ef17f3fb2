"""What is known of torch: the PYTORCH_* rules, compared with torch itself where it runs; releases."""

import subprocess
import sys

import pytest
from worker_kit import NO_MPS, TIMEOUT

from mpsbar.agent.mps_support import DTYPE_SINCE, dtype_macos
from mpsbar.core.findings import Reason
from mpsbar.core.torch_facts import (
    FALLBACK,
    FAST_MATH,
    HIGH,
    KNOWN_SETTINGS,
    LONG_MATMUL,
    LOW,
    PREFER_METAL,
    RECOMMENDED,
    chip_generation,
    judge_settings,
    newest_for,
    package_for,
    parse_numbers,
    parse_release,
)
from mpsbar.doctor.text import sentence
from mpsbar.dtypes.checks import BUGS


def codes(settings, version="2.13.0"):
    return [(reason.code, reason.level) for reason in judge_settings(settings, version)]


NOTED = [("watermarks_set", "ok")]
WATERMARKS = [
    ({}, []),
    ({HIGH: "1.7"}, NOTED),
    ({HIGH: "1.4"}, NOTED),
    ({HIGH: "2"}, NOTED),
    ({HIGH: " 1.5 "}, NOTED),
    ({HIGH: "1.39"}, [("watermark_high_alone", "critical")]),
    ({HIGH: "0.8"}, [("watermark_high_alone", "critical")]),
    ({HIGH: "0.8", LOW: "0.7"}, NOTED),
    ({HIGH: "0.8", LOW: "0.8"}, NOTED),
    ({HIGH: "0.8", LOW: "0"}, NOTED),
    ({HIGH: "0.8", LOW: "0.9"}, [("watermark_low_above_high", "critical")]),
    ({LOW: "1.0"}, NOTED),
    ({LOW: "1.7"}, NOTED),
    ({LOW: "1.8"}, [("watermark_low_above_high", "critical")]),
    ({LOW: "-1"}, [("watermark_out_of_range", "critical")]),
    ({LOW: "nan"}, [("watermark_out_of_range", "critical")]),
    ({HIGH: "0"}, [("watermark_unlimited", "warning")]),
    ({HIGH: "0.0", LOW: "2"}, [("watermark_unlimited", "warning")]),
    ({HIGH: "0.0", LOW: "2.1"}, [("watermark_unlimited", "warning"), ("watermark_out_of_range", "critical")]),
    ({HIGH: "2.1"}, [("watermark_out_of_range", "critical")]),
    ({HIGH: "-0.1"}, [("watermark_out_of_range", "critical")]),
    ({HIGH: "nan"}, [("watermark_out_of_range", "critical")]),
    ({HIGH: "inf"}, [("watermark_out_of_range", "critical")]),
    ({HIGH: "80%"}, [("watermark_no_number", "warning"), ("watermark_out_of_range", "critical")]),
    ({HIGH: "high"}, [("watermark_no_number", "warning"), ("watermark_unlimited", "warning")]),
    ({HIGH: "0,8"}, [("watermark_no_number", "warning"), ("watermark_unlimited", "warning")]),
    ({HIGH: ""}, [("watermark_no_number", "warning"), ("watermark_unlimited", "warning")]),
    ({LOW: "low"}, [("watermark_no_number", "warning")]),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "expected"), WATERMARKS)
def test_watermarks(settings, expected):
    assert codes(settings) == expected


def test_valid_watermarks_are_noted_with_the_time_they_are_read():
    (reason,) = judge_settings({HIGH: "0.8", LOW: "0.7"}, "2.13.0")
    assert sentence(reason) == (
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.8 PYTORCH_MPS_LOW_WATERMARK_RATIO=0.7: read when MPS is"
        " first used; setting os.environ after that is too late"
    )


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_the_watermarks_called_wrong_are_those_the_allocator_refuses():
    """softmps reads them as MPS does; many allocators cannot be made in one process, so children."""
    code = (
        "import os, sys, torch\n"
        "for line in sys.stdin:\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        os.environ.update(eval(line))\n"
        "        try: torch.ones(2, device='mps')\n"
        "        except RuntimeError: os._exit(1)\n"
        "        os._exit(0)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="".join(f"{settings}\n" for settings, _ in WATERMARKS),
        env={"SOFTMPS": "1", "PATH": ""}, capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    refused = [line == "1" for line in done.stdout.split()]
    called = [any(level == "critical" for _, level in codes) for _, codes in WATERMARKS]
    assert refused == called, done.stderr


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", [("fallback_on", "ok")]), ("2", [("fallback_on", "ok")]), ("0", []), (" 0", []),
        ("true", [("fallback_unclear", "warning")]), ("", [("fallback_unclear", "warning")]),
        ("٣", [("fallback_unclear", "warning")]),
    ],
)  # fmt: skip
def test_fallback(value, expected):
    assert codes({FALLBACK: value}) == expected


def test_switches():
    assert codes({PREFER_METAL: "1"}) == [("prefer_metal_on", "ok")]
    assert codes({PREFER_METAL: "0"}) == [("prefer_metal_not_off", "warning")]
    assert codes({FAST_MATH: "1"}) == [("fast_math_on", "ok")]
    assert codes({FAST_MATH: "0"}) == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("PYTORCH_ENABLE_MPS_FALBACK", FALLBACK),
        ("PYTORCH_MPS_ENABLE_FALLBACK", FALLBACK),
        ("PYTORCH_MPS_FALLBACK", FALLBACK),
        ("PYTORCH_MPS_HIGH_WATERMARK", HIGH),
        ("PYTORCH_MPS_LOW_WATERMARK_RATIOS", LOW),
    ],
)
@pytest.mark.parametrize("version", ["2.4.0", "2.15.0", None])
def test_a_misspelt_name_is_reported_with_the_nearest(name, near, version):
    (reason,) = judge_settings({name: "1"}, version)
    assert (reason.code, reason.level) == ("setting_misspelt", "warning")
    assert reason.values == {"name": name, "near": near}


def test_a_name_unlike_all_others_may_be_news_of_a_newer_torch():
    settings = {"PYTORCH_MPS_ZZZ_TELEPORT": "1"}
    assert codes(settings, "2.13.0") == [("setting_unknown", "ok")]
    assert codes(settings, "2.15.0") == []
    assert codes(settings, None) == []


def test_others_settings_are_nobodys_concern():
    assert codes({"PYTORCH_CUDA_ALLOC_CONF": "x", "PYTORCH_JIT": "0"}) == []
    assert codes(dict.fromkeys(KNOWN_SETTINGS[5:], "1")) == []


def test_hostile_names_and_values_are_cut_and_cleaned():
    settings = {f"PYTORCH_MPS_\x1b[31m{'X' * 5000}{number}": "" for number in range(1000)}
    reasons = judge_settings({**settings, HIGH: "9" * 100_000, FALLBACK: "\x07" * 9999}, "2.13")
    assert len(reasons) < 20
    for value in (value for reason in reasons for value in reason.values.values()):
        assert str(value).isprintable()
        assert len(str(value)) <= 80


@pytest.mark.parametrize(
    ("macos", "python", "architecture", "newest"),
    [
        ((26, 3), (3, 11), "arm64", "2.15.0"), ((15, 0), (3, 10), "arm64", "2.14.1"),
        ((14, 7), (3, 13), "arm64", "2.14.1"), ((13, 7), (3, 13), "arm64", None),
        ((15, 0), (3, 9), "arm64", None), ((15, 0), (3, 11), "x86_64", None),
        (None, (3, 11), "arm64", None), ((15, 0), None, "arm64", None),
    ],
)  # fmt: skip
def test_the_newest_torch_that_fits(macos, python, architecture, newest):
    assert newest_for(macos, python, architecture) == newest


@pytest.mark.parametrize(
    ("macos", "python", "package"),
    [
        ((15, 0), (3, 11), "torch"), ((15, 0), None, "torch"), ((14, 7), (3, 12), "torch>=2.13,<2.15"),
        (None, None, "torch>=2.13,<2.15"), ((13, 6), (3, 12), None), ((26, 3), (3, 9), None),
    ],
)  # fmt: skip
def test_what_pip_is_to_install(macos, python, package):
    assert package_for(macos, python) == package


def test_the_bug_of_a_long_matmul_is_of_the_same_releases_everywhere():
    """`checks` is handed to another Python as text, so it has these numbers itself."""
    bug = BUGS["long_matmul"]
    assert (bug.first, bug.last) == LONG_MATMUL
    values = {"torch": "2.13.0", "chip": "Apple M1"}
    said = sentence(Reason("long_matmul_wrong", "warning", values))
    assert f"issue {bug.issues[0]}" in said
    assert said.endswith(f"fixed in {bug.last[0]}.{bug.last[1] + 1}")


def test_the_releases_that_the_sentences_name_are_those_of_the_tables():
    def say(code):
        return sentence(Reason(code, "ok", {"torch": "2.0.1"}))

    since = DTYPE_SINCE["bfloat16"]
    macos, _minor = dtype_macos("bfloat16", since)
    first, second = RECOMMENDED
    assert f"is older than {first}.{second}:" in say("torch_too_old")
    assert say("bfloat16_needs_torch").endswith(f"requires torch {since[0]}.{since[1]} or later")
    assert f"requires macOS {macos} or later" in say("bfloat16_needs_macos")


def test_versions_as_they_come():
    assert parse_release("2.13.0+cpu") == (2, 13)
    assert parse_release("2.10.0.dev20251008") == (2, 10)
    assert parse_release("2.4.0a0+git1a2b") == (2, 4)
    assert [parse_release(v) for v in (None, "", "x", "2", "2.", "2.x", "99999.1")] == [None] * 7
    assert parse_numbers("26.3.2") == (26, 3, 2)
    assert [parse_numbers(v) for v in (None, "", "14.", "14.2 beta", "1.2.3.4.5")] == [None] * 5
    chips = ("Apple M1", "Apple M2 Pro", "Apple M4 (Virtual)", "Apple A18", "Intel(R)", None, "M1")
    assert [chip_generation(chip) for chip in chips] == [1, 2, 4, None, None, None, None]
