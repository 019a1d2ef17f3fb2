"""Shares of the GPU's time from counters that start, stop and lie."""

import pytest

from mpsbar.system.platform import GpuClient
from mpsbar.system.scan import GpuShares

SECOND = 10**9


def client(pid, seconds):
    return GpuClient(pid, None if seconds is None else int(seconds * SECOND))


def shares(*readings):
    """The shares after the last of (time, clients)."""
    shares = GpuShares()
    for now, clients in readings:
        result = shares.update(clients, now)
    return result


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([(0, {1: client(7, 5)})], {}),  # one reading tells nothing
        ([(0, {1: client(7, 5)}), (2, {1: client(7, 6)})], {7: 50.0}),
        # two clients of one process, one of another
        ([(0, {1: client(7, 0), 2: client(7, 0), 3: client(8, 0)}),
          (10, {1: client(7, 1), 2: client(7, 2), 3: client(8, 0)})], {7: 30.0, 8: 0.0}),
        # more than is possible: they ran side by side
        ([(0, {1: client(7, 0), 2: client(7, 0)}), (1, {1: client(7, 1), 2: client(7, 1)})], {7: 100.0}),
        # a new client has no past; its process's other client has
        ([(0, {1: client(7, 0)}), (1, {1: client(7, 0.25), 2: client(7, 100)})], {7: 25.0}),
        # a closed client takes its share along
        ([(0, {1: client(7, 0), 2: client(7, 50)}), (1, {1: client(7, 0.5)})], {7: 50.0}),
        # a counter that went back, one that tells nothing, a number used by another process
        ([(0, {1: client(7, 9)}), (1, {1: client(7, 1)})], {}),
        ([(0, {1: client(7, None)}), (1, {1: client(7, 1)})], {}),
        ([(0, {1: client(7, 1)}), (1, {1: client(7, None)})], {}),
        ([(0, {1: client(7, 1)}), (1, {1: client(8, 2)})], {}),
        # unknown forgets what was, so that no old counter is compared with a new one
        ([(0, {1: client(7, 0)}), (1, None), (2, {1: client(7, 1)})], {}),
        ([(0, None)], {}),
    ],
)  # fmt: skip
def test_shares(readings, expected):
    assert shares(*readings) == pytest.approx(expected)


def test_two_looks_in_a_row_keep_the_share():
    shares = GpuShares()
    shares.update({1: client(7, 0)}, 0.0)
    assert shares.update({1: client(7, 1)}, 2.0) == {7: 50.0}
    assert shares.update({1: client(7, 1)}, 2.01) == {7: 50.0}
    assert shares.update({1: client(7, 1)}, 4.0) == {7: 0.0}
