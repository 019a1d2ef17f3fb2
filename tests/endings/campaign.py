"""Starts real workers, ends each in its way, and compares what mpsbar says with what may be said."""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil
from worker_kit import TIMEOUT, Workers, wait_for

from endings.end_cases import (
    WAYS,
    Way,
    build_command,
    build_environment,
    build_library,
    make_group,
    why_not,
)
from mpsbar.core.events import EndedProcess
from mpsbar.monitor import Monitor

LIMIT = 64 << 20  # of the cgroup, for a plain Python that takes more


@dataclass
class Started:
    way: Way
    process: subprocess.Popen
    group: Path | None = None

    def wait_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.strip() == b"ready", (self.way.name, line, self.process.stderr.read())

    def go_on(self) -> None:
        """Let it end in its way; a signal from outside comes first."""
        if self.way.signal is not None:
            self.process.send_signal(self.way.signal)
            if self.way.signal in (2, 15):
                with contextlib.suppress(BrokenPipeError):
                    self.process.stdin.close()
        with contextlib.suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()

    def reap(self) -> None:
        if self.way.seen == "replaced":
            return
        self.process.wait(TIMEOUT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        if self.group is not None:
            with contextlib.suppress(OSError):
                self.group.rmdir()


def start(workers: Workers, way: Way, library: Path | None, number: int) -> Started:
    group = (
        make_group(f"mpsbar-endings-{os.getpid()}-{number}", LIMIT)
        if way.needs == "cgroup"
        else None
    )

    def join_group() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    process = subprocess.Popen(
        build_command(way, workers.folder), env=build_environment(workers, library, way),
        cwd=workers.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=join_group if group is not None else None,  # noqa: PLW1509 - no threads here
        start_new_session=True,
    )  # fmt: skip
    return Started(way, process, group)


def judge(way: Way, end: EndedProcess | None, is_seen: bool) -> str | None:
    """What is wrong with what was said; None: nothing."""
    if end is None or end.verdict is None:
        return "no verdict"
    verdict = end.verdict
    wanted, sure = (way.seen, way.sure) if is_seen else (way.unseen, way.sure_unseen)
    if verdict.code != wanted:
        return f"{verdict.code} instead of {wanted} {verdict.values}"
    # A kernel's log that may be read makes a kill for memory known; else it is likely at most.
    allowed = {sure, "likely"} if way.needs == "cgroup" and is_seen else {sure}
    if verdict.sure not in allowed:
        return f"{wanted} is {verdict.sure} instead of {sure}"
    if is_seen or wanted in ("exception", "out_of_memory"):
        for name, value in way.values.items():
            if verdict.values.get(name) != value:
                return f"{name} is {verdict.values.get(name)!r} instead of {value!r}"
    return None


def run_seen(
    monitor: Monitor, workers: Workers, ways: list[Way], library: Path | None
) -> list[tuple[Way, str | None]]:
    """One batch while a monitor watches; returns each way with what is wrong."""
    started = [start(workers, way, library, number) for number, way in enumerate(ways)]
    ends: dict[int, EndedProcess] = {}

    def tick() -> None:
        snapshot = monitor.tick()
        for event in snapshot.events:
            if isinstance(event.what, EndedProcess):
                ends[event.what.pid] = event.what

    try:
        for one in started:
            one.wait_ready()
        pids = {one.process.pid for one in started}

        def are_connected() -> bool:
            tick()
            workers_seen = {
                w.pid for w in monitor.latest.workers if w.process and w.writes_exit_record
            }
            return pids <= workers_seen

        wait_for(are_connected, "the workers in the snapshot")
        for one in started:
            one.go_on()
        for one in started:
            one.reap()

        def are_explained() -> bool:
            tick()
            return pids <= set(ends)

        with contextlib.suppress(AssertionError):
            wait_for(are_explained, "all ends")
        return [(one.way, judge(one.way, ends.get(one.process.pid), True)) for one in started]
    finally:
        for one in started:
            one.close()


def run_unseen(
    workers: Workers,
    ways: list[Way],
    library: Path | None,
    starts: dict[int, float] | None = None,
) -> dict[int, Way]:
    """One batch that nobody watches; returns the ways by pid, and in `starts` when each started."""
    started = [start(workers, way, library, number) for number, way in enumerate(ways)]
    try:
        for one in started:
            one.wait_ready()
            if starts is not None:
                starts[one.process.pid] = psutil.Process(one.process.pid).create_time()
        for one in started:
            one.go_on()
        for one in started:
            one.reap()
        return {one.process.pid: one.way for one in started}
    finally:
        for one in started:
            one.close()


def usable_ways() -> tuple[list[Way], dict[str, str]]:
    """The ways that can be tried here, and why the others cannot."""
    reasons = {way.name: reason for way in WAYS if (reason := why_not(way))}
    return [way for way in WAYS if way.name not in reasons], reasons


def find_library(workers: Workers) -> Path | None:
    return build_library(workers.folder)
