"""status, top and free on other hosts, over ssh."""

import argparse
import json
import signal
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from mpsbar.cli.output import is_coloured, line_width, print_each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpsbar.core.actions import Freed
    from mpsbar.fleet.hosts import HostReading, Hosts

# Connecting may take ssh 10 s; a reading there, on a busy machine, some more.
_ONCE_SECONDS = 30.0
_FIRST_SECONDS = 3.0


def add_host_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        metavar="HOST",
        action="append",
        help="another computer, over ssh (repeat it for several)",
    )
    parser.add_argument(
        "--ssh", metavar="OPTIONS", default="", help="options for ssh, such as '-p 2222'"
    )


def show_status(options: argparse.Namespace) -> int:
    """Exit code 0: all answered."""
    if options.watch is not None:
        return _watch(options, options.watch)
    from mpsbar.fleet.hosts import Hosts

    with closing(Hosts(options.host, ["status", "--json"], options.ssh)) as hosts:
        readings = [_judge_late(reading) for reading in hosts.wait(_ONCE_SECONDS)]
    print(_render(readings, options))
    return 0 if all(reading.problem is None for reading in readings) else 1


def show_top(options: argparse.Namespace) -> int:
    """The same, again and again in place."""
    options.json, options.wide = False, False
    return _watch(options, options.every or 2.0)


def free(options: argparse.Namespace) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from mpsbar.fleet.hosts import free_on_host

    pids = ["--all"] if options.all else [str(pid) for pid in dict.fromkeys(options.targets)]
    words = ["free", *pids, "--json", "--timeout", f"{options.timeout:g}"]
    hosts = list(dict.fromkeys(options.host))
    seconds = options.timeout + _ONCE_SECONDS
    with ThreadPoolExecutor(len(hosts)) as pool:  # a slow host delays none of the others
        asked = [pool.submit(free_on_host, host, words, options.ssh, seconds) for host in hosts]
    found = {host: answer.result() for host, answer in zip(hosts, asked, strict=True)}
    if options.json:
        print(json.dumps({"schema": 1, "hosts": {h: _freed_json(f) for h, f in found.items()}}))
    else:
        _tell_freed(found)
    done = (
        not isinstance(outcomes, str) and all(outcome.state == "done" for outcome in outcomes)
        for outcomes in found.values()
    )
    return 0 if all(done) else 1


def _freed_json(outcomes: "list[Freed] | str") -> dict[str, Any]:
    from dataclasses import asdict

    if isinstance(outcomes, str):
        return {"problem": outcomes, "freed": []}
    return {"problem": None, "freed": [asdict(outcome) for outcome in outcomes]}


def _tell_freed(found: "dict[str, list[Freed] | str]") -> None:
    from mpsbar.ui.text import outcomes as outcome_text
    from mpsbar.ui.text import wording

    for host, outcomes in found.items():
        if isinstance(outcomes, str):
            print(f"{host}: no answer ({outcomes})")
        elif not outcomes:
            print(f"{host}: {wording.workers_connected(0)}")
        else:
            for outcome in outcomes:
                print(f"{host}: {outcome.pid} {outcome.name}: {outcome_text.freed(outcome)}")


def _watch(options: argparse.Namespace, seconds: float) -> int:
    from mpsbar.fleet.hosts import Hosts

    # A closed terminal or `kill` ends ssh as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    words = ["status", "--json", "--watch", f"{seconds:g}"]
    with closing(Hosts(options.host, words, options.ssh, again=True)) as hosts:
        deadline = time.monotonic() + _FIRST_SECONDS
        while time.monotonic() < deadline and any(map(_is_waiting, hosts.readings)):
            time.sleep(0.05)
        print_each(_render_again(hosts, seconds, options), options.json)
    return 0


def _render_again(hosts: "Hosts", seconds: float, options: argparse.Namespace) -> "Iterator[str]":
    while True:
        yield _render(hosts.readings, options)
        time.sleep(seconds)


def _render(readings: "list[HostReading]", options: argparse.Namespace) -> str:
    if options.json:
        from mpsbar.fleet.text import build_hosts

        return json.dumps(build_hosts(readings))
    from mpsbar.fleet.text import render_hosts
    from mpsbar.ui.text.cells import in_colour, plain

    width = None if options.wide else line_width()
    return render_hosts(readings, in_colour if is_coloured() else plain, width)


def _is_waiting(reading: "HostReading") -> bool:
    return reading.status is None and reading.problem is None


def _judge_late(reading: "HostReading") -> "HostReading":
    if reading.is_done or reading.problem is not None:
        return reading
    from dataclasses import replace

    return replace(reading, problem=f"nothing within {_ONCE_SECONDS:g} seconds")
