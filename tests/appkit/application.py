"""NSApplication, NSWorkspace and NSPasteboard: the app's life and its surroundings."""

# ruff: noqa: N802, N815 - the names are Objective-C's

from typing import Any

from appkit import session
from appkit.loop import main_loop
from appkit.messages import responds, send, tell
from appkit.objects import NSObject, is_text_or_nil, stored, weak
from appkit.values import NSURL, NSNotificationCenter, notification
from appkit.views import NSResponder

LAUNCHED = "NSApplicationDidFinishLaunchingNotification"
LEAVING = "NSApplicationWillTerminateNotification"
SLEEPS = "NSWorkspaceWillSleepNotification"
WAKES = "NSWorkspaceDidWakeNotification"
_CANCEL, _LATER = 0, 2  # NSApplicationTerminateReply


class NSApplication(NSResponder, framework="AppKit"):
    delegate, setDelegate_ = weak("delegate")
    isHidden = stored("hidden", False)[0]
    activationPolicy = stored("policy", 0)[0]
    isActive = stored("active", False)[0]

    @classmethod
    def sharedApplication(cls) -> "NSApplication":
        return session.current().only("application", cls.alloc)

    def activateIgnoringOtherApps_(self, hard: bool) -> None:
        self._active, self._hidden = True, False

    def hide_(self, sender: Any) -> None:
        """The app that was active before gets the keyboard."""
        self._active, self._hidden = False, True

    def activate(self) -> None:
        """A request; menu bar apps report that it is declined while another app is active."""

    def setActivationPolicy_(self, policy: int) -> bool:
        self._policy = policy
        return True

    def finishLaunching(self) -> None:
        self._tell(
            "applicationWillFinishLaunching:", "NSApplicationWillFinishLaunchingNotification"
        )
        self._tell("applicationDidFinishLaunching:", LAUNCHED)

    def nextEventMatchingMask_untilDate_inMode_dequeue_(
        self, mask: int, date: Any, mode: str, dequeue: bool
    ) -> Any:
        """Nobody sends events here: what is due in the run loop is done until then."""
        main_loop().runMode_beforeDate_(mode, date)

    def run(self) -> None:
        """The test's script is what happens while the app runs."""
        now = session.current()
        self.finishLaunching()
        if now.script is None:
            now.end_with(session.Hangs("the app runs, and the test gave no script: Mac.run"))
        script, now.script = now.script, None
        try:
            script()
        except BaseException as reason:
            now.end_with(reason)
        now.end_with(session.Hangs("the script is over and the app still runs"))

    def terminate_(self, sender: Any) -> None:
        if responds(self.delegate(), "applicationShouldTerminate:"):
            reply = send(self.delegate(), "applicationShouldTerminate:", self)
            if reply == _LATER:
                raise NotImplementedError("NSTerminateLater: the double cannot wait for a reply")
            if reply == _CANCEL:
                return
        self._tell("applicationWillTerminate:", LEAVING)
        session.current().end_with(session.Terminated())

    def orderFrontStandardAboutPanelWithOptions_(self, options: Any) -> None:
        session.current().opened.append("About panel")

    def sendAction_to_from_(self, action: Any, target: Any, sender: Any) -> bool:
        if target is None:
            return False  # no responder chain here
        send(target, action, sender)
        return True

    def _tell(self, message: str, name: str) -> None:
        tell(self.delegate(), message, notification(name, self))
        NSNotificationCenter.defaultCenter().postNotificationName_object_(name, self)


class NSWorkspace(NSObject, framework="AppKit", any_thread=True):
    @classmethod
    def sharedWorkspace(cls) -> "NSWorkspace":
        return session.current().only("workspace", cls.alloc)

    def notificationCenter(self) -> NSNotificationCenter:
        return session.current().only("workspace center", NSNotificationCenter.alloc)

    def openURL_(self, url: Any) -> bool:
        session.current().opened.append(url.absoluteString())
        return True

    def URLForApplicationWithBundleIdentifier_(self, identifier: str) -> NSURL | None:
        path = session.current().applications.get(identifier)
        return None if path is None else NSURL.fileURLWithPath_(path)

    def openApplicationAtURL_configuration_completionHandler_(
        self, url: Any, configuration: Any, handler: Any
    ) -> None:
        session.current().opened.append(url.absoluteString())
        if handler is not None:
            raise NotImplementedError("the double has no NSRunningApplication to hand over")


class NSWorkspaceOpenConfiguration(NSObject, framework="AppKit", any_thread=True):
    activates, setActivates_ = stored("activates", True)

    @classmethod
    def configuration(cls) -> "NSWorkspaceOpenConfiguration":
        made: NSWorkspaceOpenConfiguration = cls.alloc()
        return made


class NSPasteboard(NSObject, framework="AppKit"):
    def _setup(self) -> None:
        self._contents: dict[str, str] = {}
        self._is_ours = False

    @classmethod
    def generalPasteboard(cls) -> "NSPasteboard":
        return session.current().only("pasteboard", cls.alloc)

    def clearContents(self) -> int:
        self._contents.clear()
        self._is_ours = True
        return 1

    def setString_forType_(self, text: str, kind: str) -> bool:
        if not is_text_or_nil(text):
            session.current().fault(TypeError(f"a string for the pasteboard, not {text!r}"))
        if self._is_ours:  # who has not cleared it may not write to it
            self._contents[kind] = text
        return self._is_ours

    def stringForType_(self, kind: str) -> str | None:
        return self._contents.get(kind)
