"""Notifications: by a real program with hostile texts, and by macOS's center on the double."""

import os
import signal
import sys

import appkit
import pytest
from desktop_kit import StandIn, in_thread, wait_for

from mpsbar.core.machine import DeliveryCheck
from mpsbar.desktop import notifications as notify
from mpsbar.desktop.notifications import CommandQueue
from mpsbar.system import paths

ROOM = ("mpsbar.desktop",)
HOSTILE = [
    'say "hi" \\" & do shell script "id"',
    "back\\slash \\n \\u0041",
    "two\nlines\r\nand\ttabs",
    "$(touch /tmp/pwned) `id` ${HOME} %s {0}",
    "🧨 ünïcödé \u202e ✓",
    "-e display dialog",
    "--help",
    "end\0early",
    "\ud800 alone",
    "",
    "x" * 100_000,
]


def shown(text, most):
    """What is left of a text: all that can be an argument, on however many lines."""
    words = "".join(c if c.isprintable() or c == "\n" else " " for c in text[:most])
    return (words + "…" if len(text) > most else words or " ").encode()


@pytest.mark.parametrize("text", HOSTILE)
def test_osascript_gets_the_texts_as_arguments_and_never_as_script(tmp_path, text):
    program, log = StandIn(tmp_path, "osascript"), []
    notifier = notify.make_notifier(log.append, "darwin", str(program.path))
    assert notifier.kind == "osascript"
    notifier.notify(text, text, "key")
    wait_for(lambda: program.calls)
    (argv,) = program.calls
    assert argv[:7] == [
        b"-e", b"on run argv",
        b"-e", b"display notification (item -1 of argv) with title (item -2 of argv)",
        b"-e", b"end run",
        b"--",
    ]  # fmt: skip
    assert argv[7:] == [shown(text, 200), shown(text, 1000)]
    assert log == []


def test_it_returns_at_once_and_a_program_that_hangs_is_ended(tmp_path):
    program, log = StandIn(tmp_path, "osascript", seconds=600), []
    CommandQueue(log.append, seconds=1.0).put([os.fsencode(program.path)])
    wait_for(lambda: log)
    assert log == [f"{program.path}: no answer within 1 s"]


def test_errors_are_logged_once_each(tmp_path):
    program, log = StandIn(tmp_path, "osascript", code=3, words="execution error: no\n"), []
    notifier = notify.Osascript(log.append, str(program.path))
    for _ in range(3):
        notifier.notify("title", "text", "key")
    wait_for(lambda: len(program.calls) == 3)
    wait_for(lambda: log)
    assert log == [f"{program.path}: exit 3 execution error: no"]


def test_a_program_that_is_not_there_is_logged_and_nothing_else(tmp_path):
    log = []
    notify.make_notifier(log.append, "darwin", str(tmp_path / "none")).notify("a", "b", "c")
    wait_for(lambda: log)
    assert "No such file" in log[0]


def test_a_storm_is_bounded(tmp_path):
    program, log = StandIn(tmp_path, "osascript", seconds=600), []
    notifier = notify.Osascript(log.append, str(program.path))
    for number in range(100):
        notifier.notify(f"title {number}", "text", "key")
    assert log == [f"{program.path}: too many are waiting, so one was dropped"]
    wait_for(lambda: program.pids)
    program.path.unlink()  # so that those in the queue end at once
    os.kill(program.pids[0], signal.SIGKILL)


@pytest.mark.parametrize("text", HOSTILE)
def test_notify_send_gets_text_without_markup_or_escapes(tmp_path, text):
    program, log = StandIn(tmp_path, "notify-send"), []
    notifier = notify.make_notifier(log.append, "linux", notify_send=str(program.path))
    assert notifier.kind == "notify-send"
    notifier.notify(text, f"<b>{text}</b> &", "leak-7-100")
    wait_for(lambda: program.calls)
    (argv,) = program.calls
    hint = b"--hint=string:x-canonical-private-synchronous:mpsbar-leak-7-100"
    assert argv[:4] == [b"--app-name=mpsbar", hint, b"--", shown(text, 200)]
    (body,) = argv[4:]
    assert b"<" not in body
    escaped = shown(f"<b>{text}</b> &", 1000).decode()
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert body.decode() == escaped.replace("\\", "\\\\")
    assert log == []


def test_a_key_cannot_break_out_of_its_hint(tmp_path):
    program = StandIn(tmp_path, "notify-send")
    notify.NotifySend([].append, str(program.path)).notify("a", "b", "x:y z\n--é" + "k" * 999)
    wait_for(lambda: program.calls)
    hint = program.calls[0][1].decode()
    assert hint.startswith("--hint=string:x-canonical-private-synchronous:mpsbar-x_y_z_--_kkk")
    assert len(hint) < 200


def test_without_a_program_there_is_silence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    log = []
    notifier = notify.make_notifier(log.append, "linux")
    notifier.notify("a", "b", "c")
    assert (notifier.kind, log) == ("none", [])


def test_notify_send_is_found_on_the_path(tmp_path, monkeypatch):
    program = StandIn(tmp_path, "notify-send")
    monkeypatch.setenv("PATH", str(tmp_path))
    notify.make_notifier([].append, "linux").notify("a", "b", "c")
    wait_for(lambda: program.calls)


class Recorder:
    kind, delivery = "recorder", "failed"

    def __init__(self):
        self.notices = []

    def notify(self, *notice):
        self.notices.append(notice)


def make_in_app(log):
    from mpsbar.desktop.notifications import make_notifier

    return make_notifier(log.append, "darwin", "/nonexistent/osascript")


def test_in_the_app_macos_notifies_and_shows_banners_while_active():
    log = []
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM) as mac:
        notifier = make_in_app(log)
        assert notifier.kind == "UserNotifications"
        notifier.notify("Warning", "text", "leak-7")
        assert mac.state.delivered == []  # until the person has answered
        mac.wait(0)
        (request,) = mac.state.delivered
        content = request.content()
        assert (request.identifier(), content.title(), content.body()) == (
            "leak-7",
            "Warning",
            "text",
        )
        assert mac.state.shown == [("Warning", 16 | 8)]  # banner and list
        assert notifier.delivery == "shown"
        notifier.notify("Resolved: Memory Pressure", "text", "leak-7")
        mac.wait(0)
        assert [made.identifier() for made in mac.state.delivered] == ["leak-7", "leak-7"]
        mac.wait(0)
    assert log == []


def test_what_the_person_has_switched_off_goes_no_other_way():
    log = []
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM) as mac:
        mac.state.notifications = "denied"
        notifier = make_in_app(log)
        notifier._fallback = elsewhere = Recorder()
        notifier.notify("one", "a", "k1")
        mac.wait(0)
        notifier.notify("two", "b", "k2")
        mac.wait(0)
        assert elsewhere.notices == []
        assert (notifier.delivery, log) == ("off", [])
        mac.state.notifications = "allowed"  # in System Settings
        notifier.notify("three", "c", "k3")
        mac.wait(0)
        assert [made.identifier() for made in mac.state.delivered] == ["k3"]
        assert notifier.delivery == "shown"


@pytest.mark.parametrize(
    ("state", "delivery"), [("allowed", "shown"), ("denied", "off"), ("unsigned", "script")]
)
def test_what_becomes_of_alerts_is_known_before_the_first(state, delivery):
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM) as mac:
        mac.state.notifications = state
        notifier = make_in_app([])
        assert notifier.delivery == "unknown"
        mac.wait(0)
        assert notifier.delivery == delivery


@pytest.mark.parametrize(("code", "delivery"), [(0, "script"), (1, "failed")])
def test_by_osascript_one_cannot_know_whether_it_is_seen(tmp_path, code, delivery):
    """It exits with 0 and shows nothing where Script Editor may not notify."""
    program = StandIn(tmp_path, "osascript", code=code)
    notifier = notify.make_notifier([].append, "darwin", str(program.path))
    assert notifier.delivery == "unknown"
    notifier.notify("a", "b", "c")
    wait_for(lambda: notifier.delivery == delivery)


def test_what_became_of_alerts_is_kept_for_the_doctor(private):
    assert notify.read_delivery() is None
    check = DeliveryCheck(12.5, "script")
    notify.write_delivery(check)
    assert notify.read_delivery() == check
    times = ("1e300", "NaN", "9" * 400, '"now"')
    absurd = [f'{{"time": {time}, "delivery": "off"}}' for time in times]
    others = ("{", "[]", '{"time": 1, "delivery": "perhaps"}', '{"delivery": "off"}')
    for broken in (*others, *absurd, '{"time": ' + "[" * 5000):
        paths.delivery_file().write_text(broken)
        assert notify.read_delivery() is None


def test_refused_notices_go_elsewhere_and_it_is_logged_once():
    """By macOS, which does not let an app with this signature ask."""
    log = []
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM) as mac:
        mac.state.notifications = "unsigned"
        notifier = make_in_app(log)
        notifier._fallback = elsewhere = Recorder()
        notifier.notify("one", "a", "k1")
        mac.wait(0)
        notifier.notify("two", "b", "k2")
        mac.wait(0)
        assert elsewhere.notices == [("one", "a", "k1"), ("two", "b", "k2")]
        assert notifier.delivery == "failed"  # as that of the other way
        mac.state.notifications = "allowed"
        notifier.notify("three", "c", "k3")
        mac.wait(0)
        assert len(elsewhere.notices) == 2
        assert len(mac.state.delivered) == 1
    assert log == [
        "macOS refuses notifications (Notifications are not allowed); using recorder instead"
    ]


def test_notices_that_wait_for_the_answer_are_bounded_and_replaced_by_key():
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM) as mac:
        notifier = make_in_app([])
        for number in range(100):
            notifier.notify(str(number), "text", f"key {number}")
        notifier.notify("newer", "text", "key 3")
        mac.wait(0)
        titles = [request.content().title() for request in mac.state.delivered]
        assert titles == ["0", "1", "2", "newer", *(str(number) for number in range(4, 20))]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_reach_macos_as_text(text):
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM) as mac:
        notifier = make_in_app([])
        mac.wait(0)
        notifier.notify(text, text, "key")
        mac.wait(0)
        body = mac.state.delivered[0].content().body()
        body.encode("utf-8")
        assert "\0" not in body
        assert len(body) <= 1000
        mac.wait(0)


def test_notices_may_come_from_any_thread():
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM) as mac:
        notifier = make_in_app([])
        mac.wait(0)
        assert not in_thread(lambda: notifier.notify("a", "b", "c"))
        mac.wait(0)
        assert len(mac.state.delivered) == 1


def test_a_handler_that_fails_is_logged_and_does_not_end_the_process():
    log = []
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM) as mac:
        mac.state.notifications = "unsigned"
        notifier = make_in_app(log)
        notifier._fallback = type("Broken", (), {"kind": "broken"})()
        notifier.notify("one", "a", "k1")
        mac.wait(0)
    assert "AttributeError" in log[-1]


@pytest.mark.parametrize("bundle", [None, "org.python.python"])
def test_outside_an_app_macos_is_not_asked_which_would_end_the_process(bundle):
    with appkit.installed(bundle=bundle, forget=ROOM) as mac:
        assert make_in_app([]).kind == "osascript"
        assert mac.state.ended is None


def test_without_the_framework_the_app_falls_back(monkeypatch):
    log = []
    with appkit.installed(bundle="org.example.mpsbar", forget=ROOM):
        monkeypatch.setitem(sys.modules, "UserNotifications", None)
        assert make_in_app(log).kind == "osascript"
    assert "not available" in log[0]


@pytest.mark.parametrize("time", ["1e300", "NaN", "9" * 400, '"now"', "[" * 5000])
def test_an_absurd_time_of_the_icon_is_no_check(private, time):
    from mpsbar.desktop.icon_visibility import read_icon

    paths.icon_file().parent.mkdir(parents=True, exist_ok=True)
    paths.icon_file().write_text(f'{{"time": {time}, "doubt": null, "details": ""}}')
    assert read_icon() is None
