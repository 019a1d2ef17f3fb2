"""How to connect, as it will be read and typed."""

import pytest

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
