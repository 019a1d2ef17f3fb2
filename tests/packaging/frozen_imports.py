"""Imports every module of a built bundle, with nothing on the path but the bundle and the double.

python -I -S frozen_imports.py BUNDLE TESTS: what failed, and why, is one line of JSON.
"""

import sys

sys.dont_write_bytecode = True
BUNDLE, TESTS = sys.argv[1:]
RESOURCES = f"{BUNDLE}/Contents/Resources"
LIB = f"{RESOURCES}/lib/python{sys.version_info[0]}.{sys.version_info[1]}"
ZIP = f"{RESOURCES}/lib/python{sys.version_info[0]}{sys.version_info[1]}.zip"
sys.path[:] = [ZIP, LIB, f"{LIB}/lib-dynload", TESTS]

import contextlib  # noqa: E402
import importlib  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
from pathlib import Path  # noqa: E402

import appkit  # noqa: E402

# Scripts for a Python with torch; the one that steps aside for the user's; the `mpsbar` of an
# enabled environment.
SCRIPTS = ("mpsbar.cli.demo_workers.", "mpsbar.agent.site.", "mpsbar.agent.enabled_mpsbar")
# `mpsbar compare` hands this folder to a Python with torch; the app itself uses these two of it.
COMPARE, WITHOUT_TORCH = "mpsbar.dtypes.compare.", ("text", "html")
imported, failed = [], {}
with appkit.installed(bundle="io.github.mpsbar"):
    for path in sorted(Path(LIB, "mpsbar").rglob("*.py")):
        name = ".".join(path.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")
        if name.startswith(SCRIPTS):
            continue
        if name.startswith(COMPARE) and name.removeprefix(COMPARE) not in WITHOUT_TORCH:
            continue
        try:
            importlib.import_module(name)
            imported.append(name)
        except BaseException as error:
            failed[name] = f"{type(error).__name__}: {error}"
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        importlib.import_module("mpsbar.cli.main").run(["status"])
    budget = importlib.import_module("mpsbar.system.macos.gpu").read_budget()
ours = [m for n, m in sys.modules.items() if n.partition(".")[0] == "mpsbar"]
elsewhere = [m.__name__ for m in ours if not str(m.__file__).startswith(f"{LIB}/")]
compiled = sys.modules["psutil"]._psplatform.cext.__file__
seen = {
    "imported": imported, "failed": failed, "elsewhere": elsewhere, "status": output.getvalue(),
    "psutil": compiled, "budget": budget,
}  # fmt: skip
print(json.dumps(seen), flush=True)
