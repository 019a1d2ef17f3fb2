"""The file for node_exporter: whole, readable by others, gone at the end."""

import stat
import threading
from dataclasses import replace

import pytest
from samples import make_snapshot

from mpsbar.core.actions import Freed
from mpsbar.core.errors import UserError
from mpsbar.core.events import EndedProcess, EventLog
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


def test_what_was_before_it_was_turned_on_is_not_counted():
    """Else an end of before would be an increase for Prometheus, and an alert, a second time."""
    log, monitor = EventLog(), Ticks()
    log.add(1.0, EndedProcess(1, None, "a", 1.0, how="killed"))
    monitor.latest = replace(make_snapshot(), events=log.recent)
    exporter = Exporter(monitor)
    exporter.follow()
    assert 'mpsbar_worker_ends_total{how="killed"} 0.0' in exporter.render().decode()
    log.add(2.0, EndedProcess(2, None, "b", 2.0, how="killed"))
    monitor.ticks, monitor.latest = 2, replace(make_snapshot(), events=log.recent)
    exporter.follow()
    assert 'mpsbar_worker_ends_total{how="killed"} 1.0' in exporter.render().decode()


def test_server_and_file_count_an_event_once_between_them():
    """Both follow: the second comes while the first counts, and has to wait for it."""
    monitor, log = Ticks(), EventLog()
    exporter = Exporter(monitor)
    log.add(1.0, Freed(1, "a", "done", 5))
    adds = exporter._totals.add
    threads = []

    def add(snapshot):
        if not threads:
            monitor.ticks += 1  # the monitor goes on meanwhile
            threads.append(threading.Thread(target=exporter.follow))
            threads[0].start()
            threads[0].join(0.05)
            assert threads[0].is_alive()
        adds(snapshot)

    exporter._totals.add = add
    monitor.ticks, monitor.latest = 2, replace(make_snapshot(), events=log.recent)
    exporter.follow()
    threads[0].join()
    assert 'mpsbar_frees_total{state="done"} 1.0' in exporter.render().decode()
