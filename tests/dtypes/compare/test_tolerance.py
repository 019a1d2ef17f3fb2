"""What counts as rounding, on the CPU: which errors are explained, and by how much they may be off."""

import math

import pytest

pytestmark = [pytest.mark.xdist_group("torch"), pytest.mark.starts_processes]


@pytest.fixture
def tolerance(torch):
    from mpsbar.dtypes.compare import tolerance

    return tolerance


@pytest.fixture
def run(torch, tolerance):
    """What a function returns in runs with random errors, and the last of their Noises."""

    def disturb(function, dtype, runs=tolerance.RUNS):
        results = []
        for seed in range(runs):
            with torch.no_grad(), tolerance.Noise(dtype, seed) as noise:
                results.append(function())
        return results, noise

    return disturb


def draw(torch, *shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# --- how many numbers are summed
@pytest.mark.parametrize(
    ("name", "shapes", "result", "count"),
    [
        ("mm", [(3, 70), (70, 5)], (3, 5), 70),
        ("addmm", [(5,), (3, 70), (70, 5)], (3, 5), 70),  # the first is the bias
        ("baddbmm", [(2, 3, 5), (2, 3, 70), (2, 70, 5)], (2, 3, 5), 70),
        ("convolution", [(1, 4, 9, 9), (2, 4, 3, 3)], (1, 2, 7, 7), 36),
        # Backwards, and transposed, a number is a sum over the output's channels.
        ("convolution", [(1, 4, 9, 9), (80, 1, 3, 3)], (1, 80, 7, 7), 720),
        ("_softmax", [(4, 90)], (4, 90), 90),
        ("cumsum", [(90, 4)], (90, 4), 90),
        ("native_layer_norm", [(4, 90), (90,)], (4, 90), 90),
        ("native_batch_norm", [(64, 8), (8,)], (64, 8), 64),
        ("sum", [(4, 90)], (4,), 90),
        ("mean", [(4, 90)], (), 360),
        ("add", [(4, 90), (4, 90)], (4, 90), 1),
        ("sum", [(0,)], (0,), 1),
    ],
)
def test_how_many_numbers_each_of_the_result_is_a_sum_of(
    torch, tolerance, name, shapes, result, count
):
    args = [torch.empty(shape) for shape in shapes]
    assert tolerance.count_summed(name, args, torch.empty(result)) == count


def test_what_is_made_of_nothing_is_no_sum(torch, tolerance):
    assert tolerance.count_summed("rand", (3, 4), torch.empty(3, 4)) == 1


# --- random errors
def test_errors_are_as_large_as_a_few_roundings_and_others_with_another_seed(torch, tolerance):
    x = draw(torch, 1000).abs() + 1
    seen = []
    for seed in (1, 1, 2):
        with tolerance.Noise(torch.float16, seed):
            seen.append(x * 1)
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    off = ((seen[0] - x) / x).abs().max().item() / torch.finfo(torch.float16).eps
    # At most four roundings of its input and four of its result, which is that of a disturbed input.
    assert 4 < off <= 8.1


def test_a_sum_may_be_further_off_the_more_it_has_to_add(torch, tolerance, run):
    def measure(n):
        a, b = draw(torch, 50, n), draw(torch, n, 50, seed=1)
        right = a @ b
        results, noise = run(lambda: a @ b, torch.bfloat16)
        assert noise.longest_sum == n
        usual = right.square().mean().sqrt()
        return max(((result - right).abs().mean() / usual).item() for result in results)

    assert measure(4096) > 4 * measure(16)


@pytest.mark.parametrize(
    "move",
    ["x[2:5]", "x.t()", "torch.cat([x, x])", "x.clone()", "-x", "x.abs()", "x.clamp(-1, 1)",
     "torch.where(x > 0, x, 0)", "torch.relu(x)", "x.gather(0, x.argsort(0))", "x.amax(0)"],
)  # fmt: skip
def test_what_only_moves_chooses_or_compares_numbers_errs_in_none(torch, run, move):
    def act():
        return eval(move, {"torch": torch, "x": x})

    x = draw(torch, 7, 7)
    right = act()
    assert all(torch.equal(result, right) for result in run(act, torch.float16)[0])


def test_the_inputs_of_who_is_called_stay_as_they_were(torch, run):
    x, y = draw(torch, 9, 9), draw(torch, 9, 9, seed=1)
    before = x.clone(), y.clone()
    run(lambda: torch.nn.functional.linear(x, y) * x + y.sum(), torch.float16)
    assert torch.equal(x, before[0]) and torch.equal(y, before[1])


def test_whole_numbers_and_nothing_are_left_alone(torch, run):
    whole, nothing = torch.arange(9), torch.empty(0, 3)
    assert all(
        torch.equal(result, whole + 1) for result in run(lambda: whole + 1, torch.float16)[0]
    )
    assert run(lambda: nothing * 2, torch.float16)[0][0].shape == (0, 3)


def test_an_infinity_stays_one(torch, run):
    x = torch.tensor([math.inf, -math.inf, 1.0])
    for result in run(lambda: x * 2, torch.float16)[0]:
        assert torch.equal(torch.isinf(result), torch.isinf(x))
        assert not torch.isnan(result).any()


@pytest.mark.parametrize(
    ("act", "jumps"),
    [("x.argmax()", True), ("x.round_()", True), ("x > 0", True), ("x.exp()", False), ("x[0]", False)],
)  # fmt: skip
def test_operations_whose_results_jump_are_noticed(torch, run, act, jumps):
    _, noise = run(lambda: eval(act, {"x": draw(torch, 9)}), torch.float16, runs=1)
    assert noise.jumps is jumps


# --- without noise: only what is clearly within rounding is explained
@pytest.mark.parametrize(("roundings", "is_explained"), [(0, True), (1, True), (3.9, True), (4.5, False), (100, False)])  # fmt: skip
def test_two_roundings_of_the_number_and_of_the_usual_size_are_plainly_right(
    torch, tolerance, roundings, is_explained
):
    right = torch.ones(64, dtype=torch.float64)
    got = right.clone()
    got[7] += roundings * torch.finfo(torch.float16).eps  # of a number that has the usual size
    found = tolerance.measure("output", got, right, torch.float16)
    assert (found.label, found.is_explained, found.nonfinite) == ("output", is_explained, None)
    assert found.share == (0.0 if is_explained else 1.0)
    assert found.largest == pytest.approx(roundings * torch.finfo(torch.float16).eps)
    assert found.typical == 0.0


def test_another_shape_is_never_explained(torch, tolerance):
    found = tolerance.measure("output", torch.ones(3), torch.ones(3, 1), torch.float32)
    assert (found.is_explained, found.largest, found.share) == (False, math.inf, 1.0)


def test_whole_numbers_are_right_or_wrong(torch, tolerance):
    right = torch.tensor([1, 2, 3, 4])
    found = tolerance.measure("output", torch.tensor([1, 2, 3, 5]), right, torch.float32)
    assert (found.is_explained, found.share) == (False, 0.25)
    assert tolerance.measure("output", right, right, torch.float32).is_explained
    none = torch.empty(0, dtype=torch.int64)
    assert tolerance.measure("output", none, none, torch.float32).is_explained


def test_no_numbers_cannot_be_wrong(torch, tolerance):
    assert tolerance.measure("output", torch.empty(0), torch.empty(0), torch.float32).is_explained


def test_complex_numbers_are_compared_by_their_distance(torch, tolerance):
    right = torch.tensor([3 + 4j, 3 - 4j])
    found = tolerance.measure("output", right + 5j, right, torch.float32)
    assert (found.largest, found.is_explained) == (pytest.approx(1.0), False)


@pytest.mark.parametrize(
    ("got", "right", "missing"),
    [
        (math.nan, 1.0, "NaN"),
        (math.inf, 1.0, "Inf"),
        (-math.inf, 1.0, "Inf"),
        (math.nan, math.nan, None),
        (math.inf, math.inf, None),
        (
            1.0,
            math.inf,
            None,
        ),  # a range of the right run that was too small is no fault of this one
    ],
)
def test_a_number_that_is_none_is_named_only_where_one_should_be(
    torch, tolerance, got, right, missing
):
    got, right = torch.tensor([1.0, got]), torch.tensor([1.0, right])
    errors, usual, found = tolerance.find_errors(got, right)
    assert found == missing
    measured = tolerance.measure("output", got, right, torch.float32)
    assert (measured.nonfinite, measured.is_explained) == (missing, missing is None)
    if missing is None:
        assert errors.tolist() == [0.0, 0.0]
        assert math.isfinite(usual)


def test_a_device_that_returns_both_names_the_worse(torch, tolerance):
    found = tolerance.find_errors(torch.tensor([math.inf, math.nan]), torch.ones(2))
    assert found[2] == "NaN"


def test_errors_are_in_units_of_the_usual_size(torch, tolerance):
    errors, usual, _ = tolerance.find_errors(torch.tensor([3.0, 5.0]), torch.tensor([3.0, 4.0]))
    assert (errors.tolist(), usual) == ([0.0, 1.0], pytest.approx(math.sqrt(12.5)))
    assert tolerance.find_errors(torch.zeros(2), torch.zeros(2))[1] > 0  # nothing divides by zero


# --- with noise: what the runs that were given errors differ by
def test_what_rounding_does_is_explained_and_ten_times_as_much_is_not(torch, tolerance, run):
    a, b = draw(torch, 40, 300), draw(torch, 300, 40, seed=1)
    right = a @ b
    rounded = (a.bfloat16() @ b.bfloat16()).float()  # a real computation in that dtype
    disturbed, noise = run(lambda: a @ b, torch.bfloat16)
    found = tolerance.judge("output", rounded, right, disturbed, noise)
    assert (found.is_explained, found.share, found.longest_sum) == (True, 0.0, 300)
    assert 0 < found.largest < found.tolerance
    wrong = right + 10 * found.tolerance * right.square().mean().sqrt()
    found = tolerance.judge("output", wrong, right, disturbed, noise)
    assert (found.is_explained, found.share) == (False, 1.0)
    assert found.largest > found.tolerance


def test_one_wrong_number_among_many_is_found(torch, tolerance, run):
    x = draw(torch, 1000)
    right = x.exp()
    disturbed, noise = run(x.exp, torch.float16)
    got = right.clone()
    got[500] *= 1.5
    found = tolerance.judge("output", got, right, disturbed, noise)
    assert (found.is_explained, found.share) == (False, pytest.approx(0.001))
    assert found.largest > found.tolerance > 0


def test_numbers_that_cancel_out_may_be_as_far_off_as_their_parts_are_large(torch, tolerance, run):
    x = 1000 + draw(torch, 100)
    y = x.flip(0)
    right = x - y
    got = x.bfloat16().float() - y.bfloat16().float()
    assert not tolerance.measure("output", got, right, torch.bfloat16).is_explained
    disturbed, noise = run(lambda: x - y, torch.bfloat16)
    assert tolerance.judge("output", got, right, disturbed, noise).is_explained


def test_where_results_jump_any_number_may_move_as_far_as_the_farthest(torch, tolerance, run):
    x = torch.full((100,), 0.1)
    x[3] = 0.5001  # a hair from where it is rounded the other way
    right, got = x.round(), x.round()
    got[70] = 1.0  # another number jumped
    disturbed, noise = run(x.mul(1).add(0).round, torch.bfloat16)
    disturbed[0] = right.clone()
    disturbed[0][3] = 0.0
    assert noise.jumps
    assert tolerance.judge("output", got, right, disturbed, noise).is_explained
    # Told that nothing in this module jumps, it is a fault.
    assert not tolerance.judge("output", got, right, disturbed, noise, jumps=False).is_explained


def test_a_run_that_left_the_range_of_numbers_explains_any_number(torch, tolerance, run):
    right = torch.ones(4)
    _, noise = run(lambda: right * 1, torch.float16, runs=1)
    lost = torch.tensor([math.nan, 1.0, 1.0, 1.0])
    assert tolerance.judge("output", right + 1e6, right, [lost], noise).is_explained
    assert not tolerance.judge("output", right + 1e6, right, [right], noise).is_explained


def test_a_nan_of_the_device_is_never_explained(torch, tolerance, run):
    right = torch.ones(4)
    disturbed, noise = run(lambda: right * 1, torch.float16)
    got = torch.tensor([1.0, math.nan, 1.0, 1.0])
    found = tolerance.judge("output", got, right, disturbed, noise)
    assert (found.nonfinite, found.is_explained) == ("NaN", False)


def test_whole_numbers_are_wrong_only_where_all_disturbed_runs_agree(torch, tolerance, run):
    right = torch.tensor([5, 6, 7])
    _, noise = run(lambda: right + 0, torch.float16, runs=1)
    unsure = torch.tensor([5, 9, 7])  # with random errors another index is the largest
    for got, share in (([5, 9, 7], 0.0), ([5, 1, 7], 0.0), ([5, 6, 8], 1 / 3)):
        found = tolerance.judge("output", torch.tensor(got), right, [right, unsure], noise)
        assert (found.share, found.is_explained) == (pytest.approx(share), share == 0)
    assert not tolerance.judge("output", unsure, right, [right], noise).is_explained
    other_shape = torch.tensor([5])
    assert tolerance.judge("output", unsure, right, [other_shape], noise).is_explained
