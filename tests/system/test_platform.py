"""What the platforms share: command lines, and which files make a process one of PyTorch or MLX."""

import inspect

import pytest
from system.scripted import Scripted

from mpsbar.agent.secrets import shorten_command
from mpsbar.core.naming import name_process
from mpsbar.system.linux import LinuxComputer
from mpsbar.system.macos import MacComputer
from mpsbar.system.platform import (
    Computer,
    NoExitWatch,
    framework_of,
    parse_command,
    parse_wait_status,
)
from mpsbar.system.replay import RecordedComputer


@pytest.mark.parametrize("kind", [LinuxComputer, MacComputer, RecordedComputer, Scripted])
def test_every_platform_offers_every_function_of_the_protocol(kind):
    for name, function in inspect.getmembers(Computer, inspect.isfunction):
        if not name.startswith("_"):
            offered = inspect.signature(getattr(kind, name)).parameters
            assert list(offered) == list(inspect.signature(function).parameters), name


def test_only_a_mac_has_exit_reasons():
    assert LinuxComputer().read_exit_reason(1) is None
    assert RecordedComputer({}).read_exit_reason(1) is None


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


# What `import setproctitle` makes of the arguments before a title is set.
@pytest.mark.parametrize(
    ("joined", "name", "command"),
    [
        ("/v/bin/python train.py", "train.py", ("/v/bin/python", "train.py")),
        ("python3.11 -m gunicorn serve:app -w 2", "gunicorn serve:app",
         ("python3.11", "-m", "gunicorn", "serve:app", "…")),
        ("/my runs/venv/bin/python train.py --password hidden", "train.py",
         ("/my runs/venv/bin/python", "train.py", "…")),
    ],
)  # fmt: skip
def test_arguments_that_setproctitle_has_joined(joined, name, command):
    parsed = parse_command([joined.encode()])
    assert name_process(parsed, executable="/usr/bin/python3.11") == name
    assert shorten_command(parsed) == command


@pytest.mark.parametrize(
    "arguments",
    [["ray::A.work"], ["gunicorn: worker [serve]"], ["/v/bin/python"], ["/v/my python tool", "x"]],
)
def test_other_arguments_are_left_as_they_are(arguments):
    assert parse_command([each.encode() for each in arguments]) == tuple(arguments)


def test_a_platform_without_a_watch():
    watch = NoExitWatch()
    assert not watch.add(1, 1.0)
    assert (watch.poll(), watch.is_running(1, 1.0)) == ([], False)
    watch.close()


def test_a_status_that_is_no_end():
    assert parse_wait_status(0xFFFF) is None
