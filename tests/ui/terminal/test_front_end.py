"""Whether a line of the log fits, measured as a terminal shows it."""

from textual.geometry import Size

from mpsbar.ui.terminal.front_end import NoteLog


class LowLog(NoteLog):
    size = Size(30, 1)


def test_a_note_that_would_be_cut_off_is_known_in_any_script():
    log = LowLog()
    assert not log.is_too_small_for("a" * 21)
    assert log.is_too_small_for("a" * 22)
    assert not log.is_too_small_for("모" * 10)
    assert log.is_too_small_for("모" * 11)
