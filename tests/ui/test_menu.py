"""The menu of the app, whole and row by row: what is there, what it asks for, what it says when things end."""

from dataclasses import replace
from functools import partial

import pytest
from samples import GB, MB, make_snapshot, make_training

from mpsbar.core.actions import (
    Choose,
    Connect,
    Copy,
    FindTensors,
    Free,
    Freed,
    InspectPythons,
    OpenReport,
    Quit,
    StartAtLogin,
    Stop,
    Stopped,
    TensorGroup,
    Tensors,
    WatchEnd,
)
from mpsbar.core.events import EndedProcess
from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Process
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Backend, LastFree, Snapshot
from mpsbar.core.verdicts import EndVerdict
from mpsbar.ui.bar import build_bar
from mpsbar.ui.menu import SECTIONS, build_menu
from mpsbar.ui.process_submenu import TENSOR_ROWS
from mpsbar.ui.rows import Row, UiState

APP = UiState(is_clickable=True, login="off")
MAX_ROWS = APP.most
COUNTERS = {"allocated": 2 * GB, "reserved": 5 * GB, "driver": 6 * GB}
worker = partial(make_training, **COUNTERS)


def rows(menu):
    found, left = {}, list(menu.rows)
    while left:
        row = left.pop(0)
        assert row.key not in found, f"two rows are called {row.key}"
        found[row.key] = row
        left += row.children
    return found


def test_the_whole_menu_of_the_app(check_golden):
    serve = Process(4720, 7.0, "serve.py", ("torch",), footprint=2 * GB, python="/v/bin/python")
    seen = make_snapshot(
        worker(), worker(4712, "notebook kernel", state="busy", age=3.2), processes=[serve],
        gpu_utilization=(0, 12, 25, 50, 80, 100, 43),
    )  # fmt: skip
    menu = build_menu(seen, APP)
    assert len(menu.sections) == SECTIONS
    check_golden("menu_app.txt", f"{menu}\n")


def test_without_an_app_there_is_nothing_to_set_or_quit():
    assert [row.key for row in build_menu(make_snapshot(worker())).rows] == [
        "health", "gpu", "free-all", "worker-4711",
    ]  # fmt: skip


def test_each_row_asks_for_its_own():
    serve = Process(4720, 7.0, "serve.py", ("torch",), python="/v/bin/python")
    found = rows(build_menu(make_snapshot(worker(), processes=[serve]), APP))
    assert found["free-4711"].actions == (Free(4711),)
    assert found["tensors-4711"].opens == FindTensors(4711)
    assert found["watch-4711"].actions == (WatchEnd(4711, 100.0, "train.py", on=True),)
    assert found["copy-4711"].actions == (Copy("4711"),)
    assert found["stop-4711"].actions == (Stop(4711, 100.0, "train.py"),)
    assert found["connect-4720"].actions == (Connect("/v/bin/python"),)
    assert found["stop-4720"].actions == (Stop(4720, 7.0, "serve.py"),)
    assert found["diagnostics"].actions == (InspectPythons(),)
    assert found["bar-gpu"].actions == (Choose("bar", "gpu"),)
    assert found["interval-5"].actions == (Choose("interval", 5.0),)
    assert found["login"].actions == (StartAtLogin(True),)
    assert (found["quit"].actions, found["quit"].shortcut) == ((Quit(),), "q")


def test_without_its_start_a_process_is_not_offered_to_be_stopped():
    assert "stop-4711" not in rows(build_menu(make_snapshot(worker(process=None)), APP))


def test_the_second_stop_is_firmer():
    seen = make_snapshot(worker(), stopped={4711: Stopped(4711, "train.py", "asked")})
    found = rows(build_menu(seen, APP))
    assert found["stop-4711"].actions == (Stop(4711, 100.0, "train.py", firmly=True),)
    assert found["worker-4711"].cells[3].endswith("asked to stop (SIGINT)")
    earlier = Stopped(4711, "old.py", "asked", started=50.0)  # of another process with its pid
    assert rows(build_menu(make_snapshot(worker(), stopped={4711: earlier}), APP))[
        "stop-4711"
    ].actions == (Stop(4711, 100.0, "train.py"),)
    gone = make_snapshot(worker(), stopped={4711: Stopped(4711, "train.py", "another")})
    assert rows(build_menu(gone, APP))["stop-4711"].actions[0].firmly is False


def test_no_error_makes_the_menu_as_wide_as_the_screen():
    freed = {4711: Freed(4711, "train.py", "failed", error="e" * 300)}
    backend = replace(worker().backends[0], name="d" * 300)
    odd = replace(worker(), backends=(backend,))
    found = rows(build_menu(make_snapshot(odd, freed=freed), APP))["worker-4711"]
    assert max(map(len, found.cells)) <= 110
    assert len("".join(found.cells)) < 180
    assert "e" * 300 in found.text
    tensors = {4711: Tensors(4711, "failed", error="e" * 300)}
    found = rows(build_menu(make_snapshot(worker(), tensors=tensors), APP))
    assert len(found["tensor-4711-0"].text) <= 110


def test_an_older_agent_is_offered_what_it_has():
    found = rows(build_menu(make_snapshot(worker(methods=frozenset(["hello", "stats"]))), APP))
    assert not {"free-4711", "tensors-4711"} & set(found)
    assert found["free-all"].actions == ()


def test_a_program_without_a_python_cannot_be_connected():
    paint = Process(4721, 7.0, "Paint", ("torch",))
    found = rows(build_menu(make_snapshot(processes=[paint]), APP))
    assert "connect-4721" not in found
    assert found["worker-4721"].tooltip == (
        "add `import mpsbar; mpsbar.attach()` to its code, if it is Python"
    )


def test_what_is_under_way_cannot_be_clicked_again():
    seen = make_snapshot(
        worker(), worker(4712, "other.py"), pending=frozenset([Free(4711), InspectPythons()])
    )  # fmt: skip
    found = rows(build_menu(seen, APP))
    assert (found["free-4711"].text, found["free-4711"].actions) == ("Freeing…", ())
    assert found["worker-4711"].cells[3].endswith("freeing…")
    assert found["free-all"].actions == (Free(4712),)
    assert found["diagnostics"].actions == ()
    all_of_them = make_snapshot(worker(), pending=frozenset([Free(4711)]))
    head = rows(build_menu(all_of_them, APP))["free-all"]
    assert (head.text, head.actions) == ("Freeing…", ())


def test_how_a_free_ended_stands_in_its_row():
    freed = {4711: Freed(4711, "train.py", "done", int(3.1 * GB), 0.04)}
    row = rows(build_menu(make_snapshot(worker(), freed=freed), APP))["worker-4711"]
    assert row.cells == ("train.py", "mps", "6.0 GB", "cached 3.0 GB, freed 3.1 GB in 40 ms")
    assert row.text == "train.py, mps, 6.0 GB, cached 3.0 GB, freed 3.1 GB in 40 ms"
    freed = {4711: Freed(4711, "train.py", "busy", reason="thread_computing", where="a.py:3 in f")}
    row = rows(build_menu(make_snapshot(worker(), freed=freed), APP))["worker-4711"]
    assert row.cells[3].endswith(
        "busy: another thread is computing (a.py:3 in f); nothing was freed"
    )


@pytest.mark.parametrize(
    ("found", "pending", "lines"),
    [
        (None, False, ["Not counted yet"]),
        (None, True, ["Counting…"]),
        (Tensors(1, "busy", reason="main_computing", where="t.py:9 in step"), False,
         ["busy: the main thread is computing (t.py:9 in step)"]),
        (Tensors(1, "gone"), False, ["the process has ended"]),
        (Tensors(1, "failed", error="no way"), False, ["failed: no way"]),
        (Tensors(1, "done"), False, ["No live tensors"]),
        (
            Tensors(
                1, "done",
                tuple(TensorGroup("mps", "float32", f"{n}x{n}", n, n * GB) for n in range(10, 0, -1)),
                others=GB, not_visible={"mps": 512 * MB},
            ),
            False,
            ["10.0 GB  10 × float32 10×10  mps", "9.0 GB  9 × float32 9×9  mps",
             "8.0 GB  8 × float32 8×8  mps", "7.0 GB  7 × float32 7×7  mps",
             "6.0 GB  6 × float32 6×6  mps", "5.0 GB  5 × float32 5×5  mps",
             "4.0 GB  4 × float32 4×4  mps", "3.0 GB  3 × float32 3×3  mps",
             "4.0 GB  other tensors", "512 MB  not visible from Python"],
        ),
        (  # what was not looked at is not said to be invisible
            Tensors(1, "done", not_visible={"mps": 512 * MB}, cut_short=True), False,
            ["There are more: counting stopped early"],
        ),
    ],
)  # fmt: skip
def test_the_biggest_tensors(found, pending, lines):
    seen = make_snapshot(
        worker(1),
        tensors={} if found is None else {1: found},
        pending=frozenset([FindTensors(1)] if pending else []),
    )
    row = rows(build_menu(seen, APP))["tensors-1"]
    assert [child.text for child in row.children] == lines
    assert row.room == TENSOR_ROWS  # it is counted anew each time
    assert len(lines) <= TENSOR_ROWS


def test_more_workers_than_fit():
    many = [worker(100 + n, f"w{n}.py") for n in range(MAX_ROWS + 5)]
    section = build_menu(make_snapshot(*many), APP).sections[2]
    assert len(section) == MAX_ROWS
    assert (section[-1].key, section[-1].text) == ("more", "7 More…")
    assert section[-1].actions == (OpenReport(),)
    assert build_menu(make_snapshot(*many)).sections[2][-1].actions == ()  # nobody to click
    exactly = build_menu(make_snapshot(*many[: MAX_ROWS - 1]), APP).sections[2]
    assert exactly[-1].key == f"worker-{100 + MAX_ROWS - 2}"


def gone(pid, name="old_run.py", ended=820.0, **fields):
    return EndedProcess(pid, 5.0, name, ended, peak=int(11.2 * GB), **fields)


@pytest.mark.parametrize(
    ("one", "note"),
    [
        (gone(1), "ended 3 min ago, peak 11.2 GB, exit code unknown"),
        (gone(1, how="stopped"), "ended 3 min ago, peak 11.2 GB, stopped by mpsbar"),
        (gone(1, how="pressure", ended=999.0),
         "ended just now, peak 11.2 GB, exit code unknown, memory pressure was critical"),
        (gone(1, was_seen=False, ended=1000.0 - 8 * 3600),
         "last seen 8 h ago, ended while mpsbar was not running, peak 11.2 GB, exit code unknown"),
        (replace(gone(1), peak=None), "ended 3 min ago, exit code unknown"),
        (gone(1, ended=2000.0), "ended just now, peak 11.2 GB, exit code unknown"),
    ],
)  # fmt: skip
def test_who_has_gone_has_a_row_with_how_and_when(one, note):
    row = build_menu(make_snapshot(worker(), ended=(one,)), APP).sections[2][-1]
    assert row.cells == ("old_run.py", "", "", note)
    assert (row.text, row.actions, row.children) == (f"old_run.py, {note}", (), ())


def test_the_row_of_an_end_has_its_verdict_and_details_in_a_submenu():
    values = {"at": int(27.4 * GB), "text": "MPS backend out of memory", "allocated": 20 * GB,
              "other": int(7.4 * GB), "limit": 27 * GB, "tried": GB}  # fmt: skip
    verdict = EndVerdict("out_of_memory", "known", values, ("exit_status", "last_words"))
    one = gone(1, "train.py", verdict=verdict, how="out_of_memory", ran=7200.0)
    row = build_menu(make_snapshot(worker(), ended=(one,)), APP).sections[2][-1]
    assert row.text == "train.py, ended 3 min ago, out of memory at 27.4 GB"
    texts = [child.text for child in row.children]
    assert texts[0] == (
        "train.py ran out of memory: 20.0 GB allocated, 7.4 GB other, 27.0 GB allowed; it asked for"
        " 1.0 GB more"
    )
    assert texts[1].endswith(", ran for 2 h, peak 11.2 GB")
    assert "Evidence: the exit record written by its agent" in texts
    assert any(text.startswith("→ Use a smaller batch size in train.py") for text in texts)
    assert texts[-1] == "Copy Details"
    assert row.children[-1].actions[0].text.startswith("train.py (1)\ntrain.py ran out of memory")
    assert row.room >= len(row.children)  # a report may come while the menu is open
    printed = build_menu(make_snapshot(worker(), ended=(one,))).sections[2][-1]
    assert printed.children == ()


def test_a_reset_of_the_gpu_is_on_the_row_until_the_process_ends():
    row = build_menu(make_snapshot(worker(), gpu_resets={4711: 50520.0}), APP).sections[2][1]
    assert "GPU reset at " in row.text
    assert row.text.endswith("results may be wrong")


def test_the_gone_are_few_and_never_push_out_who_is_there():
    past = tuple(gone(n) for n in range(900, 910))
    few = build_menu(make_snapshot(worker(), ended=past), APP).sections[2]
    assert [row.key for row in few[2:]] == ["gone-900-5", "gone-901-5", "gone-902-5"]
    many = [worker(100 + n, f"w{n}.py") for n in range(MAX_ROWS - 2)]
    section = build_menu(make_snapshot(*many, ended=past), APP).sections[2]
    assert (len(section), section[-1].key) == (MAX_ROWS, "gone-900-5")
    many.append(worker(99, "w.py"))
    section = build_menu(make_snapshot(*many, ended=past), APP).sections[2]
    assert (len(section), section[-1].key) == (MAX_ROWS, "worker-99")


def test_a_report_being_made_is_reported():
    found = rows(build_menu(make_snapshot(), replace(APP, is_reporting=True)))
    assert (found["report"].text, found["report"].actions) == ("Creating Report…", ())
    assert rows(build_menu(make_snapshot(), APP))["report"].actions == (OpenReport(),)


def test_long_names_and_doubles_are_distinguished():
    long = "a_very_long_name_of_an_experiment_number_17.py"
    section = build_menu(make_snapshot(worker(1, long), worker(2, long)), APP).sections[2]
    heads, *names = [row.cells[0] for row in section]
    assert heads == "Name"
    assert names == ["a_very_long_n…number_17.py 1", "a_very_long_n…number_17.py 2"]


def test_settings_show_what_is_chosen():
    ui_state = replace(
        APP, settings=Settings(bar="dot", interval=5.0, alerts=False), login="needs_approval",
        watched=frozenset([(4711, 100.0)]),
    )  # fmt: skip
    found = rows(build_menu(make_snapshot(worker()), ui_state))
    checked = {key for key, row in found.items() if row.is_checked}
    assert checked == {
        "bar-dot", "interval-5", "watch-4711",
        "alerts-pressure", "alerts-memory", "alerts-swap", "alerts-leak", "alerts-speed",
        "alerts-ended", "alerts-reset",
        "keep-cache-off", "keep-4711-usual",
    }  # fmt: skip
    assert found["alerts-leak"].actions == ()
    assert found["login"].text == "Open at Login (Needs Approval…)"
    assert found["watch-4711"].actions == (WatchEnd(4711, 100.0, "train.py", on=False),)
    assert "login" not in rows(build_menu(make_snapshot(), replace(APP, login=None)))


def test_one_cause_of_alerts_is_switched_at_a_time():
    found = rows(build_menu(make_snapshot(), APP))
    assert found["alerts-leak"].actions == (
        Choose("alert_causes", ("pressure", "memory", "swap", "speed", "ended", "reset")),
    )
    assert found["alerts-cache"].actions == (
        Choose(
            "alert_causes",
            ("pressure", "memory", "swap", "leak", "speed", "cache", "ended", "reset"),
        ),
    )


def test_what_ended_says_so_and_cannot_be_clicked():
    row = rows(build_menu(make_snapshot(worker()), APP))["worker-4711"].ended()
    assert (row.text, row.cells) == ("train.py, ended", ("train.py", "", "", "ended"))
    assert not any(child.actions or child.opens for child in row.children)
    found = rows(build_menu(make_snapshot(), APP))["found"].ended()
    assert (found.text, found.actions) == ("", ())


@pytest.mark.parametrize(
    ("shows", "level", "text", "shape"),
    [
        ("memory", "ok", "\u20076.0 GB", "ok"),
        ("memory", "warning", "\u20076.0 GB !", "warning"),
        ("gpu", "ok", "\u200743%", "ok"),
        ("gpu", "critical", "\u200743% ‼", "critical"),
        ("dot", "ok", "●", "ok"),
        ("dot", "warning", "▲", "warning"),
        ("dot", "critical", "■", "critical"),
        ("icon", "ok", "", "ok"),
        ("icon", "critical", "‼", "critical"),
    ],
)
def test_the_bar(shows, level, text, shape):
    reasons = (Reason("pressure", level),) if level != "ok" else ()
    bar = build_bar(make_snapshot(worker(), health=Health(level, reasons)), shows)
    assert (bar.text, bar.shape, bar.is_dot) == (text, shape, shows == "dot")


def test_the_bar_is_as_wide_with_one_number_as_with_another():
    widths = set()
    for driver in (1, 999, 200 * MB, 2 * GB, 99 * GB, 512 * GB):
        backend = Backend("mps", "torch", "in use", 0, driver, driver)
        widths.add(len(build_bar(make_snapshot(worker(backends=(backend,)))).text))
    assert widths == {7}


def test_nobody_connected_is_the_icon_alone_and_unknown_is_no_well():
    assert build_bar(Snapshot(0.0)).text == ""
    blind = Snapshot(0.0, health=Health("ok", (Reason("not_judged", "ok"),)))
    assert (build_bar(blind, "dot").text, build_bar(blind, "dot").shape) == ("○", "unknown")
    assert build_bar(blind, "gpu").text == "\u2007\u2007\u2007?"
    assert build_menu(blind).rows[0].text == "Status unknown"


def test_what_voiceover_says_of_the_bar():
    assert build_bar(make_snapshot(worker())).label == (
        "mpsbar, 1 process connected, 6.0 GB held, GPU 43%, No problems"
    )


@pytest.mark.parametrize(
    ("reason", "is_offered"), [("main_computing", True), (None, True), ("free_threaded", False)]
)
def test_free_when_possible_is_offered_where_a_safe_moment_may_come(reason, is_offered):
    busy = replace(worker(), last_free=LastFree(1, 0.0, "busy", reason=reason))
    assert ("when-possible-4711" in rows(build_menu(make_snapshot(busy), APP))) is is_offered
    freed = {4711: Freed(4711, "train.py", "busy", reason=reason)}
    shown = rows(build_menu(make_snapshot(worker(), freed=freed), APP))
    assert ("when-possible-4711" in shown) is is_offered


@pytest.mark.parametrize(
    ("share", "bar"),
    [(None, ""), (0.0, "─────"), (0.01, "━────"), (0.5, "━━───"), (0.9, "━━━━─"), (1.0, "━━━━━")],
)
def test_the_bar_of_a_row(share, bar):
    """Rounded, but what is there is seen."""
    assert Row("a", "a", share=share).share_bar == bar
