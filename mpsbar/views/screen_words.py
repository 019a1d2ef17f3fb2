"""Why there is, or may be, no icon in the menu bar, and what to do. Pure."""

from mpsbar.views.language import _


def say_no_icon(reason: str) -> str:
    """One line for a person who started `mpsbar` in a terminal."""
    if reason == "framework_python":
        return _(
            "macOS 26 and newer draw no menu bar icon for this kind of Python (Homebrew,"
            " python.org): use mpsbar.app, or uv tool install --managed-python mpsbar"
        )
    return _("No icon can be drawn in the menu bar here ({reason})").format(reason=reason)


def say_doubt(doubt: str | None) -> str:
    """What the visibility probe found; empty when all is well."""
    return {
        None: "",
        "not_made": _("The menu bar icon could not be made"),
        "not_visible": _(
            "The menu bar icon is not shown: look in System Settings > Menu Bar whether mpsbar"
            " is allowed there, or make room by quitting other apps with icons"
        ),
        "no_width": _("The menu bar icon has no width: start mpsbar again"),
        "behind_notch": _("The menu bar icon is behind the notch: quit other apps with icons"),
        "occluded": _("The menu bar icon may be covered by something"),
    }.get(doubt, _("The menu bar icon: {doubt}").format(doubt=doubt))
