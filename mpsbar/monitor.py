"""The one junction: tick() builds the next Snapshot, perform() carries a click to a worker."""

import queue
import time
from concurrent.futures import ThreadPoolExecutor

from mpsbar.client.free import free_worker
from mpsbar.client.workers import Workers
from mpsbar.model.action import Free, Freed
from mpsbar.model.snapshot import Snapshot

# Enough for a click on each of a few workers; Free All queues behind itself.
_ACTIONS_AT_ONCE = 4


class Monitor:
    """`tick` from one thread only; `latest` and `perform` from any."""

    def __init__(self) -> None:
        self.latest = Snapshot(time=time.time())
        self.outcomes: queue.SimpleQueue[Freed] = queue.SimpleQueue()
        self._workers = Workers()
        self._pool = ThreadPoolExecutor(_ACTIONS_AT_ONCE, thread_name_prefix="mpsbar-action")

    def tick(self) -> Snapshot:
        self.latest = Snapshot(time=time.time(), workers=self._workers.poll())
        return self.latest

    def perform(self, action: Free) -> None:
        """Returns at once; how it ended comes out of `outcomes`."""
        self._pool.submit(self._perform, action)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._workers.close()

    def _perform(self, action: Free) -> None:
        self.outcomes.put(free_worker(action.pid))
