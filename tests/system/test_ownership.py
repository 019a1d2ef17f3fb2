"""Who can change a file: real owners and modes, which only root can give."""

import errno
import grp
import os
import pwd
import shutil
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

from mpsbar.system import ownership
from mpsbar.system.ownership import NotTrustedError, find_danger, require_safe

EVE, ME = 54321, 54322  # numbers without an account
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


@pytest.fixture
def place(tmp_path):
    """A folder with a file, ours from the root on."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "folder"
    folder.mkdir(0o755)
    (folder / "file").touch(0o644)
    return folder


def why_unsafe(path):
    danger = find_danger(path)
    return None if danger is None else danger.reason


def test_what_is_ours_is_safe(place):
    assert why_unsafe(str(place / "file")) is None
    assert why_unsafe(str(place)) is None
    assert why_unsafe("/") is None
    assert why_unsafe(str(place / "." / ".." / "folder" / "file")) is None


def test_a_relative_path_begins_where_we_are(place, monkeypatch):
    monkeypatch.chdir(place)
    assert why_unsafe("file") is None
    place.chmod(0o777)
    assert why_unsafe("file") == f"{place} is writable by everyone"


@needs_root
@pytest.mark.parametrize("name", ["file", "."])
def test_what_belongs_to_another_user(place, name):
    os.chown(place / name, EVE, EVE)
    at = place / "file" if name == "file" else place
    assert why_unsafe(str(place / "file")) == f"{at} belongs to another user ({EVE})"


@needs_root
def test_the_owner_is_named(place):
    nobody = pwd.getpwnam("nobody")
    os.chown(place, nobody.pw_uid, nobody.pw_gid)
    assert why_unsafe(str(place / "file")) == f"{place} belongs to another user (nobody)"


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o702])
def test_a_folder_that_everybody_can_write(place, mode):
    place.chmod(mode)
    danger = find_danger(str(place / "file"))
    assert danger.reason == f"{place} is writable by everyone"
    assert danger.remedy == f"chmod go-w {place}"
    assert find_danger(str(place / "not there")).path == str(place)


def test_a_file_that_everybody_can_write(place):
    (place / "file").chmod(0o666)
    assert why_unsafe(str(place / "file")) == f"{place / 'file'} is writable by everyone"
    assert why_unsafe(str(place)) is None


@needs_root
def test_a_file_that_a_group_can_write(place):
    os.chown(place / "file", 0, EVE)
    (place / "file").chmod(0o664)
    assert why_unsafe(str(place / "file")) == f"{place / 'file'} is writable by the group {EVE}"


def test_a_sticky_folder_is_good_enough_on_the_way_only(place):
    place.chmod(0o1777)
    assert why_unsafe(str(place / "file")) is None
    for path in (place, place / "not there"):  # anybody could make that
        assert why_unsafe(str(path)) == f"{place} is writable by everyone"
    with pytest.raises(NotTrustedError, match="by everyone; choose a folder of your own"):
        require_safe(place)  # and no chmod: /tmp is to stay as it is


@needs_root
def test_in_a_sticky_folder_another_users_file_is_refused(place):
    place.chmod(0o1777)
    os.chown(place / "file", EVE, EVE)
    assert why_unsafe(str(place / "file")) == f"{place / 'file'} belongs to another user ({EVE})"


def test_both_sides_of_a_link_are_judged(tmp_path, place):
    far = tmp_path / "far"
    far.mkdir()
    (far / "link").symlink_to("../folder/file")
    (tmp_path / "link to folder").symlink_to(far)
    path = str(tmp_path / "link to folder" / "link")
    assert why_unsafe(path) is None
    for folder in (far, place):
        folder.chmod(0o777)
        assert why_unsafe(path) == f"{folder} is writable by everyone"
        folder.chmod(0o755)
    (place / "file").chmod(0o666)
    assert why_unsafe(path) == f"{place / 'file'} is writable by everyone"


def test_every_hop_of_a_chain_is_judged(tmp_path, place):
    hops = [tmp_path / name for name in ("one", "two", "three")]
    for hop in hops:
        hop.mkdir()
    for hop, target in zip(hops, [*hops[1:], place], strict=True):
        (hop / "file").symlink_to(target / "file")
    path = str(hops[0] / "file")
    assert why_unsafe(path) is None
    for hop in hops:
        hop.chmod(0o777)
        assert why_unsafe(path) == f"{hop} is writable by everyone"
        hop.chmod(0o755)


@needs_root
def test_a_link_of_another_user_is_refused(tmp_path, place):
    tmp_path.chmod(0o1777)
    (tmp_path / "link").symlink_to(place / "file")
    os.chown(tmp_path / "link", EVE, EVE, follow_symlinks=False)
    danger = find_danger(str(tmp_path / "link"))
    assert (danger.path, danger.kind, danger.who) == (str(tmp_path / "link"), "owner", str(EVE))
    assert danger.remedy is None


def test_a_way_up_again_leaves_the_folder_judged(tmp_path, place):
    """Whoever can exchange the folder for a link decides where its .. leads to."""
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside").chmod(0o777)
    path = str(tmp_path / "aside" / ".." / "folder" / "file")
    assert why_unsafe(path) == f"{tmp_path / 'aside'} is writable by everyone"


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="levels of symbolic links"):
        find_danger(str(tmp_path / "a"))


def test_what_does_not_exist_is_no_danger(place):
    assert why_unsafe(str(place / "no" / "such" / "file")) is None
    assert why_unsafe(str(place / "file" / "below")) is None


def test_a_name_cannot_forge_a_line(place):
    odd = place / "a\x1b[2J\nb"
    odd.mkdir()
    odd.chmod(0o777)
    assert why_unsafe(str(odd)).isprintable()


def as_user(monkeypatch, number, home="/nowhere", name="me"):
    account = SimpleNamespace(pw_name=name, pw_uid=number, pw_gid=number, pw_dir=str(home))
    real = pwd.getpwuid
    monkeypatch.setattr(os, "geteuid", lambda: number)
    monkeypatch.setattr(pwd, "getpwuid", lambda n: account if n == number else real(n))


@needs_root
def test_root_trusts_root_alone_and_a_user_root_and_himself(place, monkeypatch):
    os.chown(place / "file", ME, ME)
    assert "belongs to another user" in why_unsafe(str(place / "file"))
    as_user(monkeypatch, ME)
    assert why_unsafe(str(place / "file")) is None  # its folders are root's
    os.chown(place / "file", EVE, EVE)
    assert "belongs to another user" in why_unsafe(str(place / "file"))


@needs_root
def test_a_folder_of_root_needs_sudo_to_be_mended(place, monkeypatch):
    as_user(monkeypatch, ME)
    place.chmod(0o777)
    assert find_danger(str(place)).remedy == f"sudo chmod go-w {place}"


@needs_root
def test_what_lies_above_the_home_folder_is_not_judged(tmp_path, place, monkeypatch):
    """A cluster's /gpfs/home may be its administrator's: who has that has the account anyway."""
    home = tmp_path / "home"
    home.mkdir(0o755)
    (home / "file").touch()
    (home / "out").symlink_to(place / "file")
    (place / "in").symlink_to(home / "file")
    for path in (home, home / "file"):
        os.chown(path, ME, ME)
    os.chown(tmp_path, EVE, EVE)
    as_user(monkeypatch, ME, home)
    assert why_unsafe(str(home / "file")) is None
    above = f"{tmp_path} belongs to another user ({EVE})"
    assert why_unsafe(str(place / "file")) == above
    assert why_unsafe(str(home / "out")) == above
    assert why_unsafe(str(place / "in")) == above
    assert (
        why_unsafe(str(place / ".." / "home" / "file")) is None
    )  # on the way to home all the same
    home.chmod(0o777)
    assert why_unsafe(str(home / "file")) == f"{home} is writable by everyone"


@needs_root
def test_nothing_beside_the_home_folder_is_excused(tmp_path, monkeypatch):
    home, aside = tmp_path / "home", tmp_path / "aside"
    for folder in (home, aside):
        folder.mkdir()
    aside.chmod(0o777)
    as_user(monkeypatch, ME, home)
    os.chown(home, ME, ME)
    assert why_unsafe(f"{aside}/../home") == f"{aside} is writable by everyone"


def with_groups(monkeypatch, group, users=()):
    real = grp.getgrgid
    monkeypatch.setattr(grp, "getgrgid", lambda n: group if n == group.gr_gid else real(n))
    monkeypatch.setattr(pwd, "getpwall", lambda: list(users))


GROUP = SimpleNamespace(gr_gid=ME, gr_name="me", gr_mem=[])
MINE = SimpleNamespace(pw_uid=ME, pw_gid=ME)
EVES = SimpleNamespace(pw_uid=EVE, pw_gid=ME)


@needs_root
@pytest.mark.parametrize(
    ("group", "users", "is_safe"),
    [
        (GROUP, [MINE], True),
        (GROUP, [MINE, EVES], False),
        (SimpleNamespace(gr_gid=ME, gr_name="me", gr_mem=["root"]), [MINE], True),
        (SimpleNamespace(gr_gid=ME, gr_name="me", gr_mem=["nobody"]), [MINE], False),
        (SimpleNamespace(gr_gid=ME, gr_name="me", gr_mem=["who is that"]), [MINE], False),
        (SimpleNamespace(gr_gid=ME, gr_name="users", gr_mem=[]), [MINE], False),
    ],
)
def test_a_group_with_nobody_else_in_it_is_nobody_else(place, monkeypatch, group, users, is_safe):
    """Debian, Ubuntu and Fedora give each user such a group, and umask 002 with it."""
    os.chown(place, ME, ME)
    place.chmod(0o775)
    as_user(monkeypatch, ME)
    with_groups(monkeypatch, group, users)
    monkeypatch.setattr(ownership.sys, "platform", "linux")
    found = None if is_safe else f"{place} is writable by the group {group.gr_name}"
    assert why_unsafe(str(place)) == found


@needs_root
@pytest.mark.parametrize(("number", "is_safe"), [(50, True), (100, False)])
def test_an_empty_group_of_the_system_is_nobody(place, monkeypatch, number, is_safe):
    """/usr/local is staff's (50) on Debian, and nobody is in that; 100 is "users"."""
    os.chown(place, 0, number)
    place.chmod(0o2775)
    with_groups(monkeypatch, SimpleNamespace(gr_gid=number, gr_name="staff", gr_mem=[]))
    monkeypatch.setattr(ownership.sys, "platform", "linux")
    assert (why_unsafe(str(place)) is None) == is_safe


@needs_root
@pytest.mark.parametrize(("number", "is_safe"), [(80, True), (0, True), (12, False), (ME, False)])
def test_on_a_mac_admin_and_wheel_are_root(place, monkeypatch, number, is_safe):
    """/opt/homebrew is the user's, and can be written by admin (80); 12 is everyone."""
    os.chown(place, ME, number)
    place.chmod(0o775)
    as_user(monkeypatch, ME)
    with_groups(monkeypatch, GROUP, [MINE])
    monkeypatch.setattr(ownership.sys, "platform", "darwin")
    assert (why_unsafe(str(place)) is None) == is_safe


@needs_root
@pytest.mark.parametrize("other", [None, 502, 54323])
def test_on_a_mac_staff_is_everybody_who_has_an_account(place, monkeypatch, other):
    """conda's files can be written by it, and most Macs have one account."""
    os.chown(place, ME, 20)
    place.chmod(0o775)
    as_user(monkeypatch, ME)
    mine = SimpleNamespace(pw_uid=ME, pw_gid=20, pw_name="me")
    others = [] if other is None else [SimpleNamespace(pw_uid=other, pw_gid=20, pw_name="eve")]
    staff = SimpleNamespace(gr_gid=20, gr_name="staff", gr_mem=["root"])
    with_groups(monkeypatch, staff, [mine, *others])
    monkeypatch.setattr(ownership.sys, "platform", "darwin")
    found = f"{place} is writable by the group staff" if others else None
    assert why_unsafe(str(place)) == found


@needs_root
def test_an_acl_that_names_another_user_is_refused(place, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("only Linux shows an ACL in the bits of the group")
    place.chmod(0o775)
    if shutil.which("setfacl"):
        subprocess.run(["setfacl", "-m", f"u:{EVE}:rwx", place], check=True)
    else:
        monkeypatch.setattr(os, "getxattr", lambda *_: b"an ACL")
    assert why_unsafe(str(place)) == f"{place} is writable by the group root"


def test_a_file_system_without_acls_has_none(place, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("only Linux is asked")

    def refuse(*_):
        raise OSError(errno.ENOTSUP, "no")

    monkeypatch.setattr(os, "getxattr", refuse)
    assert ownership._has_acl(str(place)) is False


@needs_root
def test_a_folder_that_cannot_be_looked_into_says_whose_it_is(tmp_path):
    """As a real other user, from whom another one hides."""
    (tmp_path / "eve").mkdir()
    (tmp_path / "root").mkdir()
    os.chown(tmp_path / "eve", EVE, EVE)
    for name in ("eve", "root"):
        (tmp_path / name).chmod(0o700)
    said = run_as(
        ME,
        f"""
        from mpsbar.system.ownership import find_danger
        become()
        print(find_danger({str(tmp_path / "eve" / "python")!r}).reason)
        try: find_danger({str(tmp_path / "root" / "python")!r})
        except OSError as error: print(error.strerror)
        """,
        tmp_path,
    )
    eves = f"{tmp_path / 'eve'} belongs to another user ({EVE})"
    assert said.splitlines() == [eves, "Permission denied"]


def run_as(uid, code, folder):
    """What `code` prints, which calls become() once all is imported: our Python may be root's."""
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and str(path).startswith(("/tmp/", "/private/tmp/")):
            path.chmod(path.stat().st_mode | 0o011)
    start = f"import os\ndef become(): os.setgroups([]); os.setgid({uid}); os.setuid({uid})\n"
    command = [sys.executable, "-c", start + textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_required_to_be_safe_says_what_to_do(place):
    require_safe(place / "file")
    place.chmod(0o777)
    with pytest.raises(NotTrustedError) as refusal:
        require_safe(place / "file")
    words = f"{place} is writable by everyone; chmod go-w {place}"
    assert (str(refusal.value), refusal.value.strerror) == (words, words)
    assert isinstance(refusal.value, PermissionError)
