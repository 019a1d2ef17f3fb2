"""Since which torch MPS has an operation: the list we ship, against the torch that is installed.

The list was made from torchgen/packaged/ATen/native/native_functions.yaml of the macOS wheels 2.2.0 to
2.15.0: an operation is native if its `dispatch` names MPS, or that of the one it delegates to. Each is
listed under the first release since when every later one has it. For a new torch: add its file.
"""

import json
import re
from pathlib import Path

import pytest

from mpsbar.core.torch_facts import parse_native_operations, parse_release
from mpsbar.system.paths import resource

TEXT = resource("mps-operations.json").read_text(encoding="utf-8")


def read_native(file):
    native, delegates, name, in_dispatch = set(), {}, None, False
    for line in file.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"- func: ([\w.]+)\(", line):
            name, in_dispatch = found[1], False
        elif line.startswith("  structured_delegate: "):
            delegates[name] = line.split(":")[1].strip()
        elif re.match(r"  \w", line):
            in_dispatch = line.startswith("  dispatch:")
        elif in_dispatch and re.search(r"\bMPS\b", line.partition(":")[0]):
            native.add(name)
    return native | {name for name, other in delegates.items() if other in native}


def test_it_is_what_the_installed_torch_says():
    torchgen = pytest.importorskip("torchgen")
    torch = pytest.importorskip("torch.version")
    release = parse_release(torch.__version__)
    table = parse_native_operations(TEXT)
    installed = read_native(
        Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    )
    assert len(installed) > 600
    for name in installed:
        assert (since := table.find(f"aten::{name}")) is None or since <= release, name
    # What came later is not in it, but for what was removed and came back.
    later = {name for name, since in table.since.items() if since > release}
    assert not later & installed


def test_some_that_people_ask_for():
    table = parse_native_operations(TEXT)
    assert table.newest == (2, 15)
    assert table.find("aten::_linalg_eigh.eigenvalues") == (2, 14)
    assert table.find("linalg_qr") == (2, 12)
    assert table.find("aten::add.Tensor") == (2, 2)
    assert table.find("aten::linalg_svd") is None
    assert json.loads(TEXT)["since"].keys() == {f"2.{minor}" for minor in range(2, 16)}
