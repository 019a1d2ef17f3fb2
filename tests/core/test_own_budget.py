"""mpsbar's own budget, by a clock of the test's own."""

from mpsbar.core.own_budget import MAX_FACTOR, MEMORY, OwnBudget, OwnUse


def test_within_the_budget_nothing_changes():
    budget = OwnBudget()
    for minute in range(10):
        assert not budget.update(OwnUse(minute * 1.0, 50_000_000), minute * 60.0)
    assert (budget.factor, budget.reason) == (1.0, None)


def test_over_it_the_refresh_slows_down_and_the_reason_is_said():
    budget = OwnBudget()
    budget.update(OwnUse(0, None), 0)
    assert not budget.update(OwnUse(50, None), 30)  # half a minute is no evidence
    assert budget.update(OwnUse(30, None), 60)
    assert budget.factor == 2
    assert budget.reason == (
        "mpsbar used 50% of a core in the last minute, more than its 5%: it refreshes 2 times less often"
    )
    for minute in range(2, 9):
        budget.update(OwnUse(30.0 * minute, None), minute * 60)
    assert budget.factor == MAX_FACTOR


def test_it_returns_step_by_step_once_there_is_room_for_twice_as_often():
    budget = OwnBudget()
    for minute in range(4):
        budget.update(OwnUse(30.0 * minute, None), minute * 60)
    assert budget.factor == 8
    used = 90.0
    for minute, factor in ((4, 4), (5, 2), (6, 1)):
        used += 0.6
        assert budget.update(OwnUse(used, None), minute * 60)
        assert budget.factor == factor
    assert budget.reason is None


def test_too_much_memory_slows_it_down_too_and_is_said():
    budget = OwnBudget()
    budget.update(OwnUse(0, MEMORY + 1), 0)
    assert budget.update(OwnUse(0, MEMORY + 1), 60)
    assert budget.factor == 2
    assert budget.reason == (
        "mpsbar uses 400 MB of memory, more than its 400 MB: it refreshes 2 times less often; start it again"
    )
    for minute in range(2, 9):
        budget.update(OwnUse(0, MEMORY + 1), minute * 60)
    assert budget.factor == MAX_FACTOR
    for minute in range(9, 12):
        assert budget.update(OwnUse(0, MEMORY), minute * 60)
    assert (budget.factor, budget.reason) == (1, None)


def test_too_much_cpu_does_not_hide_too_much_memory():
    budget = OwnBudget()
    budget.update(OwnUse(0, 5 * MEMORY), 0)
    assert budget.update(OwnUse(30, 5 * MEMORY), 60)
    assert budget.factor == 2
    assert budget.reason == (
        "mpsbar used 50% of a core in the last minute, more than its 5%, and uses 2000 MB of memory,"
        " more than its 400 MB: it refreshes 2 times less often; start it again"
    )
