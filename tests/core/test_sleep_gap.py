"""Two times between which the computer slept, or its clock was set."""

import pytest

from mpsbar.core.sleep_gap import GAP, has_jumped


@pytest.mark.parametrize(
    ("now", "jumped"),
    [(100.0, False), (100.0 + GAP, False), (100.1 + GAP, True), (99.9, True)],
)
def test_a_gap_or_a_step_back_is_a_jump(now, jumped):
    assert has_jumped(100.0, now) == jumped
