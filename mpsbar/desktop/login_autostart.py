"""Start at login on Linux: an entry in the desktop's autostart folder (XDG)."""

import os
import re

from mpsbar.agent.frameworks import join_labels
from mpsbar.desktop import login_item
from mpsbar.desktop.login_item import LoginStatus

# That we wrote it, and how many folders we made for it.
MARK = "X-mpsbar-Login"
# There is no menu bar: a terminal that stays.
ARGUMENTS = ("status", "--watch", "2")
_RESERVED = re.compile(r"""[\s"'\\><~|&;$*?#()`]""")


def read() -> LoginStatus:
    path, entry = _path(), _read_entry()
    if entry is None:
        return LoginStatus("off", "autostart", path)
    if MARK not in entry:
        return LoginStatus("unavailable", "autostart", path, "foreign")
    if _is_disabled(entry):
        return LoginStatus("off", "autostart", path, "disabled_by_user")
    command = unescape(entry.get("TryExec", ""))
    if not os.access(command, os.X_OK):
        return LoginStatus("off", "autostart", path, "command_gone", command)
    return LoginStatus("on", "autostart", path)


def turn_on() -> LoginStatus:
    path, command, before = _path(), login_item.find_command(), _read_entry()
    if before is not None and MARK not in before:
        return LoginStatus("unavailable", "autostart", path, "foreign")
    if login_item.is_temporary(command[0]):
        return LoginStatus("unavailable", "autostart", path, "temporary_command", command[0])
    if "=" in command[0] or not command[0].isprintable():
        return LoginStatus("unavailable", "autostart", path, "odd_path", command[0])

    def build(made: int) -> bytes:
        return build_entry([*command, *ARGUMENTS], made).encode()

    try:
        login_item.install(path, build, None if before is None else _folders_made(before))
    except OSError as problem:
        return LoginStatus("off", "autostart", path, "not_written", problem.strerror)
    return read()


def turn_off() -> LoginStatus:
    path, entry = _path(), _read_entry()
    if entry is None:
        return LoginStatus("off", "autostart", path)
    if MARK not in entry:
        return LoginStatus("unavailable", "autostart", path, "foreign")
    try:
        login_item.remove_file(path, _folders_made(entry))
    except OSError as problem:
        return LoginStatus("on", "autostart", path, "not_written", problem.strerror)
    return LoginStatus("off", "autostart", path)


def build_entry(command: list[str], folders_made: int) -> str:
    lines = [
        "[Desktop Entry]",
        "Type=Application",
        "Name=mpsbar",
        f"Comment=Who holds my GPU memory: {join_labels('and')} processes",
        f"Exec={' '.join(map(quote, command))}",
        f"TryExec={escape(command[0])}",
        "Terminal=true",
        f"{MARK}={folders_made}",
    ]
    return "\n".join(lines) + "\n"


def quote(argument: str) -> str:
    """One argument of Exec: % is a field code, and quoting comes before the escape of values."""
    argument = argument.replace("%", "%%")
    if not argument or _RESERVED.search(argument):
        argument = '"' + re.sub(r'(["`$\\])', r"\\\1", argument) + '"'
    return escape(argument)


def escape(value: str) -> str:
    """A value of the file, which is one line and has backslashes of its own."""
    codes = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    text = "".join(codes.get(character, character) for character in value)
    return "\\s" + text[1:] if text.startswith(" ") else text


def unescape(value: str) -> str:
    codes = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r", "s": " "}
    return re.sub(r"\\(.)", lambda found: codes.get(found[1], found[0]), value)


def parse_entry(text: str) -> dict[str, str]:
    """The keys of [Desktop Entry], as they stand."""
    entry: dict[str, str] = {}
    group = ""
    for line in text.split("\n"):
        if line.startswith("["):
            group = line.strip()
        elif group == "[Desktop Entry]" and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            entry[key.strip()] = value.strip()
    return entry


def _is_disabled(entry: dict[str, str]) -> bool:
    if entry.get("Hidden") == "true":
        return True
    switches = (entry[key] for key in entry if re.fullmatch(r"X-\w+-Autostart-enabled", key))
    return "false" in switches


def _path() -> str:
    """$XDG_CONFIG_HOME counts only if it is absolute, says its specification."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):  # noqa: PTH117 - a text
        config = os.path.expanduser("~/.config")  # noqa: PTH111
    return os.path.join(config, "autostart", "mpsbar.desktop")  # noqa: PTH118


def _read_entry() -> dict[str, str] | None:
    """None if there is no file; {} if it is no entry."""
    data = login_item.read_small(_path())
    return None if data is None else parse_entry(data.decode("utf-8", "replace"))


def _folders_made(entry: dict[str, str]) -> int:
    return login_item.parse_count(entry[MARK])
