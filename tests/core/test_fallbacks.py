"""torch's own log of what fell back to the CPU, and what several processes counted."""

from dataclasses import asdict

import pytest

from mpsbar.core.fallbacks import (
    FallbackOperation,
    Fallbacks,
    complete_by_profile,
    merge_operations,
    parse_fallbacks,
    parse_operations,
    parse_profile,
)


def make_log(*rows, total="14 Runs, 42.10 ms, 1.25 MiB"):
    """As torch's MPSProfiler prints it: the widths are those of its format strings."""
    title = f" CPU Fallback Profiling: Total {total} Copies "
    heads = ("ID", "#Runs", "Mean CPU(ms)", "Total CPU(ms)", "Copy Overhead")
    lines = [
        "", f"{title:-^150}",
        "|".join(f"{head:^{width}}" for head, width in zip(heads, (5, 7, 14, 15, 15), strict=True))
        + "| Operation Name",
        "-" * 150,
    ]  # fmt: skip
    lines += [
        f"{number:^6}{runs:^8}{mean:^15}{whole:^16}{copied:^16} {name}"
        for number, runs, mean, whole, copied, name in rows
    ]
    return "\n".join(lines) + "\n"


def test_the_table_of_torch_is_read():
    log = make_log(
        (1, 12, "3.500", "42.000", "1.25 MiB", "aten::linalg_svd"),
        (2, 2, "0.050", "0.100", "640 bytes", "aten::lgamma"),
    )
    found, others, is_profiled = parse_profile(log)
    assert found == [
        FallbackOperation("aten::linalg_svd", 12, "", 0.042, 1310720),
        FallbackOperation("aten::lgamma", 2, "", 0.0001, 640),
    ]
    assert (others, is_profiled) == ([], True)


def test_what_a_program_prints_last_is_not_lost():
    log = "Exception ignored in: <x>\n" + make_log((1, 1, "1", "1", "2.00 KB", "aten::x")) + "bye\n"
    found, others, is_profiled = parse_profile(log)
    assert [each.copied for each in found] == [2048]
    assert (others, is_profiled) == (["Exception ignored in: <x>", "bye"], True)


def test_nothing_logged_is_an_answer_and_no_log_is_none():
    assert parse_profile("There are no CPU Fallbacks logged for profiling\n") == ([], [], True)
    assert parse_profile("") == ([], [], False)
    assert parse_profile("  1  2  3  4  5 MB aten::x\n")[0] == []  # no table began


def test_a_log_counts_what_warnings_missed():
    """The warning names the overload, the log does not; numbers alone are computed on purpose."""
    counted = [FallbackOperation("aten::sort.stable", 3, "a.py:1"), FallbackOperation("aten::y", 5)]
    logged = [
        FallbackOperation("aten::sort", 9, "", 0.5, 100), FallbackOperation("aten::z", 1, "", 0.1, 8),
        FallbackOperation("scalar_add", 700, "", 0.1, 8),
    ]  # fmt: skip
    assert complete_by_profile(counted, logged) == [
        FallbackOperation("aten::sort.stable", 9, "a.py:1", 0.5, 100), FallbackOperation("aten::y", 5),
        FallbackOperation("aten::z", 1, "", 0.1, 8),
    ]  # fmt: skip


def test_overloads_of_one_operation_are_not_counted_twice():
    """torch's log has one row for all of them, the warnings one name for each."""
    counted = [
        FallbackOperation("aten::sort.stable", 3, "a.py:1"),
        FallbackOperation("aten::sort.values", 5, "a.py:2"),
    ]
    logged = [FallbackOperation("aten::sort", 8, "", 0.5, 100)]
    assert complete_by_profile(counted, logged) == [
        FallbackOperation("aten::sort", 8, "a.py:1", 0.5, 100)
    ]
    assert complete_by_profile(counted, []) == counted


def test_several_processes_are_added_up():
    merged = merge_operations(
        [FallbackOperation("a", 1, "x:1", 0.5, 10), FallbackOperation("b", 3), FallbackOperation("a", 4, "y:2", 0.5),
         FallbackOperation("b", 1, "z:3", 2.0, 7)]
    )  # fmt: skip
    assert merged == (
        FallbackOperation("a", 5, "x:1", 1.0, 10),
        FallbackOperation("b", 4, "z:3", 2.0, 7),
    )


def test_what_a_worker_left_is_not_trusted():
    given = [
        ["aten::a", 3, "/w/a.py:1", 0.5, 4096], ["aten::b\x1b[2J", 1, "a", -1, True], ["c", 1, "d", float("inf"), 1e99],
        ["no", -1, ""], ["no", 1.5, ""], ["no", 1], [7, 1, ""], "no", None, {}, ["no", 1, "", 0, 0, 0],
    ]  # fmt: skip
    assert parse_operations(given) == [
        FallbackOperation("aten::a", 3, "/w/a.py:1", 0.5, 4096),
        FallbackOperation("aten::b�[2J", 1, "a"),
        FallbackOperation("c", 1, "d"),
    ]
    assert parse_operations({"a": 1}) == parse_operations("text") == []
    assert len(parse_operations([["a", 1, ""]] * 1000)) == 100


@pytest.mark.parametrize(
    "odd", [None, 7, [], {}, {"operations": 7}, {"operations": [{}, 7, {"name": "a"}]}]
)
def test_a_record_that_is_none(odd):
    assert parse_fallbacks(odd) is None


def test_a_record_of_the_history():
    found = Fallbacks(
        (FallbackOperation("aten::a", 3, "/w/a.py:1", 0.5, 4096),), "2.13.0", True, False, False
    )
    assert parse_fallbacks(asdict(found)) == found
    assert parse_fallbacks(asdict(Fallbacks())) is None  # nothing to show
