"""mpsbar.safe_dtype() with a result of `mpsbar probe`: used where it fits, and only there."""

import json
import os
import sys
from pathlib import Path

import pytest
from fork_server import run_python
from probe_kit import needs_mps
from softmps.build import find_torch
from worker_kit import ROOT, TIMEOUT, need_module

from mpsbar.agent import user_folders

ASK = """
import mpsbar, torch
print(*(str(mpsbar.safe_dtype({device!r}, name)).replace("torch.", "") for name in {names!r}))
"""


def ask(workers, device, *names, python=sys.executable, **extra):
    env = workers.env(PYTHONPATH=str(ROOT), **extra)
    command = [python, "-B", "-c", ASK.format(device=device, names=names)]
    done = run_python(command, env=env, cwd="/", timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def keep(workers):
    """A result for this very Python and torch, with some of it changed."""
    need_module("torch")
    torch = find_torch().version

    def keep(safe, device="cpu", content=None, **changes):
        told = {
            "device": device, "torch": torch, "system": user_folders.system_version(),
            "prefix": os.path.realpath(sys.prefix), "version": ".".join(map(str, sys.version_info[:3])),
        }  # fmt: skip
        folder = workers.folder / "data" / "probes"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        record = {**told, **changes, "safe": safe}
        file = folder / user_folders.result_name(**told)
        file.write_text(json.dumps(record) if content is None else content)
        return file

    return keep


def test_without_a_result_the_rules_hold(workers):
    need_module("torch")
    assert ask(workers, "cpu", "float16", "int64") == ["float16", "int64"]


def test_what_was_measured_counts(workers, keep):
    keep(
        {
            "float16": False,
            "bfloat16": True,
            "int64": False,
            "int8": False,
            "int32": False,
            "float64": False,
            "float32": True,
        }
    )
    assert ask(workers, "cpu", "float16", "bfloat16", "int64", "int8", "float64") == [
        "float32", "bfloat16", "float32", "float32", "float32",
    ]  # fmt: skip
    keep({"int64": False, "int8": False, "bool": False})
    assert ask(workers, "cpu", "int64", "int8", "bool", "float16") == [
        "int32",
        "int32",
        "uint8",
        "float16",
    ]


@needs_mps
def test_against_the_rules_for_mps(workers, keep):
    keep({"float64": True, "bfloat16": False, "float32": False}, "mps")
    assert ask(workers, "mps", "float64", "bfloat16", "float32", "complex128", SOFTMPS="1") == [
        "float64", "float32", "float32", "complex64",
    ]  # fmt: skip


@pytest.mark.parametrize("change", ["torch", "system", "prefix", "version", "device"])
def test_of_another_it_is_not_used(workers, keep, change):
    keep({"float16": False}, **{change: "another"})
    assert ask(workers, "cpu", "float16") == ["float16"]


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"safe": 3}', "[" * 100_000, "\0"])
def test_a_damaged_one_is_not_used(workers, keep, content):
    keep({}, content=content)
    assert ask(workers, "cpu", "float16") == ["float16"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_of_somebody_else_it_is_not_used(workers, keep):
    file = keep({"float16": False})
    os.chown(file.parent, 65534, 65534)
    assert ask(workers, "cpu", "float16") == ["float16"]


def test_a_newer_result_is_seen_by_a_running_process(workers, keep):
    file = keep({"float16": False})
    code = f"""
import mpsbar, torch, os, sys
first = mpsbar.safe_dtype("cpu", "float16")
assert mpsbar.safe_dtype("cpu", "float16") is first
text = open({str(file)!r}).read().replace("false", "true")
open({str(file)!r}, "w").write(text)
os.utime({str(file)!r}, ns=(1, 1))
print(first, mpsbar.safe_dtype("cpu", "float16"))
"""
    env = workers.env(PYTHONPATH=str(ROOT))
    command = [sys.executable, "-B", "-c", code]
    done = run_python(command, env=env, cwd="/", timeout=TIMEOUT)
    assert done.stdout.split() == ["torch.float32", "torch.float16"], done.stderr


def test_the_place_does_not_follow_the_environment(monkeypatch):
    monkeypatch.delenv("MPSBAR_DATA_DIR", raising=False)
    folder = user_folders.results_folder()
    for name in ("HOME", "XDG_STATE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, "/elsewhere")
    assert user_folders.results_folder() == folder
    assert folder is None or Path(folder).is_absolute()


def test_names_are_plain_and_differ():
    name = user_folders.result_name("mps", "2.13.0+cpu/../x", "15.1", "/a b", "3.11.7")
    assert "/" not in name
    assert name.startswith("mps-torch-2.13.0_cpu_.._x-15.1-")
    assert name != user_folders.result_name("mps", "2.13.0+cpu/../x", "15.1", "/a c", "3.11.7")
