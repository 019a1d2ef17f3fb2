"""macOS's own notifications. Only inside an app: elsewhere the first call ends the process."""

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from Foundation import NSObject
from UserNotifications import (
    UNAuthorizationOptionAlert,
    UNAuthorizationOptionSound,
    UNMutableNotificationContent,
    UNNotificationPresentationOptionBanner,
    UNNotificationPresentationOptionList,
    UNNotificationRequest,
    UNUserNotificationCenter,
)

if TYPE_CHECKING:
    from mpsbar.desktop.notifications import Notifier

_MOST_WAITING = 20
_TEXT_MOST = 1000


class UserNotifications:
    """Queues notices until the user has answered macOS's question; refused ones go elsewhere."""

    kind = "UserNotifications"

    def __init__(self, log: Callable[[str], None], fallback: "Notifier") -> None:
        self._log = log
        self._fallback = fallback
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[str, str]] | None = {}  # by key; None: waiting is over
        self._has_logged = False
        self._center = UNUserNotificationCenter.currentNotificationCenter()
        self._delegate = _delegate_class().alloc().init()  # the center does not keep it
        self._center.setDelegate_(self._delegate)
        self._center.requestAuthorizationWithOptions_completionHandler_(
            UNAuthorizationOptionAlert | UNAuthorizationOptionSound,
            self._safely(self._user_answered),
        )

    def notify(self, title: str, text: str, key: str) -> None:
        with self._lock:
            if self._waiting is not None:
                if key in self._waiting or len(self._waiting) < _MOST_WAITING:
                    self._waiting[key] = (title, text)
                return
        self._send(title, text, key)

    def _user_answered(self, is_allowed: bool, error: Any) -> None:
        """Sends what waited, also after a no: System Settings may allow notices later."""
        if not is_allowed:
            self._log_refusal(error)
        with self._lock:
            waiting, self._waiting = self._waiting or {}, None
        for key, (title, text) in waiting.items():
            self._send(title, text, key)

    def _send(self, title: str, text: str, key: str) -> None:
        content = UNMutableNotificationContent.alloc().init()
        content.setTitle_(_clean(title))
        content.setBody_(_clean(text))
        request = UNNotificationRequest.requestWithIdentifier_content_trigger_(key, content, None)

        def added(error: Any) -> None:
            if error is not None:
                self._log_refusal(error)
                self._fallback.notify(title, text, key)

        self._center.addNotificationRequest_withCompletionHandler_(request, self._safely(added))

    def _log_refusal(self, error: Any) -> None:
        if self._has_logged:
            return
        self._has_logged = True
        why = "not allowed" if error is None else error.localizedDescription()
        self._log(f"macOS refuses notifications ({why}); using {self._fallback.kind} instead")

    def _safely(self, handler: Callable[..., None]) -> Callable[..., None]:
        """macOS calls back on a queue of its own, where an exception ends the process."""

        def guarded(*arguments: Any) -> None:
            try:
                handler(*arguments)
            except Exception as error:  # noqa: BLE001 - see above
                self._log(f"notifications: {type(error).__name__}: {error}")

        return guarded


@functools.cache
def _delegate_class() -> Any:
    """Made once: Objective-C has one class of a name."""

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
    return text[:_TEXT_MOST].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
