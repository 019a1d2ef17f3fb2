"""What pyproject.toml cannot say: resources/ inside the wheel, and mpsbar.app (build_app.sh)."""

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
RESOURCES = sorted(p.relative_to(ROOT) for p in (ROOT / "resources").rglob("[!.]*") if p.is_file())
LANGUAGES = sorted(path.name for path in (ROOT / "resources/locale").iterdir() if path.is_dir())
# Where the package lies in the app: resources/ goes into it, as in a wheel.
APP_PACKAGE = Path(f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/mpsbar")
VERSION = runpy.run_path(str(ROOT / "mpsbar/agent/__init__.py"))["__version__"]
IDENTIFIER = "io.github.mpsbar"

PLIST = {
    "CFBundleDevelopmentRegion": "en",
    # For these macOS words its own dialogs and menus, and offers a choice in System Settings.
    "CFBundleLocalizations": ["en", *LANGUAGES],
    "CFBundleName": "mpsbar",
    "CFBundleDisplayName": "mpsbar",
    "CFBundleIdentifier": IDENTIFIER,
    "CFBundleShortVersionString": VERSION,
    "CFBundleVersion": VERSION,
    "LSApplicationCategoryType": "public.app-category.developer-tools",
    "LSMinimumSystemVersion": "13.0",
    "LSUIElement": True,  # a menu bar app: no icon in the Dock
    "NSAppleEventsUsageDescription": "mpsbar shows alerts through Script Editor when macOS does "
    "not allow its own notifications.",
    **dict.fromkeys(
        (
            "NSDesktopFolderUsageDescription",
            "NSDocumentsFolderUsageDescription",
            "NSDownloadsFolderUsageDescription",
        ),
        "mpsbar checks PyTorch in the Python environments that you keep in this folder.",
    ),
    "NSHighResolutionCapable": True,
    "NSHumanReadableCopyright": "MIT License",
    "NSAppSleepDisabled": True,  # bar and alerts are updated while no window is open
    "NSSupportsAutomaticTermination": False,
    "NSSupportsSuddenTermination": False,
}
OPTIONS = {
    "argv_emulation": False,  # it needs Carbon, which is gone
    "no_chdir": True,  # the command line takes relative paths
    "iconfile": "resources/mpsbar.icns",
    # Real files: another Python runs the probe and the agent, and `enable` copies the latter.
    # textual loads parts of itself by name.
    "packages": ["mpsbar", *(["textual"] if find_spec("textual") else [])],
    # Imported by name or only when needed, so that py2app does not find them.
    "includes": ["rumps", "platformdirs.macos"],
    # Without _tkinter: naming it makes py2app look for Tk.
    "excludes": [
        "torch", "numpy", "mlx", "tkinter", "test", "tests", "pytest", "_pytest", "pip",
        "setuptools", "pkg_resources", "wheel", "ensurepip", "softmps", "IPython", "httpx",
    ],
    "plist": PLIST,
}  # fmt: skip
TOOL = ("bin", ["packaging/app/bin/mpsbar"])
# What macOS shows when it asks for a permission, in each language.
INFO_TEXTS = [
    (f"{name}.lproj", [f"packaging/app/{name}.lproj/InfoPlist.strings"]) for name in LANGUAGES
]
# For man and for the shells, below the prefix of an installation; in the app beside its bin folder.
SHELL = [
    ("share/man/man1", ["packaging/shell/mpsbar.1"]),
    ("share/bash-completion/completions", ["packaging/shell/mpsbar.bash"]),
    ("share/zsh/site-functions", ["packaging/shell/_mpsbar"]),
    ("share/fish/vendor_completions.d", ["packaging/shell/mpsbar.fish"]),
]


class BuildWithResources(build_py):
    """Puts resources/ into the package of a wheel; system/paths finds it there.

    An editable install has the checkout, whose resources/ is found beside the package, as it is
    when mpsbar runs from there without an install: a mapping in package_dir would not reach that.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for file in RESOURCES:
            target = Path(self.build_lib, "mpsbar", file)
            self.mkpath(str(target.parent))
            self.copy_file(str(ROOT / file), str(target))


class AppDistribution(Distribution):
    """Takes name and version from pyproject.toml, without what py2app cannot handle.

    py2app refuses a project with dependencies: it finds what is imported. And packages to build
    would be found in the build folder: the app would have mpsbar twice and use the zipped one.
    """

    def parse_config_files(self, *arguments: object, **named: object) -> None:
        super().parse_config_files(*arguments, **named)  # type: ignore[arg-type]
        self.install_requires, self.packages, self.py_modules = [], [], []


if "py2app" in sys.argv:
    setup(
        app=["packaging/app/start_app.py"],
        data_files=[
            TOOL,
            *INFO_TEXTS,
            *SHELL,
            *((str(APP_PACKAGE / f.parent), [str(f)]) for f in RESOURCES),
        ],
        options={"py2app": OPTIONS},
        distclass=AppDistribution,
    )
else:
    setup(cmdclass={"build_py": BuildWithResources}, data_files=SHELL)
