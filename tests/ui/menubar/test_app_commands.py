"""The rows at the end of the menu: report, profiling, About; on the double of AppKit."""

from samples import MAC, make_snapshot, make_training
from ui.menubar_kit import play

from mpsbar.core.actions import (
    InspectPythons,
)
from mpsbar.doctor.rules import DoctorReport


def test_open_report(mac, private):
    def person(user):
        user.click("Open Report")
        assert user.monitor.asked[0][0] == InspectPythons()
        assert "(Creating Report…)" in user.lines()
        user.end(0, DoctorReport(MAC))
        file = private / "data" / "report.html"
        mac.wait_for(lambda: mac.state.opened)
        assert mac.state.opened == [file.as_uri()]
        assert "train.py" in file.read_text(encoding="utf-8")
        mac.wait_for(lambda: "Open Report" in user.lines())
        assert user.notices.told == []

    play(mac, make_snapshot(make_training()), person)


def test_a_report_that_cannot_be_made_says_why_and_can_be_asked_again(mac, private):
    (private / "data").mkdir(exist_ok=True)
    (private / "data" / "report.html").mkdir()

    def person(user):
        user.click("Open Report")
        user.end(0, DoctorReport(MAC))
        mac.wait_for(lambda: user.notices.told)
        assert user.notices.told[0][0] == "Open Report failed"
        assert "it is not a file" in user.notices.told[0][1]
        mac.wait_for(lambda: "Open Report" in user.lines())

    play(mac, make_snapshot(make_training()), person)


def test_more_workers_than_rows_are_in_the_report(mac):
    many = [make_training(100 + n, f"w{n}.py") for n in range(30)]

    def person(user):
        user.click("12 More…")
        user.end(0, DoctorReport(MAC))
        mac.wait_for(lambda: mac.state.opened)

    play(mac, make_snapshot(*many), person)


def test_how_to_profile(mac):
    from AppKit import NSPasteboard, NSPasteboardTypeString

    def person(user):
        mac.answer("Copy Snippet")
        user.click("How to Profile…")
        text = NSPasteboard.generalPasteboard().stringForType_(NSPasteboardTypeString)
        assert "torch.mps.profiler.profile" in text
        mac.state.applications["com.apple.ActivityMonitor"] = "/System/Activity Monitor.app"
        mac.answer("Open Activity Monitor")
        user.click("How to Profile…")
        assert mac.state.opened == ["file:///System/Activity Monitor.app"]
        mac.answer("Open Instruments")
        mac.answer("OK")
        user.click("How to Profile…")
        assert mac.state.alerts[-1] == (
            "Couldn't open Instruments: Instruments isn't installed on this Mac."
            " It is part of Xcode, which is in the App Store."
        )
        mac.state.applications.clear()
        mac.answer("Open Activity Monitor")
        mac.answer("OK")
        user.click("How to Profile…")
        assert mac.state.alerts[-1].startswith("Couldn't open Activity Monitor: ")

    play(mac, make_snapshot(), person)


def test_about(mac):
    def person(user):
        mac.answer("OK")
        user.click("About mpsbar")
        assert mac.state.alerts[0].startswith("mpsbar: Version 0")

    play(mac, make_snapshot(), person)


def test_a_dialog_opens_in_front_of_the_app_that_is_active(mac):
    from AppKit import NSApplication

    def person(user):
        ours = NSApplication.sharedApplication()
        ours._active = False  # the person works elsewhere
        seen = []
        mac.answer("OK", meanwhile=lambda: seen.append(ours.isActive()))
        user.click("About mpsbar")
        assert seen == [True]

    play(mac, make_snapshot(), person)
