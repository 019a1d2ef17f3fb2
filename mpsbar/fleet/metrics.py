"""Builds metrics for Prometheus from a snapshot: stable names, base units, few labels.

Unknown values are left out, never 0. A process has series only while it exists; no label has a
command line, a path or a user.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from mpsbar.agent.frameworks import ALLOCATORS, FRAMEWORKS, join_labels
from mpsbar.core.actions import Freed, FreeState
from mpsbar.core.alerts import CAUSES, SINGLE_EVENTS
from mpsbar.core.counters import COUNTERS
from mpsbar.core.dtype_results import Probe
from mpsbar.core.events import ALERT_CAUSES, Alert, EndedProcess
from mpsbar.core.machine import PRESSURE_LEVELS, Machine
from mpsbar.core.naming import printable
from mpsbar.core.snapshot import IN_USE, Snapshot, Worker
from mpsbar.core.verdicts import EndCode

Labels = tuple[str, ...]

# An agent names its devices itself; any other name would make a series of its own.
_FRAMEWORKS = {framework.name for framework in FRAMEWORKS}
_DEVICES = {allocator.name for allocator in ALLOCATORS}
_WORKER_STATES = ("live", "busy")
_LEVELS = {"ok": 0, "warning": 1, "critical": 2}
_LONGEST_LABEL = 100
# The words come from our own code; the cap keeps a mistake there from filling Prometheus.
_MAX_WORDS = 50
_DTYPE = re.compile(r"[a-z][a-z0-9_]{0,29}")

_WORKER = ("pid", "name", "device", "framework")
_PROCESS = ("pid", "name", "framework")


class Totals:
    """Counts frees, alerts and ends since the exporter started. One thread at a time may add.

    Known words start at 0, because `rate()` misses the first event of a series that begins with it.
    """

    def __init__(self) -> None:
        states = [state for state in get_args(FreeState) if state not in ("waiting", "cancelled")]
        self.frees = Counter(dict.fromkeys(states, 0))
        self.alerts = Counter(dict.fromkeys(ALERT_CAUSES, 0))
        self.ends = Counter(dict.fromkeys(get_args(EndCode), 0))
        self.freed_bytes = 0
        self._last = 0  # the number of the last event that was counted

    def skip(self, snapshot: Snapshot) -> None:
        """Marks this snapshot's events as counted."""
        self._last = max((event.number for event in snapshot.events), default=self._last)

    def add(self, snapshot: Snapshot) -> None:
        for event in snapshot.events_after(self._last):
            self._last = event.number
            if isinstance(event.what, Freed):
                _count(self.frees, event.what.state)
                self.freed_bytes += max(0, event.what.freed or 0)
            elif isinstance(event.what, EndedProcess):
                _count(self.ends, event.what.how)
            elif isinstance(event.what, Alert) and event.what.kind != "recovered":
                code = event.what.code
                _count(self.alerts, (CAUSES | SINGLE_EVENTS).get(code, code))


def _count(counts: Counter[str], word: str) -> None:
    word = printable(word, 40)
    counts[word if word in counts or len(counts) < _MAX_WORDS else "other"] += 1


def build_metrics(snapshot: Snapshot, totals: Totals) -> Iterator[Metric]:
    """Yields all metrics of this computer, but not those of the exporter itself."""
    yield from _machine(snapshot.machine)
    yield from _workers(snapshot)
    yield from _processes(snapshot)
    yield from _health(snapshot)
    if snapshot.dtypes is not None:
        yield from _dtypes(snapshot.dtypes)
    yield from _totals(totals)


def gauge(
    name: str,
    meaning: str,
    labels: Labels = (),
    samples: Iterable[tuple[Labels, float | None]] = (),
) -> Metric:
    """Builds a gauge with each set of labels once: Prometheus refuses a page that repeats one."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    seen = set()
    for values, number in samples:
        cleaned = tuple(clean_label(value) for value in values)
        if number is not None and cleaned not in seen:
            seen.add(cleaned)
            family.add_metric(cleaned, number)
    return family


def clean_label(text: str) -> str:
    """Returns a short line of valid UTF-8: one invalid character makes a whole page unreadable."""
    return printable(text, _LONGEST_LABEL)


def _machine(machine: Machine) -> Iterator[Metric]:
    words = {"os": machine.os, "model": machine.model, "chip": machine.chip}
    words["gpu"] = machine.gpu.name
    labels = {key: clean_label(word) for key, word in words.items() if word is not None}
    yield InfoMetricFamily("mpsbar_machine", "This computer.", value=labels)
    gpu = machine.gpu
    used = None if gpu.utilization is None else gpu.utilization / 100
    pressure = PRESSURE_LEVELS.get(machine.pressure or "")
    on_battery = None if machine.on_battery is None else int(machine.on_battery)
    for name, meaning, number in (
        ("machine_memory_bytes", "Memory of this computer.", machine.memory_total),
        ("machine_memory_available_bytes", "Memory not in use.", machine.memory_available),
        ("machine_swap_used_bytes", "Swap in use.", machine.swap_used),
        ("machine_memory_pressure", "0 normal, 1 warning, 2 critical.", pressure),
        ("machine_on_battery", "1 while it runs on its battery.", on_battery),
        ("gpu_utilization_ratio", "How busy the GPU is, 0 to 1.", used),
        ("gpu_memory_in_use_bytes", "GPU memory of all processes.", gpu.memory_in_use),
        ("gpu_memory_budget_bytes", "Metal's recommended working set.", gpu.memory_budget),
    ):
        if number is not None:
            yield gauge(f"mpsbar_{name}", meaning, (), [((), number)])
    if gpu.recoveries is not None:
        meaning = "How often the GPU was reset since the computer started, most likely."
        yield CounterMetricFamily("mpsbar_gpu_resets", meaning, value=gpu.recoveries)


def _workers(snapshot: Snapshot) -> Iterator[Metric]:
    present = [worker for worker in snapshot.workers if worker.state in _WORKER_STATES]
    yield gauge(
        "mpsbar_workers",
        "Connected processes: live answers, busy does not.",
        ("state",),
        [((state,), sum(worker.state == state for worker in present)) for state in _WORKER_STATES],
    )
    yield gauge(
        "mpsbar_worker_answering",
        "1 if the worker answered the last time; if not, what it holds is left out.",
        ("pid", "name"),
        [((str(worker.pid), worker.name), int(worker.state == "live")) for worker in present],
    )
    # A worker that does not answer still has its old counters; its present ones are unknown.
    live = [(worker, _name_backends(worker)) for worker in present if worker.state == "live"]
    for counter in COUNTERS:
        yield gauge(
            f"mpsbar_worker_{counter.name}_bytes",
            f"Memory of one worker's allocator: {counter.meaning}.",
            _WORKER,
            [
                ((str(worker.pid), worker.name, *names), counter.read(backend))
                for worker, named in live
                for names, backend in zip(named, worker.backends, strict=True)
                if backend.state == IN_USE
            ],
        )
    yield from _progress(present)


def _progress(workers: Iterable[Worker]) -> Iterator[Metric]:
    """Yields how far runs are; a worker that does not answer has only an old value, so none."""
    runs = [(w, w.progress) for w in workers if w.state == "live" and w.progress is not None]
    for name, field, meaning in (
        ("progress_ratio", "fraction", "How far the run is, 0 to 1."),
        ("left_seconds", "seconds_left", "How long the run still takes."),
        ("steps", "steps", "Steps of its optimizer so far."),
        ("steps_per_second", "steps_per_second", "Steps of its optimizer a second."),
    ):
        samples = [((str(worker.pid), worker.name), getattr(run, field)) for worker, run in runs]
        yield gauge(f"mpsbar_worker_{name}", meaning, ("pid", "name"), samples)


def _name_backends(worker: Worker) -> list[Labels]:
    return [
        (
            backend.name if backend.name in _DEVICES else "other",
            backend.framework if backend.framework in _FRAMEWORKS else "other",
        )
        for backend in worker.backends
    ]


def _processes(snapshot: Snapshot) -> Iterator[Metric]:
    """Yields what is known of processes from the outside; nothing if they couldn't be listed."""
    names = snapshot.names
    processes = [
        (
            (
                str(process.pid),
                names[process.pid],
                process.frameworks[0] if process.frameworks else "other",
            ),
            process,
        )
        for process in snapshot.processes or ()
    ]
    connected = {worker.pid for worker in snapshot.workers}
    if snapshot.processes is not None:
        yield gauge(
            "mpsbar_processes",
            f"Processes with {join_labels('or')} loaded.",
            ("connected",),
            [
                (
                    (word,),
                    sum((process.pid in connected) is is_connected for _, process in processes),
                )
                for word, is_connected in (("yes", True), ("no", False))
            ],
        )
    yield gauge(
        "mpsbar_process_footprint_bytes",
        "What the system charges a process: footprint on macOS, resident memory on Linux.",
        _PROCESS,
        [(labels, process.footprint) for labels, process in processes],
    )
    yield gauge(
        "mpsbar_process_gpu_ratio",
        "A process's share of the GPU, 0 to 1.",
        _PROCESS,
        [
            (labels, None if process.gpu_percent is None else process.gpu_percent / 100)
            for labels, process in processes
        ],
    )
    yield gauge(
        "mpsbar_process_start_time_seconds",
        "When a process started, in seconds since the epoch.",
        _PROCESS,
        [(labels, process.started) for labels, process in processes],
    )


def _health(snapshot: Snapshot) -> Iterator[Metric]:
    reasons = [reason for reason in snapshot.health.reasons if reason.level != "ok"]
    if not any(reason.code == "not_judged" for reason in snapshot.health.reasons):
        level = _LEVELS[snapshot.health.level]
        meaning = "The worst finding: 0 ok, 1 warning, 2 critical."
        yield gauge("mpsbar_health_level", meaning, (), [((), level)])
    names = snapshot.names
    yield gauge(
        "mpsbar_finding",
        "A cause for concern, with its level as in mpsbar_health_level; pid is empty if it is "
        "about the whole computer.",
        ("code", "pid", "name"),
        [
            (
                (reason.code, str(reason.pid or ""), names.get(reason.pid or 0, "")),
                _LEVELS[reason.level],
            )
            for reason in reasons
        ],
    )
    readers = [problem.reader for problem in snapshot.problems]
    yield gauge(
        "mpsbar_read_problems",
        "What could not be read at the last tick, by reader.",
        ("reader",),
        [((reader,), readers.count(reader)) for reader in dict.fromkeys(readers)],
    )


def _dtypes(probe: Probe) -> Iterator[Metric]:
    device = probe.device if probe.device in _DEVICES else "other"
    cells = [(cell.dtype, cell.state) for cell in probe.cells if _DTYPE.fullmatch(cell.dtype)]
    checks = [check.state for check in probe.checks]
    yield gauge(
        "mpsbar_dtype_operations",
        "Operations of the last dtype probe, by what they did.",
        ("device", "dtype", "state"),
        [((device, *key), cells.count(key)) for key in dict.fromkeys(cells)],
    )
    yield gauge(
        "mpsbar_dtype_checks",
        "Checks for known silent bugs of the last dtype probe, by what they found.",
        ("device", "state"),
        [((device, state), checks.count(state)) for state in dict.fromkeys(checks)],
    )
    yield gauge(
        "mpsbar_dtype_probe_timestamp_seconds",
        "When the last dtype probe ran, in seconds since the epoch.",
        ("device",),
        [((device,), probe.time)],
    )


def _totals(totals: Totals) -> Iterator[Metric]:
    for name, meaning, label, counts in (
        ("mpsbar_frees", "Requests to free a cache, by outcome.", "state", totals.frees),
        ("mpsbar_alerts", "Alerts that were raised or became worse.", "cause", totals.alerts),
        ("mpsbar_worker_ends", "Connected processes that ended.", "how", totals.ends),
    ):
        family = CounterMetricFamily(name, meaning, labels=(label,))
        for word, count in list(counts.items()):
            family.add_metric((word,), count)
        yield family
    yield CounterMetricFamily("mpsbar_freed_bytes", "Memory freed.", value=totals.freed_bytes)
