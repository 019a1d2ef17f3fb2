"""How to connect, as it will be read and typed."""

import pytest
from samples import make_process

from mpsbar.ui.text import wording
from mpsbar.ui.text.wording import how_to_connect

PYTHON = "/Users/me/my envs/torch/bin/python"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "script",
            "mpsbar enable --python '/Users/me/my envs/torch/bin/python', then restart it "
            "(or for one run: mpsbar run '/Users/me/my envs/torch/bin/python' …)",
        ),
        (
            "notebook",
            "mpsbar enable --python '/Users/me/my envs/torch/bin/python' && mpsbar enable --jupyter, "
            "then restart the kernel",
        ),
        (
            "server",
            "mpsbar enable --python '/Users/me/my envs/torch/bin/python', then restart the server",
        ),
    ],
)
def test_each_kind_has_its_way(kind, text):
    assert how_to_connect(PYTHON, kind) == text


def test_what_is_enabled_and_starting_needs_nothing():
    process = make_process(python=PYTHON, is_enabled=True, is_starting=True)
    nothing = "nothing to do: it connects by itself once its imports are done"
    assert wording.how_to_connect_process(process) == nothing
    assert wording.how_to_connect_in_menu(process) == nothing
    assert wording.unconnected(process) == f"starting: {nothing}"
    assert wording.not_connected(process) == "starting (torch)"


def test_what_was_enabled_after_its_start_is_restarted():
    process = make_process(python=PYTHON, is_enabled=True)
    text = "restart it: its environment is enabled (if that does not help: mpsbar doctor)"
    assert wording.how_to_connect_process(process) == text
    assert wording.how_to_connect_in_menu(process) == "Restart it: its environment is connected"
    assert wording.not_connected(process) == "not connected (torch)"
