"""mpsbar talks to nobody: no connect, no listener, no look-up of a name, outside Unix sockets."""

import ast
import subprocess
import sys

import pytest
from worker_kit import ATTACH, PATIENCE, ROOT

# Runs in every Python that mpsbar starts, and in mpsbar itself.
WATCH = """
import os, sys
def watch(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        address = arguments[-1] if event[7:] in ("connect", "bind", "sendto") else arguments[0]
        if isinstance(address, (str, bytes)) and event[7:] in ("connect", "bind", "sendto"): return
        with open(os.environ["NETWORK_LOG"], "a") as file: file.write(f"{event} {address!r} {sys.argv}\\n")
sys.addaudithook(watch)
"""
MODULES = {
    "aiohttp", "ftplib", "http", "httpx", "imaplib", "poplib", "requests", "smtplib", "socketserver", "ssl",
    "urllib3", "webbrowser", "xmlrpc",
}  # fmt: skip
# Only for a link that a person clicks, or a path written as a link.
ALLOWED = {"urllib.parse"}


@pytest.fixture
def watched(workers):
    folder = workers.folder / "watch"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WATCH)
    log = workers.folder / "network.log"

    def run(*arguments):
        path = f"{folder}:{ROOT}"
        subprocess.run(
            [sys.executable, *arguments],
            env=workers.env(PYTHONPATH=path, NETWORK_LOG=str(log), HOME=str(workers.folder)),
            capture_output=True, cwd="/", timeout=PATIENCE, check=False,
        )  # fmt: skip
        return log.read_text() if log.exists() else ""

    return run


def test_the_watch_sees_a_connect(watched):
    code = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"
    assert "socket.connect ('127.0.0.1', 9)" in watched("-c", code)


def test_no_verb_opens_a_connection(watched, workers):
    workers.start(ATTACH + "import time\nwhile True: time.sleep(0.05)\n")
    report = str(workers.folder / "report.html")
    for arguments in (["status"], ["status", "--json"], ["free", "--all"], ["report", "-o", report],
                      ["enable", "--list"], ["config", "print"], ["login", "status"]):  # fmt: skip
        assert watched("-m", "mpsbar", *arguments) == ""


def test_no_module_of_ours_imports_a_client_of_the_network():
    """`fleet` is the exporter, which listens where its user says, and ssh, which is a program."""
    sources = (ROOT / "mpsbar").rglob("*.py")
    for path in [path for path in sources if path.parent.name != "fleet"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                assert name.split(".")[0] not in MODULES, (path, name)
                assert not name.startswith("urllib") or name in ALLOWED, (path, name)
