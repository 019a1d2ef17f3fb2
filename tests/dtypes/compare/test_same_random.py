"""The same random numbers whatever the dtype: drawn in float32 on the CPU's generator, then converted."""

import pytest

pytestmark = [pytest.mark.xdist_group("torch"), pytest.mark.starts_processes]


@pytest.fixture
def draw(torch):
    """What a function returns in a dtype, under SameRandom and with one seed."""
    from mpsbar.dtypes.compare.same_random import SameRandom

    def run(function, dtype):
        torch.manual_seed(7)
        with SameRandom():
            return function(dtype)

    return run


FUNCTIONS = {
    "rand": lambda torch, dtype: torch.rand(50, dtype=dtype),
    "randn_like": lambda torch, dtype: torch.randn_like(torch.ones(50, dtype=dtype)),
    "rand_like": lambda torch, dtype: torch.rand_like(torch.ones(50), dtype=dtype),
    "normal_": lambda torch, dtype: torch.empty(50, dtype=dtype).normal_(1, 2),
    "uniform_": lambda torch, dtype: torch.empty(50, dtype=dtype).uniform_(),
    "exponential_": lambda torch, dtype: torch.empty(50, dtype=dtype).exponential_(),
    "bernoulli": lambda torch, dtype: torch.full((50,), 0.5, dtype=dtype).bernoulli(),
    "dropout": lambda torch, dtype: torch.nn.functional.dropout(torch.ones(50, dtype=dtype), 0.5),
    "dropout2d": lambda torch, dtype: torch.nn.functional.dropout2d(
        torch.ones(2, 25, 2, 2, dtype=dtype), 0.5
    ),
    "alpha_dropout": lambda torch, dtype: torch.nn.functional.alpha_dropout(
        torch.ones(50, dtype=dtype), 0.5, training=True
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float16_and_float64_get_the_numbers_of_float32(torch, draw, name):
    function = lambda dtype: FUNCTIONS[name](torch, dtype)  # noqa: E731
    usual = draw(function, torch.float32)
    assert usual.unique().numel() > 1  # they are random at all
    for dtype in (torch.float16, torch.float64):
        drawn = draw(function, dtype)
        assert drawn.dtype == dtype
        assert drawn.float().allclose(usual, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["randint", "randperm", "multinomial"])
def test_whole_numbers_keep_their_dtype(torch, draw, name):
    functions = {
        "randint": lambda dtype: torch.randint(0, 100, (50,), dtype=dtype),
        "randperm": lambda dtype: torch.randperm(50, dtype=dtype),
        "multinomial": lambda _: torch.multinomial(torch.ones(50), 50),
    }
    first, second = draw(functions[name], torch.int64), draw(functions[name], torch.int64)
    assert first.dtype == torch.int64
    assert first.equal(second)
    assert first.unique().numel() > 10


def test_whole_channels_are_dropped_by_dropout2d(torch, draw):
    dropped = draw(lambda dtype: FUNCTIONS["dropout2d"](torch, dtype), torch.float32)
    kinds = {tuple(channel.unique().tolist()) for channel in dropped.flatten(0, 1)}
    assert kinds == {(0.0,), (2.0,)}


def test_in_evaluation_nothing_is_dropped_and_in_place_stays_in_place(torch, draw):
    ones = torch.ones(50)
    assert draw(lambda _: torch.nn.functional.dropout(ones, 0.5, training=False), None) is ones
    result = draw(lambda _: torch.nn.functional.dropout(ones, 0.5, inplace=True), None)
    assert result is ones and 0 < int((ones == 0).sum()) < 50
    everything = draw(lambda _: torch.nn.functional.dropout(torch.ones(5), 1.0), None)
    assert everything.tolist() == [0] * 5


def test_the_dropout_of_attention_is_off(torch, draw):
    query = torch.randn(1, 1, 4, 8)
    attend = torch.nn.functional.scaled_dot_product_attention
    with_dropout = draw(lambda _: attend(query, query, query, dropout_p=0.9), None)
    positional = draw(lambda _: attend(query, query, query, None, 0.9), None)
    assert with_dropout.equal(attend(query, query, query))
    assert positional.equal(attend(query, query, query))


def test_gradients_are_as_asked(torch, draw):
    drawn = draw(lambda _: torch.rand_like(torch.ones(3), requires_grad=True), None)
    assert drawn.requires_grad
