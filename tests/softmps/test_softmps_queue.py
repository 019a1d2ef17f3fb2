"""Queued work and the graph cache: what empty_cache waits for, and what it drops."""

import pytest
from device_child import Child

GRAPH = 64 << 10
# How long queued work lasts: on a busy machine it may be over before the next line looks, then again for longer.
LASTS = "for lasts in (0.2, 1.0, 5.0, 20.0):"


def test_work_runs_later_and_in_order(queued: Child) -> None:
    assert queued.ask(f"""
    {LASTS}
        x = torch.zeros(3, device="mps")
        torch.mps.synchronize()
        ops.work_(x, lasts)
        x.fill_(2.0)
        y = x.clone()
        pending = counters()["pending"]
        answer = [pending, x.tolist(), y.tolist(), counters()["pending"]]
        if pending == 3: break
    """) == [3, [2, 2, 2], [2, 2, 2], 0]


def test_products_are_queued_and_right(queued: Child) -> None:
    assert queued.ask("""
    a, b = torch.randn(8, 5), torch.randn(5, 3)
    x, y = a.to("mps"), b.to("mps")
    before = counters()["queued"]
    product = x @ y
    answer = [counters()["queued"] - before, torch.equal(product.cpu(), a @ b)]
    """) == [1, True]


def test_empty_cache_waits_for_the_queue_and_returns_the_memory(queued: Child) -> None:
    assert queued.ask(f"""
    reserved = torch.accelerator.memory_reserved
    {LASTS}
        torch.mps.empty_cache()
        x = block(600 * MiB)
        ops.work_(x, lasts)
        del x
        answer = [counters()["pending"], torch.mps.current_allocated_memory(), reserved() // MiB]
        torch.mps.empty_cache()
        answer += [counters()["pending"], reserved() // MiB]
        if answer[0]: break
    """) == [1, 0, 600, 0, 0]


def test_busy_memory_is_reused_in_the_order_of_the_queue(queued: Child) -> None:
    assert queued.ask("""
    x = torch.zeros(200 * MiB // 4, device="mps")
    ops.work_(x, 0.2)
    copy = x[:4].clone()
    place = x.data_ptr()
    del x
    y = torch.ones(200 * MiB // 4, device="mps")
    answer = [y.data_ptr() == place, copy.tolist(), y[:2].tolist()]
    """) == [True, [0, 0, 0, 0], [1, 1]]


def test_a_huge_busy_buffer_is_not_cut_up(queued: Child) -> None:
    assert (
        queued.ask(f"""
    {LASTS}
        torch.mps.empty_cache()
        x = torch.zeros(600 * MiB, dtype=torch.uint8, device="mps")
        ops.work_(x, lasts)
        x.fill_(1)
        del x
        y = block(20 * MiB)
        was_busy = counters()["pending"]
        torch.mps.synchronize()
        answer = torch.mps.current_allocated_memory() // MiB
        if was_busy: break
        del y
    """)
        == 600
    )


@pytest.mark.parametrize("wait", ["", "while counters()['pending']: time.sleep(0.01)"])
def test_an_error_in_queued_work_arrives_later(queued: Child, wait: str) -> None:
    """Also where the work has ended, with its error, before somebody waits for it."""
    assert queued.ask(f"""
    torch.ones(2, 2, device="mps", dtype=torch.bool) @ torch.ones(2, 2, device="mps").bool()
    {wait}
    try:
        torch.mps.synchronize()
        answer = "nothing"
    except RuntimeError as error:
        answer = type(error).__name__
    """) in ("RuntimeError", "NotImplementedError")


@pytest.mark.parametrize("read", ["x", "x.cpu()", "(x + 0)", "x.resize_(900)"])
def test_reads_on_the_host_wait(queued: Child, read: str) -> None:
    assert (
        queued.ask(f"""
    x = torch.zeros(4, device="mps")
    ops.work_(x, 0.2)
    x.fill_(3.0)
    answer = {read}[0].item()
    """)
        == 3
    )


GRAPHS = """
def other():
    return torch.mps.driver_allocated_memory() - torch.accelerator.memory_reserved() - 3 * MiB
x, y = torch.ones(4, 4).to("mps"), torch.ones(5, 5).to("mps")
"""


def test_each_new_shape_and_dtype_adds_one_graph(device: Child) -> None:
    answer = device.ask(
        GRAPHS
        + """
answer = [other()]
for step in (lambda: x + x, lambda: x + x, lambda: y + y, lambda: x.half() + x.half(),
             lambda: x @ x, lambda: x @ x):
    step()
    answer.append(other())
answer.append(counters()["graphs"])
"""
    )
    assert answer == [0, GRAPH, GRAPH, 2 * GRAPH, 3 * GRAPH, 4 * GRAPH, 4 * GRAPH, 4]


def test_only_torch_mps_empty_cache_drops_the_graphs(device: Child) -> None:
    answer = device.ask(
        GRAPHS
        + """
x + x, y + y
torch.accelerator.empty_cache()
answer = [other()]
torch.mps.empty_cache()
answer += [other(), counters()["graphs"]]
x + x
answer.append(other())
"""
    )
    assert answer == [2 * GRAPH, 0, 0, GRAPH]
