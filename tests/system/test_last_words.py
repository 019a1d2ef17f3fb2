"""Records of agents, read by the monitor: matched by pid and start, and never trusted."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsbar import end_reader
from mpsbar.agent import conventions
from mpsbar.core.events import EndedProcess
from mpsbar.core.fallbacks import FallbackOperation, Fallbacks
from mpsbar.core.verdicts import EndVerdict
from mpsbar.end_reader import read_all_ends
from mpsbar.system import last_words
from mpsbar.system.last_words import (
    apply_setting,
    complete_fallbacks,
    find_last_words,
    note_end,
    parse_last_words,
    read_last_words,
)

RECORD = {
    "version": 1, "pid": 7, "parent": 3, "attached": 1000.0, "ended": 1100.0, "command": ["python", "train.py"],
    "executable": "/usr/bin/python3", "notebook": None, "frameworks": {"torch": "2.13.0"},
    "memory": {"held": 5, "peak": 9}, "error": {"type": "ValueError", "text": "x", "where": "a.py:3", "is_main": True},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(tmp_path / "run"))
    place = tmp_path / "run" / "ended"
    place.mkdir(parents=True, mode=0o700)
    (tmp_path / "run").chmod(0o700)
    return place


def leave(folder, pid=7, attached=1000.0, ended=1100.0, **fields):
    record = RECORD | {"pid": pid, "attached": attached, "ended": ended} | fields
    (folder / (conventions.ENDED_NAME % (ended * 1000, pid))).write_text(json.dumps(record))


def test_a_record_is_read(folder):
    leave(folder)
    (words,) = read_last_words()
    assert (words.pid, words.parent, words.name, words.error.type) == (
        7,
        3,
        "train.py",
        "ValueError",
    )
    assert (words.memory, words.frameworks) == ({"held": 5, "peak": 9}, {"torch": "2.13.0"})
    assert read_last_words(1200.0) == []


def test_a_pid_that_is_used_again_has_its_own_record(folder):
    leave(folder, attached=1000.0, ended=1100.0)
    leave(folder, attached=2000.0, ended=2100.0, error=None)
    assert find_last_words(7, 999.5).ended == 2100.0  # the newest after its start
    assert find_last_words(7, 1999.0).error is None
    assert find_last_words(7, 2500.0) is None
    assert find_last_words(8, 999.5) is None
    assert find_last_words(7, None).ended == 2100.0


def test_one_that_started_after_a_process_was_last_seen_is_another(folder):
    """It was killed while nobody watched, and its pid was given to a process that left a record."""
    leave(folder, started=1990.0, attached=2000.0, ended=2100.0)
    assert find_last_words(7, 999.5, last_seen=1200.0) is None
    assert find_last_words(7, 999.5, last_seen=1995.0).ended == 2100.0
    leave(folder, started=999.0, attached=1000.0, ended=1300.0)
    assert find_last_words(7, 999.5, last_seen=1200.0).ended == 1300.0


def test_what_is_not_safely_ours_is_not_read(folder):
    leave(folder)
    folder.chmod(0o777)
    assert read_last_words() == []
    folder.chmod(0o700)
    (file,) = folder.iterdir()
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        assert read_last_words() == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"[" * 50000, b"x" * 20000, b'{"version": 1}']
)
def test_odd_files(folder, content):
    (folder / (conventions.ENDED_NAME % (1100000, 7))).write_bytes(content)
    (folder / "notes.txt").write_bytes(content)
    os.mkfifo(folder / (conventions.ENDED_NAME % (1100001, 7)))
    assert read_last_words() == []


def test_hostile_texts(folder):
    error = {
        "type": "x\x1b[2J",
        "text": "\x1b[31m key hf_abcdefghijklmnop" + "y" * 900,
        "where": "\0" * 500,
        "is_main": 1,
    }
    leave(
        folder,
        error=error,
        command=["python", "\x07evil.py"],
        memory={"held": -1, "peak": "9", "x": True, "y": 2**70},
    )
    (words,) = read_last_words()
    assert words.error.type == "exception"
    assert words.error.text.isprintable()
    assert len(words.error.text) <= 200
    assert "hf_" not in words.error.text
    assert words.error.is_main is False
    assert words.name.isprintable()
    assert words.memory == {}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=12), x, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(sorted(RECORD)), anything))
def test_no_record_makes_the_reader_fail(fields):
    words = parse_last_words(RECORD | fields)
    assert words is None or words.name.isprintable()


def test_the_setting_is_a_file_for_the_agents(folder):
    leave(folder)
    apply_setting(False)
    marker = folder.parent / conventions.NO_LAST_WORDS
    assert marker.exists()
    assert list(folder.iterdir()) == []
    apply_setting(True)
    assert not marker.exists()


def test_agents_that_cannot_be_told_are_reported_when_all_others_were(folder, monkeypatch):
    """The first folder is another user's to write, as far as this one can know."""
    leave(folder)
    bad = folder.parent.parent / "bad"
    bad.mkdir()
    bad.chmod(0o777)
    folders = [str(bad), str(folder.parent)]
    monkeypatch.setattr(last_words.user_folders, "find_run_folders", lambda: folders)
    with pytest.raises(PermissionError, match="bad is writable by other users"):
        apply_setting(False)
    assert (folder.parent / conventions.NO_LAST_WORDS).exists()
    assert list(folder.iterdir()) == []
    (bad / conventions.NO_LAST_WORDS).mkdir()  # can't be removed as a file
    with pytest.raises(OSError, match=r"directory|permitted"):
        apply_setting(True)
    assert not (folder.parent / conventions.NO_LAST_WORDS).exists()


def test_a_folder_that_cannot_be_used_is_no_problem_where_last_words_are_on(folder, monkeypatch):
    monkeypatch.setattr(last_words.user_folders, "find_run_folders", lambda: [str(folder / "none")])
    apply_setting(True)


def test_what_fell_back_to_the_cpu_is_not_trusted():
    given = [
        ["aten::x", 3, "a.py:1"],
        ["aten::y", -1, ""],
        ["aten::z", True, ""],
        7,
        ["", 1, ""],
        ["a", 1],
    ]
    words = parse_last_words(RECORD | {"fallbacks": given})
    assert words.fallbacks.operations == (FallbackOperation("aten::x", 3, "a.py:1"),)
    assert (words.fallbacks.is_counted, words.fallbacks.is_profiled) == (True, False)
    for odd in (None, 7, {"aten::x": 3}, "x"):
        assert parse_last_words(RECORD | {"fallbacks": odd}).fallbacks is None
        assert parse_last_words(RECORD | {"fallback_seen": odd}).fallbacks is None
    seen = parse_last_words(RECORD | {"fallbacks": [], "fallback_seen": ["aten::x", "/w/a.py:1"]})
    assert seen.fallbacks.operations == (FallbackOperation("aten::x", 1, "/w/a.py:1"),)
    assert not seen.fallbacks.is_counted
    for odd in (["", "a"], [7, 8], ["a"]):
        assert parse_last_words(RECORD | {"fallback_seen": odd}).fallbacks is None


@pytest.mark.parametrize(
    ("added", "is_known"),
    [
        ({"fallback_seen": None}, True),
        ({"fallback_seen": ["aten::x", "/w/a.py:1"]}, True),
        ({"fallbacks": [["aten::x", 3, "a.py:1"]]}, True),
        ({"fallback_seen": "cut"}, False),  # the process did not look at all of its modules
        ({"fallback_seen": [7, 8]}, False),
        ({}, False),  # of an older agent, or of a parent
    ],
)
def test_whether_there_may_be_a_fallback_that_nobody_saw(added, is_known):
    assert parse_last_words(RECORD | added).knows_fallbacks is is_known


def test_what_torch_printed_after_the_record_is_added_to_it(folder):
    operations = tuple(FallbackOperation(f"aten::x{n}", 1, f"a.py:{n}", 0.5, 9) for n in range(30))
    leave(folder, 7, fallbacks=[["aten::x0", 1, "a.py:0"]])
    leave(folder, 8)
    before = find_last_words(8, None)
    found = Fallbacks(operations, "2.13.0", is_profiled=True)
    complete_fallbacks(7, RECORD["ended"] - 5, found)
    words = find_last_words(7, None)
    assert words.fallbacks.operations == operations[:10]
    assert words.fallbacks.is_profiled
    complete_fallbacks(7, RECORD["ended"] + 5, Fallbacks(operations[:1]))  # of a later process
    complete_fallbacks(9, 0.0, found)
    assert find_last_words(7, None) == words
    assert find_last_words(8, None) == before
    assert len(list(folder.iterdir())) == 2


@pytest.fixture
def history(folder, monkeypatch):
    """What the history knows of ended processes."""
    ends = []
    monkeypatch.setattr(end_reader, "_read_history", lambda *_: list(ends))
    return ends


def test_how_long_a_run_ran_that_nobody_watched(folder, history):
    leave(folder, started=990.0)
    leave(folder, 8)  # of an older agent
    assert [(end.pid, end.started, end.ran) for end in read_all_ends(1200.0)] == [
        (8, None, None),
        (7, 990.0, 110.0),
    ]


def test_a_run_that_was_last_seen_before_its_end_ran_until_its_end(folder, history):
    history.append(EndedProcess(7, 990.0, "train.py", 1050.0, was_seen=False, ran=60.0))
    leave(folder, started=990.0)
    (end,) = read_all_ends(1200.0)
    assert (end.how, end.ended, end.ran) == ("exception", 1100.0, 110.0)


@pytest.mark.parametrize("was_seen", [True, False])
def test_a_later_run_with_the_same_pid_has_its_own_row(folder, history, was_seen):
    verdict = EndVerdict("killed", "known", {"signal": 9}, ("exit_status",)) if was_seen else None
    history.append(EndedProcess(7, 400.0, "old.py", 500.0, was_seen=was_seen, verdict=verdict))
    leave(folder, started=990.0)
    new, old = read_all_ends(1200.0)
    assert (new.name, new.how, new.ran) == ("train.py", "exception", 110.0)
    # In 1970 this computer was not running.
    assert (old.name, old.verdict.code) == ("old.py", "killed" if was_seen else "restarted")


SEEN = EndVerdict("exit_code", "known", {"code": 3}, ("exit_status",))
KILLED = EndVerdict("killed_for_memory", "likely", {"signal": 9}, ("exit_status", "swap"))


def test_the_parent_completes_the_record_of_its_command(folder):
    leave(folder, 7, fallbacks=[["aten::x", 1, "a.py:0"]])
    before = find_last_words(7, None)
    note_end(EndedProcess(7, 990.0, "train.py", 1100.0, verdict=SEEN))
    words = find_last_words(7, None)
    assert (words.started, words.verdict, words.is_of_parent) == (990.0, SEEN, False)
    assert (words.error, words.name, words.fallbacks) == (
        before.error,
        before.name,
        before.fallbacks,
    )
    (end,) = read_all_ends(1200.0)
    assert (end.how, end.ran, end.was_seen) == ("exit_code", 110.0, True)
    assert (end.verdict.values, end.verdict.fallbacks) == ({"code": 3}, before.fallbacks)
    leave(folder, 7, started=995.0)  # the process itself knows better when it started
    note_end(EndedProcess(7, 990.0, "train.py", 1100.0, verdict=SEEN))
    assert find_last_words(7, None).started == 995.0
    assert [end.ran for end in read_all_ends(1200.0)] == [105.0]


def test_the_parent_leaves_a_record_of_a_command_that_was_killed(folder, monkeypatch):
    secret = "train_hf_abcdefghijklmnopqrstuvwxyz012345.py"
    monkeypatch.setattr(last_words, "MAX_ENDED_FILES", 1)
    leave(folder, 6, ended=1099.0)
    note_end(EndedProcess(7, 990.0, secret, 1100.0, peak=5, verdict=KILLED))
    (file,) = folder.iterdir()  # the older one is gone
    assert file.stat().st_mode & 0o777 == 0o600
    assert "hf_abc" not in file.read_text()
    (end,) = read_all_ends(1200.0)
    assert (end.verdict, end.peak, end.ran) == (KILLED, 5, 110.0)
    # It is no word of the process itself, which would mean that Python ended by itself.
    assert find_last_words(7, 990.0) is None
    assert find_last_words(7, 990.0, or_of_parent=True).is_of_parent
    record = json.loads(file.read_text())
    assert parse_last_words(record | {"verdict": {"code": "nonsense"}}) is None


def test_a_record_that_cannot_be_left_is_reported(folder):
    folder.parent.chmod(0o777)
    with pytest.raises(OSError, match="writable by other users") as found:
        note_end(EndedProcess(7, 990.0, "train.py", 1100.0, verdict=KILLED))
    assert found.value.filename == str(folder)


def test_where_records_are_turned_off_the_parent_leaves_none(folder):
    apply_setting(False)
    note_end(EndedProcess(7, 990.0, "train.py", 1100.0, verdict=KILLED))
    assert list(folder.iterdir()) == []
