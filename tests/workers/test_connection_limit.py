"""The limit of open files, raised in a process of its own; 64 are left for other uses."""

import subprocess
import sys

from worker_kit import ROOT

CODE = """
import resource
from mpsbar.workers.connection import raise_connection_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(raise_connection_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def raised(soft, hard):
    code = CODE.format(soft=soft, hard=hard)
    return subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).split()


def test_the_soft_limit_is_raised_as_far_as_it_is_useful():
    assert raised(256, 10240) == ["4032", "4096", "10240"]


def test_not_beyond_the_hard_limit():
    assert raised(128, 300) == ["236", "300", "300"]


def test_a_higher_one_stays():
    assert raised(6000, 10240) == ["5936", "6000", "10240"]
