"""SMAppService, UNUserNotificationCenter, and as much of NSUserNotification as rumps touches at start."""

# ruff: noqa: N802, N815 - the names are Objective-C's

from collections.abc import Callable
from typing import Any

from appkit import session
from appkit.messages import responds, send
from appkit.objects import NSObject, is_text, stored, weak
from appkit.values import NSURL, NSError, make_error

_PRESENT = "userNotificationCenter:willPresentNotification:withCompletionHandler:"
OFF, ON, NEEDS_APPROVAL, NOT_FOUND = range(4)  # SMAppServiceStatus


class SMAppService(NSObject, framework="ServiceManagement"):
    @classmethod
    def mainAppService(cls) -> "SMAppService":
        return session.current().only("login item", cls.alloc)

    @classmethod
    def openSystemSettingsLoginItems(cls) -> None:
        session.current().opened.append("System Settings: Login Items")

    @classmethod
    def statusForLegacyURL_(cls, url: NSURL) -> int:
        return session.current().legacy_login_status

    def status(self) -> int:
        return session.current().login_status

    def registerAndReturnError_(self, out: None) -> tuple[bool, NSError | None]:
        now = session.current()
        if now.bundle is None:
            return False, make_error("SMAppServiceErrorDomain", 3, "Invalid signature")
        now.login_status = now.login_after_register
        if now.login_status == NEEDS_APPROVAL:
            return False, make_error("SMAppServiceErrorDomain", 1, "Operation not permitted")
        if now.login_status != ON:
            return False, make_error("SMAppServiceErrorDomain", 3, "Invalid signature")
        return True, None

    def unregisterAndReturnError_(self, out: None) -> tuple[bool, NSError | None]:
        now = session.current()
        if now.login_status in (OFF, NOT_FOUND):
            return False, make_error("SMAppServiceErrorDomain", 6, "Job not found")
        now.login_status = OFF
        return True, None


class UNNotificationContent(NSObject, framework="UserNotifications"):
    title = stored("title", "")[0]
    subtitle = stored("subtitle", "")[0]
    body = stored("body", "")[0]
    sound = stored("sound")[0]
    threadIdentifier = stored("thread", "")[0]


class UNMutableNotificationContent(UNNotificationContent, framework="UserNotifications"):
    title, setTitle_ = stored("title", "", is_text)
    subtitle, setSubtitle_ = stored("subtitle", "", is_text)
    body, setBody_ = stored("body", "", is_text)
    sound, setSound_ = stored("sound")
    threadIdentifier, setThreadIdentifier_ = stored("thread", "", is_text)


class UNNotificationSound(NSObject, framework="UserNotifications"):
    @classmethod
    def defaultSound(cls) -> "UNNotificationSound":
        return session.current().only("sound", cls.alloc)


class UNNotificationRequest(NSObject, framework="UserNotifications"):
    identifier = stored("name", "")[0]
    content = stored("content")[0]
    trigger = stored("trigger")[0]

    @classmethod
    def requestWithIdentifier_content_trigger_(
        cls, name: str, content: Any, trigger: Any
    ) -> "UNNotificationRequest":
        made: UNNotificationRequest = cls.alloc()
        made._name, made._content, made._trigger = name, content, trigger
        return made


class UNNotification(NSObject, framework="UserNotifications"):
    request = stored("request")[0]


class UNNotificationSettings(NSObject, framework="UserNotifications"):
    def authorizationStatus(self) -> int:
        """UNAuthorizationStatus: authorized, denied, not determined."""
        return {"allowed": 2, "denied": 1, "unsigned": 0}[session.current().notifications]


class UNUserNotificationCenter(NSObject, framework="UserNotifications"):
    delegate, setDelegate_ = weak("delegate")

    @classmethod
    def currentNotificationCenter(cls) -> "UNUserNotificationCenter":
        now = session.current()
        if now.bundle is None:
            now.end_with(session.Aborted("bundleProxyForCurrentProcess is nil: not in a bundle"))
        return now.only("notification center", cls.alloc)

    def requestAuthorizationWithOptions_completionHandler_(
        self, options: int, handler: Callable[[bool, Any], object] | None
    ) -> None:
        allowed = session.current().notifications == "allowed"
        problem = (
            None if allowed else make_error("UNErrorDomain", 1, "Notifications are not allowed")
        )
        _in_background(handler, allowed, problem)

    def addNotificationRequest_withCompletionHandler_(
        self, request: UNNotificationRequest, handler: Callable[[Any], object] | None
    ) -> None:
        now = session.current()
        if now.notifications != "allowed":
            _in_background(handler, make_error("UNErrorDomain", 1, "Notifications are not allowed"))
            return
        now.delivered.append(request)
        self._present(request)
        _in_background(handler, None)

    def getNotificationSettingsWithCompletionHandler_(
        self, handler: Callable[[Any], object]
    ) -> None:
        _in_background(handler, UNNotificationSettings.alloc())

    def _present(self, request: UNNotificationRequest) -> None:
        """The app counts as active: without a delegate that says how, no banner is shown."""
        delegate, title = self.delegate(), request.content().title()
        if responds(delegate, _PRESENT):
            made: UNNotification = UNNotification.alloc()
            made._request = request
            show = session.current().shown
            send(delegate, _PRESENT, self, made, lambda options: show.append((title, options)))

    def removeAllDeliveredNotifications(self) -> None:
        session.current().delivered.clear()


def _in_background(handler: Callable[..., object] | None, *arguments: Any) -> None:
    if handler is not None:
        session.current().background.append(lambda: handler(*arguments))


class NSUserNotification(NSObject, framework="Foundation"):
    """Deprecated; the app must not use rumps.notification, so nothing here works."""


class NSUserNotificationCenter(NSObject, framework="Foundation"):
    delegate, setDelegate_ = weak("delegate")

    @classmethod
    def defaultUserNotificationCenter(cls) -> "NSUserNotificationCenter | None":
        now = session.current()
        return None if now.bundle is None else now.only("old notifications", cls.alloc)
