"""What the cells of a dtype come to: verdicts, surprises, and what stays no news."""

from dataclasses import replace

import pytest
from probe_samples import NO_FLOAT64, make_probe

from mpsbar.core.dtype_results import Cell, Check, OperationSpeed
from mpsbar.dtypes.verdicts import (
    Change,
    count_failures,
    expect,
    find_changes,
    find_safe,
    find_surprises,
    judge_dtypes,
)

REFUSED = ("unsupported", "RuntimeError: no")


def verdict(probe, dtype):
    return next(v for v in judge_dtypes(probe) if v.dtype == dtype)


def list_surprises(probe):
    return [
        (reason.code, reason.values.get("dtype") or reason.values.get("check"))
        for reason in find_surprises(probe)
    ]


def test_a_mac_as_it_should_be():
    probe = make_probe()
    support = {v.dtype: v.support for v in judge_dtypes(probe)}
    assert support == {
        **dict.fromkeys(("float32", "float16", "bfloat16", "complex64", "int64", "int32", "int16", "int8", "uint8", "uint16", "bool"), "supported"),
        **dict.fromkeys(("float64", "float8_e4m3fn", "float8_e5m2"), "unsupported"),
    }  # fmt: skip
    assert find_surprises(probe) == ()  # float64 is no news
    assert count_failures(probe) == {}
    assert verdict(probe, "float64").reason.values["error"] == NO_FLOAT64
    assert verdict(probe, "float16").speed == 2
    assert verdict(probe, "float32").speed == 1


def test_guides_and_torch_are_compared_with_what_was_measured():
    probe = make_probe(changed={"matmul/int64": REFUSED, "*/bool": REFUSED})
    assert [(v.dtype, v.guides) for v in judge_dtypes(probe) if v.differs_from_guides] == [
        ("float16", "limited"), ("bfloat16", "unsupported"), ("int32", "limited"),
    ]  # fmt: skip
    assert [v.dtype for v in judge_dtypes(probe) if v.differs_from_torch] == ["bool"]
    assert verdict(make_probe(capability=("float64",)), "float64").differs_from_torch
    assert verdict(make_probe(capability=("float64",)), "float32").differs_from_torch
    assert all(v.guides is None for v in judge_dtypes(make_probe("cpu")))
    assert not any(v.differs_from_torch for v in judge_dtypes(make_probe("cpu")))


@pytest.mark.parametrize(
    ("state", "code", "support"),
    [
        ("inaccurate", "dtype_wrong", "limited"), ("crashed", "dtype_crashed", "limited"),
        ("hung", "dtype_hung", "limited"), ("unsupported", "dtype_refused", "limited"),
        ("fallback", "dtype_falls_back", "limited"),
    ],
)  # fmt: skip
def test_each_failure_surprises_in_float16(state, code, support):
    probe = make_probe(changed={"matmul/float16": (state, "why"), "sort/float16": (state, "why")})
    found = verdict(probe, "float16")
    assert (found.support, found.reason.code) == (support, code)
    assert found.reason.values["operations"] == "matmul, sort"
    assert (found.reason.values["number"], found.reason.values["of"]) == (2, 18)
    assert list_surprises(probe) == [(code, "float16")]
    assert count_failures(probe) == {"float16": 2}


def test_the_worst_comes_first_and_integers_are_limited_without_a_word():
    changed = {
        "matmul/int32": REFUSED,
        "sort/bfloat16": REFUSED,
        "add/bfloat16": ("inaccurate", None),
        "sum/int8": ("crashed", "SIGSEGV"),
    }
    probe = make_probe(
        changed=changed,
        wrong={"adam": Check("adam", "wrong", "it stays"), "unique": Check("unique", "hung")},
    )
    assert list_surprises(probe) == [
        ("silently_wrong", "adam"), ("check_hung", "unique"), ("dtype_wrong", "bfloat16"), ("dtype_crashed", "int8"),
        ("dtype_refused", "bfloat16"),
    ]  # fmt: skip
    assert count_failures(probe) == {"bfloat16": 2}  # float32 is no help for an integer


def test_a_whole_dtype_that_should_work():
    probe = make_probe(changed={"*/bfloat16": REFUSED})
    assert list_surprises(probe) == [("dtype_unsupported", "bfloat16")]
    # It can be held in memory, and nothing else.
    probe = make_probe(
        changed={
            "*/bfloat16": REFUSED,
            "create/bfloat16": ("works", None),
            "copy/bfloat16": ("works", None),
        }
    )
    assert verdict(probe, "bfloat16").reason.code == "dtype_only_stored"
    assert list_surprises(make_probe(torch="2.2.2", changed={"*/bfloat16": REFUSED})) == []


def with_speeds(device, times, **values):
    speed = OperationSpeed("matmul", "1536×1536", {"float32": (1e-3, 1.1e-3), **times})
    return make_probe(device, speeds=(speed,), **values)


def test_slowness_counts_on_a_gpu_and_only_if_it_is_much():
    slow = {"float16": (9e-3, 9.1e-3)}
    assert list_surprises(with_speeds("mps", slow)) == [("dtype_slow", "float16")]
    assert list_surprises(with_speeds("mps", {"float16": (3e-3, 3e-3)})) == []
    assert list_surprises(with_speeds("cpu", slow)) == []
    assert list_surprises(with_speeds("mps", {"int64": (9e-3, 9e-3)})) == []  # nobody expects it
    assert count_failures(with_speeds("mps", slow)) == {}


def test_on_a_busy_computer_slowness_is_no_verdict():
    slow = {"float16": (9e-3, 9.1e-3)}
    loaded = with_speeds("mps", slow, load=9.0, cores=8)
    unsteady = with_speeds("mps", {"float16": (9e-3, 30e-3)})
    for probe in (loaded, unsteady):
        assert list_surprises(probe) == []
        assert verdict(probe, "float16").is_speed_rough
        assert verdict(probe, "float16").speed == pytest.approx(1 / 9)
    assert not verdict(with_speeds("mps", slow), "float16").is_speed_rough
    assert not verdict(with_speeds("mps", {}, load=None), "float32").is_speed_rough


def test_torch_compile_is_no_verdict_on_a_dtype_but_wrong_results_are_told():
    plain = make_probe()
    added = (Cell("torch.compile", "float32", "unsupported", "InductorError: x"),)
    probe = replace(plain, cells=plain.cells + added)
    assert (verdict(probe, "float32").support, list_surprises(probe)) == ("supported", [])
    wrong = replace(plain, cells=(*plain.cells, Cell("torch.compile", "float32", "inaccurate")))
    assert list_surprises(wrong) == [("dtype_wrong", "float32")]
    assert find_safe(wrong)["float32"]


def test_autocast_came_later_than_the_dtype():
    changed = {"autocast/float16": REFUSED}
    assert list_surprises(make_probe(torch="2.4.1", changed=changed)) == []
    assert list_surprises(make_probe(torch="2.5.1", changed=changed)) == [
        ("dtype_refused", "float16")
    ]


def test_what_was_not_measured_is_not_judged():
    probe = make_probe(changed={"*/int8": ("unknown", None), "sort/int16": ("no_memory", "x")})
    assert verdict(probe, "int8").support == "unknown"
    assert (verdict(probe, "int16").support, verdict(probe, "int16").reason.code) == (
        "supported",
        "dtype_not_measured",
    )
    assert list_surprises(probe) == []
    assert "int8" not in find_safe(probe)


def test_safe_is_what_computes_and_is_right():
    changed = {
        "sort/float16": ("inaccurate", None),
        "sort/bfloat16": REFUSED,
        "add/uint16": REFUSED,
        "cumsum/int8": ("fallback", "x"),
    }
    safe = find_safe(make_probe(changed=changed))
    assert [dtype for dtype, is_safe in safe.items() if not is_safe] == [
        "float16", "float64", "uint16", "float8_e4m3fn", "float8_e5m2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "device", "torch", "system", "expected"),
    [
        ("bfloat16", "mps", "2.2.2", "14.0", "unsupported"), ("bfloat16", "mps", "2.3.0", "13.6", "unsupported"),
        ("bfloat16", "mps", "2.3.0", "14.0", "supported"), ("bfloat16", "mps", "2.9.0", None, "supported"),
        ("bfloat16", "mps", None, None, None), ("uint16", "mps", "2.8.0", "14.0", "unsupported"),
        ("uint16", "mps", "2.9.0", "14.0", "limited"), ("float8_e4m3fn", "mps", "2.14.1", "15.0", "unsupported"),
        ("float8_e4m3fn", "mps", "2.15.0", "15.0", "limited"), ("float8_e5m2", "mps", "2.15.0", "15.0", "unsupported"),
        ("float64", "mps", "2.15.0", "15.0", "unsupported"), ("float64", "cpu", "2.15.0", None, "supported"),
        ("float16", "cuda", "2.13", None, "supported"), ("float16", "cpu", "2.13", None, "limited"),
        ("int64", "cuda", "2.13", None, "limited"), ("float8_e5m2", "cpu", "2.13", None, "unsupported"),
    ],
)  # fmt: skip
def test_what_is_to_be_expected(dtype, device, torch, system, expected):
    assert expect(dtype, device, torch, system) == expected


def test_nothing_at_all():
    probe = make_probe(cells=(), checks=())
    assert (judge_dtypes(probe), find_surprises(probe), find_safe(probe)) == ((), (), {})
    probe = make_probe(cells=(Cell("add", "float8_new", "works"),), checks=())
    assert [v.support for v in judge_dtypes(probe)] == ["supported"]


NO_BFLOAT16 = ("unsupported", "TypeError: BFloat16 is not supported on MPS")


def test_changes_after_an_upgrade():
    before = make_probe(
        torch="2.2.2",
        system="14.1",
        changed={"*/bfloat16": NO_BFLOAT16},
        wrong={"adam": Check("adam", "wrong", "x")},
    )
    changes = find_changes(before, make_probe(changed={"sort/int8": ("inaccurate", None)}))
    assert changes[:4] == (
        Change("subject", "torch", "2.2.2", "2.13.0"), Change("subject", "system", "14.1", "15.1"),
        Change("check", "adam", "wrong", "right"), Change("dtype", "bfloat16", "unsupported", "supported"),
    )  # fmt: skip
    assert Change("dtype", "int8", "supported", "limited") in changes
    assert Change("cell", "int8 sort", "works", "inaccurate") in changes
    assert Change("cell", "bfloat16 matmul", "unsupported", "works") in changes


def test_the_same_result_has_no_changes_and_other_times_are_none():
    assert find_changes(make_probe(), make_probe(seconds=9.0, time=3.0)) == ()


def test_not_measured_is_no_change():
    holes = make_probe(
        changed={"*/int8": ("unknown", None)}, wrong={"adam": Check("adam", "no_memory")}
    )
    assert find_changes(holes, make_probe()) == ()
    assert find_changes(make_probe(), holes) == ()
    assert find_changes(make_probe(cells=(), checks=()), make_probe()) == ()
