"""What changed between two results, and what only looks so."""

from probe_samples import make_probe

from mpsbar.core.dtype_results import Check
from mpsbar.dtypes.verdicts import Change, find_changes

REFUSED = ("unsupported", "TypeError: BFloat16 is not supported on MPS")


def test_after_an_upgrade():
    before = make_probe(
        torch="2.2.2",
        system="14.1",
        changed={"*/bfloat16": REFUSED},
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


def test_the_same_has_no_changes_and_times_are_none():
    assert find_changes(make_probe(), make_probe(seconds=9.0, time=3.0)) == ()


def test_not_measured_is_no_change():
    holes = make_probe(
        changed={"*/int8": ("unknown", None)}, wrong={"adam": Check("adam", "no_memory")}
    )
    assert find_changes(holes, make_probe()) == ()
    assert find_changes(make_probe(), holes) == ()
    assert find_changes(make_probe(cells=(), checks=()), make_probe()) == ()
