"""When the app looks for Pythons: not before the menu opens, as macOS may ask for permission then."""

from samples import make_snapshot
from ui.menubar_kit import play

from mpsbar.core.settings import LoadedSettings, Settings


def test_a_start_looks_at_no_environment_and_the_first_menu_does(mac, monkeypatch):
    looks = []

    def find(*_):
        looks.append(1)
        return ["/v/bin/python"]

    monkeypatch.setattr("mpsbar.doctor.pythons.find_usable", find)
    monkeypatch.setattr("mpsbar.workers.environments.read_enabled", list)

    def person(user):
        controller = user.app._controller
        mac.wait_for(lambda: controller.ui_state.enabled is not None)
        assert looks == []
        with user.open() as menu:
            assert "(Welcome to mpsbar)" in menu.lines()
            mac.wait_for(lambda: controller.ui_state.pythons is not None)
            assert "Connect a Python (1 Found)  ▸" in menu.lines()
        with user.open():
            mac.wait(0)
        assert looks == [1]

    play(mac, make_snapshot(), person, loaded=LoadedSettings(Settings(), "settings.toml"))
