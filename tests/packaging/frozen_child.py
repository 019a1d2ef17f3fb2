"""Runs a built bundle as py2app's stub does, but on the AppKit double, to its first menu and Quit.

python -I -S frozen_child.py BUNDLE TESTS: what it saw is one line of JSON. After the first lines
there is nothing on the path but the bundle and the double.
"""

import os
import sys

BUNDLE, TESTS = sys.argv[1:]
RESOURCES = f"{BUNDLE}/Contents/Resources"
LIB = f"{RESOURCES}/lib/python{sys.version_info[0]}.{sys.version_info[1]}"
ZIP = f"{RESOURCES}/lib/python{sys.version_info[0]}{sys.version_info[1]}.zip"
sys.path[:] = [ZIP, LIB, f"{LIB}/lib-dynload", TESTS]
before = set(sys.modules)
# As Finder starts a downloaded app for the first time: with a process number and in /. The test gives
# it launchd's environment, in which py2app's stub then sets the rest of these.
sys.argv[:] = [f"{RESOURCES}/__boot__.py", "-psn_0_1234567"]
os.chdir("/")
os.environ |= {
    "LC_CTYPE": "en_US.UTF-8",
    "RESOURCEPATH": RESOURCES,
    "ARGVZERO": f"{BUNDLE}/Contents/MacOS/mpsbar",
    "EXECUTABLEPATH": f"{BUNDLE}/Contents/MacOS/mpsbar",
    "PYTHONHOME": RESOURCES,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "MPSBAR_SAVED_PYTHONPATH": "/of/the/user",
}

import builtins  # noqa: E402
import json  # noqa: E402
from pathlib import Path  # noqa: E402

import appkit  # noqa: E402

seen: dict[str, object] = {}


def is_frozen(module: object) -> bool:
    return getattr(getattr(module, "__spec__", None), "origin", None) == "frozen"


def boot() -> None:
    with open(f"{RESOURCES}/__boot__.py") as file:
        source = file.read()
    exec(compile(source, "__boot__.py", "exec"), {"__name__": "__main__"})


def import_mpsbar(name: str, *arguments: object) -> object:
    """When the first of mpsbar is imported: it is told that here is a menu bar."""
    if name == "mpsbar.__main__":
        seen["writes_bytecode"] = not sys.dont_write_bytecode
        builtins.__import__ = plain_import
        from mpsbar.cli import start

        start.why_no_menubar = lambda: None
    return plain_import(name, *arguments)


plain_import = builtins.__import__
builtins.__import__ = import_mpsbar

with appkit.installed(bundle="io.github.mpsbar", home=Path(os.environ["HOME"])) as mac:
    place = Path(os.environ["HOME"], "Applications")  # where the double says that it is
    place.mkdir()
    (place / "mpsbar.app").symlink_to(BUNDLE)

    def person() -> None:
        mac.wait(0)
        with mac.menu() as menu:
            seen["menu"] = menu.lines()
        with mac.menu("Settings") as menu:
            seen["settings"] = menu.lines()
        mac.click("Quit mpsbar")

    mac.run(boot, person)

# Frozen modules are in the interpreter itself.
loaded = {
    name: module.__file__
    for name, module in sys.modules.items()
    if name not in before and getattr(module, "__file__", None) and not is_frozen(module)
}
seen["from_elsewhere"] = sorted(n for n, f in loaded.items() if not f.startswith((BUNDLE, TESTS)))
changed = (
    "PYTHON",
    "LC_CTYPE",
    "RESOURCEPATH",
    "ARGVZERO",
    "EXECUTABLEPATH",
    "SSL_CERT",
    "MPSBAR_SAVED",
)
seen["environ"] = {k: v for k, v in os.environ.items() if k.startswith(changed)}
seen["icon"] = str(sys.modules["mpsbar.system.paths"].resource("icon.png"))
seen["agent"] = sys.modules["mpsbar.agent"].__file__
print(json.dumps(seen), flush=True)
os._exit(0)  # as terminate: does, whatever threads are left
