"""The connections that ssh leaves open after its questions, with real ssh servers on loopback."""

import subprocess
from contextlib import closing

import pytest
from worker_kit import TIMEOUT, wait_for

from mpsbar.fleet.questions import Questions
from mpsbar.fleet.ssh import build_command

pytestmark = pytest.mark.usefixtures("workers")


def fail_every_command(ssh_hosts, name):
    """One can log in there, and whatever is asked ends with 255, as where ssh itself fails."""
    ssh_hosts.lock_key(name, "")
    keys = ssh_hosts.folder / "authorized_keys"
    *others, last = keys.read_text().splitlines()
    keys.write_text("\n".join([*others, f'command="exit 255" {last}', ""]))


def ask_over(ssh_hosts, questions, name, own=""):
    command = build_command(name, ["status"], own or ssh_hosts.options, questions.socket_of(name))
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT
    )
    return done.stdout


def test_no_host_answers_over_the_connection_of_another(ssh_hosts):
    ssh_hosts.add("bad", "echo bad")
    ssh_hosts.add("good", "echo good")
    ssh_hosts.add("other", "echo other")
    fail_every_command(ssh_hosts, "bad")
    with closing(Questions(ssh_hosts.options)) as questions:
        assert not questions.ask("bad")
        assert questions.ask("good")
        assert questions.ask("other")
        assert questions.socket_of("bad") is None
        folder = questions._make_folder()
        assert ask_over(ssh_hosts, questions, "good") == "good\n"
        assert ask_over(ssh_hosts, questions, "other") == "other\n"
        wait_for(lambda: not (folder / "0").exists(), "end of the connection that failed")
    assert not folder.exists()


@pytest.mark.parametrize(
    "own",
    ["-oControlMaster=no -oControlPath={}", "-S {}", "-oControlMaster=yes -S {}", "-S none"],
)
def test_a_connection_of_the_users_own_options_is_not_ours(ssh_hosts, tmp_path, own):
    ssh_hosts.add("good", "echo good")
    own = f"{ssh_hosts.options} {own.format(tmp_path / 'own')}"
    with closing(Questions(own)) as questions:
        assert questions.ask("good")
        assert not (tmp_path / "own").exists()
        # Over that connection: the server lets nobody in any more.
        ssh_hosts.folder.joinpath("authorized_keys").write_text("")
        assert ask_over(ssh_hosts, questions, "good", own) == "good\n"
    assert not (tmp_path / "own").exists()
