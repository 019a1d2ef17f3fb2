"""Jupyter's kernels by their files: why one is not reached, and files that are broken."""

import json
import sys

import pytest

from mpsbar.workers import jupyter, kernels

IPYKERNEL = ["-m", "ipykernel_launcher", "-f", "{connection_file}"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"argv": ["python", *IPYKERNEL], "language": "python"}, None),
        ({"argv": [sys.executable, *IPYKERNEL], "language": "python"}, None),
        ({"argv": ["R", "--slave"], "language": "R"}, "it does not run Python"),
        ({"argv": ["xpython", "-f", "x"], "language": "python"}, "it is not started by ipykernel"),
        (
            {"argv": ["python", *IPYKERNEL, "--profile=lab"], "language": "python"},
            "it uses the IPython profile lab",
        ),
        (
            {"argv": ["python", *IPYKERNEL], "language": "python", "env": {"IPYTHONDIR": "/else"}},
            "it uses another IPython folder",
        ),
        (
            {"argv": ["/gone/bin/python", *IPYKERNEL], "language": "python"},
            "/gone/bin/python does not exist",
        ),
        (
            {"argv": ["{old}/bin/python", *IPYKERNEL], "language": "python"},
            "its Python is 3.8; 3.9 or later is required",
        ),
    ],
)
def test_why_a_kernel_is_not_reached(tmp_path, spec, reason):
    old = tmp_path / "old"
    (old / "bin").mkdir(parents=True)
    (old / "bin/python").touch()
    (old / "lib/python3.8").mkdir(parents=True)
    file = tmp_path / "kernels/mine/kernel.json"
    file.parent.mkdir(parents=True)
    text = json.dumps(spec | {"display_name": "Mine"}).replace("{old}", str(old))
    file.write_text(text)
    kernel = kernels.read_kernel(file)
    assert (kernel.name, kernel.title) == ("mine", "Mine")
    startup = tmp_path / "ipython" / jupyter.FILE
    assert kernels.why_not_reached(kernel, startup) == reason


@pytest.mark.parametrize("text", ["", "[]", '{"argv": 3}', '{"argv": []}', "\xff", "[" * 100_000])
def test_a_broken_kernel_file_is_passed_over(tmp_path, monkeypatch, text):
    file = tmp_path / "kernels/broken/kernel.json"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="latin-1")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert "broken" not in [kernel.name for kernel in kernels.find_kernels()]
