"""What is asked and told about the command line tool of the app. Pure."""

from collections.abc import Sequence

from mpsbar.core.naming import printable
from mpsbar.ui.text.dialogs import Dialog
from mpsbar.ui.text.wording import _, shorten_home

_WIDTH = 200


def ask_folder(folders: Sequence[str], home: str) -> Dialog:
    """The folders are the first buttons, one for each; then another folder; then none."""
    text = _(
        "mpsbar can be used in a terminal too: mpsbar status, mpsbar free, mpsbar run … "
        "A link is made in the folder you choose, and nothing else is changed; to undo it, delete "
        "the link. Folders of the system may need an administrator."
    )
    shown = [printable(shorten_home(folder, home), _WIDTH) for folder in folders]
    buttons = (*shown, _("Another Folder…"), _("Cancel"))
    return Dialog(_("Where shall the command mpsbar be?"), text, buttons)


def choose_folder() -> tuple[str, str]:
    """What the panel says, and its button."""
    return _("The folder for the command mpsbar, best one that your shell's PATH has"), _("Choose")


def tell_link(state: str, path: str, on_path: bool, by_hand: str, detail: str) -> Dialog:
    """With "Copy Command" as its first button where a command is needed."""
    where = printable(path, _WIDTH)
    command = printable(by_hand, 3 * _WIDTH)
    ok, copy = (_("OK"),), (_("Copy Command"), _("OK"))
    if state in ("made", "renewed", "was_there"):
        return Dialog(_title(state), _next(where, on_path), ok)
    if state == "not_allowed":
        text = _("An administrator can do it, in a terminal:\n\n{command}").format(command=command)
        return Dialog(_("You may not write to that folder"), text, copy)
    if state == "foreign":
        text = _(
            "{where} is there already and is not ours, so it stays as it is. Perhaps mpsbar was "
            "installed by Homebrew, uv or pipx: that one works as well. Else choose another folder."
        ).format(where=where)
        return Dialog(_("There is another mpsbar"), text, ok)
    if state == "no_place":
        text = _("Move mpsbar.app to Applications first and open it there: a link must last.")
        return Dialog(_("Not from here"), text, ok)
    text = _("{where}: {detail}").format(where=where, detail=printable(detail, _WIDTH))
    return Dialog(_("The link could not be made"), text, ok)


def _title(state: str) -> str:
    was_there = _("The command mpsbar is there already")
    return was_there if state == "was_there" else _("The command mpsbar is ready")


def _next(where: str, on_path: bool) -> str:
    if on_path:
        return _("{where}\n\nIn a new terminal: mpsbar status").format(where=where)
    folder = where.rpartition("/")[0]
    return _(
        "{where}\n\nIf a new terminal does not find mpsbar, its PATH lacks that folder. For zsh, "
        'put this line into ~/.zshrc:\n\nexport PATH="{folder}:$PATH"'
    ).format(where=where, folder=folder)
