"""What the controller asks and announces: titles, texts and buttons. Pure."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from mpsbar.agent.frameworks import join_labels
from mpsbar.core.actions import Connect, Connected, Freed, Stop, Stopped, Tensors
from mpsbar.core.naming import printable
from mpsbar.ui.text import outcomes as outcome_text
from mpsbar.ui.text import wording
from mpsbar.ui.text.wording import _

_NAME_WIDTH = 60
_MOST_LINES = 3
_PATH_WIDTH = 200


class Dialog(NamedTuple):
    title: str
    text: str
    buttons: tuple[str, ...]  # the first does it, the last does not


class Notice(NamedTuple):
    """Something to announce: a notification, or a line of the terminal's log.

    "news" is shown wherever the person looks; an "outcome" also stands in its row, so an open menu
    shows it anyway; a "summary" sums up outcomes that the log has shown one by one; a "detail" is
    for the log alone.
    """

    title: str
    text: str
    kind: Literal["news", "outcome", "summary", "detail"] = "news"
    level: Literal["", "ok", "warning"] = ""


def ask_stop(action: Stop) -> Dialog:
    title = _("Stop {name} (process {pid})?").format(name=_name(action.name), pid=action.pid)
    text = _(
        "It is asked to stop as by Ctrl-C (SIGINT), and can save its work first. "
        "Some programs do not listen: click Stop… again then."
    )
    if action.firmly:
        title = _("End {name} (process {pid})?").format(name=_name(action.name), pid=action.pid)
        text = _(
            "It was asked to stop and still runs. Now it is told to end (SIGTERM): most programs "
            "end at once and do not save their work."
        )
    return Dialog(title, text, (_("End") if action.firmly else _("Stop"), _("Cancel")))


def ask_connect(action: Connect) -> Dialog:
    text = _(
        "{python}\n\nmpsbar copies a small agent into this environment (pip lists mpsbar-agent). "
        "Its {frameworks} processes then show what they hold, from their next start on. "
        "`mpsbar disable --python …` takes it out again."
    ).format(frameworks=join_labels(_("and")), python=printable(action.python, _PATH_WIDTH))
    return Dialog(_("Connect this environment?"), text, (_("Connect"), _("Cancel")))


def tell_connected(outcome: Connected) -> Dialog:
    failed = outcome.state in ("refused", "no_answer")
    title = _("It could not be connected") if failed else _("Connected")
    path = printable(outcome.python, _PATH_WIDTH)
    return Dialog(title, f"{path}\n\n{outcome_text.connected(outcome)}", (_("OK"),))


def tell_freed(outcome: Freed, is_one_of_many: bool = False) -> Notice:
    is_gone = outcome.state == "gone"
    text = outcome_text.freed_briefly(outcome) if is_gone else outcome_text.freed(outcome)
    return Notice(
        _name(outcome.name),
        text,
        "detail" if is_one_of_many else "outcome",
        "ok" if outcome.state == "done" else "warning",
    )


def tell_all_freed(outcomes: Sequence[Freed]) -> Notice:
    done = [outcome for outcome in outcomes if outcome.state == "done"]
    size = wording.size(sum(outcome.freed or 0 for outcome in done))
    title = _("Freed {size} in {n} of {all} processes").format(
        size=size, n=len(done), all=len(outcomes)
    )
    others = [outcome for outcome in outcomes if outcome.state != "done"]
    lines = [f"{_name(one.name)}: {outcome_text.freed(one)}" for one in others[:_MOST_LINES]]
    return Notice(title, "\n".join(lines), "summary")


def tell_stopped(outcome: Stopped) -> Notice:
    # Its row says that it was asked to stop.
    kind: Literal["detail", "outcome"] = "detail" if outcome.state == "asked" else "outcome"
    return Notice(_name(outcome.name), outcome_text.stopped(outcome), kind)


def tell_tensors_refused(name: str, outcome: Tensors) -> Notice:
    """The submenu of the process says the same."""
    return Notice(_name(name), outcome_text.tensors_refused(outcome), "detail", "warning")


def tell_failure(what: str, error: Exception, log_file: str) -> Notice:
    """What failed, why, and where more is to be found."""
    why = printable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    text = _("{why}. More is in {log}").format(why=why, log=log_file)
    return Notice(_("{what} failed").format(what=what), text)


def about(version: str) -> Dialog:
    text = _(
        "Version {version}\n\nWho holds my GPU memory, can I get it back, and am I about to run "
        "out? For {frameworks} on Apple Silicon.\n\nMIT licence. In a terminal: mpsbar --help"
    ).format(frameworks=join_labels(_("and")), version=version)
    return Dialog("mpsbar", text, (_("OK"),))


def ask_profiling() -> Dialog:
    text = _(
        "Where does the time go? Copy the snippet and put your own step into it: torch.profiler "
        "lists the operations, torch.mps.profiler marks them for Instruments (template Logging, "
        "instrument os_signpost). Activity Monitor shows the GPU under Window > GPU History."
    )
    buttons = (_("Copy Snippet"), _("Open Instruments"), _("Open Activity Monitor"), _("Cancel"))
    return Dialog(_("How to profile"), text, buttons)


def no_application(name: str) -> Dialog:
    text = _("{name} was not found on this Mac.").format(name=name)
    if name == "Instruments":
        text += _(" It comes with Xcode, from the App Store.")
    return Dialog(_("{name} could not be opened").format(name=name), text, (_("OK"),))


def ask_probe(why_not: str) -> Dialog:
    # It begins with the name of a process, which is as it is.
    return Dialog(_("Probe now?"), f"{why_not}.", (_("Probe"), _("Cancel")))


def refuse_probe(why_not: str) -> Dialog:
    text = why_not[:1].upper() + why_not[1:]
    text += _(". Try again later; in a terminal, mpsbar probe --force does it all the same.")
    return Dialog(_("Not now"), text, (_("OK"),))


def tell_probed(text: str, is_cancelled: bool) -> Notice:
    return Notice(_("dtype probe"), text, "detail" if is_cancelled else "outcome")


def tell_running() -> Notice:
    text = _(
        "Look for its hexagon in the menu bar. If it is not there: System Settings > Menu Bar, "
        "and mpsbar doctor tells more."
    )
    return Notice(_("mpsbar is running already"), text)


def tell_complaints(complaints: Sequence[str]) -> Notice:
    """Of the settings, as they stand."""
    return Notice(_("Not all settings can be used"), "\n".join(complaints[:_MOST_LINES]))


def tell_making_report() -> Notice:
    text = _("torch is looked at in each Python, some seconds …")
    return Notice(_("making the report"), text, "detail")


def tell_report(file: str, is_open: bool) -> Notice:
    if is_open:
        return Notice(_("report"), file, "detail")
    return Notice(_("report"), _("{file} (no browser could be opened here)").format(file=file))


def tell_copied(text: str) -> Notice:
    return Notice(_("copied"), text, "detail")


def tell_copied_diagnostics() -> Notice:
    return Notice(_("Diagnostics copied"), _("Paste them into your bug report."))


def _name(name: str) -> str:
    return wording.shorten(printable(name), _NAME_WIDTH)
