"""What it raises, word for word as torch's MPS does."""

import pytest
from device_child import Child, ChildError, answer_of

MiB = 1 << 20

NO_FLOAT64 = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
    "Please use float32 instead."
)
NO_FLOAT8 = (
    "Trying to convert Float8_e4m3fn to the MPS backend but it does not have support for that "
    "dtype."
)
USE_RATIO = (
    " Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations "
    "(may cause system failure)."
)


def error_of(child: Child, code: str) -> tuple[str, str]:
    with pytest.raises(ChildError) as caught:
        child.ask(code)
    return caught.value.kind, str(caught.value)


@pytest.mark.parametrize("code", [
    "torch.ones(2, device='mps', dtype=torch.float64)",
    "torch.ones(2, dtype=torch.float64).to('mps')",
    "torch.ones(2, device='mps').double()",
    "torch.empty(2, device='mps', dtype=torch.complex128)",
])  # fmt: skip
def test_float64(device: Child, code: str) -> None:
    assert error_of(device, code) == ("TypeError", NO_FLOAT64)


def test_float64_can_be_allowed(usable: None) -> None:
    code = "import torch; print(torch.ones(2, dtype=torch.float64, device='mps').sum().item())"
    assert answer_of(code, SOFTMPS_FLOAT64="1") == 2


def test_dtype_without_kernels_fails_in_the_first_op(device: Child) -> None:
    device.ask("torch.empty(2, device='mps', dtype=torch.float8_e4m3fn)")
    for code in ("x.float()", "torch.add(x, x)"):
        made = "x = torch.empty(2, device='mps', dtype=torch.float8_e4m3fn)"
        assert error_of(device, f"{made}; {code}") == ("TypeError", NO_FLOAT8)


def test_dimensions(device: Child) -> None:
    assert error_of(device, "torch.empty([1] * 17, device='mps') + 1") == (
        "RuntimeError", "MPS supports tensors with dimensions <= 16, but got 17.",
    )  # fmt: skip


def test_oversize_buffer(device: Child) -> None:
    assert error_of(device, "block(5 << 30)") == ("RuntimeError", "Invalid buffer size: 5.00 GiB")


def test_out_of_memory(device: Child) -> None:
    kind, text = error_of(
        device,
        """
    torch.mps.set_per_process_memory_fraction(0.25)
    blocks = [block(600 * MiB) for _ in range(2)]
    """,
    )
    assert kind == "RuntimeError"
    assert text == (
        "MPS backend out of memory (MPS allocated: 600.00 MiB, other allocations: 3.00 MiB, "
        "max allowed: 1024.00 MiB). Tried to allocate 600.00 MiB on shared pool." + USE_RATIO
    )


def test_out_of_memory_counts_graphs_as_other(device: Child) -> None:
    _, text = error_of(
        device,
        """
    for n in range(1, 17):
        torch.ones(n, device="mps")
    torch.mps.set_per_process_memory_fraction(0.25)
    blocks = [block(700 * MiB) for _ in range(2)]
    """,
    )
    assert "(MPS allocated: 700.00 MiB, other allocations: 4.00 MiB, max allowed:" in text


def test_a_freed_cache_prevents_out_of_memory(device: Child) -> None:
    assert (
        device.ask("""
    torch.mps.set_per_process_memory_fraction(0.25)
    for size in (600, 700, 650, 990):
        block(size * MiB)
    answer = torch.accelerator.memory_reserved()
    """)
        == 990 << 20
    )


@pytest.mark.parametrize(("limit", "text"), [
    (1024, "1024 bytes"),
    (1025, "1.00 KiB"),
    (1 << 20, "1024.00 KiB"),
    (100 << 20, "100.00 MiB"),
    (1 << 30, "1024.00 MiB"),
    (3 << 29, "1.50 GiB"),
])  # fmt: skip
def test_limits_and_their_wording(device: Child, limit: int, text: str) -> None:
    size = max(1, limit - 2 * MiB)  # Metal's own 3 MiB leave no room for it
    _, error = error_of(device, f"ops.set_limit({limit}); block({size})")
    assert f", max allowed: {text}). Tried to allocate " in error


def test_out_of_memory_without_a_limit(usable: None) -> None:
    text = answer_of(
        """
    import json, resource, torch
    torch.ones(1, device="mps")
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), -1))
    try:
        torch.empty(2 << 30, dtype=torch.uint8, device="mps")
    except RuntimeError as error:
        print(json.dumps(str(error)))
    """,
        PYTORCH_MPS_HIGH_WATERMARK_RATIO="0.0",
    )
    assert text == (
        "MPS backend out of memory (MPS allocated: 0 bytes, other allocations: 3.06 MiB). "
        "Tried to allocate 2.00 GiB on shared pool."
    )


def test_watermarks_are_read_when_the_allocator_is_made(usable: None) -> None:
    answer = answer_of("""
    import json, os, torch
    texts = []
    for name, value in ("HIGH", "2.5"), ("LOW", "1.9"), ("HIGH", "1.0"):
        os.environ[f"PYTORCH_MPS_{name}_WATERMARK_RATIO"] = value
        for use in (torch.mps.current_allocated_memory, lambda: torch.ones(1, device="mps")):
            try:
                use()
            except RuntimeError as error:
                texts.append(str(error))
        del os.environ[f"PYTORCH_MPS_{name}_WATERMARK_RATIO"]
    print(json.dumps([texts, torch._C._accelerator_isAllocatorInitialized()]))
    """)
    wrong = ["high watermark ratio 2.5", "low watermark ratio 1.9", "low watermark ratio 1.4"]
    assert answer == [[f"invalid {what}" for what in wrong for _ in range(2)], False]


def test_later_changes_of_the_watermark_are_ignored(device: Child) -> None:
    assert (
        device.ask("""
    import os
    os.environ["PYTORCH_MPS_HIGH_WATERMARK_RATIO"] = "7"
    answer = torch.ones(1, device="mps").item()
    """)
        == 1
    )
