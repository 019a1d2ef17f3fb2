"""What may be the name of a host: never an option, never a command."""

import pytest

from mpsbar.cli import main

pytestmark = pytest.mark.usefixtures("workers")


@pytest.mark.parametrize("host", ["-oProxyCommand=evil", "a b", "a;evil", "$(evil)", "", "a\nb"])
def test_a_host_is_never_an_option_or_a_command(capsys, host):
    assert main.run(["status", f"--host={host}"]) == 1
    shown = capsys.readouterr()
    assert (shown.out, "is not the name of a host" in shown.err) == ("", True)
