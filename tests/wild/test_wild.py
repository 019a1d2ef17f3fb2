"""Ten of the programs of `make wild`, with what the tests have installed; five only by `make thorough`."""

import subprocess
import sys

import pytest
import softmps
from thorough import two_sizes

from wild import runner
from wild.runner import run_program

# The longest runs twice, with a server that has to start.
pytestmark = [
    pytest.mark.starts_processes,
    pytest.mark.timeout(900),
    pytest.mark.skipif(softmps.why_not() is not None, reason=str(softmps.why_not())),
]

# Those that run most differently: worker processes beside a training loop, a pool that forks and compiles, threads
# that are replaced, a loop of windows, another framework. Kernels are also tested in tests/agent/test_notebook.py,
# gunicorn in tests/cli/test_run_servers.py.
SMALL = ["data_loaders", "fork_pool", "gevent_late", "qt_window", "mlx_loop"]
MORE = ["plain_loop", "threads_counted", "asyncio_loop", "gunicorn_preload", "ipython_kernel"]


@two_sizes("name", small=SMALL, whole=MORE)
def test_a_program_runs_as_it_does_without_mpsbar(name):
    for _ in range(3):  # on busy cores it may have ended before anybody came to free it
        row = run_program(name, sys.executable, forked=True)
        was_freed = row.load is not None and row.load.done > 0
        if was_freed or row.verdict not in ("not seen", "same"):
            break
    assert row.is_good, str(row)
    assert row.load is not None, str(row)
    assert row.load.done > 0, str(row)


@pytest.mark.parametrize(
    ("alone", "beside", "verdict"),
    [
        ("", "", "same"),
        ("a warning\n", "another warning\n", "same"),
        ("Exception ignored in: a\n", "Exception ignored in: b\n", "same"),
        ("", "Exception ignored in: <function Variable.__del__>\n", "complains"),
        ("", "Traceback (most recent call last):\n", "complains"),
        ("", "mpsbar: not attached\n", "complains"),
    ],
)
def test_what_a_program_says_more_than_alone_is_a_complaint(alone, beside, verdict, tmp_path):
    load = runner.Load(tmp_path)
    load.polls = 1
    said = [subprocess.CompletedProcess([], 0, "result 1\n", text) for text in (alone, beside)]
    assert runner._compare(*said, load)[0] == verdict
