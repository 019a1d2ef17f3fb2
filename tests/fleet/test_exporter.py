"""The file for node_exporter: whole, readable by others, gone at the end."""

import stat

import pytest
from samples import make_snapshot

from mpsbar.core.errors import UserError
from mpsbar.fleet.exporter import Exporter, TextFile


class Ticks:
    latest = make_snapshot()
    ticks = 1
    tick_seconds = None
    pause = 2.0


def test_written_whole_and_removed(tmp_path):
    path = tmp_path / "mpsbar.prom"
    file = TextFile(Exporter(Ticks()), str(path))
    file.write()
    assert "mpsbar_machine_memory_bytes 3.8654705664e+10" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    assert [path.name for path in tmp_path.iterdir()] == ["mpsbar.prom"]
    file.remove()
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path):
    other = tmp_path / "precious"
    other.write_text("mine")
    (tmp_path / "mpsbar.prom").symlink_to(other)
    TextFile(Exporter(Ticks()), str(tmp_path / "mpsbar.prom")).write()
    assert other.read_text() == "mine"


def test_nothing_before_the_first_tick(tmp_path):
    monitor = Ticks()
    monitor.ticks = 0
    TextFile(Exporter(monitor), str(tmp_path / "mpsbar.prom")).write()
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_one_sentence(tmp_path):
    with pytest.raises(UserError, match=r"must end in \.prom: node_exporter reads no other files"):
        TextFile(Exporter(Ticks()), str(tmp_path / "mpsbar.txt"))
    with pytest.raises(UserError, match="is not a folder"):
        TextFile(Exporter(Ticks()), str(tmp_path / "no" / "mpsbar.prom"))
    (tmp_path / "mpsbar.prom").mkdir()
    with pytest.raises(UserError, match="couldn't write "):
        TextFile(Exporter(Ticks()), str(tmp_path / "mpsbar.prom")).write()
