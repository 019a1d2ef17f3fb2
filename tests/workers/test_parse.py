"""Numbers that agents send: bounded when they are parsed, so that sums of them fit everywhere."""

import pytest

from mpsbar.workers.parse import parse_count, parse_worker

BAD = [-1, 2**53 + 1, 2**63, 10**400, 0.5, 1e308, float("nan"), True, "7", None, [7]]


@pytest.mark.parametrize("value", [0, 7, 2**53])
def test_a_number_of_bytes(value):
    assert parse_count(value) == value


@pytest.mark.parametrize("value", BAD)
def test_no_number_of_bytes(value):
    assert parse_count(value) is None
    counters = {"framework": "torch", "state": "in use", "allocated": value, "reserved": 5}
    worker = parse_worker(7, None, {"backends": {"mps": counters}}, "live", 0.0)
    assert (worker.backends[0].allocated, worker.backends[0].reserved) == (None, 5)
