"""One run of the app on the double: a person's script, and what there was to see."""

from contextlib import contextmanager

from ui.fake_monitor import FakeMonitor

from mpsbar.core.settings import LoadedSettings, Settings

HEAD = ["(Apple M3 Max · 36.0 GB · pressure normal)", "(GPU 43% · 9.8 of 27.0 GB)"]
CLOSED = 0.2
TAIL = [
    "─",
    "(dtypes: not probed yet)",
    "Run dtype Probe",
    "─",
    "Connect an Environment  ▸",
    "Open Report",
    "How to Profile…",
    "Copy Diagnostics",
    "Settings  ▸",
    "About mpsbar",
    "Quit mpsbar  ⌘Q",
]


def full(menu, start):
    """The whole title of the one row that begins so."""
    titles = menu.titles()
    found = [title for title in titles if title.removeprefix("└ ").startswith(start)]
    assert len(found) == 1, (start, titles)
    return found[0]


class Notices:
    """A notifier that a test can read."""

    kind = "test"
    delivery = "unknown"

    def __init__(self):
        self.told = []

    def notify(self, title, text, key):
        self.told.append((title, text, key))


class MenuBarUser:
    def __init__(self, mac, monitor, loaded=None, claim=None):
        from mpsbar.system.single_instance import claim as claim_it
        from mpsbar.ui.menubar.app import MenuBar

        self.mac, self.monitor, self.notices = mac, monitor, Notices()
        self.claim = claim or claim_it()
        loaded = loaded or LoadedSettings(Settings(welcome=False), "settings.toml")
        self.app = MenuBar(monitor, loaded, self.notices, self.claim)

    def run(self, person):
        """The person, and then Quit."""

        def whole():
            self.mac.wait(0)
            person()
            self.mac.click("Quit mpsbar")

        self.mac.run(self.app.run, whole)

    def show(self, seen):
        self.monitor.show(seen)
        self.mac.wait(0)

    def lines(self, *path):
        with self.open(*path) as menu:
            return menu.lines()

    @contextmanager
    def open(self, *path):
        """The menu held open; the path in beginnings of titles."""
        with self.mac.menu() as menu:
            for start in path:
                menu.enter(full(menu, start))
            yield menu

    def click(self, *path):
        with self.open(*path[:-1]) as menu:
            menu.click(full(menu, path[-1]))
        self.mac.wait(CLOSED)  # a dialog opens once the menu has closed

    def end(self, number, outcome):
        """One of the things asked ends, as on another thread."""
        self.monitor.asked[number][1].set_result(outcome)
        self.mac.wait(0)


def play(mac, seen, person, **given):
    """Run the app with this snapshot and let `person` use it; no item may move in an open menu."""
    user = MenuBarUser(mac, FakeMonitor(seen), **given)
    user.run(lambda: person(user))
    assert mac.changes_in_open_menus() == []
    return user
