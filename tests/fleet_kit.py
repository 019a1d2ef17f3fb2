"""Real parts for tests of the fleet: an exporter, a Prometheus server, certificates."""

import contextlib
import json
import random
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest
from worker_kit import ROOT, TIMEOUT, wait_for

MLX_WORKER = """
import time, mlx.core as mx, mpsbar
mx.set_cache_limit(1 << 30)
kept = mx.ones((1 << 20,)); mx.eval(kept)
dropped = mx.ones((1 << 22,)); mx.eval(dropped); del dropped
assert mpsbar.attach()
print("ready", flush=True)
time.sleep(3600)
"""
STATUS_LINE = '{"schema": 1, "time": 1, "machine": {"chip": "Apple M1"}, "workers": [], "processes": [], "health": {"level": "ok", "reasons": []}}'


# A reading waits half a second for workers and a quarter for the system, a screen three for its hosts,
# doctor three for the exporter: on busy cores what is well may need more (see read_timeouts_kit.py).
PATIENT = f"""
import sys
from mpsbar.system.read_timeouts import TimeoutPool
from mpsbar.system.scan import Scanner
from mpsbar.workers.poll import WorkerPoll
TimeoutPool.__init__.__defaults__ = Scanner.scan.__defaults__ = ({TIMEOUT},)
WorkerPoll.poll.__defaults__ = (None, {TIMEOUT})
if any(word.startswith("--host") for word in sys.argv):
    from mpsbar.cli import on_hosts
    on_hosts._FIRST_SECONDS = on_hosts._ONCE_SECONDS = {TIMEOUT}
if "doctor" in sys.argv:
    from mpsbar.fleet import service
    service._SECONDS = {TIMEOUT}
sys.argv[0] = "mpsbar"
from mpsbar.__main__ import main
sys.exit(main())
"""
PATIENT_MPSBAR = [sys.executable, "-c", PATIENT]


def need_program(name, package):
    """Its path; where it is missing the test says so and is skipped."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        pytest.skip(f"no {name}: apt-get install {package}")
    return path


def find_free_port():
    """One that the system gives to nobody by itself: it may be free for a while before it is used."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def run_mpsbar(workers, *arguments, **env):
    """`mpsbar …`; ended by its pid."""
    process = subprocess.Popen(
        [*PATIENT_MPSBAR, *arguments], env=workers.env(**env), cwd=ROOT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()  # not killed: a watch ends its ssh, whose hosts may sleep for minutes
        try:
            process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise


@contextlib.contextmanager
def run_exporter(workers, *arguments, **env):
    """(process, the URL of its metrics), at a port of its own."""
    listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
    usual = {"MPSBAR_INTERVAL": "0.5"}
    with run_mpsbar(workers, "export", *listen, *arguments, **(usual | env)) as process:
        line = process.stdout.readline()
        assert line, process.communicate(timeout=TIMEOUT)
        yield process, line.split()[-1]


def ask(url, *, context=None, method="GET", **headers):
    """(status, headers, body) of one request."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, headers=named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.headers, refusal.read()


def wait_page(url, *texts, **more):
    """The first page that has all these texts."""

    def find_page():
        status, _, body = ask(url, **more)
        page = body.decode()
        return page if status == 200 and all(text in page for text in texts) else None

    return wait_for(find_page, f"page with {texts}")


class Prometheus:
    """A real server on loopback that scrapes once a second."""

    def __init__(self, folder, targets, rules=(), scheme="http", extra="", interval="1s"):
        self.url = f"http://127.0.0.1:{find_free_port()}"
        folder.mkdir(exist_ok=True)
        config = folder / "prometheus.yml"
        config.write_text(
            f"global: {{scrape_interval: {interval}, scrape_timeout: {interval}, evaluation_interval: 1s}}\n"
            f"rule_files: {json.dumps([str(file) for file in rules])}\n"
            "scrape_configs:\n- job_name: mpsbar\n"
            f"  scheme: {scheme}\n{extra}"
            f"  static_configs: [{{targets: {json.dumps(targets)}}}]\n"
        )
        command = [
            need_program("prometheus", "prometheus"), f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={self.url[7:]}",
        ]  # fmt: skip
        self._command, self._folder = command, folder
        self.log = (folder / "log").open("w+")
        self.restart()

    def restart(self):
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            cwd=self._folder,
        )
        return self

    def wait_ready(self):
        def is_ready():
            assert self.process.poll() is None, self.read_log()
            with contextlib.suppress(OSError):
                return ask(f"{self.url}/-/ready")[0] == 200

        wait_for(is_ready, "ready Prometheus")
        return self

    def query(self, expression):
        """The series an instant query gives."""
        asked = urllib.parse.urlencode({"query": expression})
        status, _, body = ask(f"{self.url}/api/v1/query?{asked}")
        answer = json.loads(body)
        assert status == 200, (expression, answer)
        return answer["data"]["result"]

    def wait_query(self, expression):
        return wait_for(lambda: self.query(expression), f"answer to {expression}")

    def get(self, path):
        return json.loads(ask(f"{self.url}{path}")[2])["data"]

    def read_log(self):
        self.log.seek(0)
        return self.log.read()

    def __enter__(self):
        return self.wait_ready()

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(timeout=TIMEOUT)
        self.log.close()


def make_certificate(folder):
    """(certificate, key) for 127.0.0.1, signed by itself."""
    openssl = need_program("openssl", "openssl")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mpsbar",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True, timeout=TIMEOUT,
    )  # fmt: skip
    return cert, key
