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
sys.argv[:] = [f"{RESOURCES}/__boot__.py"]
os.environ |= {
    "RESOURCEPATH": RESOURCES,
    "ARGVZERO": f"{BUNDLE}/Contents/MacOS/mpsbar",
    "EXECUTABLEPATH": f"{BUNDLE}/Contents/MacOS/mpsbar",
    "PYTHONHOME": RESOURCES,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "MPSBAR_KEPT_PYTHONPATH": "/of/the/user",
}

import json  # noqa: E402

import appkit  # noqa: E402

seen: dict[str, object] = {}


def boot() -> None:
    from mpsbar.commands import start

    start.why_no_menubar = lambda: None
    with open(f"{RESOURCES}/__boot__.py") as file:
        source = file.read()
    exec(compile(source, "__boot__.py", "exec"), {"__name__": "__main__"})


with appkit.installed(bundle="io.github.mpsbar") as mac:

    def person() -> None:
        mac.wait(0)
        with mac.menu() as menu:
            seen["menu"] = menu.lines()
        with mac.menu("Settings") as menu:
            seen["settings"] = menu.lines()
        mac.click("Quit mpsbar")

    mac.run(boot, person)

loaded = {n: getattr(m, "__file__", None) for n, m in sys.modules.items() if n not in before}
foreign = (BUNDLE, TESTS)
seen["from_elsewhere"] = sorted(n for n, f in loaded.items() if f and not f.startswith(foreign))
seen["environ"] = {
    k: v for k, v in os.environ.items() if "PYTHON" in k or "PATH" in k or "SSL" in k
}
seen["writes_bytecode"] = not sys.dont_write_bytecode
seen["agent"] = sys.modules["mpsbar.agent"].__file__
print(json.dumps(seen), flush=True)
os._exit(0)  # as terminate: does, whatever threads are left
