"""The modes of older torch: what each version lacks, and how it fails."""

import pytest
from device_child import Child, ChildError, answer_of

SHAPE = """
names = {
    "torch.accelerator": hasattr(torch, "accelerator"),
    "accelerator.memory_stats": hasattr(getattr(torch, "accelerator", None), "memory_stats"),
    "lazy check": hasattr(torch._C, "_accelerator_isAllocatorInitialized"),
    "mps.recommended_max_memory": hasattr(torch.mps, "recommended_max_memory"),
    "mps.is_available": hasattr(torch.mps, "is_available"),
    "mps.device_count": hasattr(torch.mps, "device_count"),
    "backends.mps.get_name": hasattr(torch.backends.mps, "get_name"),
}
answer = [str(torch.__version__), torch.version.__version__,
          [name for name, there in names.items() if there]]
"""
MPS = ["mps.recommended_max_memory", "mps.is_available", "mps.device_count"]
NEW = ["torch.accelerator", "accelerator.memory_stats", "lazy check", *MPS, "backends.mps.get_name"]
OUT_OF_MEMORY = """
ops.set_limit(1 << 30)
try:
    block(1100 * MiB)
except RuntimeError as error:
    answer = str(error)
"""
GRAPHS = """
x = torch.ones(3, device="mps") + 1
before = torch.mps.driver_allocated_memory()
del x
torch.mps.empty_cache()
answer = [counters()["graphs"] > 0, before - torch.mps.driver_allocated_memory()]
"""


@pytest.mark.parametrize(("version", "names", "tried"), [
    ("2.1", [], "1.07 GB on private pool."),
    ("2.8", ["torch.accelerator", *MPS], "1.07 GiB on private pool."),
    ("2.12", NEW, "1.07 GiB on shared pool."),
    ("2.13", NEW, "1.07 GiB on shared pool."),
])  # fmt: skip
def test_as_an_older_torch(usable: None, version: str, names: list[str], tried: str) -> None:
    with Child(SOFTMPS_TORCH=version) as child:
        full = f"{version}.0+softmps"
        assert child.ask(SHAPE) == [full, full, names]
        assert f"Tried to allocate {tried}" in child.ask(OUT_OF_MEMORY)
        kept, returned = child.ask(GRAPHS)
        assert kept == (version != "2.13")
        assert returned == (8 << 20) + (0 if kept else 2 * 64 << 10)
        check_lazily(child, version)
        check_bfloat16(child, version)


def test_torch_itself_still_works(usable: None) -> None:
    answer = answer_of(
        """
    import json, torch
    import torch.utils.data as data
    net = torch.nn.Linear(2, 2).to("mps")
    before = net.weight.detach().clone()
    for batch in data.DataLoader(torch.ones(4, 2), batch_size=2):
        net(batch.to("mps")).sum().backward()
    torch.optim.AdamW(net.parameters()).step()
    names = [name for name in ("is_available", "device_count") if name in dir(torch.mps)]
    try:
        import torch.accelerator
    except ImportError as error:
        names.append(type(error).__name__)
    try:
        from torch.mps import recommended_max_memory
    except ImportError as error:
        names.append(type(error).__name__)
    print(json.dumps([bool((before != net.weight).all()), names]))
    """,
        SOFTMPS_TORCH="2.4",
    )
    assert answer == [True, ["device_count", "ModuleNotFoundError", "ImportError"]]


def check_lazily(child: Child, version: str) -> None:
    """2.13 answers, 2.9 to 2.12 fail in torch's own check, older ones lack the name."""
    lazy = "answer = torch._C._accelerator_isAllocatorInitialized()"
    if version == "2.13":
        assert child.ask(lazy) is True
        return
    with pytest.raises(ChildError) as caught:
        child.ask(lazy)
    if version == "2.12":
        assert caught.value.kind == "RuntimeError"
        assert "INTERNAL ASSERT FAILED" in str(caught.value)
        assert "Allocator for mps is not a DeviceAllocator." in str(caught.value)
    else:
        assert caught.value.kind == "AttributeError"


def check_bfloat16(child: Child, version: str) -> None:
    code = "answer = str(torch.ones(1, device='mps', dtype=torch.bfloat16).dtype)"
    if version == "2.1":
        with pytest.raises(ChildError, match=r"^BFloat16 is not supported on MPS$"):
            child.ask(code)
    else:
        assert child.ask(code) == "torch.bfloat16"


def test_without_the_switch_torch_keeps_its_version(device: Child) -> None:
    assert "softmps" not in device.ask("answer = torch.__version__")
