"""The menu bar app serves metrics by the setting `export`: the real monitor, a real Prometheus."""

import shutil
import socket
import urllib.error

import pytest
from fleet_kit import Prometheus, ask, find_free_port
from ui.menubar_kit import MenuBarUser, Notices
from worker_kit import TIMEOUT

from mpsbar.core.settings import LoadedSettings, Settings
from mpsbar.fleet.service import MetricsService
from mpsbar.monitor import Monitor
from mpsbar.system.settings_file import read_settings

# On a Mac the ticking thread ends with the process; here it may find AppKit gone.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


class ServingUser(MenuBarUser):
    """A person in front of the app as `mpsbar` starts it."""

    def __init__(self, mac, export):
        from mpsbar.system.single_instance import claim
        from mpsbar.ui.menubar.app import MenuBar

        self.mac, self.monitor, self.notices = mac, Monitor(interval=0.2), Notices()
        loaded = LoadedSettings(Settings(interval=0.5, export=export), "settings.toml")
        self.metrics = MetricsService(self.monitor)
        self.app = MenuBar(self.monitor, loaded, self.notices, claim(), self.metrics)

    def wait_served(self, url):
        """Served, and read at least once: until then the answer is 503."""

        def is_served():
            try:
                return ask(url)[0] == 200
            except urllib.error.URLError:
                return False

        self.mac.wait_for(is_served, TIMEOUT)


@pytest.fixture
def start(mac, workers, private):
    made = []

    def make(export):
        made.append(ServingUser(mac, export))
        return made[-1]

    yield make
    for user in made:
        user.metrics.close()
        user.monitor.close()


def test_one_process_shows_the_menu_and_serves_prometheus(start, tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus: apt-get install prometheus")
    address = f"127.0.0.1:{find_free_port()}"
    user = start(address)

    def person():
        user.wait_served(f"http://{address}/metrics")
        assert "✓ Serve Metrics" in user.lines("Settings")
        with Prometheus(tmp_path / "prometheus", [address]) as prometheus:
            assert prometheus.wait_query("up == 1")
            assert prometheus.wait_query("mpsbar_build_info")

    user.run(person)
    assert user.metrics.state.url is None  # Quit has ended it
    with pytest.raises(urllib.error.URLError):
        ask(f"http://{address}/metrics")


def test_a_taken_port_is_said_in_the_menu_and_goes_with_the_setting(mac, start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        user = start(address)
        sentence = f"Metrics Are Not Served: {address} is in use by another program: choose"

        def person():
            mac.wait_for(lambda: user.metrics.state.problem, TIMEOUT)
            mac.wait_for(lambda: any(sentence in line for line in user.lines()), TIMEOUT)
            user.click("Settings", "Serve Metrics")
            mac.wait_for(lambda: not any("Not Served" in line for line in user.lines()), TIMEOUT)
            assert "Serve Metrics" in user.lines("Settings")

        user.run(person)
    assert read_settings().settings.export == "off"


def test_a_click_turns_it_on_where_it_was_before(mac, start):
    address = f"127.0.0.1:{find_free_port()}"
    user = start(address)
    url = f"http://{address}/metrics"

    def person():
        user.wait_served(url)
        user.click("Settings", "Serve Metrics")
        mac.wait_for(lambda: user.metrics.state.url is None, TIMEOUT)
        with pytest.raises(urllib.error.URLError):
            ask(url)
        user.click("Settings", "Serve Metrics")
        user.wait_served(url)

    user.run(person)
    assert read_settings().settings.export == address


def test_without_prometheus_client_the_menu_says_so(mac, start, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mpsbar.fleet.exporter", None)
    user = start("127.0.0.1:9478")

    def person():
        mac.wait_for(lambda: user.metrics.state.problem, TIMEOUT)
        mac.wait_for(
            lambda: any("pip install prometheus-client" in line for line in user.lines()), TIMEOUT
        )

    user.run(person)
