"""The self-test's checks that only a Mac can make. Each returns what it found, or raises."""

import platform
import sys
from collections.abc import Callable
from pathlib import Path

from mpsbar import __version__
from mpsbar.desktop import bundle as app_bundle
from mpsbar.desktop import login
from mpsbar.desktop.bundle import read_bundle
from mpsbar.desktop.icon_visibility import draws_no_icon, has_gui_session, read_icon
from mpsbar.desktop.notifications import read_delivery
from mpsbar.language import _, ngettext
from mpsbar.system import this_computer
from mpsbar.ui.text.alerts import say_delivery


def _check_frameworks() -> str:
    """Imports the frameworks that the app needs."""
    from importlib import import_module

    for name in ("rumps", "Metal", "ServiceManagement", "UserNotifications"):
        import_module(name)
    return f"macOS {platform.mac_ver()[0]}, Python {platform.python_version()}"


def _check_gpu_clients() -> str:
    clients = this_computer().read_gpu_clients()
    if not clients:
        raise ValueError(_("no process has opened the GPU, not even WindowServer"))
    timed = sum(client.nanoseconds is not None for client in clients.values())
    text = ngettext(
        "{n} client, {timed} with GPU time", "{n} clients, {timed} with GPU time", len(clients)
    )
    return text.format(n=len(clients), timed=timed)


def _check_screen() -> str | None:
    if not has_gui_session():
        return None
    if why := draws_no_icon():
        raise RuntimeError(_("macOS shows no icon for this Python ({why})").format(why=why))
    return _("there is a screen, and nothing prevents an icon")


def _check_icon() -> str | None:
    """Reads what the running app last wrote about its icon."""
    icon = read_icon()
    if icon is None:
        return None
    if icon.doubt is not None:
        raise RuntimeError(f"{icon.doubt}: {icon.details}")
    return icon.details


def _check_alerts() -> str | None:
    """Reads what became of the running app's last alert."""
    seen = read_delivery()
    if seen is None or seen.delivery == "unknown":
        return None
    if seen.delivery == "failed":
        raise RuntimeError(say_delivery(seen.delivery))
    return say_delivery(seen.delivery)


def _check_login() -> str:
    status = login.read_login()
    if status.state == "unavailable":
        raise RuntimeError(f"{status.why} {status.detail or ''}")
    return f"{status.state}, by {status.owner}"


def _check_bundle() -> str:
    bundle = read_bundle()
    if bundle is None:
        raise RuntimeError(_("this is not the app"))
    wanted = {"CFBundleShortVersionString": __version__, "LSUIElement": True}
    wrong = [key for key, value in wanted.items() if bundle.info.get(key) != value]
    if wrong:
        raise ValueError(f"Info.plist: {', '.join(wrong)}")
    return f"{bundle.identifier} in {bundle.path}"


def _check_sealed() -> str:
    bundle = read_bundle()
    if bundle is None or not sys.dont_write_bytecode:
        raise RuntimeError(_("bytecode would be written into the app"))
    written = list(Path(bundle.path).rglob("__pycache__"))
    if written:
        raise RuntimeError(_("bytecode is in the app: {folder}").format(folder=written[0]))
    return _("nothing was written into the app")


def _check_signature() -> str:
    bundle = read_bundle()
    if bundle is None:
        raise RuntimeError(_("this is not the app"))
    if problem := app_bundle.verify_signature(bundle.path):
        raise RuntimeError(problem)
    return "codesign --verify --deep --strict"


CHECKS: dict[str, Callable[[], str | None]] = {
    "frameworks": _check_frameworks,
    "gpu_clients": _check_gpu_clients,
    "screen": _check_screen,
    "icon": _check_icon,
    "alerts": _check_alerts,
    "login": _check_login,
    "bundle": _check_bundle,
    "sealed": _check_sealed,
    "signature": _check_signature,
}
IN_APP = frozenset(("bundle", "sealed", "signature"))
# A virtual Mac's GPU has neither statistics nor clients of Apple's kind.
WITH_GPU = frozenset(("gpu_clients",))
