"""One run of the app on the double: a person's script, and what there was to see."""

from contextlib import contextmanager

from mpsbar.model.machine import Gpu, Machine, Process
from mpsbar.model.settings import Loaded, Settings
from mpsbar.model.snapshot import Backend, Snapshot, Worker

GB, MB = 1 << 30, 1 << 20
ALL = frozenset(["hello", "stats", "free", "tensors"])
MACHINE = Machine(
    chip="Apple M3 Max", memory_total=36 * GB, memory_available=12 * GB, swap_used=0,
    pressure="normal", gpu=Gpu("Apple M3 Max", 30, 43.0, int(9.8 * GB), 27 * GB),
)  # fmt: skip


def worker(pid=4711, name="train.py", held=6 * GB, cached=3 * GB, **fields):
    backend = Backend("mps", "torch", "in use", held - cached, held, held)
    process = Process(pid, 100.0, name, ("torch",), footprint=held + GB, python="/v/bin/python")
    given = {"state": "live", "age": 0.0, "backends": (backend,), "process": process} | fields
    return Worker(pid, name, methods=ALL, **given)


def snapshot(*workers, processes=(), **fields):
    known = tuple(worker.process for worker in workers)
    given = {"time": 1000.0} | fields
    return Snapshot(workers=workers, machine=MACHINE, processes=(*known, *processes), **given)


def full(menu, start):
    """The whole title of the one row that begins so."""
    titles = [item._shown() for item in menu.levels[-1]._items if not item.isHidden()]
    found = [title for title in titles if title.removeprefix("└ ").startswith(start)]
    assert len(found) == 1, (start, titles)
    return found[0]


class Notices:
    """A notifier that a test can read."""

    kind = "test"

    def __init__(self):
        self.told = []

    def notify(self, title, text, key):
        self.told.append((title, text, key))


class Scene:
    def __init__(self, mac, feed, loaded=None, claim=None):
        from mpsbar.apps.menubar.app import MenuBar
        from mpsbar.storage.instance import claim as claim_it

        self.mac, self.feed, self.notices = mac, feed, Notices()
        self.claim = claim or claim_it()
        loaded = loaded or Loaded(Settings(), "settings.toml")
        self.app = MenuBar(feed, loaded, self.notices, self.claim)

    def run(self, person):
        """The person, and then Quit."""

        def whole():
            self.mac.wait(0)
            person()
            self.mac.click("Quit mpsbar")

        self.mac.run(self.app.run, whole)

    def show(self, seen):
        self.feed.show(seen)
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

    def end(self, number, outcome):
        """One of the things asked ends, as on another thread."""
        self.feed.asked[number][1].set_result(outcome)
        self.mac.wait(0)
