"""What an NSMenu tells: it is about to be shown, it is shown, it is closed."""

from collections.abc import Callable
from typing import Any

from Foundation import NSObject


class MpsbarMenuDelegate(NSObject):  # type: ignore[misc]
    def menuNeedsUpdate_(self, _menu: Any) -> None:  # noqa: N802 - Objective-C's name
        self.on_update()

    def menuWillOpen_(self, _menu: Any) -> None:  # noqa: N802
        self.on_open()

    def menuDidClose_(self, _menu: Any) -> None:  # noqa: N802
        self.on_close()


def listen(
    menu: Any,
    on_update: Callable[[], None],
    on_open: Callable[[], None],
    on_close: Callable[[], None],
) -> Any:
    """The delegate; NSMenu does not keep it alive, so the caller must."""
    delegate = MpsbarMenuDelegate.alloc().init()
    delegate.on_update, delegate.on_open, delegate.on_close = on_update, on_open, on_close
    menu.setDelegate_(delegate)
    return delegate
