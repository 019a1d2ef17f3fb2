"""Install Command Line Tool…: only in the app, and only where the person says."""

import os

import pytest
from samples import make_snapshot
from ui.fake_monitor import FakeMonitor
from ui.menubar_kit import MenuBarUser

ROW = "Install Command Line Tool…"


@pytest.fixture
def tool(private):
    path = private / "home/Applications/mpsbar.app/Contents/Resources/bin/mpsbar"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    return path


def play(mac, person):
    user = MenuBarUser(mac, FakeMonitor(make_snapshot()))
    user.run(lambda: person(user))


def click(user, mac, *answers):
    """And each of the dialogs that follow."""
    before = len(mac.state.alerts)
    for button, text in answers:
        mac.answer(button, text)
    user.click("Settings", ROW)
    mac.wait_for(lambda: mac.wait(0.2) or len(mac.state.alerts) >= before + len(answers))
    return mac.state.alerts[before:]


def test_a_bare_python_has_no_such_row(mac, tool):
    mac.state.bundle = None

    def person(user):
        assert ROW not in user.lines("Settings")

    play(mac, person)


def test_into_the_persons_own_folder(mac, tool, private):
    def person(user):
        asked, told = click(user, mac, ("~/.local/bin", None), ("OK", None))
        assert asked.startswith("Where should the mpsbar command be installed?: ")
        assert told.startswith("The mpsbar command is installed: ")
        assert 'export PATH="' in told
        assert click(user, mac, ("~/.local/bin", None), ("OK", None))[1].startswith(
            "The mpsbar command is already installed: "
        )

    play(mac, person)
    assert os.readlink(private / "home/.local/bin/mpsbar") == str(tool)


def test_into_another_folder(mac, tool, private):
    folder = private / "my tools"

    def person(user):
        dialogs = click(user, mac, ("Other Folder…", None), ("Choose", str(folder)), ("OK", None))
        assert dialogs[2].startswith("The mpsbar command is installed: ")

    play(mac, person)
    assert os.readlink(folder / "mpsbar") == str(tool)


def test_the_panel_opens_in_the_home_folder_and_shows_hidden_ones(mac, tool, private):
    def person(user):
        click(user, mac, ("Other Folder…", None), ("Choose", ".tools/bin"), ("OK", None))

    play(mac, person)
    assert os.readlink(private / "home/.tools/bin/mpsbar") == str(tool)


@pytest.mark.parametrize(
    "answers", [[("Cancel", None)], [("Other Folder…", None), ("Cancel", None)]]
)
def test_cancelled_nothing_is_made(mac, tool, private, answers):
    play(mac, lambda user: click(user, mac, *answers))
    assert not (private / "home/.local").exists()


def test_a_foreign_file_stays_and_that_is_said(mac, tool, private):
    other = private / "home/.local/bin/mpsbar"
    other.parent.mkdir(parents=True)
    other.write_text("mine")

    def person(user):
        told = click(user, mac, ("~/.local/bin", None), ("OK", None))[1]
        assert told.startswith("Another mpsbar is already there: ")

    play(mac, person)
    assert other.read_text() == "mine"


@pytest.fixture
def copied(mac, monkeypatch):
    texts = []
    monkeypatch.setattr(
        "mpsbar.desktop.clipboard.copy", lambda text, platform: not texts.append(text)
    )
    return texts


@pytest.fixture
def refused(mac, monkeypatch):
    """`mac` first: it imports mpsbar anew, and the real /usr/local/bin must stay as it is."""
    from mpsbar.desktop import command_line_link

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(command_line_link, "_link", refuse)


def test_nothing_is_copied_unless_asked_for(mac, tool, copied):
    play(mac, lambda user: click(user, mac, ("~/.local/bin", None), ("OK", None)))
    assert copied == []


@pytest.mark.usefixtures("refused")
def test_nothing_is_copied_where_the_person_declines(mac, tool, copied):
    play(mac, lambda user: click(user, mac, ("/usr/local/bin", None), ("OK", None)))
    assert copied == []


@pytest.mark.usefixtures("refused")
def test_where_it_may_not_be_the_command_can_be_copied(mac, tool, copied):
    def person(user):
        told = click(user, mac, ("/usr/local/bin", None), ("Copy Command", None))[1]
        assert "sudo ln -s" in told
        mac.wait_for(lambda: copied)

    play(mac, person)
    assert copied == [f"sudo mkdir -p /usr/local/bin && sudo ln -s {tool} /usr/local/bin/mpsbar"]
