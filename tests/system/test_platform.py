"""Which files make a process one of PyTorch or MLX."""

import pytest

from mpsbar.system.platform import framework_of


@pytest.mark.parametrize(
    ("path", "framework"),
    [
        ("/v/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", "torch"),
        ("/v/lib/python3.12/site-packages/torch/lib/libtorch_cpu.dylib", "torch"),
        ("/v/torch/lib/libtorch_python.so", "torch"),
        ("/v/torch/lib/libtorch.dylib", "torch"),
        ("/v/torch/lib/libc10.so", "torch"),
        ("/opt/conda/lib/libtorch.so.2.13", "torch"),
        ("/tmp/_MEI12/libc10-5f3a9b.so", "torch"),
        ("/v/libtorch_cpu.so (deleted)", "torch"),  # pip has upgraded it meanwhile
        ("/v/mlx/lib/libmlx.dylib", "mlx"),
        ("/v/mlx/lib/libmlx.so", "mlx"),
        ("/v/libtorchaudio.so", None),
        ("/v/libtorch_notes.txt", None),
        ("/v/libtorch_cpu.so.bak", None),
        ("/v/xlibtorch.so", None),
        ("/libtorch.so/other", None),
        ("/v/libmlx5.so.1", None),  # InfiniBand's
        ("", None),
    ],
)
def test_frameworks(path, framework):
    assert framework_of(path) == framework
