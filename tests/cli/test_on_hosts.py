"""status, top and free --host over real ssh servers on loopback, good ones and bad ones."""

import json
import os
import pty
import socket
import subprocess
import sys

import psutil
import pytest
from fleet_kit import MLX_WORKER, run_mpsbar
from worker_kit import ROOT, TIMEOUT, need_module, wait_for

pytestmark = pytest.mark.usefixtures("workers")
STATUS_LINE = '{"schema": 1, "time": 1, "machine": {"chip": "Apple M1"}, "workers": [], "processes": [], "health": {"level": "ok", "reasons": []}}'


def ask(workers, hosts, verb, *arguments):
    with run_mpsbar(workers, verb, "--ssh", hosts.options, *arguments) as process:
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
    answer = json.loads(out)
    assert answer["schema"] == 1
    pids = [worker["pid"] for worker in answer["hosts"]["alpha"]["status"]["workers"]]
    assert worker.pid in pids
    assert answer["hosts"]["beta"]["status"]["machine"]["chip"] == "Apple M1"


def test_a_cache_is_freed_there(workers, ssh_hosts):
    need_module("mlx")
    worker = workers.start(MLX_WORKER)
    ssh_hosts.add("alpha")
    code, out, err = ask(workers, ssh_hosts, "free", str(worker.pid), "--host", "alpha")
    assert (code, err) == (0, "")
    assert out.startswith(f"alpha: {worker.pid} worker0.py: freed 16.0 MB")
    code, out, _ = ask(workers, ssh_hosts, "free", "999999", "--json", "--host", "alpha")
    assert code == 1
    assert json.loads(out)["hosts"]["alpha"]["freed"][0]["state"] == "gone"


def test_a_pid_is_of_one_host(workers, ssh_hosts):
    code, out, err = ask(workers, ssh_hosts, "free", "1", "--host", "a", "--host", "b")
    assert (code, out) == (2, "")
    assert "a PID belongs to one host" in err


def test_bad_hosts_are_a_line_each_and_delay_nobody(workers, ssh_hosts):
    silent = socket.create_server(("127.0.0.1", 0))  # accepts, and never says a word
    ssh_hosts.add_port("hangs", silent.getsockname()[1])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ssh_hosts.add_port("refuses", taken.getsockname()[1])
    ssh_hosts.add("none", "")
    ssh_hosts.add("old", "echo '{\"schema\": 99}'")
    ssh_hosts.add("floods", "exec tr '\\000' 'x' < /dev/zero")
    ssh_hosts.add("lines", "exec yes hello")
    ssh_hosts.add("fails", "echo 'mpsbar: no\x1b[2J settings' >&2; exit 1")
    ssh_hosts.add("good", f"echo '{STATUS_LINE}'")
    names = ("hangs", "refuses", "none", "old", "floods", "lines", "fails", "good")
    arguments = [word for name in names for word in ("--host", name)]
    code, out, err = ask(workers, ssh_hosts, "status", *arguments)
    silent.close()
    assert (code, err) == (1, "")
    lines = {line.split("  ")[0]: line.split("  ", 1)[1] for line in out.split("\n\n")}
    assert "\x1b" not in out
    assert lines["hangs"].startswith("no answer (")
    assert "Connection refused" in lines["refuses"]
    assert lines["none"] == "no answer (mpsbar is not installed there: uv tool install mpsbar)"
    assert lines["old"] == "no answer (its mpsbar is another version (schema 99))"
    assert lines["floods"] == "no answer (its answer is too long)"
    assert lines["lines"] == "no answer (it sends something other than answers)"
    assert lines["fails"] == "no answer (mpsbar: no�[2J settings)"
    assert lines["good"].startswith("Apple M1")


def test_a_host_that_dies_and_comes_back(workers, ssh_hosts, tmp_path):
    """Its last rows stay, and say since when they are old; a good one goes on."""
    once = tmp_path / "once"
    script = f"if [ ! -e {once} ]; then touch {once}; echo '{STATUS_LINE}'; exit 3; fi; sleep 3; while echo '{STATUS_LINE}'; do sleep 1; done"
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
        wait_hosts(lambda found: not found["flaky"]["problem"] and not found["good"]["problem"])


def test_top_draws_in_place_and_leaves_no_ssh(workers, ssh_hosts):
    ssh_hosts.add("alpha", f"while echo '{STATUS_LINE}'; do sleep 1; done")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mpsbar", "top", "--ssh", ssh_hosts.options, "--host", "alpha"],
        env=workers.env(TERM="xterm"), cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        seen = b""
        while b"Apple M1" not in seen:
            seen += os.read(ours, 4096)
        assert b"\x1b[H\x1b[2J" in seen
        children = psutil.Process(process.pid).children()
        assert [child.name() for child in children] == ["ssh"]
        process.send_signal(2)
        assert process.wait(timeout=TIMEOUT) == 0
        wait_for(lambda: not any(child.is_running() for child in children), "end of ssh")
    finally:
        process.kill()
        process.wait(timeout=TIMEOUT)
        os.close(ours)


@pytest.mark.parametrize("host", ["-oProxyCommand=evil", "a b", "a;evil", "$(evil)", "", "a\nb"])
def test_a_host_is_never_an_option_or_a_command(workers, host):
    with run_mpsbar(workers, "status", f"--host={host}") as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (1, "")
    assert "is not the name of a host" in err
