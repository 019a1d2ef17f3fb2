"""The settings file of a real folder: read, written one key at a time, kept aside when broken."""

import os
import stat
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.core.errors import UserError
from mpsbar.core.settings import Settings
from mpsbar.system import paths
from mpsbar.system.settings_file import read_settings, write_setting

DAY = datetime.now().astimezone().strftime("%Y-%m-%d")


@pytest.fixture
def file(tmp_path, monkeypatch):
    for key in [key for key in os.environ if key.startswith("MPSBAR_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path / "config"))
    return paths.settings_file()


@pytest.fixture
def written(file):
    file.parent.mkdir()
    file.write_text('# mine\nbar = "gpu"  # always\nfuture = 1\n')
    return file


def in_child(code, **extra):
    """In a process of its own: limits of the kernel cannot be taken back."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | extra, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_place_is_the_platforms_own(monkeypatch):
    monkeypatch.delenv("MPSBAR_CONFIG_DIR", raising=False)
    assert paths.settings_file().parts[-2:] == ("mpsbar", "settings.toml")


def test_without_a_file_all_are_defaults(file):
    loaded = read_settings()
    assert (loaded.settings, loaded.origins, loaded.complaints) == (Settings(), {}, ())
    assert not file.parent.exists()


def test_each_layer_is_over_the_one_before(file, monkeypatch):
    file.parent.mkdir()
    file.write_text('bar = "gpu"\ninterval = 5\nalerts = false\n')
    monkeypatch.setenv("MPSBAR_INTERVAL", "10")
    monkeypatch.setenv("MPSBAR_ALERTS", "yes")
    monkeypatch.setenv("MPSBAR_BAR", "")
    loaded = read_settings({"alerts": False, "cool_down": 3})
    assert loaded.settings == Settings("gpu", 10.0, False, cool_down=3.0)
    assert loaded.origins == {
        "bar": "file", "interval": "environment", "alerts": "flag", "cool_down": "flag",
    }  # fmt: skip


def test_a_mistake_names_where_it_is_and_leaves_the_layer_below(file, monkeypatch):
    file.parent.mkdir()
    file.write_text("interval = 5\nalertz = 1\n")
    monkeypatch.setenv("MPSBAR_INTERVAL", "soon")
    loaded = read_settings({"cool_down": -1})
    assert (loaded.settings, loaded.origins) == (Settings(interval=5), {"interval": "file"})
    assert loaded.complaints == (
        "settings.toml: alertz is not a setting; did you mean alerts?",
        'MPSBAR_INTERVAL is "soon": it must be a number of seconds from 0.5 to 3600',
        "--cool-down is -1: it must be a number of seconds from 0 to 86400",
    )


def test_braces_in_a_mistake_are_no_format(file):
    file.parent.mkdir()
    file.write_text('bar = "{0} {x}"\n')
    assert '"{0} {x}"' in read_settings().complaints[0]


def test_the_first_setting_makes_the_file(file):
    write_setting("interval", 5)
    assert file.read_text() == "interval = 5\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_settings().settings == Settings(interval=5)


def test_one_key_is_written_and_the_rest_is_kept(written, monkeypatch):
    monkeypatch.setenv("MPSBAR_INTERVAL", "30")
    written.chmod(0o640)
    write_setting("bar", "dot")
    write_setting("alert_causes", ("leak",))
    assert (
        written.read_text()
        == '# mine\nbar = "dot"  # always\nfuture = 1\nalert_causes = ["leak"]\n'
    )
    assert stat.S_IMODE(written.stat().st_mode) == 0o640
    assert list(written.parent.iterdir()) == [written]


def test_what_is_so_already_is_not_written(written):
    before = written.stat()
    write_setting("bar", "gpu")
    assert (written.stat().st_ino, written.stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_a_byte_order_mark_is_no_mistake(file):
    file.parent.mkdir()
    file.write_bytes(b'\xef\xbb\xbfbar = "gpu"\r\n')
    write_setting("interval", 5)
    assert file.read_bytes() == b'bar = "gpu"\r\ninterval = 5\r\n'


def test_a_link_is_written_through(written, tmp_path):
    target = tmp_path / "dotfiles" / "mpsbar.toml"
    target.parent.mkdir()
    written.rename(target)
    written.symlink_to("../dotfiles/mpsbar.toml")
    write_setting("bar", "icon")
    assert written.is_symlink()
    assert not target.is_symlink()
    assert 'bar = "icon"  # always' in target.read_text()
    target.unlink()
    write_setting("bar", "dot")
    assert (written.is_symlink(), target.read_text()) == (True, 'bar = "dot"\n')


def test_links_in_a_circle_are_a_sentence(file):
    file.parent.mkdir()
    file.symlink_to(file.name)
    with pytest.raises(UserError, match=r"couldn't change .*: Too many levels"):
        write_setting("bar", "dot")
    assert "couldn't read" in read_settings(repair=True).complaints[0]
    assert file.is_symlink()


def test_a_wrong_value_is_not_written(written):
    before = written.read_text()
    with pytest.raises(UserError, match="bar is 3: it must be"):
        write_setting("bar", 3)
    with pytest.raises(UserError, match="is not a setting"):
        write_setting("future", 2)
    assert written.read_text() == before


def test_a_read_only_file_is_left(written):
    written.chmod(0o444)
    with pytest.raises(UserError, match="is read-only"):
        write_setting("bar", "dot")
    assert 'bar = "gpu"' in written.read_text()


def test_a_folder_that_cannot_be_made_is_a_sentence(file, tmp_path):
    (tmp_path / "config").write_text("a file")
    with pytest.raises(UserError, match=r"couldn't change .*settings.toml: Not a directory"):
        write_setting("bar", "dot")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody, whom modes bind")
def test_a_read_only_folder_is_a_sentence_and_nothing_is_lost():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file = Path(folder, "settings.toml")
        file.write_text('bar = "gpu"\n')
        code = (
            "import os\n"
            "from mpsbar.system.settings_file import read_settings, write_setting\n"
            "write_setting('interval', 5)  # all is imported now: nobody may not even read our Python\n"
            "os.seteuid(65534)\n"
            "try: write_setting('bar', 'dot')\n"
            "except Exception as e: print(type(e).__name__, e)\n"
            "print(read_settings().settings.bar)\n"
        )
        error, bar = in_child(code, MPSBAR_CONFIG_DIR=folder).splitlines()
        assert error == f"UserError couldn't change {file}: Permission denied"
        assert (bar, list(file.parent.iterdir())) == ("gpu", [file])


def test_a_full_disk_is_a_sentence_and_nothing_is_lost(written):
    """The kernel's limit on file sizes stands for the disk: the write fails in the middle."""
    before = written.read_text()
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "from mpsbar.system.settings_file import write_setting\n"
        "try: write_setting('bar', 'dot')\n"
        "except Exception as e: print(type(e).__name__, e)\n"
    )
    assert in_child(code) == f"UserError couldn't change {written}: File too large\n"
    assert written.read_text() == before
    assert list(written.parent.iterdir()) == [written]


def test_killed_at_any_moment_the_file_is_one_or_the_other(written):
    code = (
        "import itertools, sys\nfrom mpsbar.system.settings_file import write_setting\n"
        "for n in itertools.cycle((1, 2, 5)):\n    write_setting('interval', n)\n    print(n, flush=True)\n"
    )
    for rounds in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", code], env=os.environ, cwd=ROOT, stdout=subprocess.PIPE
        )
        for _ in range(rounds * 3 + 1):
            child.stdout.readline()
        child.kill()
        child.communicate()
        loaded = read_settings()
        assert loaded.settings.bar == "gpu"
        assert not any("can't be used" in words for words in loaded.complaints)
        assert loaded.settings.interval in (1, 2, 5)


def make_text(content):
    def make(file):
        file.write_bytes(content)

    return make


BROKEN = {
    "not TOML": (make_text(b"bar = "), "it is not TOML: Invalid value"),
    "not UTF-8": (make_text(b'bar = "\xff"\n'), "it is not UTF-8 text"),
    "too large": (make_text(b"#" * 65537), "it is larger than 64 KiB"),
    "a directory": (lambda file: file.mkdir(), "it is not a file"),
    "a pipe": (os.mkfifo, "it is not a file"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_kept_aside_by_who_may_write(file, kind):
    make, why = BROKEN[kind]
    file.parent.mkdir()
    make(file)
    looked = read_settings()
    assert looked.settings == Settings()
    assert looked.complaints[0].startswith(f"{file} can't be used ({why}")
    assert os.path.lexists(file)
    with pytest.raises(UserError, match=r"is damaged .* and was left unchanged"):
        write_setting("bar", "dot")
    repaired = read_settings(repair=True)
    moved = file.with_name(f"settings.toml.broken-{DAY}")
    assert repaired.complaints[0].endswith(f"; using the defaults; it was renamed to {moved}")
    assert (os.path.lexists(file), moved.exists()) == (False, True)
    write_setting("bar", "dot")
    assert read_settings().complaints == ()


def test_one_kept_aside_is_never_overwritten(file):
    file.parent.mkdir()
    for number in range(3):
        file.write_text(f"broken {number}")
        read_settings(repair=True)
    assert [path.read_text() for path in sorted(file.parent.iterdir())] == [
        "broken 0",
        "broken 1",
        "broken 2",
    ]


def test_of_a_broken_link_only_the_link_is_moved(file, tmp_path):
    file.parent.mkdir()
    (tmp_path / "dotfile").write_text("bar = ")
    file.symlink_to(tmp_path / "dotfile")
    read_settings(repair=True)
    assert os.readlink(file.with_name(f"settings.toml.broken-{DAY}")) == str(tmp_path / "dotfile")
    assert (tmp_path / "dotfile").read_text() == "bar = "


def test_the_environment_counts_when_the_file_is_broken(file, monkeypatch):
    file.parent.mkdir()
    file.write_text("bar = ")
    monkeypatch.setenv("MPSBAR_BAR", "icon")
    assert read_settings().settings == Settings("icon")


def test_a_key_that_stands_there_as_a_table_is_left_to_the_person(file):
    file.parent.mkdir()
    file.write_text("[bar]\nx = 1\n")
    with pytest.raises(UserError, match=r"couldn't change bar in .*; change it by hand"):
        write_setting("bar", "dot")
    assert file.read_text() == "[bar]\nx = 1\n"
