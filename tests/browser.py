"""A real Chromium, spoken to through its DevTools pipe: pages opened, looked at, pressed, printed."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
    "--force-color-profile=srgb", "--hide-scrollbars", "about:blank",
)  # fmt: skip


def find_chromium():
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@contextmanager
def open_browser():
    """Ended with its whole folder, whatever happened."""
    folder = tempfile.mkdtemp(prefix="mpsbar-browser-")
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()

    # Chromium reads 3 and writes 4.
    place = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
    command = ["bash", "-c", place, find_chromium(), f"--user-data-dir={folder}", *_FLAGS]
    process = subprocess.Popen(
        command, pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(from_us, to_us)
    finally:
        os.close(from_us)
        os.close(to_us)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


class Browser:
    def __init__(self, to, back):
        self._to, self._back, self._rest, self._number = to, back, b"", 0
        self.events = []
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Page.setLifecycleEventsEnabled", enabled=True)

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """A file of this computer, until it has loaded."""
        self.events.clear()
        loader = self.send("Page.navigate", url=Path(path).absolute().as_uri())["loaderId"]
        while not any(_is_load(event, loader) for event in self.events):
            self.events.append(self._read())

    def set_viewport(self, width, height=900, scheme="light", scale=1):
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, mobile=False,
            deviceScaleFactor=scale,
        )  # fmt: skip
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def run(self, code):
        """What a script in the page gives; a promise is waited for."""
        answer = self.send(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, first=0, most=1_000_000):
        """A PNG of the whole page, or of some of its lines."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        height = min(size["height"] - first, most)
        clip = {"x": 0, "y": first, "width": size["width"], "height": height, "scale": 1}
        answer = self.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(answer["data"])

    def print(self):
        """A PDF on A4."""
        answer = self.send(
            "Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69
        )
        return base64.b64decode(answer["data"])

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def complaints(self):
        """What the browser itself found wrong: blocked by the policy, a script that failed."""
        return [
            event["params"] for event in self.events
            if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")
        ]  # fmt: skip

    def requests(self):
        sent = (
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        )
        return [url for url in sent if not url.startswith("file:")]

    def _read(self):
        while b"\0" not in self._rest:
            chunk = os.read(self._back, 1 << 16)
            assert chunk, "the browser has ended"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)


def _is_load(event, loader):
    """Whether this document has loaded; the one before it may tell so late."""
    what = event.get("params", {})
    is_ours = event.get("method") == "Page.lifecycleEvent" and what["loaderId"] == loader
    return is_ours and what["name"] == "load"
