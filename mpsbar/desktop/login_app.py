"""Start at login for the app bundle: SMAppService, which macOS itself keeps and shows."""

import os
from typing import Any

from mpsbar.desktop.bundle import read_bundle
from mpsbar.desktop.login_item import LoginState, LoginStatus, Why

# A bundle that was moved by the user stays; these are gone after the next restart, or before.
_TRANSLOCATED = "/AppTranslocation/"
_VOLUMES = "/Volumes/"
_ENABLED, _REQUIRES_APPROVAL = 1, 2  # NotRegistered 0 and NotFound 3 are both off


def read() -> LoginStatus:
    service = _find_service()
    if service is None:
        return LoginStatus("unavailable", "app", why="old_macos")
    bundle = read_bundle()
    path = "" if bundle is None else bundle.path
    if (why := judge_place(path, is_read_only(path))) is not None:
        return LoginStatus("unavailable", "app", path, why)
    return LoginStatus(_state(service), "app", path)


def turn_on() -> LoginStatus:
    return _change("registerAndReturnError_", ("on", "needs_approval"))


def turn_off() -> LoginStatus:
    return _change("unregisterAndReturnError_", ("off",))


def open_settings() -> bool:
    service = _find_class()
    if service is None:
        return False
    service.openSystemSettingsLoginItems()
    return True


def read_legacy_approval(plist: str) -> bool:
    """Whether the user has switched this LaunchAgent off in System Settings."""
    service = _find_class()
    if service is None:
        return False
    from Foundation import NSURL

    status: int = service.statusForLegacyURL_(NSURL.fileURLWithPath_(plist))
    return status == _REQUIRES_APPROVAL


def judge_place(path: str, is_read_only: bool) -> Why | None:
    """Why an app that lies there must not be started from there for ever, or None."""
    if _TRANSLOCATED in path:
        return "translocated"
    if path.startswith(_VOLUMES) and is_read_only:
        return "disk_image"
    return None


def _change(message: str, wanted: tuple[LoginState, ...]) -> LoginStatus:
    """Judged by what is so afterwards: macOS reports errors for what it has done already."""
    before = read()
    if before.state == "unavailable" or before.state == wanted[0]:
        return before
    done, problem = getattr(_find_service(), message)(None)
    after = read()
    if after.state in wanted:
        return after
    detail = None if done or problem is None else str(problem.localizedDescription())
    return LoginStatus(after.state, "app", after.where, "refused", detail)


def _state(service: Any) -> LoginState:
    status: int = service.status()
    states: dict[int, LoginState] = {_ENABLED: "on", _REQUIRES_APPROVAL: "needs_approval"}
    return states.get(status, "off")


def _find_class() -> Any:
    try:
        from ServiceManagement import SMAppService
    except (ImportError, AttributeError):  # not a Mac, or before macOS 13
        return None
    return SMAppService


def _find_service() -> Any:
    service = _find_class()
    return None if service is None else service.mainAppService()


def is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
