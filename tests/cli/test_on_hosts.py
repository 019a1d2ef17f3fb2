"""status, top and free --host over real ssh servers on loopback, good ones and bad ones."""

import argparse
import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading

import psutil
import pytest
from fleet_kit import MLX_WORKER, STATUS_LINE, find_free_port, run_mpsbar
from host_kit import add_stand_in
from schema_kit import read_json
from worker_kit import ATTACH, ROOT, TIMEOUT, need_module, wait_for

from mpsbar.cli import on_hosts

pytestmark = pytest.mark.usefixtures("workers")


def ask(workers, hosts, command, *arguments):
    with run_mpsbar(workers, command, "--ssh", hosts.options, *arguments) as process:
        out, err = process.communicate(timeout=TIMEOUT)
        return process.returncode, out, err


def test_two_hosts_side_by_side(workers, ssh_hosts):
    need_module("mlx")
    worker = workers.start(MLX_WORKER)
    ssh_hosts.add("alpha")
    ssh_hosts.add("beta", f"echo 'Welcome to beta'; echo '{STATUS_LINE}'")
    code, out, err = ask(workers, ssh_hosts, "status", "--host", "alpha", "--host", "beta")
    assert (code, err) == (0, "")
    alpha, beta = out.split("\nbeta  ")
    assert alpha.startswith("alpha  ")
    assert f"{worker.pid}  " in alpha
    assert "20.0 MB" in alpha
    assert beta.startswith("Apple M1")
    code, out, _ = ask(workers, ssh_hosts, "status", "--json", "--host", "alpha", "--host", "beta")
    answer = read_json("status-hosts", out)
    assert answer["schema"] == 1
    pids = [worker["pid"] for worker in answer["hosts"]["alpha"]["status"]["workers"]]
    assert worker.pid in pids
    assert answer["hosts"]["beta"]["status"]["machine"]["chip"] == "Apple M1"


def test_a_cache_is_freed_there(workers, ssh_hosts):
    need_module("mlx")
    worker = workers.start(MLX_WORKER)
    worker.wait_line("ready")
    worker.wait_asleep()  # a Free waits five seconds for a main that does not wait yet
    ssh_hosts.add("alpha")
    code, out, err = ask(workers, ssh_hosts, "free", str(worker.pid), "--host", "alpha")
    assert (code, err) == (0, "")
    assert out.startswith(f"alpha: {worker.pid} worker0.py: freed 16.0 MB")
    code, out, _ = ask(workers, ssh_hosts, "free", "999999", "--json", "--host", "alpha")
    assert code == 1
    assert read_json("free-hosts", out)["hosts"]["alpha"]["freed"][0]["state"] == "gone"


def test_a_pid_is_of_one_host(workers, ssh_hosts):
    code, out, err = ask(workers, ssh_hosts, "free", "1", "--host", "a", "--host", "b")
    assert (code, out) == (2, "")
    assert "a PID belongs to one host" in err


def test_bad_hosts_are_a_line_each_and_delay_nobody(workers, ssh_hosts):
    silent = socket.create_server(("127.0.0.1", 0))  # accepts, and never says a word
    ssh_hosts.add_port("hangs", silent.getsockname()[1])
    ssh_hosts.add_port("refuses", find_free_port())
    ssh_hosts.add("none", "")
    ssh_hosts.add("old", "echo '{\"schema\": 0}'")
    ssh_hosts.add("new", "echo '{\"schema\": 99}'")
    ssh_hosts.add("floods", "exec tr '\\000' 'x' < /dev/zero")
    ssh_hosts.add("lines", "exec yes hello")
    ssh_hosts.add("fails", "echo 'mpsbar: no\x1b[2J settings' >&2; exit 1")
    ssh_hosts.add("good", f"echo '{STATUS_LINE}'")
    names = ("hangs", "refuses", "none", "old", "new", "floods", "lines", "fails", "good")
    arguments = [word for name in names for word in ("--host", name)]
    code, out, err = ask(workers, ssh_hosts, "status", *arguments)
    silent.close()
    assert (code, err) == (1, "")
    lines = {line.split("  ")[0]: line.split("  ", 1)[1] for line in out.split("\n\n")}
    assert "\x1b" not in out
    assert lines["hangs"].startswith("no answer (")
    assert "Connection refused" in lines["refuses"]
    assert (
        lines["none"]
        == "no answer (mpsbar is not installed there: uv tool install '.[terminal]' in a checkout of mpsbar)"
    )
    update = "uv tool install --reinstall '.[terminal]' in a newer checkout of mpsbar"
    older, newer = "older than this one (schema 0); there", "newer than this one (schema 99); here"
    assert lines["old"] == f"no answer (its mpsbar is {older}: {update})"
    assert lines["new"] == f"no answer (its mpsbar is {newer}: {update})"
    assert lines["floods"] == "no answer (its output is too long)"
    assert lines["lines"] == "no answer (unexpected output)"
    assert lines["fails"] == "no answer (mpsbar: no�[2J settings)"
    assert lines["good"].startswith("Apple M1")


# As mpsbar was before --watch, why and free --json, with argparse's own complaints.
OLD_MPSBAR = """
import argparse
parser = argparse.ArgumentParser(prog="mpsbar")
verbs = parser.add_subparsers(dest="verb", required=True)
verbs.add_parser("status").add_argument("--json", action="store_true")
verbs.add_parser("free").add_argument("pid", type=int)
parser.parse_args()
"""


def test_a_host_whose_mpsbar_refuses_what_it_is_asked(workers, ssh_hosts, tmp_path):
    """Every command says that it is older, and the command that helps."""
    old = tmp_path / "old.py"
    old.write_text(OLD_MPSBAR)
    ssh_hosts.add("old", f'exec {sys.executable} {old} "$@"')
    text = (
        "its mpsbar is older and can't do this: uv tool install --reinstall '.[terminal]' in a"
        " newer checkout of mpsbar"
    )
    for command in (("free", "--all"), ("why",)):
        code, out, err = ask(workers, ssh_hosts, *command, "--host", "old")
        assert (code, out, err) == (1, f"old: no answer ({text})\n", "")
    watch = ("--ssh", ssh_hosts.options, "--host", "old", "--watch", "0.5", "--json")
    with run_mpsbar(workers, "status", *watch) as process:
        while (found := json.loads(process.stdout.readline())["hosts"]["old"])["problem"] is None:
            pass  # it has not answered yet
        assert found["problem"] == text


def test_a_host_that_dies_and_comes_back(workers, ssh_hosts, tmp_path):
    """Its last rows stay, and say since when they are old; a good one goes on."""
    once, back = tmp_path / "once", tmp_path / "back"
    script = f"if [ ! -e {once} ]; then touch {once}; echo '{STATUS_LINE}'; exit 3; fi; while [ ! -e {back} ]; do sleep 0.1; done; while echo '{STATUS_LINE}'; do sleep 1; done"
    ssh_hosts.add("flaky", script)
    ssh_hosts.add("good", f"while echo '{STATUS_LINE}'; do sleep 1; done")
    arguments = (
        "--ssh",
        ssh_hosts.options,
        "--host",
        "flaky",
        "--host",
        "good",
        "--watch",
        "0.5",
        "--json",
    )
    with run_mpsbar(workers, "status", *arguments) as process:

        def wait_hosts(is_right):
            while line := process.stdout.readline():
                if is_right(json.loads(line)["hosts"]):
                    return
            raise AssertionError(process.communicate(timeout=TIMEOUT))

        wait_hosts(lambda found: found["flaky"]["problem"] and found["flaky"]["status"])
        back.touch()
        wait_hosts(lambda found: not found["flaky"]["problem"] and not found["good"]["problem"])


def drain(terminal):
    """Read what is printed until the end: nobody can write to a terminal that is full."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_top_draws_in_place_and_leaves_no_ssh(workers, ssh_hosts, term):
    """On a screen of textual's; a terminal that cannot show one gets the text again and again."""
    status = json.loads(STATUS_LINE)
    status["workers"] = [{"pid": 77, "name": "train.py", "state": "live", "backends": []}]
    ssh_hosts.add("alpha", f"while echo '{json.dumps(status)}'; do sleep 1; done")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mpsbar", "top", "--ssh", ssh_hosts.options, "--host", "alpha"],
        env=workers.env(TERM=term), cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        redrawn, headline = b"\x1b[H\x1b[2J", b"1 of 1 hosts answer"
        wanted, unwanted = (headline, redrawn) if term == "xterm" else (redrawn, headline)
        seen = b""
        while b"train.py" not in seen or wanted not in seen:
            seen += os.read(ours, 4096)
        assert unwanted not in seen
        children = psutil.Process(process.pid).children()
        assert [child.name() for child in children] == ["ssh"]
        process.send_signal(signal.SIGTERM if term == "xterm" else signal.SIGINT)
        threading.Thread(target=drain, args=(ours,), daemon=True).start()
        assert process.wait(timeout=TIMEOUT) == 0
        wait_for(lambda: not any(child.is_running() for child in children), "end of ssh")
    finally:
        process.kill()
        process.wait(timeout=TIMEOUT)
        os.close(ours)


WHY_LINE = json.dumps(
    [
        {
            "pid": 77, "name": "train\x1b[2J.py", "ended": 1e9, "ran": 60.0, "peak": 2 << 30,
            "sentence": "train.py ran out of memory", "certainty": "certain", "evidence": ["its last words"],
            "next_steps": ["use a smaller batch"],
            "verdict": {
                "fallbacks": {
                    "operations": [{"name": "aten::lcm\x1b[2J", "count": 3, "where": "/w/<i>train.py:4"}, 7],
                    "torch": "2.13.0", "is_counted": True, "is_complete": True, "is_profiled": False,
                }
            },
        }
    ]
)  # fmt: skip


def test_why_runs_ended_there(workers, ssh_hosts):
    """The real mpsbar there, one that answers by hand, an older one and one without runs."""
    done = subprocess.run(
        [sys.executable, "-m", "mpsbar", "run", sys.executable, "-c", "import torch; raise ValueError('planted')"],
        env=workers.env(PYTHONPATH=f"{add_stand_in(workers.folder)}:{ROOT}"), cwd=ROOT,
        capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert "planted" in done.stderr
    ssh_hosts.add("real")
    ssh_hosts.add("told", f"echo '{WHY_LINE}'")
    ssh_hosts.add(
        "older", "echo \"mpsbar: there is no verb 'why' (see mpsbar --help)\" >&2; exit 2"
    )
    ssh_hosts.add("empty", "echo '[]'; exit 1")
    ssh_hosts.add("recent", f"cd {ROOT}; {sys.executable} -m mpsbar no-such-command")
    names = ("real", "told", "older", "recent", "empty")
    arguments = [word for name in names for word in ("--host", name)]
    code, out, err = ask(workers, ssh_hosts, "why", *arguments)
    assert (code, err) == (0, "")
    assert "ValueError: planted" in out.split("told: ")[0]
    assert "\x1b" not in out
    assert "told: train.py ran out of memory.\n  train�[2J.py (77), ended " in out
    assert (
        "ran for 60 s, peak 2.0 GB\n  Certainty: certain\n  Evidence: its last words\n"
        "  → use a smaller batch\n  CPU fallbacks: 1 operation, 3 times\n"
        "    aten::lcm�[2J: 3 times, first at /w/<i>train.py:4\n"
    ) in out
    for name in ("older", "recent"):
        assert (
            f"{name}: no answer (its mpsbar is older and can't do this: uv tool install --reinstall '.[terminal]' in a newer checkout of mpsbar)"
            in out
        )
    assert "empty: mpsbar knows of no run that ended there in the last 7 days" in out
    code, out, _ = ask(workers, ssh_hosts, "why", "train\x1b.py", "--host", "empty")
    assert (code, out) == (1, "empty: no run that ended in the last 7 days matches 'train�.py'\n")
    code, out, _ = ask(workers, ssh_hosts, "why", "--json", "--host", "told", "--host", "older")
    found = read_json("why-hosts", out)["hosts"]
    (end,) = found["told"]["ended"]
    assert end["next_steps"] == ["use a smaller batch"]
    assert end["fallbacks"]["operations"][0]["count"] == 3
    assert found["older"]["ended"] == []


def test_one_report_of_all_hosts_made_here(workers, ssh_hosts, tmp_path):
    """What a host says is text in the page: nothing of it becomes markup."""
    hostile = STATUS_LINE.replace("Apple M1", "<script>alert(1)</script>")
    ssh_hosts.add("alpha", f"case $1 in status) echo '{hostile}';; why) echo '{WHY_LINE}';; esac")
    ssh_hosts.add("none", "")
    page = tmp_path / "macs.html"
    hosts = ("--host", "alpha", "--host", "none")
    code, out, err = ask(workers, ssh_hosts, "report", *hosts, "-o", str(page))
    assert (code, out) == (0, f"{page}\n")
    assert (
        err
        == "mpsbar: none: no answer (mpsbar is not installed there: uv tool install '.[terminal]' in a checkout of mpsbar)\n"
    )
    text = page.read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script>alert" not in text
    assert ">alpha</h2>" in text
    assert "train.py ran out of memory" in text
    assert "3 times" in text
    assert "/w/&lt;i&gt;train.py:4" in text
    assert "no answer (mpsbar is not installed there" in text


def test_a_busy_worker_there_is_freed_when_possible_and_by_name(workers, ssh_hosts):
    need_module("mlx")
    worker = workers.start(MLX_WORKER)
    worker.wait_line("ready")
    worker.wait_asleep()  # a Free waits five seconds for a main that does not wait yet
    ssh_hosts.add("alpha")
    arguments = ("worker0", "--when-possible", "--host", "alpha")
    code, out, err = ask(workers, ssh_hosts, "free", *arguments)
    assert (code, err) == (0, "")
    assert out.startswith(f"alpha: {worker.pid} worker0.py: freed 16.0 MB")
    code, out, _ = ask(
        workers, ssh_hosts, "free", str(worker.pid), "--cancel", "--host", "alpha", "--json"
    )
    (outcome,) = json.loads(out)["hosts"]["alpha"]["freed"]
    assert outcome["pid"] == worker.pid
    ssh_hosts.add(
        "older",
        'echo "mpsbar free: unrecognized arguments: --when-possible (see mpsbar free --help)" >&2; exit 2',
    )
    code, out, _ = ask(workers, ssh_hosts, "free", "--all", "--when-possible", "--host", "older")
    assert code == 1
    assert (
        "its mpsbar is older and can't do this: uv tool install --reinstall '.[terminal]' in a newer checkout of mpsbar"
        in out
    )


def test_hosts_and_groups_of_the_settings(workers, ssh_hosts):
    for name in ("alpha", "beta", "gamma"):
        ssh_hosts.add(name, f"echo '{STATUS_LINE}'")
    env = {"MPSBAR_HOSTS": "alpha beta", "MPSBAR_GROUPS": "lab=beta,gamma"}

    def find(*arguments):
        with run_mpsbar(
            workers, "status", "--json", "--ssh", ssh_hosts.options, *arguments, **env
        ) as process:
            out, err = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, err) == (0, "")
        return list(json.loads(out)["hosts"])

    assert find("--hosts") == ["alpha", "beta"]
    assert find("--host", "lab") == ["beta", "gamma"]
    assert find("--hosts", "--host", "lab") == ["alpha", "beta", "gamma"]
    code, out, err = ask(workers, ssh_hosts, "status", "--hosts")
    assert (code, out) == (1, "")
    assert 'write hosts = ["mac1", "mac2"]' in err


@pytest.mark.parametrize("command", [("why",), ("free", "--all")])
def test_ctrl_c_leaves_no_ssh(workers, ssh_hosts, command):
    ssh_hosts.add("slow", "sleep 1000")
    with run_mpsbar(workers, *command, "--ssh", ssh_hosts.options, "--host", "slow") as process:
        children = wait_for(lambda: psutil.Process(process.pid).children(), "ssh")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT)
    wait_for(lambda: not any(child.is_running() for child in children), "end of ssh")


def test_a_watch_under_nohup_outlives_its_terminal(workers, ssh_hosts):
    ssh_hosts.add("good", f"while echo '{STATUS_LINE}'; do sleep 0.2; done")
    arguments = ("--json", "--watch", "0.2", "--ssh", ssh_hosts.options, "--host", "good")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited, as by nohup
    try:
        with run_mpsbar(workers, "status", *arguments) as process:
            assert process.stdout.readline()
            process.send_signal(signal.SIGHUP)
            for _ in range(5):
                assert process.stdout.readline()
            assert process.poll() is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_a_login_script_prints_is_no_answer(workers, ssh_hosts):
    ssh_hosts.add(
        "chatty",
        "echo '[motd] welcome'; echo '{today}'; echo '[\"welcome\"]'; echo hello; echo '[]'; exit 1",
    )
    ssh_hosts.add("only", "echo '[motd] welcome'; echo 'mpsbar: broken' >&2; exit 1")
    ssh_hosts.add("endless", "exec yes '[motd]'")
    names = ("--host", "chatty", "--host", "only", "--host", "endless")
    _code, out, err = ask(workers, ssh_hosts, "why", *names)
    assert err == ""
    assert "chatty: mpsbar knows of no run that ended" in out
    assert "only: no answer (mpsbar: broken)" in out
    assert "endless: no answer (unexpected output)" in out


@pytest.mark.parametrize("watch", [(), ("--watch", "0.2")])
def test_json_of_a_login_script_is_no_answer(workers, ssh_hosts, watch):
    """Lines of JSON before ours are skipped; where no status follows, what failed is said."""
    motd = "echo '{today}'; echo '{\"motd\": 1}'; echo '[]'; echo 42; echo '{\"schema\": 3}'"
    ssh_hosts.add("chatty", f"{motd}; echo '{STATUS_LINE}'")
    ssh_hosts.add("broken", "echo '{\"motd\": 1}'; echo 'mpsbar: broken' >&2; exit 1")
    ssh_hosts.add("newer", "echo '{\"motd\": 1}'; echo '{\"schema\": 99}'; exec sleep 1000")
    names = ("chatty", "broken") if not watch else ("chatty", "broken", "newer")
    arguments = [word for name in names for word in ("--host", name)]
    arguments += ["--json", "--ssh", ssh_hosts.options, *watch]
    with run_mpsbar(workers, "status", *arguments) as process:
        while line := process.stdout.readline():
            found = json.loads(line)["hosts"]
            if all(host["status"] or host["problem"] for host in found.values()):
                break
    assert found["chatty"]["status"]["machine"]["chip"] == "Apple M1"
    assert found["broken"]["problem"] == "mpsbar: broken"
    if watch:
        words = "its mpsbar is newer than this one (schema 99); here: "
        assert found["newer"]["problem"].startswith(words)


def test_a_report_says_what_it_does_not_know(workers, ssh_hosts, tmp_path):
    status = STATUS_LINE.replace('"level": "ok"', '"level": "new"')
    ssh_hosts.add(
        "half", f"case $1 in status) echo '{status}';; *) echo 'no disk' >&2; exit 1;; esac"
    )
    page = tmp_path / "macs.html"
    code, _out, _err = ask(workers, ssh_hosts, "report", "--host", "half", "-o", str(page))
    assert code == 0
    text = page.read_text()
    assert "How runs ended there is not known: no answer (no disk)." in text
    assert 'class="health unknown"' in text
    assert 'class="health ok"' not in text


def test_a_free_from_the_screen_is_of_the_process_that_was_seen(workers, ssh_hosts):
    """Its pid may be another process's by now, on that host."""
    worker = workers.start(ATTACH + "import time\nwhile True: time.sleep(0.05)\n")
    ssh_hosts.add("alpha")
    options = argparse.Namespace(ssh=ssh_hosts.options)
    started = psutil.Process(worker.pid).create_time()
    for moved, words in ((-100.0, "no connected process has this PID"), (0.0, "freed ")):
        told = on_hosts._free_from_screen("alpha", worker.pid, started + moved, options, None)
        assert told.startswith(f"alpha: {worker.pid} ")
        assert words in told


def test_a_notice_of_many_processes_is_short(ssh_hosts):
    freed = [{"pid": pid, "name": "train.py", "state": "done", "freed": 0} for pid in range(1, 101)]
    ssh_hosts.add("many", f"echo '{json.dumps({'schema': 1, 'freed': freed})}'")
    options = argparse.Namespace(ssh=ssh_hosts.options)
    lines = on_hosts._free_from_screen("many", None, None, options, None).split("\n")
    assert len(lines) == 9
    assert lines[0].startswith("many: 1 train.py: ")
    assert lines[-1] == "many: and 92 more"
