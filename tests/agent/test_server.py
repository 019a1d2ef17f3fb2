"""The agent's socket against valid, foreign and misbehaving clients."""

import json
import os
import select
import socket
import stat
import subprocess
import sys
import time

import pytest
from worker_kit import ATTACH, UNPACED, run_as_stranger, wait_for

from mpsbar.agent import server

IDLE = ATTACH + "import time\nwhile True: time.sleep(0.05)\n"


@pytest.fixture
def worker(workers):
    return workers.start(IDLE)


def test_it_introduces_itself(worker):
    hello = worker.ask("hello")
    assert hello["pid"] == worker.pid
    assert hello["parent"] == os.getpid()
    assert hello["protocol"] == 1
    assert hello["methods"] == ["hello", "stats", "free", "tensors", "limit"]
    assert hello["argv"][1].endswith("worker0.py")
    assert hello["executable"] == sys.executable
    assert hello["frameworks"] == {}


def test_without_a_framework_there_is_nothing_to_tell_or_free(worker):
    assert worker.ask("stats") == {
        "frameworks": {},
        "backends": {},
        "last_free": None,
        "kept_free": None,
        "progress": None,
        "fallbacks": None,
    }
    answer = worker.ask("free")
    assert (answer["state"], answer["freed"], answer["backends"]) == ("done", 0, {})


def test_a_reading_that_fails_is_answered_and_so_is_what_follows(workers):
    """As where a framework's next version has other counters."""
    worker = workers.start(
        """
        import time, mpsbar
        from mpsbar.agent import methods
        def fail(params): raise KeyError("allocated")
        methods.stats = fail
        mpsbar.attach()
        time.sleep(600)
        """
    )
    with worker.connect() as client:
        client.send("stats")
        client.send("hello")
        failed, hello = client.receive(), client.receive()
    assert failed["error"] == {"code": -32603, "message": "KeyError: 'allocated'"}
    assert hello["result"]["pid"] == worker.pid


def test_the_last_free_is_told_to_everyone_with_its_number(worker):
    for number in (1, 2):
        answer = worker.ask("free")
        told = worker.ask("stats")["last_free"]
        assert set(told) == {
            "number", "time", "state", "freed", "seconds", "when_possible", "reason",
        }  # fmt: skip
        assert told["reason"] is None
        assert (told["number"], told["state"], told["freed"]) == (number, "done", 0)
        assert (told["number"], told["seconds"]) == (answer["number"], answer["seconds"])
        assert abs(time.time() - told["time"]) < 600
    assert worker.ask("stats")["last_free"] == told


def test_a_forked_child_has_freed_nothing_yet():
    code = (
        "import os\nfrom mpsbar.agent.free import FreeJob, read_last_free\n"
        "assert read_last_free() is None\n"
        "while FreeJob(None).step() is None: pass\n"
        "assert read_last_free()['number'] == 1\n"
        "if not os.fork():\n os._exit(0 if read_last_free() is None else 7)\n"
        "assert os.wait()[1] == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_only_this_user_can_look_at_the_files(worker):
    assert stat.S_IMODE(worker.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(worker.run_dir.stat().st_mode) == 0o700


def test_an_unknown_method_is_an_error_and_the_talk_goes_on(worker):
    with worker.connect() as client:
        client.send("__import__")
        assert client.receive()["error"]["code"] == -32601
        assert client.ask("stats")["backends"] == {}


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.0\r\n\r\n", b"\x00\xff\n", b"[]\n", b"{}\n"])
def test_garbage_is_answered_once_and_dropped(worker, garbage):
    with worker.connect() as client:
        client.socket.sendall(garbage)
        assert "error" in client.receive()
        assert client.file.readline() == b""
    assert worker.ask("hello")["pid"] == worker.pid


def test_an_endless_line_is_dropped(worker):
    with worker.connect() as client:
        with pytest.raises(OSError):  # reset or broken pipe, as the kernel likes
            for _ in range(100):
                client.socket.sendall(b"x" * 65536)
    assert worker.ask("hello")["pid"] == worker.pid


def test_a_client_that_never_reads_is_dropped_and_delays_nobody(workers):
    worker = workers.start(f"{UNPACED}\n{IDLE}")
    with worker.connect() as deaf, worker.connect() as friend:
        deaf.socket.setblocking(False)
        line = b'{"jsonrpc":"2.0","id":1,"method":"hello"}\n'
        dropped = False
        for _ in range(20000):
            try:
                deaf.socket.send(line * 50)
            except BlockingIOError:
                friend.ask("stats")
            except OSError:
                dropped = True
                break
        assert dropped
        assert friend.ask("hello")["pid"] == worker.pid


def test_silent_half_lines_delay_nobody(worker):
    silent = [worker.connect() for _ in range(10)]
    for client in silent:
        client.socket.sendall(b'{"jsonrpc":')
    assert worker.ask("stats")["backends"] == {}
    for client in silent:
        client.socket.sendall(b'"2.0","id":1,"method":"stats"}\n')
        assert client.receive()["id"] == 1
        client.__exit__(None, None, None)


def test_answers_are_still_sent_after_the_client_ended_its_side(worker):
    with worker.connect() as client:
        client.send("hello")
        client.send("free")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.receive()["result"]["pid"] == worker.pid
        assert client.receive()["result"]["state"] == "done"
        assert client.file.readline() == b""


def _count_answered(crowd, pid):
    answered = 0
    for client in crowd:
        try:
            client.send("hello")
            answered += client.receive()["result"]["pid"] == pid
        except (OSError, AssertionError):
            pass
    return answered


def _answers(worker):
    try:
        return worker.ask("hello")
    except (OSError, AssertionError):
        return None


def test_of_a_crowd_the_oldest_idle_connections_give_way(worker):
    crowd = [worker.connect() for _ in range(70)]
    assert worker.ask("hello")["pid"] == worker.pid  # all of the crowd came before
    assert _count_answered(crowd[:7], worker.pid) == 0
    assert _count_answered(crowd[7:], worker.pid) == 63
    assert worker.ask("hello")["pid"] == worker.pid
    for client in crowd:
        client.__exit__(None, None, None)


def test_who_waits_for_an_answer_gives_way_last(workers):
    slow = "import mpsbar.agent.free as f\nf.FreeJob.step = lambda self: None\n"
    worker = workers.start(slow + IDLE)
    waiting = worker.connect()
    waiting.send("free")
    crowd = [worker.connect() for _ in range(64)]
    assert worker.ask("hello")["pid"] == worker.pid
    waiting.send("hello")
    assert waiting.receive()["result"]["pid"] == worker.pid
    for client in [*crowd, waiting]:
        client.__exit__(None, None, None)


def test_a_long_id_is_refused_and_leaves_nobody_unanswered(workers):
    """An answer repeats the id: one too long for a line once left all who asked without theirs."""
    worker = workers.start("import mpsbar.agent.tensors as t; t.DEADLINE_SECONDS = 60\n" + IDLE)
    with worker.connect() as long, worker.connect() as other:
        message = {"jsonrpc": "2.0", "id": "x" * 65_000, "method": "tensors"}
        long.socket.sendall(json.dumps(message).encode() + b"\n")
        other.send("tensors")
        assert other.receive()["result"]["state"] == "done"
        assert long.receive()["error"]["code"] == -32600
        assert long.file.readline() == b""


def test_sixty_four_hogs_with_long_ids_do_not_make_it_deaf(worker):
    message = {"jsonrpc": "2.0", "id": "x" * 65_000, "method": "tensors"}
    hogs = [worker.connect() for _ in range(64)]
    for hog in hogs:
        hog.socket.sendall(json.dumps(message).encode() + b"\n")
    worker.count_tensors()
    assert worker.ask("stats")["backends"] == {}
    for hog in hogs:
        hog.__exit__(None, None, None)


def test_an_answer_too_long_for_a_line_costs_only_who_asked(workers):
    endless = (
        "import mpsbar.agent.tensors as t\nt.TensorCensus.step = lambda s: {'x': 'y' * 70000}\n"
    )
    worker = workers.start(endless + IDLE)
    with worker.connect() as client:
        client.send("tensors")
        assert client.file.readline() == b""
    assert worker.ask("hello")["pid"] == worker.pid


def test_a_client_that_asks_without_end_is_dropped(workers):
    slow = "import mpsbar.agent.free as f\nf.FreeJob.step = lambda self: None\n"
    worker = workers.start(slow + IDLE)
    with worker.connect() as client:
        for _ in range(101):
            client.send("free")
        assert client.file.readline() == b""
    assert worker.ask("hello")["pid"] == worker.pid


def test_a_job_that_makes_its_host_wait_is_not_repeated_before_a_rest(workers):
    """Twenty times the pause of the last; who asks sooner gets its result again."""
    code = """
import time
import mpsbar.agent.tensors as t
calls = 0
def count(*_):
    global calls
    calls += 1
    time.sleep(0.3)
    return {"state": "done", "calls": calls}
t.count = count
t.DEADLINE_SECONDS = 60  # of a count: main may need more than the usual 5 s to come by
"""
    worker = workers.start(code + IDLE)
    start = time.monotonic()
    with worker.connect() as client:
        answers = [client.ask_once("tensors") for _ in range(20)]
    rested = (time.monotonic() - start) / (20 * 0.3)
    assert answers[0]["calls"] == 1
    assert "age" not in answers[0]
    # One more because a few clicks are not slowed.
    assert answers[-1]["calls"] <= 2 + rested
    again = [answer for answer in answers if "age" in answer]
    assert len(again) == 20 - answers[-1]["calls"]


def test_a_free_that_may_wait_does_not_go_round_the_rest(workers):
    code = """
import time, torch
import mpsbar.agent.free as f
calls = 0
def collect():
    global calls
    calls += 1
    time.sleep(0.3)
f.collect_on_main = collect
f.COLLECT_SECONDS = 60
def tell():
    while True:
        time.sleep(0.1)
        print("calls", calls, flush=True)
"""
    busy = "import threading; threading.Thread(target=tell, daemon=True).start()\n" + ATTACH
    worker = workers.start(code + busy + "while True: time.time()\n")
    start = time.monotonic()
    with worker.connect() as client:
        for _ in range(20):
            client.ask_once("free", when_possible=True)
    while select.select([worker.process.stdout], [], [], 0)[0]:
        worker.wait_line("calls")
    newest = worker.wait_line("calls")
    rested = (time.monotonic() - start) / (20 * 0.3)  # it is tried again until then
    assert 1 <= int(newest.split()[1]) <= 3 + rested


def test_idle_connections_are_closed(workers):
    code = "import mpsbar.agent.server as s\ns.IDLE_SECONDS = s.CHECK_SECONDS = 0.2\n" + IDLE
    worker = workers.start(code)

    def is_answered_then_closed():
        # On a busy machine a connection may be idle for long enough before it asks.
        with worker.connect() as client:
            try:
                client.ask("hello")
            except (OSError, AssertionError):
                return False
            return client.file.readline() == b""  # closed from the other end

    wait_for(is_answered_then_closed, "an end of an idle connection")
    wait_for(lambda: _answers(worker), "agent")


def test_a_deleted_run_directory_comes_back(workers):
    worker = workers.start("import mpsbar.agent.server as s\ns.CHECK_SECONDS = 0.2\n" + IDLE)
    worker.freeze()  # else the check may come between the two
    worker.path.unlink()
    worker.run_dir.rmdir()
    worker.thaw()
    wait_for(worker.path.exists, "socket")
    assert worker.ask("hello")["pid"] == worker.pid
    assert stat.S_IMODE(worker.run_dir.stat().st_mode) == 0o700


def test_the_check_comes_at_least_twice_a_minute():
    assert server.CHECK_SECONDS <= 30


def test_a_socket_replaced_by_another_is_bound_anew(workers):
    worker = workers.start("import mpsbar.agent.server as s\ns.CHECK_SECONDS = 0.2\n" + IDLE)
    worker.freeze()  # else its own socket may be there again first
    worker.path.unlink()
    thief = socket.socket(socket.AF_UNIX)
    thief.bind(str(worker.path))
    thief.close()
    worker.thaw()
    wait_for(lambda: _answers(worker), "agent")


def test_a_dead_process_with_this_pid_left_its_file(workers):
    code = f"""
        import os, socket
        path = os.environ["MPSBAR_RUN_DIR"] + f"/{{os.getpid()}}.sock"
        socket.socket(socket.AF_UNIX).bind(path)
        {ATTACH.strip()}
        print("attached")
        import time
        while True: time.sleep(0.05)
    """
    worker = workers.start(code)
    worker.wait_line("attached")
    assert worker.ask("hello")["pid"] == worker.pid


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_by_the_agent(workers):
    worker = workers.start(IDLE)
    # Doors wide open: only the kernel's word on who connects is left.
    workers.folder.chmod(0o755)
    worker.run_dir.chmod(0o755)
    worker.path.chmod(0o777)
    said = run_as_stranger(f"""
        link = socket.socket(socket.AF_UNIX)
        link.connect({str(worker.path)!r})
        try:
            link.sendall(b'{{"jsonrpc":"2.0","id":1,"method":"hello"}}\\n')
            print(os.geteuid(), repr(link.recv(100)))
        except OSError as error:
            print(os.geteuid(), "b''", error)
    """)
    assert said.startswith("65534 b''")
    assert worker.ask("hello")["pid"] == worker.pid


def test_a_host_that_gave_sigpipe_its_default_back_survives_a_client_that_goes(workers):
    code = "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n" + IDLE
    worker = workers.start(code)
    for _ in range(20):
        client = worker.connect()
        client.socket.sendall(b'{"jsonrpc":"2.0","id":1,"method":"hello"}\n' * 200)
        client.file.close()
        client.socket.close()
    assert worker.ask("hello")["pid"] == worker.pid
    assert worker.process.poll() is None


def test_a_host_out_of_descriptors_is_not_burdened(workers):
    code = (
        ATTACH
        + """
import os, resource, sys, time
used = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (used, used))
print("full")
time.sleep(1)
start = time.thread_time_ns(), time.process_time_ns()
time.sleep(2)
print("spent", (time.process_time_ns() - start[1]) / 1e9)
resource.setrlimit(resource.RLIMIT_NOFILE, (used, used))
while True: time.sleep(0.05)
"""
    )
    worker = workers.start(code)
    worker.wait_line("full")
    client = worker.connect()
    spent = float(worker.wait_line("spent").split()[1])
    client.__exit__(None, None, None)
    # Two seconds on a spinning listener would cost about two seconds.
    assert spent < 1.0


def test_many_monitors_may_ask_for_the_same_free(worker):
    clients = [worker.connect() for _ in range(5)]
    for client in clients:
        client.send("free")
    assert [client.receive()["result"]["state"] for client in clients] == ["done"] * 5
    for client in clients:
        client.__exit__(None, None, None)


def test_the_agent_imports_no_framework(workers):
    code = ATTACH + "import sys, time\nwhile True: time.sleep(0.05); print(*sys.modules)\n"
    worker = workers.start(code)
    for method in ("hello", "stats", "free", "tensors"):
        worker.ask(method)
    modules = {name.split(".")[0] for name in worker.wait_line("mpsbar").split()}
    modules |= {name.split(".")[0] for name in worker.wait_line("mpsbar").split()}
    assert "mpsbar" in modules
    assert not modules & {"torch", "mlx", "numpy", "psutil"}


def test_every_question_of_an_eager_client_is_answered_in_order(worker):
    with worker.connect() as eager, worker.connect() as other:
        for _ in range(200):
            eager.send("stats")
        assert [eager.receive()["id"] for _ in range(200)] == list(range(1, 201))
        assert other.ask("hello")["pid"] == worker.pid


def test_rounds_are_ten_at_once_then_ten_a_second(workers):
    """By a clock of the test's own: from when on the agent would hear its clients again."""
    agent = server.Agent()  # not started: only its pace is asked for
    agent._answered = True

    def pause(now):
        agent._pace(now, 0.0)
        return pytest.approx(agent._clients_wait_until - now)

    try:
        start = time.monotonic() + 1
        assert [pause(start) for _ in range(10)] == [0] * 10
        assert pause(start) == 0.1
        assert pause(start + 0.1) == 0.1
        # Left alone for long, ten at once again and no more.
        assert [pause(start + 60) for _ in range(10)] == [0] * 10
        assert pause(start + 60) == 0.1
        agent._answered = False  # clients that only come and go
        assert [pause(start + 99) for _ in range(40)] == [0] * 40
        assert pause(start + 99) == 0.025
    finally:
        agent.close()


def test_work_is_followed_by_a_rest_of_twenty_times_as_long(workers):
    agent = server.Agent()

    def pause(now, worked):
        agent._pace(now, worked)
        return pytest.approx(agent._clients_wait_until - now)

    try:
        start = time.monotonic() + 1
        # A monitor's, once a second.
        assert [pause(start + second, 0.01) for second in range(100)] == [0] * 100
        assert [pause(start + 200, 0.01) for _ in range(5)] == [0] * 5
        assert pause(start + 200, 0.01) == 0.2
        assert pause(start + 200.2, 0.1) == 2.0
    finally:
        agent.close()


def test_who_sends_many_requests_at_once_gets_a_few_answers_a_round(workers, monkeypatch):
    """Sixty connections with a hundred requests each: what one round answers is bounded."""
    connections, requests = 60, 100
    line = b'{"jsonrpc": "2.0", "id": %d, "method": "no"}\n'
    agent = server.Agent()  # its rounds are run by the test
    answered, paced, clients = [], [], []
    answer = agent._answer
    monkeypatch.setattr(agent, "_answer", lambda *call: answered.append(call) or answer(*call))
    monkeypatch.setattr(agent, "_pace", lambda now, worked: paced.append(worked))
    try:
        while len(agent._connections) < connections:
            clients.append(socket.socket(socket.AF_UNIX))
            clients[-1].connect(agent.path)
            agent._serve_round()
        for client in clients:
            client.sendall(b"".join(line % number for number in range(requests)))
        paced.clear()
        monkeypatch.setattr(time, "thread_time", iter(range(0, 1000, 5)).__next__)
        agent._serve_round()
        assert len(answered) == connections * server.MAX_ANSWERED_AT_ONCE
        assert paced == [5]  # by the CPU that it took
        while any(connection.lines for connection in agent._connections):
            agent._serve_round()
        assert len(answered) == connections * requests
        assert len(paced) == -(-requests // server.MAX_ANSWERED_AT_ONCE)
        for client in clients:
            with client.makefile("rb") as file:
                ids = [json.loads(file.readline())["id"] for _ in range(requests)]
            assert ids == list(range(requests))
    finally:
        agent._listener.remove_file()
        agent.close()
        for client in clients:
            client.close()


@pytest.mark.parametrize("line", [b'{"jsonrpc": "2.0", "id": 1, "method": "no"}\n', b"garbage\n"])
def test_what_is_no_method_is_paced_like_one(workers, line):
    agent = server.Agent()
    try:
        connection = server.Connection(-1, b"", 0.0)
        agent._answered = False
        agent._answer(connection, line.rstrip())
        assert agent._answered
    finally:
        agent.close()


def test_a_few_clicks_are_not_slowed(worker):
    with worker.connect() as client:
        for method in ("hello", "stats", "free", "stats", "free", "free", "free", "stats"):
            assert client.ask(method)


def test_polls_leave_no_garbage_for_the_hosts_collector(workers):
    worker = workers.start(f"import gc; gc.disable()\n{UNPACED}\n{ATTACH}" + """
import sys
for line in sys.stdin: print("garbage", gc.collect(), flush=True)
""", popen={"stdin": subprocess.PIPE})  # fmt: skip

    def collect():
        worker.process.stdin.write(b"\n")
        return int(worker.wait_line("garbage").split()[1])

    with worker.connect() as client:
        client.ask("stats")
        collect()
        for _ in range(50):
            client.ask("stats")
            client.ask("hello")
        assert collect() < 10  # some for the connection, none for each poll


def test_who_hangs_up_before_the_answer_costs_nobody_else_theirs(worker):
    """One job, two who asked for it: the first is gone when it ends."""
    worker.freeze()
    with worker.connect() as first, worker.connect() as second:
        first.send("free")
        second.send("free")
        first.file.close()
        first.socket.close()
        worker.thaw()
        assert second.receive()["result"]["state"] == "done"
