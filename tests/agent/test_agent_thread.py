"""The agent's thread is none of the host's: not counted, not listed, not traced, joined at exit."""

import sys

import interpreters
import pytest
from host_kit import run_host

every_python = pytest.mark.parametrize("version", interpreters.VERSIONS)

START = """
import sys, threading, time, mpsbar
assert mpsbar.attach()
assert len(sys._current_frames()) == 2, "the agent runs"
"""


@every_python
def test_a_script_that_counts_lists_or_joins_its_threads_ends(workers, version):
    done = run_host(workers, START + """
while threading.active_count() > 1: pass
for thread in threading.enumerate():
    if thread is not threading.main_thread(): thread.join()
print([thread.name for thread in threading.enumerate()], list(threading._active.values()) == [threading.main_thread()])
""", version)  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("['MainThread'] True\n", "", 0)


@every_python
def test_answers_do_not_make_it_a_thread_of_threading(workers, version):
    """threading.current_thread() on it would add a dummy to the list, for good."""
    done = run_host(workers, START + """
import json, os, socket, torch
with socket.socket(socket.AF_UNIX) as link:
    link.connect(os.path.join(os.environ["MPSBAR_RUN_DIR"], f"{os.getpid()}.sock"))
    for number, method in enumerate(("hello", "stats", "tensors", "free")):
        link.sendall(json.dumps({"jsonrpc": "2.0", "id": number, "method": method}).encode() + b"\\n")
        answer = link.makefile().readline()
        assert "result" in answer, answer
print(threading.active_count())
""", version)  # fmt: skip
    assert (done.stdout, done.stderr) == ("1\n", "")


@every_python
def test_a_tracer_of_all_threads_does_not_see_it(workers, version):
    done = run_host(workers, """
import sys, threading, _thread
seen = []
def trace(frame, event, arg): seen.append(frame.f_code.co_filename)
threading.settrace(trace)
threading.setprofile(trace)
start = _thread.start_new_thread
def start_traced(function, arguments):  # as debugpy does
    def run(*arguments):
        sys.settrace(trace)
        threading.current_thread()
        function(*arguments)
    return start(run, arguments)
_thread.start_new_thread = start_traced
import mpsbar
assert mpsbar.attach()
print([name for name in seen if "mpsbar" in name], threading.active_count())
""", version)  # fmt: skip
    assert (done.stdout, done.stderr) == ("[] 1\n", "")


@every_python
def test_a_debugger_that_replaces_all_of_it_has_nothing_to_complain_of(workers, version):
    done = run_host(workers, """
import sys, threading, _thread
def settrace(function): print("do not use this beside a debugger")
sys.settrace = settrace
_thread._original_start_new_thread = _thread.start_new_thread  # as pydevd does
def start_traced(function, arguments):
    print("started by the debugger")
    return _thread._original_start_new_thread(function, arguments)
_thread.start_new_thread = _thread.start_new = start_traced
import mpsbar
assert mpsbar.attach()
print(threading.active_count())
""", version)  # fmt: skip
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads names in /proc")
@every_python
def test_the_kernel_knows_its_name(workers, version):
    done = run_host(workers, START + """
import glob
print(sorted(open(path).read().strip() == "mpsbar-agent" for path in glob.glob("/proc/self/task/*/comm")))
""", version)  # fmt: skip
    assert (done.stdout, done.stderr) == ("[False, True]\n", "")


@every_python
def test_it_has_ended_when_stop_returns(workers, version):
    done = run_host(workers, START + """
from mpsbar.agent import lifecycle
lifecycle._agent.stop()
end = time.monotonic() + 60  # its last frame may still wait for a core
while len(sys._current_frames()) > 1 and time.monotonic() < end: time.sleep(0.001)
print(len(sys._current_frames()), lifecycle.is_attached(), mpsbar.attach(), len(sys._current_frames()))
""", version)  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("1 False True 2\n", "", 0)


def test_faulthandler_and_pools_work_beside_it(workers):
    done = run_host(workers, START + """
import asyncio, concurrent.futures, faulthandler
with concurrent.futures.ThreadPoolExecutor(2) as pool: print(sum(pool.map(abs, range(4))))
print(asyncio.run(asyncio.to_thread(abs, -3)))
faulthandler.dump_traceback(all_threads=True, file=sys.stdout)
""")  # fmt: skip
    assert done.stdout.startswith("6\n3\n")
    assert done.stdout.count("agent_thread.py") == 1
    assert (done.stderr, done.returncode) == ("", 0)


@every_python
def test_nothing_is_imported_after_attach_whatever_is_asked(workers, version):
    """An import on our thread would run the host's import hooks and finders there."""
    done = run_host(workers, START + """
import json, os, socket, torch
imported = []
sys.addaudithook(lambda event, values: event == "import" and imported.append(values[0]))
ASKED = [
    ("hello", {}), ("stats", {}), ("stats", {"gpu_client": True}), ("tensors", {}), ("free", {"seconds": 3}),
    ("limit", {"bytes": 1 << 30}), ("limit", {"bytes": None}), ("free", {"when_possible": True}),
    ("free", {"cancel": True}), ("nope", {}),
]
def ask():
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.path.join(os.environ["MPSBAR_RUN_DIR"], f"{os.getpid()}.sock"))
        lines = link.makefile()
        for number, (method, params) in enumerate(ASKED):
            link.sendall(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\\n")
            assert lines.readline()
    print("asked", len(ASKED))
asking = threading.Thread(target=ask)
asking.start()
while asking.is_alive(): pass
print(imported)
""", version)  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("asked 10\n[]\n", "", 0)
