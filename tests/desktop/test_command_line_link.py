"""The command for the terminal: a link where the person says, and nothing of others is touched."""

import os
import stat

import pytest

from mpsbar.desktop import command_line_link
from mpsbar.desktop.command_line_link import SHELL_FILES, Link, find_tool, install, suggest_folders


@pytest.fixture
def tool(tmp_path):
    path = tmp_path / "Applications/mpsbar.app/Contents/Resources/bin/mpsbar"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    return str(path)


def test_a_link_in_a_folder_that_is_made_for_it(tool, tmp_path):
    folder = tmp_path / "home/.local/bin"
    made = install(tool, str(folder))
    assert made == Link("made", str(folder / "mpsbar"), tool)
    assert os.readlink(folder / "mpsbar") == tool
    assert install(tool, str(folder)).state == "was_there"
    assert os.listdir(folder) == ["mpsbar"]


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_link_of_another_mpsbar_app_is_renewed(tool, tmp_path, is_gone):
    old = tmp_path / "Downloads/mpsbar 2.app/Contents/Resources/bin/mpsbar"
    if not is_gone:
        old.parent.mkdir(parents=True)
        old.write_text("")
    link = tmp_path / "mpsbar"
    link.symlink_to(old)
    assert install(tool, str(tmp_path)).state == "renewed"
    assert os.readlink(link) == tool
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_what_is_not_ours_stays(tool, tmp_path):
    for number, make in enumerate((
        lambda path: path.write_text("mine"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("../tools/mpsbar/bin/mpsbar"),  # uv's
        lambda path: path.symlink_to("mpsbar"),  # to itself
        os.mkfifo,
    )):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder / "mpsbar")
        before = os.lstat(folder / "mpsbar")
        assert install(tool, str(folder)).state == "foreign"
        after = os.lstat(folder / "mpsbar")
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
        assert len(list(folder.iterdir())) == 1


def test_a_folder_that_may_not_be_written_to(tool, tmp_path, monkeypatch):
    folder = tmp_path / "it's mine"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(folder, os.W_OK):  # root may do anything

        def refuse(*arguments):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(command_line_link.Path, "symlink_to", refuse)
    link = install(tool, str(folder))
    assert (link.state, link.detail) == ("not_allowed", "Permission denied")
    quoted = str(folder).replace("'", "'\"'\"'")
    assert link.by_hand == f"sudo mkdir -p '{quoted}' && sudo ln -s {tool} '{quoted}/mpsbar'"


def test_other_troubles_are_reported_in_the_systems_words(tool, tmp_path):
    (tmp_path / "file").write_text("")
    link = install(tool, str(tmp_path / "file/bin"))
    assert (link.state, link.detail) == ("failed", "Not a directory")


def test_no_link_to_where_the_app_does_not_stay(tmp_path):
    tool = "/private/var/folders/x/AppTranslocation/1/d/mpsbar.app/Contents/Resources/bin/mpsbar"
    assert install(tool, str(tmp_path)).state == "no_place"
    assert not os.listdir(tmp_path)


def test_whether_a_shell_will_find_it(tool, tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("a", "b", "c", "d")]
    listed = tmp_path / "paths.d"
    listed.mkdir()
    (listed / "more").write_text(f"\n{folders[1]}\n")
    (tmp_path / "paths").write_bytes(b"\xff\n" + os.fsencode(folders[2]))
    monkeypatch.setattr(
        command_line_link, "_PATHS", (str(tmp_path / "paths"), str(listed), "/nowhere")
    )
    monkeypatch.setenv("PATH", f"/bin:{folders[0]}")
    assert [install(tool, str(folder)).on_path for folder in folders] == [True, True, True, False]


def test_the_persons_own_folder_comes_first():
    assert suggest_folders("/Users/ada") == ("/Users/ada/.local/bin", "/usr/local/bin")


def test_only_the_app_has_it(mac, private):
    assert find_tool() is None  # an app without the file
    tool = private / "home/Applications/mpsbar.app/Contents/Resources/bin/mpsbar"
    tool.parent.mkdir(parents=True)
    tool.write_text("")
    assert find_tool() == str(tool)
    mac.state.bundle = None
    assert find_tool() is None


def test_the_man_page_and_the_completions_are_linked_beside_it(tool, tmp_path):
    resources, prefix = (
        tmp_path / "Applications/mpsbar.app/Contents/Resources",
        tmp_path / "home/.local",
    )
    for name in SHELL_FILES:
        (resources / name).parent.mkdir(parents=True, exist_ok=True)
        (resources / name).write_text("")
    foreign, old, *others = SHELL_FILES
    for name, target in (
        (foreign, "/opt/mpsbar.1"),
        (old, f"/old/mpsbar.app/Contents/Resources/{old}"),
    ):
        (prefix / name).parent.mkdir(parents=True)
        (prefix / name).symlink_to(target)
    assert install(tool, str(prefix / "bin")).state == "made"
    assert os.readlink(prefix / foreign) == "/opt/mpsbar.1"
    for name in (old, *others):
        assert os.readlink(prefix / name) == str(resources / name)


def test_only_beside_a_folder_for_commands_and_never_a_reason_to_fail(tool, tmp_path):
    resources = tmp_path / "Applications/mpsbar.app/Contents/Resources"
    (resources / SHELL_FILES[0]).parent.mkdir(parents=True)
    (resources / SHELL_FILES[0]).write_text("")
    install(tool, str(tmp_path / "elsewhere/tools"))
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["tools"]
    (tmp_path / "home").mkdir()
    (tmp_path / "home/share").write_text("a file where the folder would be")
    assert install(tool, str(tmp_path / "home/bin")).state == "made"
