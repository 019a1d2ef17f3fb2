"""One agent in a process: attached once, never raising, gone after fork, quiet at exit."""

import subprocess
import sys
import textwrap

import interpreters
import pytest
from fork_server import run_python
from worker_kit import ATTACH, ROOT, TIMEOUT, wait_for

IDLE = "import time\nwhile True: time.sleep(0.05)\n"


def run(workers, code, python=sys.executable, **extra):
    """A whole life: what it printed, what it wrote to stderr, how it ended."""
    env = workers.env(PYTHONPATH=str(ROOT), **extra)
    command = [python, "-W", "error", "-c", textwrap.dedent(code)]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=TIMEOUT, cwd="/"
    )


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_it_lives_and_dies_quietly_in_every_python(workers, version):
    python = interpreters.need(version)
    worker = workers.start(ATTACH + IDLE, python=python, PYTHONWARNINGS="error")
    assert worker.ask("hello")["python"].startswith(version)
    assert worker.ask("stats") == {
        "frameworks": {},
        "backends": {},
        "last_free": None,
        "kept_free": None,
        "progress": None,
        "fallbacks": None,
    }
    assert worker.ask("free")["state"] == "done"
    assert worker.count_tensors()["groups"] == []
    done = run(workers, "import mpsbar; print(mpsbar.attach())", python)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_attaching_twice_is_one_agent(workers):
    done = run(workers, """
        import mpsbar, sys, threading
        print(mpsbar.attach(), mpsbar.attach(), mpsbar.attach())
        print(len(sys._current_frames()))
    """)  # fmt: skip
    assert done.stdout == "True True True\n2\n"


def test_attaching_from_many_threads_at_once_is_one_agent(workers):
    done = run(workers, """
        import mpsbar, sys, threading
        threads = [threading.Thread(target=mpsbar.attach) for _ in range(20)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(len(sys._current_frames()))
    """)  # fmt: skip
    assert done.stdout == "2\n"


@pytest.mark.parametrize(("value", "attached"), [("1", "False"), ("yes", "False"), ("0", "True")])
def test_the_switch_turns_it_off(workers, value, attached):
    done = run(workers, "import mpsbar; print(mpsbar.attach())", MPSBAR_DISABLE=value)
    assert (done.stdout.strip(), done.stderr) == (attached, "")


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        ("os.environ['MPSBAR_RUN_DIR'] = '/dev/null/run'", "Not a directory"),
        ("os.environ['MPSBAR_RUN_DIR'] = '/tmp/' + 'x' * 120", "longer than 103 bytes"),
        ("os.environ['MPSBAR_RUN_DIR'] = __import__('sys').executable", "is not a directory"),
        ("__import__('sys').implementation.name = 'pypy'", "only CPython"),
        (
            "__import__('_thread').start_new = None\n"
            "__import__('_thread').start_new_thread = lambda *_: (_ for _ in ()).throw("
            'RuntimeError("can\'t start new thread"))',
            "can't start new thread",
        ),
        (
            "__import__('sys').modules['gevent.monkey'] = type('M', (), "
            "{'is_module_patched': staticmethod(lambda name: True)})",
            "gevent has replaced threads",
        ),
        ("__import__('sys').modules['selectors'] = None", "selectors"),
    ],
)
def test_what_cannot_work_is_one_line_and_never_raises(workers, prepare, told):
    done = run(workers, f"import os\n{prepare}\nimport mpsbar\nprint(mpsbar.attach())\n")
    assert (done.stdout, done.returncode) == ("False\n", 0)
    assert done.stderr.startswith("mpsbar: not attached: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(workers.run_dir.iterdir()) == []


def test_a_closed_stderr_does_not_matter(workers):
    done = run(workers, """
        import os, sys
        os.environ["MPSBAR_RUN_DIR"] = "/dev/null/run"
        sys.stderr.close(); sys.stderr = None
        import mpsbar
        print(mpsbar.attach())
    """)  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("False\n", "", 0)


def test_a_real_limit_on_threads_is_survived(workers):
    """RLIMIT_NPROC does not bind root, so the child becomes another user first where it can."""
    done = run(workers, """
        import os, resource, tempfile
        import mpsbar.agent.lifecycle, mpsbar
        if os.geteuid() == 0:
            os.chmod(os.environ["MPSBAR_RUN_DIR"] + "/..", 0o755)
            os.setuid(64321)
        os.environ["MPSBAR_RUN_DIR"] = tempfile.mkdtemp(dir="/tmp") + "/run"
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        print(mpsbar.attach(), os.listdir(os.environ["MPSBAR_RUN_DIR"]))
        os.rmdir(os.environ["MPSBAR_RUN_DIR"]); os.rmdir(os.environ["MPSBAR_RUN_DIR"][:-4])
    """)  # fmt: skip
    assert done.stdout == "False []\n", done.stderr
    assert done.stderr == "mpsbar: not attached: can't start new thread\n"


def test_the_file_goes_with_a_normal_end(workers):
    for ending in ("", "raise SystemExit(3)", "raise ValueError", "import sys; sys.exit()"):
        run(workers, f"import mpsbar; mpsbar.attach()\n{ending}")
        assert [file.name for file in workers.run_dir.iterdir()] == ["ended"]  # its last words


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_a_forked_child_has_no_agent_and_may_attach_its_own(workers, version):
    done = run(workers, """
        import os, stat, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork beside any thread
        import mpsbar
        mpsbar.attach()
        names = lambda: sorted(os.listdir(os.environ["MPSBAR_RUN_DIR"]))
        def is_socket(number):
            try: return stat.S_ISSOCK(os.fstat(number).st_mode)
            except OSError: return False  # that of the list itself
        sockets = lambda: sum(is_socket(int(n)) for n in os.listdir("/dev/fd"))
        assert sockets() > 0
        pid = os.fork()
        if not pid:
            print("child", len(sys._current_frames()), sockets(), flush=True)
            print(mpsbar.attach(), len(names()), flush=True)
            sys.exit()
        os.waitpid(pid, 0)
        print("parent", len(sys._current_frames()), [n for n in names() if n != "ended"] == [f"{os.getpid()}.sock"])
    """, interpreters.need(version))  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "child 1 0",
        "True 2",
        "parent 2 True",
    ]


def test_a_child_that_is_forked_inside_attach_has_no_agent_and_no_error(workers):
    """A Free may come there, and a finalizer of the host's that it runs may fork."""
    done = run(workers, """
        import os, mpsbar
        from mpsbar.agent import lifecycle
        start = lifecycle.Agent.start
        def start_and_fork(agent):
            start(agent)
            pid = os.fork()
            if pid: os.waitpid(pid, 0)
        lifecycle.Agent.start = start_and_fork
        is_attached = mpsbar.attach()
        lifecycle.Agent.start = start
        print(is_attached, lifecycle.is_attached(), mpsbar.attach(), flush=True)
    """)  # fmt: skip
    assert (done.stdout, done.stderr) == ("False False True\nTrue True True\n", "")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_leave_the_parents_agent_alone(workers, method):
    script = workers.folder / "pool.py"
    script.write_text(
        textwrap.dedent(f"""
        import multiprocessing, os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import mpsbar.agent.lifecycle
        def work(n):
            return mpsbar.agent.lifecycle.is_attached()
        if __name__ == "__main__":
            mpsbar.attach()
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                print(pool.map(work, range(4)))
            print(os.listdir(os.environ["MPSBAR_RUN_DIR"]) == [f"{{os.getpid()}}.sock"])
    """)
    )
    env = workers.env(PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert (done.stdout, done.stderr) == ("[False, False, False, False]\nTrue\n", "")


def test_the_parent_still_answers_while_forked_children_live(workers):
    worker = workers.start(
        ATTACH + "import os, time\nfor _ in range(3):\n    if not os.fork():\n"
        "        while os.getppid() != 1: time.sleep(0.05)\n        os._exit(0)\n"
        "print('forked')\n" + IDLE
    )
    worker.wait_line("forked")
    assert worker.ask("hello")["pid"] == worker.pid
    worker.process.kill()
    # No child holds the listening socket: it is refused, not left hanging.
    wait_for(lambda: _is_refused(worker), "refusal")


def _is_refused(worker):
    try:
        worker.connect().__exit__(None, None, None)
    except ConnectionRefusedError:
        return True
    return False


def test_dataloader_workers_have_no_agent(workers):
    worker = workers.start("""
        import os, torch, mpsbar
        from torch.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            mpsbar.attach()
            data = TensorDataset(torch.ones(8, 2))
            loader = DataLoader(data, num_workers=2, persistent_workers=True)
            print(sum(batch[0].sum().item() for batch in loader))
            print(os.listdir(os.environ["MPSBAR_RUN_DIR"]) == [f"{os.getpid()}.sock"])
            import time
            time.sleep(600)
    """)
    worker.wait_line("16.0")
    worker.wait_line("True")
    assert worker.ask("stats")["backends"]["cpu"]["state"] == "in use"


NO_KNOCK = {
    "out of descriptors": """
import resource
used = len(os.listdir("/dev/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (used, used))
try:
    while True: os.open(os.devnull, os.O_RDONLY)
except OSError: pass
""",
    "the socket's file is gone": "os.unlink(path)\n",
}


@pytest.mark.parametrize("version", interpreters.OLDEST_AND_NEWEST)
@pytest.mark.parametrize("trouble", NO_KNOCK)
def test_it_ends_quietly_where_nobody_can_connect_to_it(workers, trouble, version):
    start = """
import atexit, json, os, sys, mpsbar
from mpsbar.agent import lifecycle
atexit.register(lambda: print(lifecycle._agent._thread.is_alive(), os.path.exists(path)))  # runs last
assert mpsbar.attach()
path = os.path.join(os.environ["MPSBAR_RUN_DIR"], "%d.sock" % os.getpid())
"""
    done = run(workers, start + NO_KNOCK[trouble], interpreters.need(version))
    assert (done.stdout, done.stderr, done.returncode) == ("False False\n", "", 0)
    assert len(list((workers.run_dir / "ended").iterdir())) == 1


def test_a_host_in_a_hurry_at_exit_is_not_held_up(workers):
    """Exit while a client is connected, while one floods, and while a free is under way."""
    code = "import torch\n" + ATTACH + "import sys; sys.stdin.read(1)"
    command = [sys.executable, "-c", code]
    worker = workers.run(command, popen={"stdin": subprocess.PIPE}, forked=True).wait_attached()
    with worker.connect() as client, worker.connect() as flood:
        client.ask("stats")
        client.send("free")
        for _ in range(200):
            flood.send("stats")
        worker.process.stdin.write(b"x")
        worker.process.stdin.flush()
        out, err = worker.process.communicate(timeout=TIMEOUT)
    assert (out, err, worker.process.returncode) == (b"", b"", 0)


HOOKED = """
import os, subprocess, sys, warnings, torch
from mpsbar.agent import lifecycle
assert lifecycle.attach_by_hook(quiet=False)  # as `mpsbar run` and `mpsbar enable` do
def in_child(work):
    pid = os.fork()
    if not pid:
        try: work()
        finally: os._exit(0)
    os.waitpid(pid, 0)
"""


def run_hooked(workers, code):
    env = workers.env(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1")
    command = [sys.executable, "-c", HOOKED + textwrap.dedent(code)]
    return run_python(command, env=env, timeout=300, cwd="/")


def test_a_forked_child_of_a_hooked_process_attaches_and_compiles_without_a_hook_of_ours(workers):
    """A global forward hook would make torch.compile warn, and fail with fullgraph=True."""
    done = run_hooked(workers, """
        def work():
            warnings.simplefilter("error")
            print(lifecycle.is_attached(), len(torch.nn.modules.module._global_forward_pre_hooks))
            compiled = torch.compile(torch.nn.Linear(2, 3), fullgraph=True, backend="eager")
            print(tuple(compiled(torch.ones(1, 2)).shape), flush=True)
        in_child(work)
    """)  # fmt: skip
    assert (done.stdout, done.stderr) == ("True 0\n(1, 3)\n", "")


def test_children_that_only_load_data_or_become_another_program_get_no_agent(workers):
    done = run_hooked(workers, """
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 2
            def __getitem__(self, index): return lifecycle.is_attached()
        print(list(torch.utils.data.DataLoader(Data(), num_workers=2, batch_size=None)), flush=True)
        tell = lambda: print("before exec", lifecycle.is_attached(), flush=True)
        subprocess.run(["true"], preexec_fn=tell)
        print(os.listdir(os.environ["MPSBAR_RUN_DIR"]) == [f"{os.getpid()}.sock"])
    """)  # fmt: skip
    assert (done.stdout, done.stderr) == ("[False, False]\nbefore exec False\nTrue\n", "")


def test_a_grandchild_has_an_agent_of_its_own(workers):
    done = run_hooked(workers, """
        names = lambda: len(os.listdir(os.environ["MPSBAR_RUN_DIR"]))
        def work():
            print(lifecycle.is_attached(), names(), flush=True)
            in_child(lambda: print(lifecycle.is_attached(), names(), flush=True))
        in_child(work)
        print(lifecycle.is_attached())
    """)  # fmt: skip
    assert (done.stdout, done.stderr) == ("True 2\nTrue 3\nTrue\n", "")
