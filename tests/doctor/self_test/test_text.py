"""The words of a self-test."""

from mpsbar.doctor.self_test.text import SelfCheck, render_self_test


def test_the_words():
    checks = [
        SelfCheck("agent", "pass", "agent 0.1.0"),
        SelfCheck("settings", "fail", "ValueError: bar is 3, in /Users/ada/x\x1b[31m"),
        SelfCheck("icon", "skip", "not_yet"),
        SelfCheck("signature", "skip", "not_in_app"),
        SelfCheck("no_dock", "manual"),
    ]
    assert render_self_test("0.1.0", checks, "/Users/ada").splitlines() == [
        "mpsbar 0.1.0 self-test",
        "",
        "  pass  an agent starts and answers: agent 0.1.0",
        "  FAIL  settings file: ValueError: bar is 3, in ~/x\ufffd[31m",
        "  -     the icon, when the app last checked it: not checked: the menu bar app has not run yet, or there is no screen",
        "  -     the code signature: not checked: this is not mpsbar.app",
        "",
        "To check yourself, on a Mac (packaging/MAC_CHECKLIST.md):",
        "  todo  mpsbar is not in the Dock",
        "",
        "1 passed, 1 failed, 2 not checked, 1 to check yourself",
    ]
