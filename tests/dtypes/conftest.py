"""Fixtures of the probe's tests."""

import subprocess

import fork_server
import pytest

from mpsbar.system import child_process


@pytest.fixture
def fork_children(monkeypatch):
    """Child processes that need only the usual Python are forks of one that has torch already.

    An import of torch is most of what a probe costs. Where the environment asks for a start of its own
    (PYTHONPATH with a start-up file, PYTORCH_ variables), and for any other Python, they start as usual.
    """
    start_fresh = child_process.start_python

    def start(python, arguments, environ, *, stdin=subprocess.DEVNULL):
        command, env = [python, "-B", *arguments], dict(environ)
        if fork_server.can_serve(command, env):
            return fork_server.start_python(command, env=env, cwd="/", stdin=stdin)
        return start_fresh(python, arguments, environ, stdin=stdin)

    monkeypatch.setattr(child_process, "start_python", start)
