"""Foundation's small things: arrays, dictionaries, text with attributes, errors, notifications, bundles."""

# ruff: noqa: N802, N815 - the names are Objective-C's

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from appkit import session
from appkit.messages import error, send
from appkit.objects import NSObject, stored


class NSString(NSObject, framework="Foundation"):
    """PyObjC hands out str for it, so does the double."""

    def initWithString_(self, text: str) -> str:
        return str(text)

    @classmethod
    def stringWithString_(cls, text: str) -> str:
        return str(text)


class NSArray(NSObject, framework="Foundation"):
    def _setup(self) -> None:
        self._items: list[Any] = []

    @classmethod
    def arrayWithArray_(cls, items: Any) -> "NSArray":
        return array(items)

    def count(self) -> int:
        return len(self._items)

    def objectAtIndex_(self, index: int) -> Any:
        if index >= len(self._items):
            session.current().fault(error(f"NSRangeException: index {index} beyond bounds"))
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


def array(items: Any) -> NSArray:
    made: NSArray = NSArray.alloc()
    made._items = list(items)
    return made


class NSDictionary(NSObject, framework="Foundation"):
    def _setup(self) -> None:
        self._items: dict[Any, Any] = {}

    def objectForKey_(self, key: Any) -> Any:
        return self._items.get(key)

    def count(self) -> int:
        return len(self._items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]


class NSMutableDictionary(NSDictionary, framework="Foundation"):
    def setDictionary_(self, other: Any) -> None:
        self._items = dict(other)

    def setObject_forKey_(self, value: Any, key: Any) -> None:
        self._items[key] = value


class NSAttributedString(NSObject, framework="Foundation"):
    """Text and its runs: (start, length, attributes)."""

    def _setup(self) -> None:
        self._text = ""
        self._runs: list[tuple[int, int, dict[str, Any]]] = []

    def initWithString_(self, text: str) -> Any:
        return self.initWithString_attributes_(text, None)

    def initWithString_attributes_(self, text: str, attributes: Any) -> Any:
        if not isinstance(text, str):
            session.current().fault(error("NSAttributedString: nil or no string"))
        self._text = text
        self._runs = [(0, len(text), dict(attributes))] if attributes else []
        return self

    def string(self) -> str:
        return self._text

    def length(self) -> int:
        return len(self._text.encode("utf-16-le")) // 2


class NSMutableAttributedString(NSAttributedString, framework="Foundation"):
    def addAttribute_value_range_(self, name: str, value: Any, where: Any) -> None:
        self.addAttributes_range_({name: value}, where)

    def addAttributes_range_(self, attributes: Any, where: Any) -> None:
        start, length = where
        if start + length > self.length():
            session.current().fault(error("NSRangeException: out of bounds"))
        self._runs.append((start, length, dict(attributes)))

    def appendAttributedString_(self, other: NSAttributedString) -> None:
        shift = self.length()
        self._runs += [(start + shift, length, kept) for start, length, kept in other._runs]
        self._text += other._text


class NSError(NSObject, framework="Foundation"):
    domain = stored("domain")[0]
    code = stored("code", 0)[0]
    localizedDescription = stored("words", "")[0]


def make_error(domain: str, code: int, words: str) -> NSError:
    made: NSError = NSError.alloc()
    made._domain, made._code, made._words = domain, code, words
    return made


class NSURL(NSObject, framework="Foundation"):
    absoluteString = stored("address")[0]

    @classmethod
    def URLWithString_(cls, address: str) -> "NSURL":
        made: NSURL = cls.alloc()
        made._address = address
        return made

    @classmethod
    def fileURLWithPath_(cls, path: str) -> "NSURL":
        return cls.URLWithString_(f"file://{path}")

    def path(self) -> str:
        return str(self._address).removeprefix("file://")


class NSNotification(NSObject, framework="Foundation"):
    name = stored("name")[0]
    object = stored("object")[0]
    userInfo = stored("info")[0]


def notification(name: str, sender: Any, info: Any = None) -> NSNotification:
    made: NSNotification = NSNotification.alloc()
    made._name, made._object, made._info = name, sender, info
    return made


class NSNotificationCenter(NSObject, framework="Foundation"):
    def _setup(self) -> None:
        self._observers: list[tuple[Any, Any, Any, Any]] = []

    @classmethod
    def defaultCenter(cls) -> "NSNotificationCenter":
        return session.current().only("default center", cls.alloc)

    def addObserver_selector_name_object_(
        self, observer: Any, selector: Any, name: Any, sender: Any
    ) -> None:
        """The center does not keep an observer alive: one that nobody keeps is told no more."""
        self._observers.append((weakref.ref(observer), selector, name, sender))

    def removeObserver_(self, observer: Any) -> None:
        self._observers = [row for row in self._observers if row[0]() is not observer]

    def postNotificationName_object_(self, name: str, sender: Any) -> None:
        self.postNotificationName_object_userInfo_(name, sender, None)

    def postNotificationName_object_userInfo_(self, name: str, sender: Any, info: Any) -> None:
        made = notification(name, sender, info)
        for kept, selector, wanted, source in list(self._observers):
            observer = kept()
            if observer is None:
                continue
            if wanted in (None, name) and (source is None or source is sender):
                send(observer, selector, made)


class NSUserDefaults(NSObject, framework="Foundation"):
    @classmethod
    def standardUserDefaults(cls) -> "NSUserDefaults":
        return session.current().only("defaults", cls.alloc)

    def objectForKey_(self, key: str) -> Any:
        return session.current().defaults.get(key)

    def stringForKey_(self, key: str) -> str | None:
        value = session.current().defaults.get(key)
        return None if value is None else str(value)

    def setObject_forKey_(self, value: Any, key: str) -> None:
        session.current().defaults[key] = value


class NSBundle(NSObject, framework="Foundation"):
    @classmethod
    def mainBundle(cls) -> "NSBundle":
        return session.current().only("bundle", cls.alloc)

    def bundleIdentifier(self) -> str | None:
        return session.current().bundle

    def bundlePath(self) -> str:
        now = session.current()
        return str(now.home / ("Applications/mpsbar.app" if now.bundle else "bin"))

    def infoDictionary(self) -> dict[str, Any]:
        return dict(session.current().info)


class NSProcessInfo(NSObject, framework="Foundation"):
    @classmethod
    def processInfo(cls) -> "NSProcessInfo":
        return session.current().only("process", cls.alloc)

    def isLowPowerModeEnabled(self) -> bool:
        return session.current().low_power

    def beginActivityWithOptions_reason_(self, options: int, reason: str) -> NSObject:
        """Ends when it is told to, or when nobody keeps what this returns."""
        now, token = session.current(), NSObject.alloc().init()
        now.activities.append(options)
        weakref.finalize(token, now.activities.remove, options)
        return token


class NSThread(NSObject, framework="Foundation"):
    @classmethod
    def isMainThread(cls) -> bool:
        return threading.get_ident() == session.current().main


class NSAutoreleasePool(NSObject, framework="Foundation"):
    """Reference counting is Python's here."""
