"""What fell back to the CPU in a run, in words: how often, where, and what to do. Pure."""

from pathlib import PurePath

from mpsbar.core.fallbacks import FallbackOperation, Fallbacks
from mpsbar.core.native_operations import NativeOperations
from mpsbar.core.torch_facts import Release, parse_release
from mpsbar.language import _, ngettext
from mpsbar.ui.text import wording

_MOST_SHOWN = 20


def render_fallbacks(found: Fallbacks, native: NativeOperations, folder: str) -> list[str]:
    """Lines for the end of `mpsbar run --explain`; `folder` is the present one."""
    if found.torch is None:
        return [_("CPU fallbacks: not known, no connected process imported torch")]
    if not found.operations:
        return [_("CPU fallbacks: none"), *_say_limits(found)]
    lines = [_say_total(found)]
    for operation in found.operations[:_MOST_SHOWN]:
        lines.append(f"  {_say_operation(operation, folder)}")
        lines.append(f"    → {say_remedy(operation.name, found.torch, native)}")
    if len(found.operations) > _MOST_SHOWN:
        lines.append("  " + _("… and {n} more").format(n=len(found.operations) - _MOST_SHOWN))
    return [*lines, *_say_limits(found)]


def _say_total(found: Fallbacks) -> str:
    number = len(found.operations)
    words = ngettext(
        "CPU fallbacks: {n} operation, {times}", "CPU fallbacks: {n} operations, {times}", number
    )
    return words.format(n=number, times=_say_times(found.count))


def _say_times(count: int) -> str:
    if count == 1:
        return _("once")
    return ngettext("{n} time", "{n} times", count).format(n=f"{count:,}")


def _say_operation(operation: FallbackOperation, folder: str) -> str:
    parts = [_say_times(operation.count)]
    if operation.seconds is not None:
        parts.append(wording.duration(operation.seconds))
    if operation.copied is not None:
        parts.append(_("{size} copied").format(size=wording.size(operation.copied)))
    if operation.where:
        parts.append(_("first at {where}").format(where=_shorten_place(operation.where, folder)))
    return f"{operation.name}: {', '.join(parts)}"


def _shorten_place(where: str, folder: str) -> str:
    """A file below the present folder by its relative path."""
    file, colon, line = where.rpartition(":")
    path = PurePath(file)
    return f"{path.relative_to(folder)}{colon}{line}" if path.is_relative_to(folder) else where


def say_remedy(name: str, torch: str, native: NativeOperations) -> str:
    """The torch that has it natively, and what to do."""
    since, installed = native.find(name), parse_release(torch)
    if since is not None and installed is not None and installed < since:
        return _("native on MPS from torch {version}: upgrade torch (this is {torch})").format(
            version=_release(since), torch=torch
        )
    if since is not None:
        return _(
            "torch {torch} has it on MPS, but not for this dtype or size: try float32, or put this "
            "step on the CPU"
        ).format(torch=torch)
    if not name.startswith("aten::"):
        return _("put this step on the CPU, or do it in another way")
    return _(
        "no torch up to {version} has it on MPS: replace it, or put this step on the CPU, so that "
        "its copies are under your control"
    ).format(version=_release(native.newest))


def _release(release: Release) -> str:
    return ".".join(map(str, release))


def _say_limits(found: Fallbacks) -> list[str]:
    lines = []
    if not found.is_profiled and found.operations:
        lines.append(
            _("How long they took is not known: torch {torch} printed no profile.").format(
                torch=found.torch
            )
        )
    if not found.is_complete:
        lines.append(_("A process ended before it could report all: there may be more."))
    if not found.is_profiled:
        lines.append(
            _("Counted by torch's warnings: what a program does with warnings off is missing.")
        )
    return [f"  {line}" for line in lines]
