"""The settings file: read below environment and flags, changed one key at a time.

A broken file is moved aside by the menu bar app, which writes it later; commands only report it.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpsbar.core.errors import UserError, reason_of
from mpsbar.core.naming import printable
from mpsbar.core.settings import (
    KEYS,
    LoadedSettings,
    Origin,
    Settings,
    parse_text,
    parse_value,
    parse_values,
)
from mpsbar.core.toml import InvalidTomlError, UnchangeableKeyError, change_key, parse_toml
from mpsbar.language import _
from mpsbar.system import paths
from mpsbar.system.files import (
    NotAFileError,
    TooLargeError,
    move_aside,
    read_bytes,
    replace_own_file,
)
from mpsbar.system.ownership import require_safe

MAX_BYTES = 64 * 1024


class _BrokenFileError(Exception):
    """The reason why a file is no settings file."""


def read_settings(
    flags: Mapping[str, Any] | None = None, *, repair: bool = False
) -> LoadedSettings:
    """Defaults < file < environment < flags. Only with `repair` is a broken file moved aside."""
    file = paths.settings_file()
    loaded = LoadedSettings(Settings(), str(file))
    try:
        loaded = _merge(loaded, "file", parse_toml_file(file), f"{file.name}: {{}}")
    except _BrokenFileError as broken:
        loaded = _report_broken(loaded, str(broken), repair)
    except OSError as problem:
        complaint = _("couldn't read {file} ({problem}); using the defaults").format(
            file=file, problem=_reason(problem)
        )
        loaded = replace(loaded, complaints=(complaint,), is_file_usable=False)
    loaded = _merge(loaded, "environment", _read_environment(), "{}")
    return _merge(loaded, "flag", flags or {}, "{}")


def write_setting(key: str, value: Any) -> None:
    """Changes this key alone, in its place; UserError if it cannot, and nothing is lost."""
    file, value = paths.settings_file(), parse_value(key, value)
    try:
        text = _read_text(file)
        changed = change_key(text, key, value)
        if changed != text:
            replace_own_file(file, changed.encode())
    except (InvalidTomlError, _BrokenFileError) as problem:
        raise UserError(
            _(
                "{file} is damaged ({problem}) and was left unchanged;"
                " for details: mpsbar config validate"
            ).format(file=file, problem=problem)
        ) from None
    except UnchangeableKeyError:
        raise UserError(
            _("couldn't change {key} in {file}; change it by hand").format(key=key, file=file)
        ) from None
    except OSError as problem:
        raise UserError(
            _("couldn't change {file}: {problem}").format(file=file, problem=_reason(problem))
        ) from None


def variable_of(key: str) -> str:
    return f"MPSBAR_{key.upper()}"


def parse_toml_file(file: Path) -> dict[str, Any]:
    try:
        return parse_toml(_read_text(file))
    except InvalidTomlError as problem:
        raise _BrokenFileError(
            _("it is not TOML: {problem}").format(problem=printable(str(problem), 120))
        ) from None


def _read_text(file: Path) -> str:
    """The text of the file; a missing file is empty."""
    try:
        require_safe(file)
        return read_bytes(file, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise _BrokenFileError(_("it is not UTF-8 text")) from None
    except (NotAFileError, TooLargeError) as problem:
        raise _BrokenFileError(_reason(problem)) from None


def _read_environment() -> dict[str, Any]:
    texts = {key: os.environ.get(variable_of(key), "") for key in KEYS}
    return {key: parse_text(key, text) for key, text in texts.items() if text.strip()}


def _merge(
    loaded: LoadedSettings, origin: Origin, table: Mapping[str, Any], form: str
) -> LoadedSettings:
    names = {"environment": variable_of, "flag": lambda key: f"--{key.replace('_', '-')}"}
    values, complaints = parse_values(table, names.get(origin, str))
    return replace(
        loaded,
        settings=replace(loaded.settings, **values),
        origins={**loaded.origins, **dict.fromkeys(values, origin)},
        complaints=loaded.complaints + tuple(map(form.format, complaints)),
    )


def _report_broken(loaded: LoadedSettings, why: str, repair: bool) -> LoadedSettings:
    text = _("{file} can't be used ({why}); using the defaults")
    target, problem = None, ""
    if repair:
        try:
            target = move_aside(Path(loaded.file))
            text = _("{file} can't be used ({why}); using the defaults; it was renamed to {target}")
        except OSError as error:
            problem = _reason(error)
            text = _(
                "{file} can't be used ({why}); using the defaults; "
                "it couldn't be renamed ({problem})"
            )
    complaint = text.format(file=loaded.file, why=why, target=target, problem=problem)
    return replace(loaded, complaints=(complaint,), is_file_usable=False)


def _reason(problem: OSError) -> str:
    return printable(reason_of(problem), 400)
