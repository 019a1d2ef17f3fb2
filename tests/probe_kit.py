"""The dtype probe's throwaway as it stands, run for chosen cells with chosen variables."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_torch import add_startup
from fork_server import AFTER_TORCH, run_beside_mps, run_python
from worker_kit import NO_MPS, TIMEOUT, wait_for

from mpsbar.dtypes import checks, dtype_child, operations
from mpsbar.dtypes.runner import CEILING
from mpsbar.system import child_answers

needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
EVERY = [
    *(
        f"{o}/{d}"
        for d in operations.DTYPES
        for o in operations.OPERATIONS
        if o != operations.COMPILE
    ),
    *checks.CHECKS,
]
RESULTS = len(EVERY)  # cells and checks
EVERY += [f"{dtype_child.SPEED}{name}" for name in operations.SPEEDS]


def environment(**variables):
    ours = ("MPSBAR_", "SOFTMPS", "PYTORCH_", "PYTEST")
    others = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    cache = {k: v for k, v in os.environ.items() if k == "SOFTMPS_CACHE"}
    return others | cache | {"MPSBAR_DISABLE": "1"} | variables


def plan_for(cells=None, device="mps", ceiling=CEILING, with_compile=False):
    texts = {
        m.__name__.rpartition(".")[2]: Path(m.__file__).read_text() for m in (operations, checks)
    }
    compiled = [f"{operations.COMPILE}/{d}" for d in operations.DTYPES]
    skip = [cell for cell in [*EVERY, *compiled] if cells is not None and cell not in cells]
    return {"device": device, "skip": skip, "ceiling": ceiling, "compile": with_compile, **texts}


def run_child(
    cells=None,
    device="mps",
    *,
    python=sys.executable,
    entry=child_answers.__file__,
    script=dtype_child.__file__,
    ceiling=CEILING,
    with_compile=False,
    **variables,
):
    """(what it said by stage, its answers by cell, how the process ended)."""
    if device == "mps":
        variables.setdefault("SOFTMPS", "1")
    done = run_python(
        [python, "-B", entry, script],
        input=json.dumps(plan_for(cells, device, ceiling, with_compile)) + "\n",
        env=environment(**variables), cwd="/", timeout=TIMEOUT,
    )  # fmt: skip
    lines = [
        json.loads(line[len(dtype_child.MARK) :])
        for line in done.stdout.split("\n")
        if line.startswith(dtype_child.MARK)
    ]
    stages = {line["stage"]: line for line in lines if line["stage"] != "cell"}
    return stages, {line["cell"]: line for line in lines if line["stage"] == "cell"}, done


def run_many(jobs):
    """Each job a dict of arguments; two at a time: each imports torch."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: run_child(**job), jobs))


# What each child process of a deep probe imports after torch, in a second and a half. It has no mpsbar.
LOAD_SAMPLES = """
from mpsbar.dtypes import deep_child
deep_child._load_database()
for name in [name for name in sys.modules if name.partition(".")[0] == "mpsbar"]:
    del sys.modules[name]
"""
LOAD_SAMPLES_ON_MPS = run_beside_mps(LOAD_SAMPLES)

# The sizes that are timed on a GPU take softmps five seconds, and its speed says nothing of any GPU;
# those of the CPU take a second. test_dtype_child runs them.
SMALL_SPEEDS = [
    (f", {on_gpu}, {on_cpu}, ", ", 16, 16, ") for _, on_gpu, on_cpu, _ in operations.SPEEDS.values()
]


def copy_with_small_speeds(folder):
    """The probe's sources, in which small tensors are timed."""
    for module in (operations, checks, dtype_child):
        text = Path(module.__file__).read_text()
        if module is operations:
            for large, small in SMALL_SPEEDS:
                assert text.count(large) == 1
                text = text.replace(large, small)
        (folder / Path(module.__file__).name).write_text(text)
    return folder


def add_small_speeds(folder):
    """A start-up file that makes the same change in each child process of a probe."""
    return add_startup(folder, CHANGE_OPERATIONS.format(changes=SMALL_SPEEDS))


CHANGE_OPERATIONS = f"""{AFTER_TORCH}
import builtins
plain = builtins.compile
def compile(text, name, *rest, **more):
    if name == "operations.py":
        for old, new in {{changes!r}}:
            text = text.replace(old, new)
    return plain(text, name, *rest, **more)
builtins.compile = compile
"""


def hold_once(folder):
    """A start-up file that holds the throwaway in its first softmax, once, and leaves a file there."""
    place = str(folder / "held")
    held = (
        f"import os, time\n    if not os.path.exists({place!r}):\n"
        f"        open({place + '.new'!r}, 'w').write(str(os.getpid()))\n"
        f"        os.rename({place + '.new'!r}, {place!r}); time.sleep(600)\n    return lambda: x.softmax(-1)"
    )
    change = ("return lambda: x.softmax(-1)", held)
    return add_startup(folder / "startup", CHANGE_OPERATIONS.format(changes=[change]))


def wait_until_held(folder):
    """Its pid."""
    wait_for((folder / "held").exists, "a throwaway that is held")
    return int((folder / "held").read_text())
