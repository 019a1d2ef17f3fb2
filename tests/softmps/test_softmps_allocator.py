"""Caching, heaps and what pins them, and the numbers torch shows of it."""

import pytest
from device_child import Child, answer_of

MiB = 1 << 20
OTHER_METAL = 3 * MiB

STATS = """
def stats():
    s = torch.accelerator.memory_stats()
    return [torch.mps.current_allocated_memory(), torch.accelerator.memory_reserved(),
            s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"]]
"""


@pytest.mark.parametrize(("size", "heap"), [
    (1, 8 * MiB),
    (MiB, 8 * MiB),
    (MiB + 1, 32 * MiB),
    (10 * MiB - 1, 1024 * MiB),  # 10 MiB once aligned
    (9 * MiB, 32 * MiB),
    (10 * MiB, 1024 * MiB),
    (511 * MiB, 1024 * MiB),
    (512 * MiB, 512 * MiB),
    (701 * MiB, 702 * MiB),
])  # fmt: skip
def test_heap_classes(device: Child, size: int, heap: int) -> None:
    code = "x = block({}); answer = torch.accelerator.memory_reserved()"
    assert device.ask(code.format(size)) == heap


def test_freed_memory_is_kept_reused_and_returned(device: Child) -> None:
    answer = device.ask(
        STATS
        + """
a, b = block(600 * MiB), block(600 * MiB)
answer = [stats()]
del a
answer.append(stats())
c = block(590 * MiB)
answer.append(stats())
del c
torch.mps.empty_cache()
answer.append(stats())
"""
    )
    m600, m1200 = 600 * MiB, 1200 * MiB
    assert answer == [
        [m1200, m1200, m1200, m1200],
        [m600, m1200, m1200, m1200],
        [m1200, m1200, m1200, m1200],  # the whole cached block is handed out
        [m600, m600, m1200, m1200],
    ]


def test_a_live_block_pins_its_heap(device: Child) -> None:
    answer = device.ask(
        STATS
        + """
keep = block(12 * MiB)
rest = [block(100 * MiB) for _ in range(5)]
answer = [stats()[:2]]
del rest
torch.mps.empty_cache()
answer.append(stats()[:2])
del keep
torch.mps.empty_cache()
answer.append(stats()[:2])
"""
    )
    assert answer == [[512 * MiB, 1024 * MiB], [12 * MiB, 1024 * MiB], [0, 0]]


def test_data_survives_the_release_of_its_neighbours(device: Child) -> None:
    assert device.ask("""
    tensors = [torch.full((MiB,), float(i), device="mps") for i in range(12)]
    del tensors[::2]
    torch.mps.empty_cache()
    more = [torch.full((MiB // 2,), -1.0, device="mps") for _ in range(20)]
    answer = [sorted(set(t.tolist())) for t in tensors]
    """) == [[float(i)] for i in range(1, 12, 2)]


def test_asking_constructs_the_allocator_and_the_lazy_check_does_not(usable: None) -> None:
    code = """
    import json, torch
    lazy = torch._C._accelerator_isAllocatorInitialized
    ops = torch.ops.softmps
    torch.accelerator.empty_cache(); torch.accelerator.memory_stats()
    first = [lazy(), ops.counters()["initialised"], ops.counters()["allocator_empty_cache"]]
    getattr(torch.mps, NAME)()
    print(json.dumps([first, lazy(), ops.counters()["initialised"]]))
    """
    assert answer_of(code.replace("NAME", "'recommended_max_memory'")) == [[False, 0, 0], True, 1]


def test_driver_is_reserved_and_what_metal_holds(device: Child) -> None:
    code = """x = block(5 * MiB)
answer = torch.mps.driver_allocated_memory() - torch.accelerator.memory_reserved()"""
    assert device.ask(code) == OTHER_METAL


def test_only_the_stats_that_mps_fills(device: Child) -> None:
    filled = device.ask("""
    x = block(5 * MiB)
    stats = torch.accelerator.memory_stats()
    answer = sorted({name.rsplit(".", 1)[0] for name, value in stats.items() if value})
    """)
    assert filled == ["allocated_bytes.all", "reserved_bytes.all"]


def test_memory_info_is_the_working_set_less_driver(device: Child) -> None:
    free, total = device.ask("x = block(5 * MiB); answer = torch.accelerator.get_memory_info()")
    assert (free, total) == (4096 * MiB - 32 * MiB - OTHER_METAL, 4096 * MiB)


def test_every_call_is_counted_once(device: Child) -> None:
    assert device.ask("""
    torch.mps.synchronize(); torch.mps.empty_cache(); torch.accelerator.empty_cache()
    torch.mps.current_allocated_memory(); torch.mps.driver_allocated_memory()
    torch.mps.recommended_max_memory(); torch._C._mps_is_available()
    torch._C._accelerator_getDeviceStats(0)
    answer = {name: value for name, value in counters().items() if value}
    """) == {
        "synchronize": 1, "empty_cache": 1, "allocator_empty_cache": 1, "current_allocated": 1,
        "driver_allocated": 1, "recommended_max": 1, "is_available": 1, "device_stats": 1,
        "initialized_checks": 1, "initialised": 1, "empties": 2,
    }  # fmt: skip


def test_without_heaps_all_idle_memory_goes_back(usable: None) -> None:
    with Child(SOFTMPS_HEAPS="0") as child:
        assert child.ask("""
        keep, drop = block(12 * MiB), block(100 * MiB)
        reserved = torch.accelerator.memory_reserved
        answer = [reserved()]
        del drop
        torch.mps.empty_cache()
        answer.append(reserved())
        """) == [112 * MiB, 12 * MiB]
