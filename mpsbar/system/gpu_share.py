"""How much of the GPU's time each process took, from two readings of its clients' counters."""

from mpsbar.system.platform import GpuClient

# Closer together, two readings say nothing: the driver updates its counters in steps.
_SHORTEST = 0.05


class GpuShares:
    """Counters only grow for as long as a client is open: compared by client, summed by process."""

    def __init__(self) -> None:
        self._before: dict[int, GpuClient] = {}
        self._time: float | None = None
        self._shares: dict[int, float] = {}

    def update(self, clients: dict[int, GpuClient] | None, now: float) -> dict[int, float]:
        """Percent by pid; a process is missing while its share is not known."""
        if clients is None:
            self._before, self._time, self._shares = {}, None, {}
        elif self._time is None or now - self._time >= _SHORTEST:
            self._shares = self._compare(clients, now)
            self._before, self._time = clients, now
        return self._shares

    def _compare(self, clients: dict[int, GpuClient], now: float) -> dict[int, float]:
        if self._time is None:
            return {}
        spent: dict[int, int] = {}
        for number, client in clients.items():
            delta = _delta(self._before.get(number), client)
            if delta is not None:
                spent[client.pid] = spent.get(client.pid, 0) + delta
        # Clients run side by side, so their sum can exceed the time that passed.
        return {pid: min(100.0, ns / (now - self._time) / 1e7) for pid, ns in spent.items()}


def _delta(before: GpuClient | None, now: GpuClient) -> int | None:
    """None for a client that is new, tells nothing, or whose counter was started anew."""
    if before is None or before.pid != now.pid:
        return None
    if before.nanoseconds is None or now.nanoseconds is None:
        return None
    return now.nanoseconds - before.nanoseconds if now.nanoseconds >= before.nanoseconds else None
