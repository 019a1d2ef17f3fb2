"""Sizes as people type them, and limits as valid pairs of torch's watermarks."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mpsbar.agent.conventions import MIN_LIMIT
from mpsbar.core.errors import UserError
from mpsbar.core.limits import (
    HEAP,
    find_watermarks,
    limit_environment,
    parse_limit,
    parse_size,
)
from mpsbar.core.torch_facts import HIGH, LOW, judge_settings

GB = 1 << 30
BUDGETS = some.integers(1 * GB, 512 * GB)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("24GB", 24 * GB),
        ("24 gb", 24 * GB),
        ("1.5G", GB * 3 // 2),
        ("1500MB", 1500 << 20),
        ("512MiB", 512 << 20),
        (" 1T ", 1 << 40),
        ("24", None),
        ("off", None),
        ("-1GB", None),
        ("0,8GB", None),
        ("1e9GB", None),
        ("GB", None),
        ("٣GB", None),  # digits, but not ours
    ],
)
def test_a_size_needs_a_unit(text, size):
    assert parse_size(text) == size


def test_a_limit_is_a_size_or_a_part_of_the_budget():
    assert parse_limit("75%", 32 * GB) == 24 * GB
    assert parse_limit("24GB", None) == 24 * GB
    for text, budget, complaint in (
        ("75%", None, "budget is not known"),
        ("24", None, "not a size: '24'"),
        ("1MB", None, "at least 64 MB"),
        ("0%", 8 * GB, "at least 64 MB"),
        ("9999999T", None, "at least 64 MB"),
        ("17GB", 8 * GB, "more than twice Metal's budget of 8.0 GB"),
    ):
        with pytest.raises(UserError, match=complaint):
            parse_limit(text, budget)


@given(some.floats(0.001, 2.0), BUDGETS)
def test_watermarks_are_a_valid_pair_and_never_above_the_limit(part, budget):
    limit = max(MIN_LIMIT, int(part * budget))
    high, low = map(float, find_watermarks(limit, budget))
    assert 0 < low <= high <= 2
    assert high * budget <= limit + 1
    # A heap that is made just below the low watermark ends below the limit, where there is room.
    if limit >= 2 * HEAP:
        assert low * budget + HEAP <= limit + 1
    reasons = judge_settings({HIGH: str(high), LOW: str(low)}, "2.13.0")
    assert [reason.code for reason in reasons] == ["watermarks_set"]


def test_what_the_person_has_set_stays_and_is_named():
    limited = limit_environment({HIGH: "0.8"}, 4 * GB, 8 * GB)
    assert limited.kept == (HIGH,)
    assert dict(limited.variables) == {"MPSBAR_LIMIT": str(4 * GB)}
    limited = limit_environment({}, 4 * GB, 8 * GB)
    assert dict(limited.variables) == {
        "MPSBAR_LIMIT": str(4 * GB), HIGH: "0.500000", LOW: "0.375000",
    }  # fmt: skip
    limited = limit_environment({}, 4 * GB, None)
    assert not limited.has_budget and HIGH not in limited.variables
