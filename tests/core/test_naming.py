"""Names for people, from command lines as they really are."""

import json
import subprocess
import sys

import interpreters
import pytest
from worker_kit import ATTACH, ROOT

from mpsbar.core.machine import Process
from mpsbar.core.naming import is_called, kind_of, list_short_names, name_process
from mpsbar.system.linux import LinuxComputer
from mpsbar.workers.parse import parse_hello

KERNEL = ("python", "-m", "ipykernel_launcher", "-f", "k.json")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "train.py", "--lr", "1"), "train.py"),
        (("/usr/bin/python3", "/home/me/my runs/train.py"), "train.py"),
        (("python", "-u", "-W", "ignore", "-X", "dev", "train.py"), "train.py"),
        (("python", "-um", "torch.distributed.run", "--nproc-per-node", "4", "x.py"), "torchrun x.py"),
        (("python", "/v/bin/torchrun", "--standalone", "--nproc_per_node=2", "a/x.py"), "torchrun x.py"),
        (("python", "/v/bin/torchrun", "-m", "pkg.train"), "torchrun -m pkg.train"),
        (("python", "-m", "mypackage.train", "x.py"), "-m mypackage.train"),
        (("python", "/v/bin/uvicorn", "--port", "80", "serve:app"), "uvicorn serve:app"),
        (("python", "-m", "uvicorn", "serve:app", "--reload"), "uvicorn serve:app"),
        (("python", "/v/bin/gunicorn", "-w", "4", "-b", ":80", "serve:app"), "gunicorn serve:app"),
        (("python", "/v/bin/streamlit", "run", "page.py"), "streamlit page.py"),
        (("python", "/v/bin/torchrun"), "torchrun"),
        (("python", "-Xfrozen_modules=off", "-m", "debugpy", "--connect", "127.0.0.1:5678", "train.py"), "debugpy train.py"),
        # As VS Code starts it.
        (("python", "/x/debugpy/launcher/../../debugpy", "--connect", "5678", "/home/me/train.py"), "debugpy train.py"),
        (("python", "/v/bin/gunicorn", "-b", "localhost:80", "-c", "x.py", "serve:make()"), "gunicorn serve:make()"),
        (("python", "/v/bin/mlx_lm.server", "--port", "8080"), "mlx_lm.server"),
        (("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(3)"), "child process"),
        (("python", "-m", "ipykernel_launcher", "-f", "k.json"), "notebook kernel"),
        (("python", "/lib/ipykernel_launcher.py", "-f", "k.json"), "notebook kernel"),
        (("python", "-c", "print()"), "python -c"),
        (("python", "-"), "python from a pipe"),
        (("python", "-m", "pytest", "-x"), "pytest"),
        (("python", "/v/bin/pytest", "-x"), "pytest"),
        (("python", "-m", "joblib.externals.loky.backend.popen_loky_posix", "--process-name", "LokyProcess-1"), "child process"),
        (("python", "-m", "torch._inductor.compile_worker", "--pickler=x"), "torch.compile worker"),
        (("python",), "Python prompt"),
        (("python", "-i"), "Python prompt"),
        (("python", "-m"), "-m ?"),
        ((), "unknown"),
    ],
)  # fmt: skip
def test_names(command, name):
    assert name_process(command) == name


@pytest.mark.parametrize(
    ("command", "notebook", "name"),
    [
        (KERNEL, "train.ipynb", "train.ipynb"),
        (KERNEL, "", "notebook kernel"),
        (KERNEL, None, "notebook kernel"),
        # A script started from a notebook inherits its environment.
        (("python", "train.py"), "train.ipynb", "train.py"),
    ],
)
def test_names_of_notebooks(command, notebook, name):
    assert name_process(command, notebook) == name


PYTHON = "/usr/bin/python3.11"


@pytest.mark.parametrize(
    ("command", "executable", "name"),
    [
        (("python", "train.py"), PYTHON, "train.py"),
        (("gunicorn: worker [serve]",), PYTHON, "gunicorn: worker [serve]"),  # setproctitle
        (("/opt/bin/serve --api-key hunter2",), PYTHON, "serve"),
        (("./serve --token hunter2",), PYTHON, "serve"),
        (("./serve", "-c"), "/home/jane/serve --token hunter2", "serve"),
        (("/Users/jane/Paint - old/serve",), PYTHON, "serve"),
        (("ray::A.work",), PYTHON, "ray::A.work"),
        (("ray::train/step",), PYTHON, "ray::train/step"),
        # py2app starts the app's own Python.
        (
            ("/Applications/Paint.app/Contents/MacOS/Paint",),
            "/Applications/Paint.app/Contents/MacOS/python",
            "Paint",
        ),
        (("./Paint", "--fast"), "/Applications/Paint.app/Contents/MacOS/Paint", "Paint"),
        ((), "/Applications/Paint.app/Contents/MacOS/Paint", "Paint"),
        (("/usr/local/bin/my-python-tool",), "/usr/local/bin/my-python-tool", "my-python-tool"),
        ((), None, "unknown"),
    ],
)
def test_names_of_what_is_no_plain_python(command, executable, name):
    assert name_process(command, executable=executable) == name


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"RANK": "1", "WORLD_SIZE": "4"}, "train.py rank 1 of 4"),
        ({"RANK": "0", "WORLD_SIZE": "1"}, "train.py"),
        ({"RANK": "1"}, "train.py"),
        ({"RANK": "x", "WORLD_SIZE": "4"}, "train.py"),
        ({"RANK": "²", "WORLD_SIZE": "4"}, "train.py"),
    ],
)
def test_ranks(variables, name):
    assert name_process(("python", "train.py"), variables=variables) == name


def test_a_launcher_inside_a_rank_keeps_its_name():
    variables = {"RANK": "1", "WORLD_SIZE": "4"}
    assert name_process(("python", "/bin/torchrun", "x.py"), variables=variables) == "torchrun x.py"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("train.py", "script"), ("a.ipynb", "notebook"), ("torchrun x.py", "script"),
        ("uvicorn serve:app", "server"), ("mlx_lm.server", "server"),
    ],
)  # fmt: skip
def test_kinds(name, kind):
    assert kind_of(name) == kind


RAY = (
    "/usr/bin/python3.11",
    "/v/ray/_private/workers/default_worker.py",
    "--node-ip-address=127.0.0.1",
)


@pytest.mark.parametrize(
    ("seen_outside", "executable", "argv", "notebook", "name"),
    [
        (("ray::A.work",), PYTHON, RAY, None, "ray::A.work"),
        (("./Paint",), "/opt/Paint", ("./Paint",), None, "Paint"),
        (KERNEL, PYTHON, KERNEL, "train.ipynb", "train.ipynb"),
        (("python", "train.py", "3"), PYTHON, ("python", "train.py", "3"), None, "train.py"),
        ((), None, ("python", "train.py"), None, "train.py"),  # could not be read from outside
        ((), None, ("./Paint",), None, "Paint"),
    ],
)
def test_a_connected_row_is_named_as_well_as_an_unconnected_one(
    seen_outside, executable, argv, notebook, name
):
    hello = {
        "argv": list(argv),
        "notebook": notebook,
        "executable": executable or f"/opt/{argv[0]}",
    }
    outside = name_process(seen_outside, executable=executable)
    process = Process(1, 1.0, outside, ("torch",), command=seen_outside)
    assert parse_hello(1, hello).join(process).name == name


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells where the arguments lie")
def test_the_title_of_a_real_process_is_its_name_when_it_is_connected(workers):
    """As setproctitle does it: over the memory of the arguments."""
    worker = workers.start(
        ATTACH
        + """
import ctypes, os, sys
title = b"ray::A.work"
with open("/proc/self/stat") as file: fields = file.read().rpartition(")")[2].split()
start, end = int(fields[45]), int(fields[46])
ctypes.memmove(start, title + bytes(end - start - len(title)), end - start)
print("titled", flush=True)
import time
time.sleep(600)
"""
    )
    worker.wait_line("titled")
    details = LinuxComputer().read_details(worker.pid)
    outside = name_process(details.command, None, details.variables, details.executable)
    process = Process(worker.pid, 1.0, outside, ("torch",), command=details.command)
    found = parse_hello(worker.pid, worker.ask("hello"))
    assert found.name.endswith(".py")
    assert found.join(process).name == outside == "ray::A.work"


@pytest.mark.starts_processes
@pytest.mark.parametrize("version", interpreters.VERSIONS)
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["train.py", "first"], "train.py"),
        (["-u", "-X", "dev", "-W", "ignore", "train.py", "-m"], "train.py"),
        (["-m", "train", "first"], "train"),
        (["-c", "import train", "other.py"], "python -c"),
    ],
)
def test_a_connected_python_of_any_version_is_named_as_it_was_started(
    tmp_path, version, arguments, name
):
    python = interpreters.need(version)
    (tmp_path / "train.py").write_text(
        f"import json, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from mpsbar.agent.methods import hello\n"
        "print(json.dumps(hello()))\n"
    )
    done = subprocess.run(
        [python, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert parse_hello(1, json.loads(done.stdout)).name == name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("train.py rank 1 of 4", ["train.py"]),
        ("gunicorn server:app", ["gunicorn server:app", "gunicorn"]),
        ("torchrun train.py", ["torchrun train.py", "torchrun"]),
        ("python -c", ["python -c"]),  # too many are called so
        ("notebook kernel", ["notebook kernel"]),
    ],
)
def test_what_a_person_may_type_instead(name, short):
    assert list_short_names(name) == short


@pytest.mark.parametrize(
    ("typed", "is_meant"),
    [
        ("train.py", True), ("train", True), ("Train.PY", True), ("train.py (2)", True),
        ("train.py rank 0 of 2", True), ("rain", False), ("trai", False), ("", False),
    ],
)  # fmt: skip
def test_what_a_person_may_type_for_a_name(typed, is_meant):
    """Never a part of it: `free` and `limit` act on what is meant."""
    assert is_called(typed, "train.py (2)", "train.py rank 0 of 2") == is_meant
