"""The examples, run as examples/README.md says: they end well, and their agent answers."""

import json
import signal
import subprocess
import sys

import pytest
from agent.test_notebook import kernels  # noqa: F401 - the fixture
from fleet_kit import find_free_port
from schema_kit import read_json
from worker_kit import NO_MPS, ROOT, TIMEOUT, need_module, wait_for

EXAMPLES = ROOT / "examples"
LONG = 4 * TIMEOUT  # Lightning and transformers take seconds of a core to import
pytestmark = pytest.mark.starts_processes


def run(workers, *command):
    done = _run(workers, *command)
    assert done.returncode == 0, done.stderr
    return done


def _run(workers, *command):
    return subprocess.run(
        [sys.executable, *command], cwd=workers.folder, capture_output=True, text=True, timeout=LONG,
        env=workers.env(PYTHONPATH=str(ROOT), SOFTMPS="1", CUDA_VISIBLE_DEVICES=""),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "module"), [("train.py", "torch"), ("mlx_script.py", "mlx.core")])
def test_under_mpsbar_run(workers, name, module):
    need_module(module)
    command = ("-m", "mpsbar", "run", "--summary", sys.executable, EXAMPLES / name, "--steps", "11")
    done = run(workers, *command)
    assert "step 10: " in done.stdout
    assert name in done.stderr  # the summary is of a process that was connected
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "modules", "end"),
    [
        ("lightning_fit.py", ["lightning"], "12 steps\n"),
        ("transformers_train.py", ["transformers", "accelerate"], "'epoch': "),
    ],
)
def test_trainers_under_mpsbar_run(workers, name, modules, end):
    for module in ("torch", *modules):
        need_module(module)
    command = ("-m", "mpsbar", "run", "--summary", sys.executable, EXAMPLES / name, "--steps", "12")
    done = run(workers, *command)
    assert end in done.stdout
    assert "resident'" in done.stdout  # of mpsbar.memory(), on any device of Linux
    assert f"mpsbar: {name} finished (exit code 0)" in done.stderr
    assert "peak allocated" in done.stderr  # only of a process that was connected


def test_the_server_has_two_workers_that_are_freed(workers):
    for module in ("torch", "fastapi", "uvicorn", "httpx"):
        need_module(module)
    import httpx

    port = find_free_port()
    server = [sys.executable, "-m", "uvicorn", "server:app", "--app-dir", str(EXAMPLES)]
    command = [
        sys.executable,
        "-m",
        "mpsbar",
        "run",
        *server,
        "--workers",
        "2",
        "--port",
        str(port),
    ]
    env = workers.env(PYTHONPATH=str(ROOT), SOFTMPS="1", CUDA_VISIBLE_DEVICES="")
    process = subprocess.Popen(command, cwd=workers.folder, env=env, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: _answers(httpx, port), "answer of the server", LONG)
        assert "mean" in httpx.get(f"http://127.0.0.1:{port}/score", timeout=TIMEOUT).json()
        names = wait_for(
            lambda: _find_workers(workers), "two workers in mpsbar status", 4 * TIMEOUT
        )
        assert len(names) >= 2
        wait_for(lambda: _frees_two(workers), "a Free of both", 4 * TIMEOUT)
        assert "resident" in httpx.get(f"http://127.0.0.1:{port}/memory", timeout=TIMEOUT).json()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(LONG)


def _answers(httpx, port):
    try:
        return httpx.get(f"http://127.0.0.1:{port}/memory", timeout=TIMEOUT).status_code == 200
    except httpx.TransportError:
        return False


def _frees_two(workers):
    """On busy cores a main thread may come by too late for its Free."""
    return _run(workers, "-m", "mpsbar", "free", "--all").stdout.count(": freed ") >= 2


def _find_workers(workers):
    """The connected processes once both workers have loaded torch and answer."""
    status = read_json("status", run(workers, "-m", "mpsbar", "status", "--json").stdout)
    found = [worker for worker in status["workers"] if worker["backends"]]
    return found if len(found) >= 2 else None


def test_the_data_loader_attaches_by_itself(workers):
    need_module("torch")
    done = run(workers, EXAMPLES / "data_loader.py", "--steps", "5")
    attached, mean, held = done.stdout.splitlines()
    assert (attached, mean) == ("attached: True", "mean of 40 items: 19.5")
    assert held.startswith("held: ")


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_the_notebook_executed(kernels):  # noqa: F811 - the fixture
    notebook = json.loads((EXAMPLES / "explore.ipynb").read_text())
    kernel = kernels()
    said = [
        kernel.run("".join(cell["source"]))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    assert said[0] == ""
    assert "tensors +256 MB" in said[1]
    assert "held" in said[2]
    assert "1 × float32 64x1024x1024" in said[3]
    assert said[4].startswith("freed ")


def test_the_readme_names_each():
    text = (EXAMPLES / "README.md").read_text()
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert {name for name in names if name not in text} == set()
