"""macOS's own notifications. Only inside an app: elsewhere the first call ends the process."""

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from Foundation import NSObject
from UserNotifications import (
    UNAuthorizationOptionAlert,
    UNAuthorizationOptionSound,
    UNAuthorizationStatusDenied,
    UNAuthorizationStatusNotDetermined,
    UNMutableNotificationContent,
    UNNotificationPresentationOptionBanner,
    UNNotificationPresentationOptionList,
    UNNotificationRequest,
    UNUserNotificationCenter,
)

from mpsbar.core.machine import Delivery

if TYPE_CHECKING:
    from mpsbar.desktop.notifications import Notifier

_MAX_WAITING = 20
_MAX_TEXT = 1000


class UserNotifications:
    """Queues notices until the user has answered macOS's question. If the user says no, nothing is
    sent in another way. If macOS accepts none because the app is signed ad hoc, they go to
    `fallback`.
    """

    kind = "UserNotifications"

    def __init__(self, log: Callable[[str], None], fallback: "Notifier") -> None:
        self._log = log
        self._fallback = fallback
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[str, str]] | None = {}  # by key; None: waiting is over
        self._has_logged = False
        self._own_delivery: Delivery = "unknown"
        self._center = UNUserNotificationCenter.currentNotificationCenter()
        self._delegate = _delegate_class().alloc().init()  # the center does not keep it
        self._center.setDelegate_(self._delegate)
        self._center.requestAuthorizationWithOptions_completionHandler_(
            UNAuthorizationOptionAlert | UNAuthorizationOptionSound,
            self._safely(self._user_answered),
        )

    @property
    def delivery(self) -> Delivery:
        if self._own_delivery == "script":  # then it is up to the fallback
            return "script" if self._fallback.delivery == "unknown" else self._fallback.delivery
        return self._own_delivery

    def notify(self, title: str, text: str, key: str) -> None:
        with self._lock:
            if self._waiting is not None:
                if key in self._waiting or len(self._waiting) < _MAX_WAITING:
                    self._waiting[key] = (title, text)
                return
        self._send(title, text, key)

    def _user_answered(self, is_allowed: bool, error: Any) -> None:  # noqa: ARG002
        """Sends what waited. The settings show whether the user or macOS said no, `error` does
        not."""
        with self._lock:
            waiting, self._waiting = self._waiting or {}, None
        for key, (title, text) in waiting.items():
            self._send(title, text, key)
        if not waiting:
            self._read_settings(lambda status: self._learn(status, error))

    def _learn(self, status: int, error: Any) -> None:
        if status == UNAuthorizationStatusDenied:
            self._own_delivery = "off"
        elif status != UNAuthorizationStatusNotDetermined:
            self._own_delivery = "shown"
        elif error is not None:
            self._own_delivery = "script"

    def _read_settings(self, then: Callable[[int], None]) -> None:
        """Reads them each time: the user may change them while the app runs."""

        def answered(settings: Any) -> None:
            then(int(settings.authorizationStatus()))

        self._center.getNotificationSettingsWithCompletionHandler_(self._safely(answered))

    def _send(self, title: str, text: str, key: str) -> None:
        def send(status: int) -> None:
            if status == UNAuthorizationStatusDenied:
                self._own_delivery = "off"
            else:
                self._add(title, text, key)

        self._read_settings(send)

    def _add(self, title: str, text: str, key: str) -> None:
        content = UNMutableNotificationContent.alloc().init()
        content.setTitle_(_clean(title))
        content.setBody_(_clean(text))
        request = UNNotificationRequest.requestWithIdentifier_content_trigger_(key, content, None)

        def added(error: Any) -> None:
            if error is None:
                self._own_delivery = "shown"
                return
            self._own_delivery = "script"
            self._log_refusal(error)
            self._fallback.notify(title, text, key)

        self._center.addNotificationRequest_withCompletionHandler_(request, self._safely(added))

    def _log_refusal(self, error: Any) -> None:
        if self._has_logged:
            return
        self._has_logged = True
        why = error.localizedDescription()
        self._log(f"macOS refuses notifications ({why}); using {self._fallback.kind} instead")

    def _safely(self, handler: Callable[..., None]) -> Callable[..., None]:
        """Catches exceptions: macOS calls back on a queue of its own, where one ends the
        process."""

        def guarded(*arguments: Any) -> None:
            try:
                handler(*arguments)
            except Exception as error:  # noqa: BLE001 - see above
                self._log(f"notifications: {type(error).__name__}: {error}")

        return guarded


@functools.cache
def _delegate_class() -> Any:
    """Makes the class once: Objective-C has one class of a name."""

    class MpsbarNotificationDelegate(NSObject):  # type: ignore[misc]
        def userNotificationCenter_willPresentNotification_withCompletionHandler_(  # noqa: N802
            self,
            center: Any,  # noqa: ARG002
            notification: Any,  # noqa: ARG002
            handler: Any,
        ) -> None:  # without it nothing is shown while the app counts as active
            handler(UNNotificationPresentationOptionBanner | UNNotificationPresentationOptionList)

    return MpsbarNotificationDelegate


def _clean(text: str) -> str:
    return text[:_MAX_TEXT].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
