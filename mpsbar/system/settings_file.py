"""The settings file: read under environment and flags, one key written, a broken one kept aside."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from mpsbar.core.errors import UserError
from mpsbar.core.naming import printable
from mpsbar.core.settings import (
    KEYS,
    Loaded,
    Origin,
    Settings,
    parse_text,
    parse_value,
    parse_values,
)
from mpsbar.core.toml import NotChangeable, NotTOML, change_key, parse_toml
from mpsbar.system import paths
from mpsbar.system.atomic_file import NotAFile, TooLarge, read_bytes
from mpsbar.system.owned_files import replace_owned
from mpsbar.system.ownership import require_safe

MOST_BYTES = 64 * 1024


class _Broken(Exception):
    """Not a settings file, and why."""


def read_settings(flags: Mapping[str, Any] | None = None, *, repair: bool = False) -> Loaded:
    """Defaults < file < environment < flags. Only with `repair` is a broken file moved aside.

    The menu bar app repairs: it is what writes the file later. Commands that look only complain.
    """
    file = paths.settings_file()
    loaded = Loaded(Settings(), str(file))
    try:
        loaded = _put_on(loaded, "file", parse_toml_file(file), f"{file.name}: {{}}")
    except _Broken as broken:
        loaded = _complain_broken(loaded, str(broken), repair)
    except OSError as problem:
        words = f"couldn't read {file} ({_reason(problem)}); using the defaults"
        loaded = replace(loaded, complaints=(words,))
    loaded = _put_on(loaded, "environment", _read_environment(), "{}")
    return _put_on(loaded, "flag", flags or {}, "{}")


def write_setting(key: str, value: Any) -> None:
    """This key alone, in its place in the file; UserError if it cannot be, and nothing is lost."""
    file, value = paths.settings_file(), parse_value(key, value)
    try:
        text = _read_text(file)
        changed = change_key(text, key, value)
        if changed != text:
            replace_owned(file, changed.encode())
    except (NotTOML, _Broken) as problem:
        words = f"{file} is damaged ({problem}) and was left unchanged"
        raise UserError(f"{words}; for details: mpsbar config validate") from None
    except NotChangeable:
        raise UserError(f"couldn't change {key} in {file}; change it by hand") from None
    except OSError as problem:
        raise UserError(f"couldn't change {file}: {_reason(problem)}") from None


def variable_of(key: str) -> str:
    return f"MPSBAR_{key.upper()}"


def parse_toml_file(file: Path) -> dict[str, Any]:
    try:
        return parse_toml(_read_text(file))
    except NotTOML as problem:
        raise _Broken(f"it is not TOML: {printable(str(problem), 120)}") from None


def _read_text(file: Path) -> str:
    """No file is an empty one."""
    try:
        require_safe(file)
        return read_bytes(file, MOST_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise _Broken("it is not UTF-8 text") from None
    except (NotAFile, TooLarge) as problem:
        raise _Broken(_reason(problem)) from None


def _read_environment() -> dict[str, Any]:
    found = {key: os.environ.get(variable_of(key), "") for key in KEYS}
    return {key: parse_text(key, text) for key, text in found.items() if text.strip()}


def _put_on(loaded: Loaded, origin: Origin, table: Mapping[str, Any], form: str) -> Loaded:
    names = {"environment": variable_of, "flag": lambda key: f"--{key.replace('_', '-')}"}
    values, complaints = parse_values(table, names.get(origin, str))
    return replace(
        loaded,
        settings=replace(loaded.settings, **values),
        origins={**loaded.origins, **dict.fromkeys(values, origin)},
        complaints=loaded.complaints + tuple(form.format(words) for words in complaints),
    )


def _complain_broken(loaded: Loaded, why: str, repair: bool) -> Loaded:
    words = f"{loaded.file} can't be used ({why}); using the defaults"
    if repair:
        try:
            words += f"; it was renamed to {_keep_aside(Path(loaded.file))}"
        except OSError as problem:
            words += f"; it couldn't be renamed ({_reason(problem)})"
    return replace(loaded, complaints=(words,))


def _keep_aside(file: Path) -> Path:
    """Under a name that nothing has yet; of a link, the link."""
    day = datetime.now().astimezone().strftime("%Y-%m-%d")
    for number in range(1, 1000):
        kept = file.with_name(f"{file.name}.broken-{day}" + (f"-{number}" if number > 1 else ""))
        if not os.path.lexists(kept):
            file.rename(kept)
            return kept
    raise FileExistsError("there are too many damaged settings files")


def _reason(problem: OSError) -> str:
    return printable(problem.strerror or str(problem), 400)
