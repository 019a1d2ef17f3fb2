"""The languages of System Settings, read through the double of CoreFoundation."""

import os
import subprocess
import sys

from system.fakemac import fixtures
from worker_kit import ROOT

from mpsbar.language.macos import read_preferred_languages

library, careless_mac, mac = fixtures.library, fixtures.careless_mac, fixtures.mac


def test_the_languages_are_read_in_order_and_released(mac):
    mac.set_languages(["fr-FR", "ko-KR", "en-KR"])
    assert read_preferred_languages(mac.path) == ["fr-FR", "ko-KR", "en-KR"]
    assert mac.held == (0, 0)


def test_a_name_that_is_too_long_is_left_out(mac):
    mac.set_languages(["x" * 64, "ko-KR", *["de"] * 100])
    assert read_preferred_languages(mac.path) == ["ko-KR", *["de"] * 48]


def test_none_where_macos_says_nothing_or_has_no_such_function(mac):
    assert read_preferred_languages(mac.path) == []
    assert (
        read_preferred_languages("libc.so.6" if sys.platform == "linux" else "/usr/lib/libc.dylib")
        == []
    )
    assert read_preferred_languages("/nowhere") == []


def test_an_app_started_by_the_finder_speaks_the_languages_of_the_system(library, monkeypatch):
    """A whole process as launchd starts it: no locale in its environment."""
    code = f"""
import ctypes, sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from pathlib import Path
from system.fakemac.double import FakeMac
from mpsbar.language import macos
mac = FakeMac(Path({str(library)!r}))
mac.set_languages(["fr-FR", "ko-KR"])
macos.read_preferred_languages.__defaults__ = (mac.path,)
for name in [name for name in sys.modules if name == "mpsbar.language"]:
    del sys.modules[name]
sys.platform = "darwin"
import mpsbar.language
print(mpsbar.language.get_translations().info().get("language"))
"""

    def run(**environment):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run() == ["ko"]
    assert run(LANG="en_US.UTF-8") == ["None"]
    assert run(MPSBAR_LANG="en") == ["None"]
