"""What fell back to the CPU in a run, in words: how often, where, and what to do. Pure."""

from dataclasses import asdict
from pathlib import PurePath

from mpsbar.core.fallbacks import FallbackOperation, Fallbacks
from mpsbar.core.torch_facts import NativeOperations, Release, parse_release
from mpsbar.language import _, ngettext
from mpsbar.ui.text import wording
from mpsbar.ui.text.wording import shorten_home

_MAX_SHOWN = 20


def render_fallbacks(
    fallbacks: Fallbacks,
    native: NativeOperations,
    folder: str = "",
    home: str = "",
    with_commands: bool = True,
) -> list[str]:
    """Lines for the end of a run; files below `folder` are shown relative to it, `home` as ~."""
    if fallbacks.torch is None and not fallbacks.operations:
        return [_("CPU fallbacks: unknown, because no connected process imported torch")]
    if not fallbacks.is_counted:
        return _render_first(fallbacks, native, folder, home, with_commands)
    if not fallbacks.operations:
        return [_("CPU fallbacks: none"), *_indent(say_limits(fallbacks))]
    lines = [_say_total(fallbacks)]
    for operation in fallbacks.operations[:_MAX_SHOWN]:
        lines.append(f"  {_say_operation(operation, folder, home)}")
        lines.append(f"    → {say_remedy(operation.name, fallbacks.torch, native)}")
    if len(fallbacks.operations) > _MAX_SHOWN:
        lines.append("  " + _("… and {n} more").format(n=len(fallbacks.operations) - _MAX_SHOWN))
    return [*lines, *_indent(say_limits(fallbacks))]


def _indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _render_first(
    fallbacks: Fallbacks, native: NativeOperations, folder: str, home: str, with_commands: bool
) -> list[str]:
    """Without --explain: torch warns once in a process, of the first operation."""
    if not fallbacks.operations:
        words = (
            _("CPU fallbacks: none known")
            if fallbacks.is_complete
            else _("CPU fallbacks: unknown (none found, but the check was cut short)")
        )
        return [words, *_indent([_("mpsbar run --explain counts them.")] if with_commands else [])]
    lines = [_("CPU fallbacks: at least one")]
    for operation in fallbacks.operations[:_MAX_SHOWN]:
        place = shorten_place(operation.where, folder, home)
        where = _(", at {where}").format(where=place) if place else ""
        lines.append(f"  {operation.name}{where}")
        lines.append(f"    → {say_remedy(operation.name, fallbacks.torch, native)}")
    return [*lines, *_indent(say_limits(fallbacks) if with_commands else [])]


def build_fallbacks(fallbacks: Fallbacks, native: NativeOperations) -> list[dict[str, object]]:
    """For --json: each operation, the torch that has it natively, and what to do."""
    return [
        asdict(operation)
        | {
            "native_since": None
            if (since := native.find(operation.name)) is None
            else _release(since),
            "remedy": say_remedy(operation.name, fallbacks.torch, native),
        }
        for operation in fallbacks.operations
    ]


def _say_total(fallbacks: Fallbacks) -> str:
    number = len(fallbacks.operations)
    words = ngettext(
        "CPU fallbacks: {n} operation, {times}", "CPU fallbacks: {n} operations, {times}", number
    )
    return words.format(n=number, times=say_times(fallbacks.count))


def say_times(count: int) -> str:
    if count == 1:
        return _("once")
    return ngettext("{n} time", "{n} times", count).format(n=f"{count:,}")


def _say_operation(operation: FallbackOperation, folder: str, home: str) -> str:
    parts = [say_times(operation.count)]
    if operation.seconds is not None:
        parts.append(wording.duration(operation.seconds))
    if operation.copied is not None:
        parts.append(_("{size} copied").format(size=wording.size(operation.copied)))
    if operation.where:
        place = shorten_place(operation.where, folder, home)
        parts.append(_("first at {where}").format(where=place))
    return f"{operation.name}: {', '.join(parts)}"


def shorten_place(where: str, folder: str, home: str) -> str:
    """A file below the present folder by its relative path, below the home folder with ~."""
    file, colon, line = where.rpartition(":")
    path = PurePath(file)
    if folder and path.is_relative_to(folder):
        return f"{path.relative_to(folder)}{colon}{line}"
    return shorten_home(where, home)


def say_remedy(name: str, torch: str | None, native: NativeOperations) -> str:
    """Returns the torch that has it natively, or what to do."""
    since, installed = native.find(name), parse_release(torch or "")
    if since is not None and installed is not None and installed < since:
        return _("native on MPS from torch {version}: upgrade torch (this is {torch})").format(
            version=_release(since), torch=torch
        )
    if since is not None and installed is None:
        return _("native on MPS from torch {version}").format(version=_release(since))
    if since is not None:
        return _(
            "torch {torch} has it on MPS, but not for this dtype or size: try float32, or put this "
            "step on the CPU"
        ).format(torch=torch)
    if not name.startswith("aten::"):
        return _("put this step on the CPU, or do it another way")
    return _(
        "no torch up to {version} has it on MPS: replace it, or put this step on the CPU, where "
        "you control the copies"
    ).format(version=_release(native.newest))


def _release(release: Release) -> str:
    return ".".join(map(str, release))


def say_limits(fallbacks: Fallbacks) -> list[str]:
    """Returns what is not known about the fallbacks, a sentence each."""
    lines = []
    if not fallbacks.is_counted:
        return [
            _("Without mpsbar run --explain, only the first operation of each process is known.")
        ]
    if not fallbacks.is_profiled and fallbacks.operations:
        lines.append(
            _("How long they took is not known: torch {torch} printed no profile.").format(
                torch=fallbacks.torch
            )
        )
    if not fallbacks.is_complete:
        lines.append(_("A process ended before it could report everything: there may be more."))
    if not fallbacks.is_profiled:
        lines.append(
            _(
                "Counted from torch's warnings: operations that ran while warnings were turned "
                "off are missing."
            )
        )
    return lines
