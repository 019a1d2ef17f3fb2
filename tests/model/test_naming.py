"""Names for people, from command lines as they really are."""

import pytest

from mpsbar.model.naming import name_process

KERNEL = ("python", "-m", "ipykernel_launcher", "-f", "k.json")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "train.py", "--lr", "1"), "train.py"),
        (("/usr/bin/python3", "/home/me/my runs/train.py"), "train.py"),
        (("python", "-u", "-W", "ignore", "-X", "dev", "train.py"), "train.py"),
        (("python", "-m", "torch.distributed.run", "x.py"), "-m torch.distributed.run"),
        (("python", "-m", "ipykernel_launcher", "-f", "k.json"), "notebook kernel"),
        (("python", "/lib/ipykernel_launcher.py", "-f", "k.json"), "notebook kernel"),
        (("python", "-c", "print()"), "python -c"),
        (("python", "-"), "python from a pipe"),
        (("python",), "Python prompt"),
        (("python", "-i"), "Python prompt"),
        (("python", "-m"), "-m ?"),
        ((), "unknown"),
    ],
)
def test_names(command, name):
    assert name_process(command) == name


@pytest.mark.parametrize(
    ("command", "notebook", "name"),
    [
        (KERNEL, "train.ipynb", "notebook kernel: train.ipynb"),
        (KERNEL, "", "notebook kernel"),
        (KERNEL, None, "notebook kernel"),
        # A script started from a notebook inherits its environment.
        (("python", "train.py"), "train.ipynb", "train.py"),
    ],
)
def test_names_of_notebooks(command, notebook, name):
    assert name_process(command, notebook) == name
