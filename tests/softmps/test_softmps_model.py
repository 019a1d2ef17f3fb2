"""The statistics under random allocation and release, against a plain model."""

import json
from collections.abc import Iterator

import pytest
from allocator_model import Buffer, GiB, MiB, Model, OutOfMemoryError
from device_child import Child
from hypothesis import given, settings
from hypothesis import strategies as st

MEMORY = 2 * GiB

Step = tuple[str, int]

SIZES = st.one_of(
    st.integers(1, MiB),
    st.integers(MiB, 12 * MiB),
    st.integers(10 * MiB, 600 * MiB),
    st.sampled_from([256, MiB, MiB + 1, 10 * MiB - 1, 10 * MiB, 511 * MiB, 512 * MiB, 1400 * MiB]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), SIZES),
        st.tuples(st.just("allocate"), SIZES),
        st.tuples(st.just("free"), st.integers(0, 40)),
        st.tuples(st.just("empty"), st.sampled_from([0, 1])),
        st.tuples(st.just("reset_peak"), st.just(0)),
    ),
    min_size=4, max_size=40,
)  # fmt: skip

REPLAY = """
def stats():
    s = torch.accelerator.memory_stats()
    return [*(s[f"{kind}_bytes.all.{what}"] for what in ("current", "peak")
              for kind in ("allocated", "reserved")), torch.mps.driver_allocated_memory()]

torch.mps.empty_cache()
torch.accelerator.reset_peak_memory_stats()
live, answer = [], []
for verb, number in STEPS:
    if verb == "allocate":
        try:
            live.append(block(number))
        except RuntimeError as error:
            assert "out of memory" in str(error)
            answer.append("out of memory")
    elif verb == "free" and live:
        live.pop(number % len(live))
    elif verb == "empty":
        (torch.mps.empty_cache, torch.accelerator.empty_cache)[number]()
    elif verb == "reset_peak":
        torch.accelerator.reset_peak_memory_stats()
    answer.append(stats())
"""


@pytest.fixture(scope="module")
def small_device(usable: None) -> Iterator[Child]:
    """A small working set, so that the watermarks are met."""
    with Child(SOFTMPS_MEMORY=str(MEMORY), SOFTMPS_GRAPHS="0") as child:
        yield child


def replay(steps: list[Step]) -> list[list[int] | str]:
    """What the model says to the same steps."""
    model, live, answer = Model(MEMORY), list[Buffer](), list[list[int] | str]()
    for verb, number in steps:
        if verb == "allocate":
            try:
                live.append(model.allocate(number))
            except OutOfMemoryError:
                answer.append("out of memory")
        elif verb == "free" and live:
            live.pop(number % len(live)).used = False
        elif verb == "empty":
            model.empty()
        elif verb == "reset_peak":
            model.peaks = model.sizes()
        answer.append([*model.sizes(), *model.peaks, model.driver()])
    return answer


@settings(max_examples=100)
@given(steps=STEPS)
def test_statistics_equal_the_model(small_device: Child, steps: list[Step]) -> None:
    answer = small_device.ask(f"STEPS = {json.dumps(steps)}\n{REPLAY}")
    assert answer == replay(steps)


# Cases that random steps seldom meet.
CASES: dict[str, list[Step]] = {
    "out of memory": [("allocate", 700 * MiB)] * 6,
    "pressure": [
        *[("allocate", 400 * MiB)] * 8, *[("free", 0)] * 4, *[("allocate", 20 * MiB)] * 3,
    ],
    "room made by an oversize buffer": [
        ("allocate", 900 * MiB), ("free", 0), ("allocate", 700 * MiB), ("allocate", 600 * MiB),
    ] * 3,
    "room made under pressure, nothing collected": [
        *[("allocate", 1400 * MiB)] * 2, *[("allocate", 9 * MiB)] * 9, ("free", 0),
        *[("free", 1)] * 3, ("allocate", 500 * MiB),
    ],
    "a gap joined with the next": [
        *[("allocate", n * MiB) for n in (2, 9, 5, 9)], *[("free", 1)] * 2, ("empty", 0),
        ("allocate", 12 * MiB),
    ],
    "a gap joined with the one before": [
        *[("allocate", n * MiB) for n in (2, 5, 9, 9)], *[("free", 1)] * 2, ("empty", 0),
        ("allocate", 12 * MiB),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_chosen_cases(small_device: Child, case: str) -> None:
    answer = small_device.ask(f"STEPS = {json.dumps(CASES[case])}\n{REPLAY}")
    assert answer == replay(CASES[case])
