"""A host closes descriptors by number and opens its own: those numbers are not the agent's any more.

Daemons do it (os.closerange), and what they open next gets the lowest free numbers. The agent may not
write to them, read from them, accept on them or close them; it may come back later, or stay away.
"""

import json
import subprocess
import sys

import interpreters
import pytest
from host_kit import ALONE, run_host, start_host
from worker_kit import TIMEOUT

oldest_and_newest = pytest.mark.parametrize("version", interpreters.OLDEST_AND_NEWEST)

START = """
import gc, os, select, socket, stat, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork beside any thread
import torch, mpsbar
def numbers():
    found = {int(name) for name in os.listdir("/dev/fd")}
    return {n for n in found if is_open(n)}  # not the one that listed them
def is_open(number):
    try: os.fstat(number)
    except OSError: return False
    return True
def put(number, other):
    # What dup2 does for daemons, or a new file at the lowest free number.
    if other != number:
        os.dup2(other, number)
        os.close(other)
def text(number): return b"checkpoint %d " % number * 100
def open_file(number):
    return os.open(f"{number}.bin", os.O_RDWR | os.O_CREAT, 0o600)
def check_file(number):
    status = os.stat(f"{number}.bin")
    assert os.path.samestat(os.fstat(number), status), f"{number} is another file"
    with open(f"{number}.bin", "rb") as file: found = file.read()
    assert found == text(number), f"{number} holds {found!r}"
    assert os.lseek(number, 0, os.SEEK_CUR) == len(text(number)), number
def take_as_files(ours):
    for number in ours:
        put(number, open_file(number))
        os.write(number, text(number))
def check_files(ours):
    for number in ours: check_file(number)
before = numbers()
def find_ours():
    found = numbers() - before
    if not found: found = {os.open(os.devnull, os.O_RDONLY) for _ in range(6)}  # without an agent
    return found
"""
ATTACH = "assert mpsbar.attach()\n"


def check_end(out, err, code, expected):
    assert err == "", err
    assert (out, code) == (expected, 0)


def read_files(workers):
    return {path.name: path.read_bytes() for path in sorted(workers.run_dir.parent.rglob("*.bin"))}


def expected(files):
    return {name: b"checkpoint %d " % int(name.removesuffix(".bin")) * 100 for name in files}


# ------------------------------------------------------------------------------ at exit
@oldest_and_newest
@pytest.mark.parametrize(
    "close",
    [
        "os.closerange(3, 4096)",
        "for number in numbers() - before: os.close(number)",
        "take_as_files(find_ours())",
    ],
)
def test_no_byte_lands_in_a_file_at_exit(workers, version, close):
    done = run_host(workers, START + ATTACH + f"""
{close}
if not os.path.exists("3.bin"):
    taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(32)]  # the lowest free numbers
    for number in taken: os.close(number)
    take_as_files(taken)
    assert taken[0] == 3
print("ends")
""", version)  # fmt: skip
    check_end(done.stdout, done.stderr, done.returncode, "ends\n")
    files = read_files(workers)
    assert files
    assert files == expected(files)


# ---------------------------------------------------------------- in a forked child
@oldest_and_newest
@pytest.mark.parametrize("attached_again", [False, True])
def test_a_forked_child_keeps_the_files_at_our_old_numbers(workers, version, attached_again):
    done = run_host(workers, START + ATTACH + f"""
ours = find_ours()
take_as_files(ours)
pid = os.fork()
if not pid:
    check_files(ours)
    if {attached_again}: assert mpsbar.attach()
    gc.collect()
    check_files(ours)
    print("child", flush=True)
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0, "the child failed"
check_files(ours)
print("parent")
""", version)  # fmt: skip
    check_end(done.stdout, done.stderr, done.returncode, "child\nparent\n")
    files = read_files(workers)
    assert files == expected(files)


@oldest_and_newest
def test_files_that_a_forked_child_opens_survive_what_is_left_of_the_agent(workers, version):
    """The child's copy of the agent is closed; its objects die later, and their numbers are taken."""
    done = run_host(workers, START + ATTACH + """
ours = find_ours()
pid = os.fork()
if not pid:
    take_as_files(ours)
    gc.collect()
    assert mpsbar.attach()
    gc.collect()
    check_files(ours)
    second = os.fork()
    if not second:
        check_files(ours)
        sys.exit()
    assert os.waitpid(second, 0)[1] == 0
    print("child", flush=True)
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0, "the child failed"
print("parent")
""", version)  # fmt: skip
    check_end(done.stdout, done.stderr, done.returncode, "child\nparent\n")
    files = read_files(workers)
    assert files == expected(files)


@oldest_and_newest
def test_a_daemon_attached_before_and_after_it_became_one(workers, version):
    """As python-daemon does it: fork, setsid, fork, close all, three new standard descriptors."""
    done = run_host(workers, START + ATTACH + """
read, write = os.pipe()
if os.fork():
    os.close(write)
    print(os.read(read, 100).decode())
    os._exit(sys.stdout.flush() or 0)
os.setsid()
if os.fork(): os._exit(0)
os.dup2(write, 100)
os.closerange(0, 100)
for number in range(3): os.open(os.devnull, os.O_RDWR)
take_as_files(range(3, 20))
assert mpsbar.attach()
path = os.path.join(os.environ["MPSBAR_RUN_DIR"], f"{os.getpid()}.sock")
if stat.S_ISSOCK(os.stat(path).st_mode):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"hello"}\\n')
        assert b"result" in client.recv(65536)
check_files(range(3, 20))
os.write(100, b"well")
""", version)  # fmt: skip
    check_end(done.stdout, done.stderr, done.returncode, "well\n")


# ------------------------------------------------------------- another program by exec
# What the new program has: its descriptors, threads, environment and the files of the run directory.
NEW_PROGRAM = """
import json, os
def is_open(number):
    try: return bool(os.fstat(number))
    except OSError: return False
threads = sorted(open("/proc/self/task/%s/comm" % each).read() for each in os.listdir("/proc/self/task"))
print(json.dumps({
    "open": [number for number in range(64) if is_open(number)],
    "named": [name for name in threads if "mpsbar" in name],
    "variables": sorted(name for name in os.environ if "mpsbar" in name.lower()),
    "sockets": [name for name in os.listdir(os.environ["MPSBAR_RUN_DIR"]) if name.endswith(".sock")],
}), flush=True)
"""
EXEC = """
new = NEW
def become(): os.execv(sys.executable, [sys.executable, "-S", "-c", new])
path = os.path.join(os.environ["MPSBAR_RUN_DIR"], f"{os.getpid()}.sock")
client = None
if find_agent:
    client = socket.socket(socket.AF_UNIX)  # a connection of the agent's is open as well
    client.connect(path)
    client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"hello"}\\n')
    client.recv(65536)
"""
WAYS_TO_EXEC = {
    "exec": "become()",
    "fork and exec": """
pid = os.fork()
if not pid: become()
assert os.waitpid(pid, 0)[1] == 0
""",
    "subprocess without close_fds": """
import subprocess
subprocess.run([sys.executable, "-S", "-c", new], close_fds=False, check=True)
""",
    "posix_spawn": """
pid = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", new], os.environ)
assert os.waitpid(pid, 0)[1] == 0
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@oldest_and_newest
@pytest.mark.parametrize("way", WAYS_TO_EXEC)
def test_a_program_that_is_executed_gets_nothing_of_ours(workers, version, way):
    found = []
    for attached in (False, True):
        code = START + (ATTACH if attached else "") + EXEC.replace("NEW", repr(NEW_PROGRAM))
        code = code.replace("find_agent", str(attached))
        done = run_host(workers, code + WAYS_TO_EXEC[way], version)
        assert (done.returncode, done.stderr) == (0, "")
        found.append(json.loads(done.stdout))
    alone, beside = found
    # The file of a process that became another program is there until a monitor finds nobody behind it.
    beside["sockets"] = []
    assert beside == alone
    assert beside["open"] == [0, 1, 2]
    assert beside["named"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@oldest_and_newest
def test_a_program_that_was_executed_in_the_hosts_place_attaches_anew(workers, version):
    """The same pid: the socket's file of the program before is no hindrance."""
    again = START + ATTACH + "print('again', flush=True)\ntime.sleep(1000)\n"
    code = START + ATTACH + f"os.execv(sys.executable, [sys.executable, '-c', {again!r}])\n"
    worker = start_host(workers, code, version)
    worker.wait_line("again")
    assert worker.ask("hello")["pid"] == worker.pid
    assert worker.ask("free", seconds=1)["state"] in ("done", "busy")
    assert worker.end() == ""


# ------------------------------------------------------------ while a request is under way
# A thread in C code that nobody knows: the Free waits for its deadline, and the agent is awake all that
# time.
AWAKE = """
import ctypes
nap = ctypes.CDLL(None).usleep
def compute():
    while True: nap(1000)
threading.Thread(target=compute, daemon=True).start()
assert mpsbar.attach()
sys.stdin.readline()
ours = find_ours()
def find_kind(number):
    try: return os.readlink(f"/proc/self/fd/{number}")
    except OSError: return "unknown"
kinds = {number: find_kind(number) for number in ours}
sockets = {number for number in ours if "socket" in kinds[number] or "null" in kinds[number]}
"""
FILES = """
take_as_files(ours)
time.sleep(1)  # the Free ends meanwhile
check_files(ours)
"""
CLOSED_RANGE = """
os.closerange(3, 4096)
take_as_files(range(3, 40))
time.sleep(1)
check_files(range(3, 40))
"""
# The host's own connections: nobody else reads from them or writes to them.
SOCKETS = """
pairs = {}
for number in ours:
    near, far = socket.socketpair()
    put(number, near.detach())
    far.sendall(text(number))
    pairs[number] = far
time.sleep(1)
for number, far in pairs.items():
    assert is_open(number), f"{number} was closed"
    near = socket.socket(fileno=number)
    near.setblocking(False)
    far.setblocking(False)
    found = near.recv(65536)
    assert found == text(number), f"{number} holds {found!r}"
    try: found = far.recv(65536)
    except BlockingIOError: found = None
    assert found is None, f"on {number} was written {found!r}"
    near.detach()
"""
# A server whose descriptors have the numbers of ours, each of the same kind.
SERVER = """
poll = select.epoll()
loops = [n for n, kind in kinds.items() if "eventpoll" in kind]
listeners = {}
for number, kind in kinds.items():
    if number in sockets:
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen(100)
        address = server.getsockname()
        put(number, server.detach())
        listeners[number] = (socket.socket(fileno=number), address)
        listeners[number][0].setblocking(False)
    elif number not in loops: put(number, open_file(number))
assert listeners
for number in listeners: poll.register(number, select.EPOLLIN)
for number in loops: os.dup2(poll.fileno(), number)
lost = []
for turn in range(40):
    for number, (server, address) in listeners.items():
        with socket.create_connection(address) as client:
            client.sendall(text(turn))
            time.sleep(0.01)
            select.select([server], [], [], 60)  # a busy kernel may hand it over late
            try: link = server.accept()[0]
            except OSError as error: lost.append((turn, number, error.errno))
            else:
                with link: assert link.recv(65536) == text(turn)
assert not lost, f"{len(lost)} connections were lost: {lost[:5]}"
for number in (*listeners, *loops): assert is_open(number), f"{number} was closed"
"""
SCENES = {
    "files": FILES,
    "files after closerange": CLOSED_RANGE,
    "connections": SOCKETS,
    "connections, where sockets were": "ours = sockets" + SOCKETS,
    "files, where sockets were": "ours = sockets" + FILES,
    "a server": SERVER,
}


@oldest_and_newest
@pytest.mark.parametrize("scene", SCENES)
def test_what_the_host_opens_while_a_request_is_under_way_is_its_own(workers, version, scene):
    if sys.platform != "linux" and ("where" in scene or scene == "a server"):
        pytest.skip("what a descriptor is for is read from /proc")
    code = START + AWAKE + SCENES[scene] + "print('ends')\n"
    worker = start_host(workers, code, version, stdin=subprocess.PIPE)
    clients = []
    if not ALONE:
        clients = [worker.connect() for _ in range(3)]
        for client in clients:
            client.ask("hello")
            client.send("free", seconds=0.5)
    out, err = worker.process.communicate(b"go\n", timeout=TIMEOUT)
    check_end(out.decode(), err.decode(), worker.process.returncode, "ends\n")
    files = read_files(workers)
    if scene.startswith("files"):
        assert len(files) >= 1
        assert files == expected(files)


FAST_CLOCK = """
import time
real, first = time.monotonic, time.monotonic()
time.monotonic = lambda: first + 40 * (real() - first)
"""
UNLINK = """
for name in os.listdir(os.environ["MPSBAR_RUN_DIR"]):
    if name.endswith(".sock"): os.unlink(os.path.join(os.environ["MPSBAR_RUN_DIR"], name))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="which are sockets is read from /proc")
@oldest_and_newest
def test_binding_again_leaves_the_hosts_files_open(workers, version):
    """The run directory is deleted as well; by a clock that runs fast the next check comes soon."""
    code = FAST_CLOCK + START + AWAKE + UNLINK + "ours = sockets" + FILES + "print('ends')\n"
    worker = start_host(workers, code, version, stdin=subprocess.PIPE)
    if not ALONE:
        client = worker.connect()
        client.ask("hello")
        client.send("free", seconds=60)
    out, err = worker.process.communicate(b"go\n", timeout=TIMEOUT)
    check_end(out.decode(), err.decode(), worker.process.returncode, "ends\n")
    files = read_files(workers)
    assert files == expected(files)
