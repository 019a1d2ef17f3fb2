"""Open at Login on Linux: an entry in the desktop's autostart folder (XDG)."""

import os
import re

from mpsbar.agent.frameworks import join_labels
from mpsbar.desktop.login import (
    LoginFile,
    LoginStatus,
    find_command,
    find_config_folder,
    read_small,
)

# In the entry: that we wrote it, and how many folders we made for it.
MARK = "X-mpsbar-Login"
# There is no menu bar: it opens a terminal that stays.
ARGUMENTS = ("status", "--watch", "2")
_RESERVED = re.compile(r"""[\s"'\\><~|&;$*?#()`]""")


def read() -> LoginStatus:
    file = _read_file()
    fields = file.fields or {}
    if not file.is_foreign and _is_disabled(fields):
        return file.status("off", "disabled_by_user")
    return file.find_problem(unescape(fields.get("TryExec", ""))) or file.status("on")


def turn_on() -> LoginStatus:
    file, command = _read_file(), find_command()

    def build(folders_made: int) -> bytes:
        return build_entry([*command, *ARGUMENTS], folders_made).encode()

    return file.install(command[0], build, forbidden="=") or read()


def turn_off() -> LoginStatus:
    return _read_file().remove()


def open_settings() -> bool:
    """Returns False: desktops have no common pane for it."""
    return False


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
    """Quotes an argument of Exec, where % is a field code; then the value is escaped."""
    argument = argument.replace("%", "%%")
    if not argument or _RESERVED.search(argument):
        argument = '"' + re.sub(r'(["`$\\])', r"\\\1", argument) + '"'
    return escape(argument)


def escape(value: str) -> str:
    """Escapes a value of the entry: it is one line, and a backslash begins an escape."""
    codes = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    text = "".join(codes.get(character, character) for character in value)
    return "\\s" + text[1:] if text.startswith(" ") else text


def unescape(value: str) -> str:
    codes = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r", "s": " "}
    return re.sub(r"\\(.)", lambda match: codes.get(match[1], match[0]), value)


def parse_entry(text: str) -> dict[str, str]:
    """Returns the keys of [Desktop Entry] with their values, not unescaped."""
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


def _read_file() -> LoginFile:
    path = os.path.join(find_config_folder(), "autostart", "mpsbar.desktop")  # noqa: PTH118 - a text
    data = read_small(path)
    entry = None if data is None else parse_entry(data.decode("utf-8", "replace"))
    return LoginFile("autostart", path, entry, None if entry is None else entry.get(MARK))
