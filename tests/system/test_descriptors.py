"""The limit of open files, raised in a process of its own."""

import subprocess
import sys

from worker_kit import ROOT

CODE = """
import resource
from mpsbar.system import descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(descriptors.raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def raised(soft, hard):
    code = CODE.format(soft=soft, hard=hard)
    return subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).split()


def test_the_soft_limit_is_raised_as_far_as_it_is_useful():
    assert raised(256, 10240) == ["4096", "4096", "10240"]


def test_not_beyond_the_hard_limit():
    assert raised(128, 300) == ["300", "300", "300"]


def test_a_higher_one_stays():
    assert raised(6000, 10240) == ["6000", "6000", "10240"]
