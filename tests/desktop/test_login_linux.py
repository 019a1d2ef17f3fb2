"""Start at login on Linux: the entry itself, and all that may stand in its place."""

import configparser
import os
import re
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsbar.desktop import login, login_linux
from mpsbar.desktop.login_linux import build_entry, escape, parse_entry, quote, unescape

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="the desktops of Linux")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    tool = tmp_path / "bin" / "mpsbar"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(tool), "login", "on"])
    return tmp_path


@pytest.fixture
def entry(home):
    return home / ".config" / "autostart" / "mpsbar.desktop"


def tree(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_on_and_off_leave_nothing(home, entry):
    before = tree(home)
    off = login.read_login()
    assert (off.state, off.owner, off.where, off.why) == ("off", "autostart", str(entry), None)
    assert login.turn_on() == login.read_login() == login.LoginStatus("on", "autostart", str(entry))
    assert entry.read_text() == (
        "[Desktop Entry]\n"
        "Type=Application\n"
        "Name=mpsbar\n"
        "Comment=Who holds my GPU memory: PyTorch and MLX processes\n"
        f"Exec={home}/bin/mpsbar status --watch 2\n"
        f"TryExec={home}/bin/mpsbar\n"
        "Terminal=true\n"
        "X-mpsbar-Login=2\n"
    )
    assert login.turn_on().state == "on"
    assert login.turn_off() == off
    assert tree(home) == before
    assert login.turn_off() == off
    assert login.open_login_settings() is False


def test_folders_of_others_stay(home, entry):
    (home / ".config").mkdir()
    login.turn_on()
    (entry.parent / "other.desktop").write_text("")
    login.turn_off()
    assert tree(home / ".config") == ["autostart", "autostart/other.desktop"]
    (entry.parent / "other.desktop").unlink()
    login.turn_on()  # the folder was there before
    login.turn_off()
    assert tree(home / ".config") == ["autostart"]


def test_xdg_config_home_counts_if_it_is_absolute(home, entry, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "elsewhere"))
    assert login.read_login().where == str(home / "elsewhere/autostart/mpsbar.desktop")
    monkeypatch.setenv("XDG_CONFIG_HOME", "here")
    assert login.read_login().where == str(entry)


@pytest.mark.parametrize(
    "line", ["Hidden=true", "X-GNOME-Autostart-enabled=false", "X-MATE-Autostart-enabled=false"]
)
def test_switched_off_by_the_desktop_is_off_until_it_is_asked_for(entry, line):
    login.turn_on()
    with entry.open("a") as file:
        file.write(line + "\n")
    assert (login.read_login().state, login.read_login().why) == ("off", "disabled_by_user")
    assert login.turn_on().state == "on"
    assert line not in entry.read_text()
    assert "X-mpsbar-Login=2\n" in entry.read_text()  # still what we made first


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[Desktop Entry]\nExec=mpsbar\n",
        b"\xff\xfe",
        b"[Other]\nX-mpsbar-Login=1\n",
        b"#" * 70_000,
    ],
)
def test_a_file_of_another_is_left(entry, content):
    entry.parent.mkdir(parents=True)
    entry.write_bytes(content)
    for status in (login.read_login(), login.turn_on(), login.turn_off()):
        assert (status.state, status.why, status.where) == ("unavailable", "foreign", str(entry))
    assert entry.read_bytes() == content


@pytest.mark.parametrize(
    "make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("nowhere")]
)
def test_what_is_no_file_is_another_s_too(entry, make):
    entry.parent.mkdir(parents=True)
    make(entry)
    assert login.read_login().why == "foreign"
    assert login.turn_on().why == "foreign"
    assert login.turn_off().why == "foreign"
    assert os.path.lexists(entry)


def test_our_own_through_a_link(home, entry):
    login.turn_on()
    target = home / "target.desktop"
    entry.rename(target)
    entry.symlink_to(target)
    assert login.turn_on().state == "on"
    assert entry.is_symlink()
    login.turn_off()
    assert not os.path.lexists(entry)


def test_a_command_that_is_gone_is_said_and_repaired(home, entry, monkeypatch):
    login.turn_on()
    tool = home / "bin" / "mpsbar"
    tool.rename(home / "mpsbar")
    status = login.read_login()
    assert (status.state, status.why, status.detail) == ("off", "command_gone", str(tool))
    monkeypatch.setattr(sys, "argv", [str(home / "mpsbar")])
    assert login.turn_on().state == "on"


@pytest.mark.parametrize(
    "path",
    [
        ".cache/uv/archive-v0/x1/bin/mpsbar",
        ".cache/pipx/abc/bin/mpsbar",
        ".local/pipx/.cache/abc/bin/mpsbar",
    ],
)
def test_what_uvx_and_pipx_run_made_is_no_command_for_ever(home, entry, monkeypatch, path):
    monkeypatch.setattr(sys, "argv", [str(home / path)])
    status = login.turn_on()
    assert (status.state, status.why, status.detail) == (
        "unavailable",
        "temporary_command",
        str(home / path),
    )
    assert not entry.exists()


def test_poetry_keeps_environments_in_a_cache_for_long(home, monkeypatch):
    tool = home / ".cache/pypoetry/virtualenvs/x/bin/mpsbar"
    tool.parent.mkdir(parents=True)
    shutil.copy2(home / "bin/mpsbar", tool)
    monkeypatch.setattr(sys, "argv", [str(tool)])
    assert login.turn_on().state == "on"


@pytest.mark.parametrize("name", ["a=b", "a\nb", "a\udcffb"])
def test_a_path_the_format_cannot_hold_is_said(home, entry, monkeypatch, name):
    monkeypatch.setattr(sys, "argv", [f"{home}/{name}/mpsbar"])
    status = login.turn_on()
    assert (status.state, status.why) == ("unavailable", "odd_path")
    assert not entry.parent.exists()


def test_a_folder_that_cannot_be_written_leaves_nothing(home, entry):
    (home / ".config").write_text("a file")
    status = login.turn_on()
    assert (status.state, status.why, status.detail) == ("off", "not_written", "Not a directory")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to another user")
def test_with_sudo_another_users_folder_is_left(home, entry):
    (home / ".config").mkdir()
    os.chown(home / ".config", 65534, 65534)
    status = login.turn_on()
    assert (status.state, status.why) == ("off", "not_written")
    assert "nobody" in status.detail
    assert tree(home / ".config") == []


def test_the_shim_is_not_resolved(home, entry, monkeypatch):
    (home / "venv").mkdir()
    (home / "bin/mpsbar").rename(home / "venv/mpsbar")
    (home / "bin/mpsbar").symlink_to(home / "venv/mpsbar")
    login.turn_on()
    assert f"TryExec={home}/bin/mpsbar\n" in entry.read_text()
    monkeypatch.setattr(sys, "argv", [os.path.join("bin", "mpsbar")])
    monkeypatch.chdir(home)
    login.turn_off()
    login.turn_on()
    assert f"TryExec={home}/bin/mpsbar\n" in entry.read_text()
    monkeypatch.setattr(sys, "argv", ["/x/mpsbar/__main__.py"])
    login.turn_on()
    assert f"Exec={sys.executable} -m mpsbar status" in entry.read_text()


PATHS = [
    "/home/a b/mpsbar", "/a\"b`c$d\\e/mpsbar", "/100%/mpsbar", "/a;b&c|d(e)*?#~<>'f/mpsbar", "/ü/mpsbar", " /lead/mpsbar",
]  # fmt: skip


def test_quoting_to_the_letter():
    assert [quote(path) for path in PATHS[:3]] == [
        '"/home/a b/mpsbar"',
        r'"/a\\"b\\`c\\$d\\\\e/mpsbar"',
        "/100%%/mpsbar",
    ]


def undo(value):
    """What a desktop does with Exec: escapes of the value, then quotes, then field codes."""
    text, found, word, quoted = unescape(value), [], "", False
    for part in re.findall(r"\\.|.", text, re.DOTALL):
        if part == '"':
            quoted = not quoted
        elif part == " " and not quoted:
            found.append(word)
            word = ""
        else:
            word += part[1:] if len(part) == 2 else part
    return [argument.replace("%%", "%") for argument in [*found, word]]


@given(
    st.lists(
        st.text(st.characters(min_codepoint=32, exclude_categories=("Cs", "Cc")), min_size=1),
        min_size=1,
    )
)
def test_any_arguments_come_out_as_they_went_in(arguments):
    entry = parse_entry(build_entry(arguments, 0))
    assert undo(entry["Exec"]) == arguments


@given(st.text())
def test_a_value_is_one_line_and_comes_back(text):
    assert "\n" not in escape(text)
    assert unescape(escape(text)) == text


def test_python_s_own_parser_reads_it_the_same():
    parser = configparser.RawConfigParser(delimiters="=", comment_prefixes="#", strict=True)
    parser.optionxform = str
    text = build_entry(["/home/a b/mpsbar", "x"], 1)
    parser.read_string(text)
    assert dict(parser["Desktop Entry"]) == parse_entry(text)


@pytest.mark.skipif(
    shutil.which("desktop-file-validate") is None, reason="desktop-file-utils is not installed"
)
@pytest.mark.parametrize("path", PATHS)
def test_the_freedesktop_validator_has_nothing_to_say(tmp_path, path):
    file = tmp_path / "mpsbar.desktop"
    file.write_text(build_entry([path, *login_linux.ARGUMENTS], 1))
    done = subprocess.run(
        ["desktop-file-validate", str(file)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
