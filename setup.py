"""mpsbar.app: `python setup.py py2app`, as packaging/build_app.sh calls it.

All else is in pyproject.toml.
"""

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from setuptools import Distribution, setup

ROOT = Path(__file__).parent
VERSION = runpy.run_path(str(ROOT / "mpsbar/agent/__init__.py"))["__version__"]
IDENTIFIER = "io.github.mpsbar"
FRONT_ENDS = ("textual", "prometheus_client")

PLIST = {
    "CFBundleName": "mpsbar",
    "CFBundleDisplayName": "mpsbar",
    "CFBundleIdentifier": IDENTIFIER,
    "CFBundleShortVersionString": VERSION,
    "CFBundleVersion": VERSION,
    "LSApplicationCategoryType": "public.app-category.developer-tools",
    "LSMinimumSystemVersion": "13.0",
    "LSUIElement": True,  # a menu bar app: no icon in the Dock
    "NSAppleEventsUsageDescription": "Alerts are shown by way of Script Editor where macOS does "
    "not let mpsbar notify.",
    "NSHighResolutionCapable": True,
    "NSHumanReadableCopyright": "MIT licence",
    "NSAppSleepDisabled": True,  # the bar and the alerts must follow while nobody looks
    "NSSupportsAutomaticTermination": False,
    "NSSupportsSuddenTermination": False,
}
OPTIONS = {
    "argv_emulation": False,  # it needs Carbon, which is gone
    "no_chdir": True,  # the command line takes relative paths
    "iconfile": "mpsbar/resources/mpsbar.icns",
    # Real files: another Python runs the probe and the agent, and `enable` copies the latter.
    # The front ends' libraries load parts of themselves by name.
    "packages": ["mpsbar", *(name for name in FRONT_ENDS if find_spec(name))],
    # Imported by name, or only when needed: what reads the sources does not see them.
    "includes": ["rumps", "platformdirs.macos"],
    # Without _tkinter: naming it makes py2app look for Tk.
    "excludes": [
        "torch", "numpy", "mlx", "tkinter", "test", "tests", "pytest", "_pytest", "pip",
        "setuptools", "pkg_resources", "wheel", "ensurepip", "softmps", "IPython", "psutil",
        "httpx",
    ],
    "plist": PLIST,
}  # fmt: skip
TOOL = ("bin", ["packaging/app/bin/mpsbar"])


class AppDistribution(Distribution):
    """Name and version come from pyproject.toml; what py2app trips over is taken out again.

    It refuses a project with dependencies, for it takes what is imported. And packages to build
    would be found in the build folder: the app then has mpsbar twice, and finds the zipped one.
    """

    def parse_config_files(self, *arguments: object, **named: object) -> None:
        super().parse_config_files(*arguments, **named)  # type: ignore[arg-type]
        self.install_requires, self.packages, self.py_modules = [], [], []


if "py2app" in sys.argv:
    setup(
        app=["packaging/app/start_app.py"],
        data_files=[TOOL],
        options={"py2app": OPTIONS},
        distclass=AppDistribution,
    )
else:
    setup()
