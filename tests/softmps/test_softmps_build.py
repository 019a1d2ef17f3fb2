"""Building: once for all processes, apart for each torch and Python, and plain words on failure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import softmps
from device_child import CHILD_TIMEOUT_S, environment
from softmps import build as builder

PYTHON = Path(sys.executable)


def write_compiler(folder: Path, body: str) -> Path:
    """A stand-in for the compiler that notes each call; `out` is the file it is to write."""
    script = folder / "c++"
    script.write_text(f"""#!{PYTHON}
import shutil, sys, time
from pathlib import Path
with open({str(folder / "calls")!r}, "a") as calls:
    calls.write("called\\n")
out = sys.argv[sys.argv.index("-o") + 1]
{body}
""")
    script.chmod(0o755)
    return script


def start(*verbs: str, **switches: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "softmps", *verbs],
        env=environment(switches),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*verbs: str, **switches: str) -> tuple[int, str, str]:
    process = start(*verbs, **switches)
    out, err = process.communicate(timeout=CHILD_TIMEOUT_S)
    return process.returncode, out, err


def test_several_processes_share_one_build(usable: None, tmp_path: Path) -> None:
    real = builder.build()
    compiler = write_compiler(tmp_path, f"time.sleep(0.5); shutil.copy({str(real)!r}, out)")
    switches = {"CXX": str(compiler), "SOFTMPS_CACHE": str(tmp_path / "cache")}
    processes = [start("build", **switches) for _ in range(5)]
    outputs = [p.communicate(timeout=CHILD_TIMEOUT_S)[0] for p in processes]
    assert [p.returncode for p in processes] == [0] * 5
    assert (tmp_path / "calls").read_text() == "called\n"
    assert sum("compiling, about 20 s" in out for out in outputs) == 1
    built = [file.name for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert sorted(built) == ["softmps.lock", "softmps.so"]


def test_up_to_date_needs_no_compiler_and_no_import_of_torch(usable: None) -> None:
    builder.build()
    code = (
        "import sys; from softmps.build import build; build(); "
        "print([name for name in sys.modules if name.partition('.')[0] == 'torch'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment({"CXX": "/nowhere"}),
        capture_output=True,
        text=True,
        timeout=CHILD_TIMEOUT_S,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_failing_compiler_is_quoted(tmp_path: Path) -> None:
    compiler = write_compiler(
        tmp_path,
        """
sys.exit("In file included from softmps.cpp:1:\\nheap.h:7:1: warning: odd\\n"
         "heap.h:9:3: error: 'mmap' was not declared\\nheap.h:10:1: error: and more")
""",
    )
    cache = tmp_path / "cache"
    assert run("build", CXX=str(compiler), SOFTMPS_CACHE=str(cache)) == (
        1, "softmps: compiling, about 20 s\n",
        "softmps could not be compiled: heap.h:9:3: error: 'mmap' was not declared\n",
    )  # fmt: skip
    assert [file.name for file in cache.rglob("*") if file.is_file()] == ["softmps.lock"]


def test_import_torch_quotes_it_too(tmp_path: Path) -> None:
    compiler = write_compiler(tmp_path, "sys.exit('a.h:1:1: error: broken')")
    switches = {"CXX": str(compiler), "SOFTMPS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", "import torch"],
        env=environment(switches),
        capture_output=True,
        text=True,
        timeout=CHILD_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 1
    assert "BuildError: softmps could not be compiled: a.h:1:1: error: broken\n" in done.stderr


@pytest.mark.skipif(builder.find_compiler() is None, reason="no C++ compiler was found")
def test_real_compiler_on_a_broken_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = shutil.copytree(builder.SOURCES, tmp_path / "csrc")
    source = sources / "softmps.cpp"
    source.write_text("#include <no_such_header.h>\n" + source.read_text())
    monkeypatch.setattr(builder, "SOURCES", sources)
    monkeypatch.setenv("SOFTMPS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(builder.BuildError) as caught:
        builder.build()
    text = str(caught.value)
    assert text.startswith("softmps could not be compiled: ")
    assert "softmps.cpp:1:10: fatal error: " in text
    assert "no_such_header.h" in text
    assert "\n" not in text


def test_silent_compiler() -> None:
    assert builder.first_error("", 4) == "the compiler ended with status 4"
    assert builder.first_error("\nKilled\n", 137) == "Killed"


def test_builds_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = builder.find_torch()
    (tmp_path / "version.py").write_text("__version__ = '2.99.0'\n")
    other = builder.Torch(tmp_path, "2.99.0", torch.abi)
    sources = shutil.copytree(builder.SOURCES, tmp_path / "csrc")
    (sources / "heap.h").write_text("// changed\n")
    paths = {builder.library_path(torch), builder.library_path(other)}
    with monkeypatch.context() as patch:
        patch.setattr(sys.implementation, "cache_tag", "cpython-399")
        paths.add(builder.library_path(torch))
    with monkeypatch.context() as patch:
        patch.setattr(builder, "SOURCES", sources)
        paths.add(builder.library_path(torch))
    assert len(paths) == 4
    assert len({path.parent for path in paths}) == 4


def test_another_torch_is_found_by_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "torch"
    (folder / "share/cmake/Torch").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('imported')")
    (folder / "version.py").write_text("__version__ = '2.99.0'\n")
    (folder / "share/cmake/Torch/TorchConfig.cmake").write_text("-D_GLIBCXX_USE_CXX11_ABI=0")
    _, out, _ = run("status", PYTHONPATH=str(tmp_path), CXX=str(PYTHON))
    assert out.startswith("torch     2.99.0\n")
    assert "(not built)" in out


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTMPS_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    reason = "softmps is not built and no C++ compiler was found (c++, g++, clang++)"
    assert softmps.why_not() == reason
    monkeypatch.setenv("CXX", "/nowhere/c++")
    assert softmps.why_not() == "softmps is not built and CXX names no compiler: /nowhere/c++"
    with pytest.raises(builder.BuildError, match="CXX names no compiler"):
        builder.build()


@pytest.mark.parametrize(("option", "status"), [((), 1), (("--if-possible",), 0)])
def test_build_without_a_compiler(tmp_path: Path, option: tuple[str, ...], status: int) -> None:
    code, out, err = run("build", *option, CXX="/nowhere", SOFTMPS_CACHE=str(tmp_path))
    assert (code, out) == (status, "")
    assert err == "softmps is not built and CXX names no compiler: /nowhere\n"


def test_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder.importlib.util, "find_spec", lambda name: None)
    assert softmps.why_not() == "torch is not installed for this Python"


def test_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert softmps.why_not() == "softmps works on Linux only"


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SOFTMPS_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert builder.cache_folder() == tmp_path / "share/softmps"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert builder.cache_folder() == tmp_path / ".cache/softmps"
