"""What a process leaves behind when it ends by itself: a small record, and nothing when it is killed."""

import json
import os
import signal
import stat
import subprocess
import sys
import sysconfig
import textwrap
import time

import interpreters
import psutil
import pytest
from agent.test_secrets import SECRETS
from worker_kit import NO_MPS, ROOT, TIMEOUT

from mpsbar.agent import conventions, fallback_warnings, last_words, user_folders
from mpsbar.agent.backends import IN_USE, NOT_INITIALISED, mps

ATTACH = "import mpsbar, sys, os; assert mpsbar.attach()\n"
HOME = "/Users/ada/run"


def run(workers, code, *options, python=sys.executable, args=("-c",), **extra):
    env = workers.env(PYTHONPATH=str(ROOT), **extra)
    command = [python, *options, *args, ATTACH + textwrap.dedent(code)]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=TIMEOUT, cwd=workers.folder
    )


def read_all(workers):
    folder = workers.run_dir / "ended"
    files = sorted(folder.iterdir()) if folder.exists() else []
    return [json.loads(file.read_text()) for file in files]


def read_one(workers):
    (record,) = read_all(workers)
    return record


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_an_unhandled_exception_in_every_python(workers, version):
    python = interpreters.need(version)
    done = run(workers, f"raise ValueError('no {HOME}/data\\nsecond line')", python=python)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("second line")
    record = read_one(workers)
    assert record["error"] == {
        "type": "ValueError", "text": "no ~/run/data", "where": "<string>:2", "is_main": True,
    }  # fmt: skip
    assert record["command"][1:] == ["-c"]  # the code may hold anything
    assert 0 <= record["ended"] - record["attached"] < TIMEOUT
    assert record["started"] <= record["attached"] + 0.1  # a tick of the kernel's clock, and more


def test_the_file_is_for_this_user_alone_and_no_other_is_left(workers):
    run(workers, "os.umask(0)")
    (file,) = (workers.run_dir / "ended").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert file.name == conventions.ENDED_NAME % (
        int(read_one(workers)["ended"] * 1000), read_one(workers)["pid"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("home", "text", "short"),
    [
        ("/home/jane", "no /home/jane/x", "no ~/x"),
        ("/home/jane", "no /home/janet/x", "no ~/x"),  # no name of another user either
        ("/srv/jane", "no /srv/jane/x, no /srv/janet/x", "no ~/x, no /srv/janet/x"),
        ("/srv/jane", "file:///srv/jane/x -I/srv/jane/include", "file://~/x -I~/include"),
        ("/", "no /x", "no /x"),
        ("", "no /x", "no /x"),
    ],
)
def test_the_home_in_the_text_of_an_error(monkeypatch, home, text, short):
    monkeypatch.setitem(user_folders._homes, os.geteuid(), home)
    assert last_words._first_line(OSError(text)) == short


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("pass", 0, None),
        ("sys.exit(3)", 3, None),
        ("sys.exit('text')", 1, None),
        ("os.kill(os.getpid(), 2); import time; time.sleep(60)", -2, "KeyboardInterrupt"),
        ("try: 1 / 0\nexcept Exception: pass", 0, None),
        ("import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()", 0, None),
        ("sys.excepthook = lambda *_: None\nraise KeyError('x')", 1, "KeyError"),
    ],
)  # fmt: skip
def test_ends_by_itself(workers, code, status, kind):
    done = run(workers, code)
    assert done.returncode == status
    error = read_one(workers)["error"]
    assert (error and error["type"]) == kind
    assert error is None or error["is_main"]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("os._exit(3)", 3),
        ("os.abort()", -6),
        ("os.kill(os.getpid(), 9)", -9),
        ("os.kill(os.getpid(), 15)", -15),
        ("import ctypes; ctypes.string_at(0)", -11),
        ("os.execv(sys.executable, [sys.executable, '-c', ''])", 0),
    ],
)
def test_what_is_killed_says_nothing(workers, code, status):
    assert run(workers, code).returncode == status
    assert read_all(workers) == []


def test_a_module_and_a_script_of_the_main_program(workers):
    (workers.folder / "train.py").write_text(ATTACH + "def f(): raise OSError('disk')\nf()\n")
    env = workers.env(PYTHONPATH=str(ROOT))
    for command in (["-m", "train", "--key", "SECRET"], ["-W", "ignore", "train.py", "SECRET"]):
        subprocess.run(
            [sys.executable, *command], env=env, cwd=workers.folder, capture_output=True,
            timeout=TIMEOUT,
        )  # fmt: skip
    module, script = read_all(workers)
    assert module["command"][1:] == ["-m", "train"]
    assert script["command"][1:] == ["-W", "ignore", "train.py"]
    for record in (module, script):
        assert record["error"]["is_main"]
        assert record["error"]["where"] == "train.py:2"


@pytest.mark.parametrize("options", [["-c"], ["-uc"], ["-uBc"]])
def test_no_code_is_kept_however_the_option_is_written(workers, options):
    assert run(workers, "'SECRET'", args=options).returncode == 0
    assert read_one(workers)["command"][1:] == ["-c"]
    assert "SECRET" not in json.dumps(read_one(workers))


def test_the_file_itself_has_no_secret(workers):
    """Masked before it is written: a title, the name of a script, an error, also where it is cut."""
    secrets = " ".join(SECRETS)
    # The text is cut before it is masked, here amid a key, and what is masked is short.
    masked = "0" * (4 * last_words.MAX_TEXT - 16)
    errors = [f"denied for api_key=hunter2 {secrets}", f"{masked} {SECRETS[4]} {secrets}"]
    for error in errors:
        script = workers.folder / f"train_{SECRETS[3]}.py"
        script.write_text(ATTACH + f"raise ValueError({error!r})\n")
        site = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        command = [f"serve --api-key hunter2 {secrets}", "-u", str(script)]
        script.write_text(site + script.read_text())
        done = subprocess.run(
            command, executable=sys.executable, env=workers.env(PYTHONPATH=str(ROOT)),
            cwd=workers.folder, capture_output=True, text=True, timeout=TIMEOUT,
        )  # fmt: skip
        assert done.stderr.strip().endswith(error)
    records = read_all(workers)
    assert [record["command"][:2] for record in records] == [["serve", "-u"]] * 2
    assert records[0]["error"]["text"].startswith("denied for *** ***")
    for record in records:
        assert "hunter2" not in json.dumps(record)
        assert not [secret for secret in SECRETS if secret[:12] in json.dumps(record)]


def test_a_prompt_leaves_an_error_behind_and_ends_well(workers):
    done = subprocess.run(
        [sys.executable, "-i", "-c", ATTACH], input="1 / 0\n", env=workers.env(PYTHONPATH=str(ROOT)),
        capture_output=True, text=True, timeout=TIMEOUT, cwd=workers.folder,
    )  # fmt: skip
    assert done.returncode == 0
    assert "ZeroDivisionError" in done.stderr
    error = read_one(workers)["error"]
    assert (error["type"], error["is_main"]) == ("ZeroDivisionError", False)


def test_pytest_and_ipython_leave_one_behind_too(workers):
    (workers.folder / "test_it.py").write_text(ATTACH + "def test_it(): assert not 'secret'\n")
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(
        [sys.executable, *command], env=workers.env(PYTHONPATH=str(ROOT)), cwd=workers.folder,
        capture_output=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.returncode == 1
    shell = "from IPython.core.interactiveshell import InteractiveShell as S\nS().run_cell('1/0')"
    assert run(workers, shell).returncode == 0
    records = read_all(workers)
    assert [(r["error"] or {}).get("is_main") for r in records] in ([False, False], [False, None])


def test_multiprocessing_children_and_forks_leave_their_own(workers):
    (workers.folder / "many.py").write_text(
        "import multiprocessing, os\n"
        "def child():\n    import mpsbar; assert mpsbar.attach()\n"
        "if __name__ == '__main__':\n"
        "    import mpsbar; assert mpsbar.attach()\n"
        "    if os.fork() == 0: os._exit(0)\n"
        "    p = multiprocessing.get_context('spawn').Process(target=child); p.start(); p.join()\n"
    )
    subprocess.run(
        [sys.executable, "many.py"], env=workers.env(PYTHONPATH=str(ROOT)), cwd=workers.folder,
        check=True, timeout=TIMEOUT,
    )  # fmt: skip
    child, parent = read_all(workers)
    assert child["parent"] == parent["pid"]


@pytest.mark.parametrize("value", ["0", "false", "OFF", "no"])
def test_the_variable_turns_it_off(workers, value):
    run(workers, "raise ValueError('x')", MPSBAR_LAST_WORDS=value)
    assert read_all(workers) == []


def test_the_settings_file_in_the_run_directory_turns_it_off(workers):
    (workers.run_dir / conventions.NO_LAST_WORDS).touch()
    run(workers, "raise ValueError('x')")
    assert read_all(workers) == []


@pytest.mark.parametrize(
    "error",
    [
        "class Evil(Exception):\n    def __str__(self): raise RuntimeError('no')\nraise Evil",
        "class Evil(Exception):\n    __module__ = None\nraise Evil('x' * (1 << 24))",
        "raise ValueError('\\ud800 \\x1b[31m\\0')",
        "sys.last_value = 7",
        "sys.modules['__main__'] = None\nraise ValueError('x')",
        "def f(): f()\nf()",
    ],
)
def test_what_a_host_may_raise_changes_nothing_for_it(workers, error):
    alone = subprocess.run(
        [sys.executable, "-c", "import mpsbar, sys, os\n" + error], capture_output=True, text=True,
        env=workers.env(PYTHONPATH=str(ROOT)), timeout=TIMEOUT, cwd=workers.folder,
    )  # fmt: skip
    done = run(workers, error)
    assert (done.returncode, done.stderr) == (alone.returncode, alone.stderr)
    for record in read_all(workers):
        assert record["error"] is None or len(record["error"]["text"]) <= last_words.MAX_TEXT


def test_a_folder_that_cannot_be_used_is_nobodys_concern(workers):
    (workers.run_dir / "ended").write_text("a file in its place")
    done = run(workers, "print('done')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    (workers.run_dir / "ended").unlink()
    (workers.run_dir / "ended").mkdir(0o777)
    os.chmod(workers.run_dir / "ended", 0o777)
    assert run(workers, "pass").stderr == ""
    assert list((workers.run_dir / "ended").iterdir()) == []


def test_there_are_never_more_than_some_hundred(workers):
    folder = workers.run_dir / "ended"
    folder.mkdir(0o700)
    for number in range(conventions.MAX_ENDED_FILES + 3):
        (folder / (conventions.ENDED_NAME % (number, 7))).touch()
    run(workers, "pass")
    left = sorted(file.name for file in folder.iterdir())
    assert len(left) == conventions.MAX_ENDED_FILES
    assert left[0] == conventions.ENDED_NAME % (4, 7)


@pytest.mark.skipif(bool(NO_MPS), reason=str(NO_MPS))
def test_torchs_out_of_memory_with_its_numbers_and_counters(workers):
    code = """
        import torch
        x = torch.zeros(1 << 20, device="mps")
        torch.zeros(1 << 40, dtype=torch.uint8, device="mps")
    """
    done = run(workers, code, SOFTMPS="1")
    assert done.returncode == 1
    record = read_one(workers)
    assert record["error"]["is_main"]
    assert "memory" in record["error"]["text"] or "Invalid buffer size" in record["error"]["text"]
    assert record["memory"]["allocated"] >= 4 << 20
    assert record["frameworks"]["torch"]


def test_a_child_of_an_attached_process_that_only_forks_leaves_nothing(workers):
    run(workers, "pid = os.fork()\nif pid == 0: sys.exit(0)\nos.waitpid(pid, 0)")
    assert read_one(workers)["pid"]  # of the parent alone


def test_a_signal_handler_that_exits(workers):
    worker = workers.start(
        "import signal, sys, time, mpsbar\n"
        "signal.signal(15, lambda *_: sys.exit(7))\n"
        "assert mpsbar.attach()\nwhile True: time.sleep(0.01)\n"
    )
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(TIMEOUT) == 7
    assert read_one(workers)["error"] is None


def test_when_this_process_started():
    assert last_words.read_start(time.time()) == pytest.approx(
        psutil.Process().create_time(),
        abs=2.0,  # the boot is known to a second
    )


@pytest.mark.parametrize("stat", [b"", b"7 (python) S", b"7 (a) b) S" + b" x" * 40])
def test_a_start_that_cannot_be_read_is_not_known(monkeypatch, stat):
    monkeypatch.setattr(last_words.gil_io, "read_file", lambda _: stat)
    assert last_words.read_start(time.time()) is None


def test_a_look_for_fallbacks_that_was_cut_or_failed_is_told_as_such(monkeypatch):
    def fail(_):
        raise RuntimeError("half gone")

    monkeypatch.setattr(fallback_warnings, "MAX_SECONDS", -1.0)
    monkeypatch.delitem(sys.modules, "mpsbar.agent.fallbacks", raising=False)
    for state, seen in (
        (lambda _: IN_USE, "cut"),
        (fail, "cut"),
        (lambda _: NOT_INITIALISED, None),
    ):
        monkeypatch.setattr(mps, "state", state)
        assert last_words._read_fallbacks() == {"fallbacks": [], "fallback_seen": seen}
