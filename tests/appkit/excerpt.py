"""Makes api.json, the part of Apple's API that the double is held to, from the whole index.

python tests/appkit/excerpt.py path/to/apple-api-index.json
"""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

# The classes the double has, or whose messages its users may send; their superclasses come along.
CLASSES = """
NSAlert NSAppearance NSApplication NSArray NSAttributedString NSAutoreleasePool NSBundle NSColor NSDate
NSDictionary NSError NSEvent NSFont NSImage NSImageRep NSMenu NSMenuItem NSMenuItemBadge NSMutableArray
NSMutableAttributedString NSMutableDictionary NSMutableParagraphStyle NSNotification
NSNotificationCenter NSObject NSOpenPanel NSPasteboard
NSProcessInfo NSRunLoop NSScreen NSSecureTextField NSSlider NSStatusBar NSStatusBarButton NSStatusItem
NSString NSTextField NSTextTab NSThread NSTimer NSURL NSUserDefaults NSUserNotification
NSUserNotificationCenter NSWindow NSWorkspace NSWorkspaceOpenConfiguration SMAppService UNNotification
UNMutableNotificationContent UNNotificationContent
UNNotificationRequest UNNotificationSettings UNNotificationSound UNUserNotificationCenter
""".split()  # noqa: SIM905 - easier to read and to change
# Many classes repeat the accessibility protocol whole; the excerpt has it once.
SHARED = "NSAccessibility"
SHARED_FROM = "NSMenu"
WIDTH = 100


def build_excerpt(index: dict[str, Any]) -> dict[str, Any]:
    classes = index["classes"]
    shared = {
        name: row for name, row in classes[SHARED_FROM]["methods"].items() if "ccessibility" in name
    }
    kept = sorted(_with_supers(CLASSES, classes))
    enums = [f"{name}={value}" for name, value in index["enums"].items() if _is_ours(name)]
    names = [name for name in index["externs"] + index["functions"] if _is_ours(name)]
    return {
        "about": index["about"]
        + " Made by tests/appkit/excerpt.py. A method: types|since|deprecated.",
        "protocols": {SHARED: _methods(shared)},
        "classes": {name: _class(classes[name], shared) for name in kept},
        "other_classes": _wrap(sorted(set(classes) - set(kept))),
        "enums": _wrap(sorted(enums)),
        "names": _wrap(sorted(set(names))),
    }


def _is_ours(name: str) -> bool:
    return not name.startswith(
        ("CF", "kCF", "_")
    )  # CoreFoundation's C interface: nobody here uses it


def _with_supers(wanted: list[str], classes: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for start in wanted:
        name: str | None = start
        while name is not None:
            found.add(name)
            name = classes[name]["super"]
    return found


def _class(row: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    methods = row["methods"]
    conforms = all(name in methods for name in shared)
    own = {k: v for k, v in methods.items() if not (conforms and k in shared)}
    return {
        "super": row["super"],
        "also": [SHARED] if conforms else [],
        "methods": _methods(own),
    }


def _methods(methods: dict[str, Any]) -> dict[str, str]:
    return {
        name: f"{' '.join(types)}|{since or ''}|{until or ''}"
        for name, (types, since, until) in sorted(methods.items())
        if not _is_ghost(name, methods)
    }


def _is_ghost(name: str, methods: dict[str, Any]) -> bool:
    """The index lists a property under its own name too; its getter `isHidden` is the message."""
    return f"{name[0]}is{name[1].upper()}{name[2:]}" in methods


def _wrap(names: list[str]) -> list[str]:
    return textwrap.wrap(" ".join(names), WIDTH, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    index = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = json.dumps(build_excerpt(index), indent=1, ensure_ascii=False)
    Path(__file__).with_name("api.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
