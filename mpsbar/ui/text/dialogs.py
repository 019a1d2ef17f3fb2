"""What the app asks and announces: titles, texts and buttons. Pure."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from mpsbar.agent.frameworks import join_labels
from mpsbar.core.actions import Connect, Connected, Freed, Limited, Stop, Stopped, Tensors
from mpsbar.core.limits import HEAP
from mpsbar.core.naming import printable
from mpsbar.core.snapshot import Worker
from mpsbar.language import _, ngettext
from mpsbar.ui.text import outcomes as outcome_text
from mpsbar.ui.text import wording
from mpsbar.ui.text.alerts import say_delivery
from mpsbar.ui.text.cells import cut_middle
from mpsbar.ui.text.wording import shorten_home

_NAME_WIDTH = 60
_MAX_LINES = 3
_PATH_WIDTH = 200
# For How to Profile…
SNIPPET = """\
# Where does the time go? Put a few of your own training steps in train_steps().
import torch
from torch.profiler import ProfilerActivity, profile


def train_steps():
    ...


train_steps()  # warm up: the first steps compile and allocate

# 1. The operations that are called, how often, and what they allocate.
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as p:
    train_steps()
    if torch.backends.mps.is_available():
        torch.mps.synchronize()  # otherwise only queueing is timed
print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=20))

# 2. What the GPU does: record this with Instruments (Logging template, os_signpost instrument).
if torch.backends.mps.is_available():
    with torch.mps.profiler.profile(mode="interval", wait_until_completed=False):
        train_steps()
"""


class Dialog(NamedTuple):
    title: str
    text: str
    buttons: tuple[str, ...]  # the first confirms, the last cancels


class Notice(NamedTuple):
    """Something to announce: a notification, or a line of the terminal's log.

    "news" is always shown; an "outcome" is also in its process's row, so an open menu shows it
    anyway; a "summary" sums up outcomes that the log has shown one by one; a "detail" is for the
    log only.
    """

    title: str
    text: str
    kind: Literal["news", "outcome", "summary", "detail"] = "news"
    level: Literal["", "ok", "warning"] = ""

    @property
    def sentence(self) -> str:
        """The text of a notification. In a log an outcome follows a name and a colon."""
        first = self.text.partition(" ")[0].rstrip(":;,")
        is_name = not first.isalpha()  # float16
        if self.kind != "outcome" or is_name:
            return self.text
        return self.text[:1].upper() + self.text[1:]


def ask_stop(action: Stop) -> Dialog:
    title = _("Stop {name} (PID {pid})?").format(name=_name(action.name), pid=action.pid)
    text = _(
        "mpsbar will send it an interrupt (SIGINT), like Ctrl-C, so that it can save its work "
        "first. If it keeps running, choose Stop… again."
    )
    if action.firmly:
        title = _("Terminate {name} (PID {pid})?").format(name=_name(action.name), pid=action.pid)
        text = _(
            "It's still running after being asked to stop. mpsbar will ask it to "
            "terminate (SIGTERM): most programs end at once, without saving their work."
        )
    return Dialog(title, text, (_("Terminate") if action.firmly else _("Stop"), _("Cancel")))


def ask_limit(worker: Worker, limit: int) -> Dialog:
    title = _("Limit {name} to {size}?").format(name=_name(worker.name), size=wording.size(limit))
    return Dialog(title, _explain_limit(worker), (_("Limit"), _("Cancel")))


def ask_own_limit(worker: Worker, budget: int | None, complaint: str = "") -> Dialog:
    """Asks for a limit to type; `complaint`: what was wrong with the last one."""
    example = _("A size, such as 24GB or 1500MB")
    if budget is not None:
        example += _(", or a percentage of Metal's budget of {size}, such as 75%").format(
            size=wording.size(budget)
        )
    parts = [printable(complaint), f"{example}.", _explain_limit(worker)]
    title = _("Limit the memory of {name}").format(name=_name(worker.name))
    text = "\n\n".join(part for part in parts if part)
    return Dialog(title, text, (_("Limit"), _("Cancel")))


def suggest_limit(worker: Worker, budget: int | None) -> str:
    """Returns what is in the field at first: the limit, or 75% of the budget, in whole GB."""
    size = worker.limit or (3 * (budget or 32 * HEAP) // 4)
    return f"{max(1, round(size / HEAP))}GB"


def _explain_limit(worker: Worker) -> str:
    live = worker.total(lambda backend: backend.allocated)
    parts = wording.explain_limit(worker)
    parts.append(_("It holds {held} now, {live} of that in live tensors.").format(
        held=wording.size(worker.held), live=wording.size(live)
    ))  # fmt: skip
    return "\n\n".join(parts)


def limited_notice(outcome: Limited) -> Notice:
    is_gone = outcome.state in ("gone", "ended")
    text = (
        outcome_text.say_limited_briefly(outcome) if is_gone else outcome_text.say_limited(outcome)
    )
    level: Literal["ok", "warning"] = "ok" if outcome.state == "done" else "warning"
    return Notice(_name(outcome.name), text, "outcome", level)


def ask_connect(action: Connect) -> Dialog:
    text = _(
        "{python}\n\nmpsbar copies a small agent into this environment (pip lists it as "
        "mpsbar-agent). The next time they start, its {frameworks} processes show how much "
        "memory they hold. To remove it, uninstall mpsbar-agent there with pip or uv."
    ).format(frameworks=join_labels(_("and")), python=printable(action.python, _PATH_WIDTH))
    return Dialog(_("Connect this environment?"), text, (_("Connect"), _("Cancel")))


def say_no_python(typed: str) -> str:
    name = printable(typed.strip(), _PATH_WIDTH) or _("That")
    return _("{name} is not the path of a Python interpreter.").format(name=name)


def ask_python(complaint: str = "") -> Dialog:
    text = complaint + "\n\n" if complaint else ""
    text += _(
        "The path of its Python interpreter, such as ~/venv/bin/python or "
        "~/miniforge3/envs/ml/bin/python"
    )
    return Dialog(_("Which environment?"), text, (_("Connect"), _("Cancel")))


def connected_dialog(outcome: Connected) -> Dialog:
    failed = outcome.state in ("refused", "no_answer")
    title = _("Couldn't connect") if failed else _("Connected")
    path = printable(outcome.python, _PATH_WIDTH)
    return Dialog(title, f"{path}\n\n{outcome_text.say_connected(outcome)}", (_("OK"),))


def freed_notice(outcome: Freed, is_one_of_many: bool = False) -> Notice:
    is_gone = outcome.state in ("gone", "ended")
    text = outcome_text.say_freed_briefly(outcome) if is_gone else outcome_text.say_freed(outcome)
    return Notice(
        _name(outcome.name),
        text,
        "detail" if is_one_of_many else "outcome",
        "ok" if outcome.state == "done" else "warning",
    )


def all_freed_notice(outcomes: Sequence[Freed]) -> Notice:
    done = [outcome for outcome in outcomes if outcome.state == "done"]
    size = wording.size(sum(outcome.freed or 0 for outcome in done))
    title = ngettext(
        "Freed {size} from {n} of {all} process",
        "Freed {size} from {n} of {all} processes",
        len(outcomes),
    ).format(size=size, n=len(done), all=len(outcomes))
    others = [outcome for outcome in outcomes if outcome.state != "done"]
    # Briefly: who has only the app has no command to type.
    lines = [
        f"{_name(other.name)}: {outcome_text.say_freed_briefly(other)}"
        for other in others[:_MAX_LINES]
    ]
    return Notice(title, "\n".join(lines), "summary")


def stopped_notice(outcome: Stopped) -> Notice:
    # Its row says that it was asked to stop.
    kind: Literal["detail", "outcome"] = "detail" if outcome.state == "asked" else "outcome"
    return Notice(_name(outcome.name), outcome_text.say_stopped(outcome), kind)


def tensors_refused_notice(name: str, outcome: Tensors) -> Notice:
    """A notice for the log only, because the submenu of the process says the same."""
    return Notice(_name(name), outcome_text.say_tensors_refused(outcome), "detail", "warning")


def failure_notice(what: str, error: Exception, log_file: str) -> Notice:
    """Says what failed, why, and where the details are."""
    why = printable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    text = _("{why}. For details, see {log}").format(why=why, log=log_file)
    return Notice(_("{what} failed").format(what=what), text)


def about(version: str) -> Dialog:
    text = _(
        "Version {version}\n\nWho holds my GPU memory, can I get it back, and am I about to run "
        "out? For {frameworks} on Apple silicon.\n\nMIT License."
    ).format(frameworks=join_labels(_("and")), version=version)
    return Dialog("mpsbar", text, (_("OK"),))


def explain_delivery(delivery: str) -> Dialog:
    buttons = (_("Open Notification Settings"), _("Cancel"))
    return Dialog(_("Alerts may not be visible"), say_delivery(delivery), buttons)


def ask_profiling() -> Dialog:
    text = _(
        "To find out where the time goes, copy the snippet and put your own training step in it: "
        "torch.profiler lists the operations, and torch.mps.profiler marks them for Instruments "
        "(Logging template, os_signpost instrument). Activity Monitor shows GPU usage under "
        "Window > GPU History."
    )
    buttons = (_("Copy Snippet"), _("Open Instruments"), _("Open Activity Monitor"), _("Cancel"))
    return Dialog(_("How to profile"), text, buttons)


def no_application(name: str) -> Dialog:
    text = _("{name} isn't installed on this Mac.").format(name=name)
    if name == "Instruments":
        text += _(" It is part of Xcode, which is in the App Store.")
    return Dialog(_("Couldn't open {name}").format(name=name), text, (_("OK"),))


def ask_probe(why_not: str) -> Dialog:
    # It begins with the name of a process, which is not capitalised.
    return Dialog(_("Run the dtype probe now?"), f"{why_not}.", (_("Run Probe"), _("Cancel")))


def refuse_probe(why_not: str) -> Dialog:
    text = why_not[:1].upper() + why_not[1:]
    text += _(". Try again later.")
    return Dialog(_("Can't run the probe now"), text, (_("OK"),))


def probe_notice(text: str, is_cancelled: bool) -> Notice:
    return Notice(_("dtype probe"), text, "detail" if is_cancelled else "outcome")


def running_notice() -> Notice:
    text = _(
        "Look for its hexagon icon in the menu bar. If you don't see it, check System Settings > "
        "Menu Bar."
    )
    return Notice(_("mpsbar is already running"), text)


def complaints_notice(complaints: Sequence[str]) -> Notice:
    """Lists settings that were ignored, and why."""
    return Notice(_("Some settings can't be used"), "\n".join(complaints[:_MAX_LINES]))


def making_report_notice() -> Notice:
    text = _("checking torch in each Python; this takes a few seconds")
    return Notice(_("Creating the report"), text, "detail")


def report_notice(file: str, is_open: bool) -> Notice:
    if is_open:
        return Notice(_("Report"), file, "detail")
    return Notice(_("Report"), _("{file} (couldn't open a browser)").format(file=file))


def copied_notice(text: str) -> Notice:
    return Notice(_("Copied"), text, "detail")


def copied_diagnostics_notice() -> Notice:
    return Notice(_("Diagnostics copied"), _("Paste them into your bug report."))


# --- the command line tool of the app


def ask_link_folder(folders: Sequence[str], home: str) -> Dialog:
    """One button for each folder, one for another folder, and Cancel."""
    text = _(
        "You can also use mpsbar in a terminal: mpsbar status, mpsbar free, mpsbar run … This "
        "creates a link in the folder you choose and changes nothing else; to undo it, delete the "
        "link. System folders may require an administrator."
    )
    shown = [printable(shorten_home(folder, home), _PATH_WIDTH) for folder in folders]
    buttons = (*shown, _("Other Folder…"), _("Cancel"))
    return Dialog(_("Where should the mpsbar command be installed?"), text, buttons)


def describe_folder_panel() -> tuple[str, str]:
    """The message and the button of the panel that chooses a folder."""
    return _("Choose a folder for the mpsbar command, preferably one in your shell's PATH"), _(
        "Choose"
    )


def link_dialog(state: str, path: str, on_path: bool, by_hand: str, detail: str) -> Dialog:
    """How linking the command ended; "Copy Command" comes first where a command is needed."""
    where = printable(path, _PATH_WIDTH)
    command = printable(by_hand, 3 * _PATH_WIDTH)
    ok, copy = (_("OK"),), (_("Copy Command"), _("OK"))
    if state in ("made", "renewed", "was_there"):
        return Dialog(_link_title(state), _after_link(where, on_path), ok)
    if state == "not_allowed":
        text = _("An administrator can create the link in a terminal:\n\n{command}").format(
            command=command
        )
        return Dialog(_("You don't have permission to write to that folder"), text, copy)
    if state == "foreign":
        text = _(
            "{where} already exists and wasn't created by this app, so it was left unchanged. If "
            "mpsbar was installed with Homebrew, uv or pipx, that command works too. Otherwise, "
            "choose another folder."
        ).format(where=where)
        return Dialog(_("Another mpsbar is already there"), text, ok)
    if state == "no_place":
        text = _(
            "Move mpsbar.app to the Applications folder and open it there, so that the link "
            "keeps working."
        )
        return Dialog(_("Move mpsbar to Applications first"), text, ok)
    text = _("{where}: {detail}").format(where=where, detail=printable(detail, _PATH_WIDTH))
    return Dialog(_("Couldn't create the link"), text, ok)


def _link_title(state: str) -> str:
    already = _("The mpsbar command is already installed")
    return already if state == "was_there" else _("The mpsbar command is installed")


def _after_link(where: str, on_path: bool) -> str:
    if on_path:
        return _("{where}\n\nTry it in a new terminal: mpsbar status").format(where=where)
    folder = where.rpartition("/")[0]
    return _(
        "{where}\n\nIf a new terminal can't find mpsbar, that folder is not in its PATH. For zsh, "
        'add this line to ~/.zshrc:\n\nexport PATH="{folder}:$PATH"'
    ).format(where=where, folder=folder)


def _name(name: str) -> str:
    return cut_middle(name, _NAME_WIDTH)
