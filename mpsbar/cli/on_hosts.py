"""Runs status, top, free, why and report on other hosts, over ssh."""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from mpsbar.cli.output import (
    is_coloured,
    line_width,
    print_each,
    print_stderr,
    treat_signals_as_ctrl_c,
)
from mpsbar.core.errors import UserError
from mpsbar.language import _, ngettext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpsbar.core.actions import Freed
    from mpsbar.core.host_readings import EndInWords, HostProblem, HostReading
    from mpsbar.fleet.hosts import Hosts
    from mpsbar.fleet.questions import Questions

_T = TypeVar("_T")
# Connecting may take ssh 10 s; a reading there, on a busy machine, some more.
_ONCE_SECONDS = 30.0
# After this time the other hosts are shown without those that have not answered.
_FIRST_SECONDS = 3.0
# A notice on the screen must leave room for the rest.
_MAX_NOTICE_LINES = 8


def add_host_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        metavar="HOST",
        action="append",
        help=_("another computer, over ssh, or a group in the settings (repeat it for several)"),
    )
    parser.add_argument("--hosts", action="store_true", help=_("every host in the hosts setting"))
    parser.add_argument(
        "--ssh", metavar="OPTIONS", default="", help=_("options for ssh, such as '-p 2222'")
    )


def find_hosts(options: argparse.Namespace) -> list[str]:
    """Returns the hosts that the options name, each once; none means this computer."""
    if not options.host and not options.hosts:
        return []
    from mpsbar.system.settings_file import read_settings

    settings = read_settings().settings
    if options.hosts and not settings.hosts:
        raise UserError(_('no hosts are set: write hosts = ["mac1", "mac2"] (mpsbar config edit)'))
    named = [member for name in options.host or () for member in settings.groups.get(name, (name,))]
    return list(dict.fromkeys([*(settings.hosts if options.hosts else ()), *named]))


def show_status(names: list[str], options: argparse.Namespace) -> int:
    """Prints the status of each host. Returns 0 if all of them answered."""
    if options.watch is not None:
        return _watch(names, options, options.watch)
    from mpsbar.fleet.hosts import Hosts

    with (
        asking(options) as questions,
        closing(Hosts(names, ["status", "--json"], options.ssh)) as hosts,
    ):
        readings = hosts.wait(_ONCE_SECONDS)
        if _ask_for_passwords(hosts, questions):
            readings = hosts.wait(_ONCE_SECONDS)
    readings = [_judge_late(reading) for reading in readings]
    print(_render(readings, options))
    return 0 if all(reading.problem is None for reading in readings) else 1


def show_top(names: list[str], options: argparse.Namespace) -> int:
    """Shows all hosts on one screen; without textual or a terminal it prints them repeatedly."""
    from mpsbar.cli.top import end, import_asyncio, why_no_terminal

    options.json, options.wide = False, False
    if why_no_terminal() is not None:
        return _watch(names, options, options.every or 2.0)
    import_asyncio()
    return end(_watch(names, options, options.every or 2.0, is_screen=True))


def free(names: list[str], options: argparse.Namespace) -> int:
    from mpsbar.fleet.parse_status import parse_freed

    with asking(options) as questions:
        more = ["--timeout", f"{options.timeout:g}"]
        if options.when_possible:
            more.append("--when-possible")
        if options.cancel:
            more.append("--cancel")
        targets = None if options.all else dict.fromkeys(options.targets)
        words, seconds = (
            _free_words(targets, options.started, more),
            _ONCE_SECONDS + options.timeout,
        )
        outcomes_by_host = _ask_each(names, options, questions, words, parse_freed, seconds)
    if options.json:
        _print_json("freed", outcomes_by_host)
    else:
        for line in _say_freed(outcomes_by_host):
            print(line)
    fine = ("done", "waiting", "cancelled")
    done = (
        isinstance(outcomes, list) and all(outcome.state in fine for outcome in outcomes)
        for outcomes in outcomes_by_host.values()
    )
    return 0 if all(done) else 1


def why(names: list[str], options: argparse.Namespace) -> int:
    """Prints how runs ended on each host. Returns 0 if there were any."""
    with asking(options) as questions:
        ends_by_host = ask_ends(names, options, questions, options.which, options.number)
    if options.json:
        _print_json("ended", ends_by_host)
    else:
        from mpsbar.history.retention import KEEP_DAYS
        from mpsbar.system.native_operations import read_native_operations
        from mpsbar.ui.text.hosts import render_ends

        texts = (
            render_ends(host, ends, options.which, read_native_operations, KEEP_DAYS)
            for host, ends in ends_by_host.items()
        )
        print("\n\n".join(texts))
    return 0 if any(isinstance(ends, list) and ends for ends in ends_by_host.values()) else 1


def ask_ends(
    names: list[str],
    options: argparse.Namespace,
    questions: "Questions | None",
    which: str | None,
    number: int,
) -> "dict[str, list[EndInWords] | HostProblem]":
    from mpsbar.fleet.parse_status import parse_ends

    words = ["why", "--json", "--number", str(number), *([] if which is None else ["--", which])]
    return _ask_each(names, options, questions, words, parse_ends)


def ask_statuses(
    names: list[str], options: argparse.Namespace, questions: "Questions | None"
) -> "list[HostReading]":
    """Returns the present status of each host, for the report."""
    from mpsbar.core.host_readings import HostProblem, HostReading
    from mpsbar.fleet.parse_status import parse_status

    now = time.time()
    statuses = _ask_each(names, options, questions, ["status", "--json"], parse_status)
    return [
        HostReading(host, problem=status.text)
        if isinstance(status, HostProblem)
        else HostReading(host, status, now)
        for host, status in statuses.items()
    ]


def _free_words(
    targets: Iterable[object] | None, started: float | None, more: Sequence[str] = ()
) -> list[str]:
    """Returns the arguments of mpsbar that free these processes on a host; None: all."""
    words = ["free", "--json", *more]
    if started is not None:
        words += ["--started", repr(started)]
    return [*words, "--all"] if targets is None else [*words, "--", *map(str, targets)]


def _print_json(key: str, outcomes_by_host: "Mapping[str, Sequence[Any] | HostProblem]") -> None:
    from dataclasses import asdict

    from mpsbar.core.host_readings import HostProblem

    hosts = {
        host: {"problem": outcomes.text, key: []}
        if isinstance(outcomes, HostProblem)
        else {"problem": None, key: [asdict(outcome) for outcome in outcomes]}
        for host, outcomes in outcomes_by_host.items()
    }
    print(json.dumps({"schema": 1, "hosts": hosts}))


def _say_freed(outcomes_by_host: "dict[str, list[Freed] | HostProblem]") -> "Iterator[str]":
    from mpsbar.ui.text import outcomes as outcome_text
    from mpsbar.ui.text import wording

    for host, outcomes in outcomes_by_host.items():
        if not isinstance(outcomes, list):
            yield _("{host}: no answer ({problem})").format(host=host, problem=outcomes.text)
        elif not outcomes:
            yield f"{host}: {wording.workers_connected(0)}"
        else:
            for outcome in outcomes:
                yield f"{host}: {outcome.pid} {outcome.name}: {outcome_text.say_freed(outcome)}"


def _ask_each(
    names: list[str],
    options: argparse.Namespace,
    questions: "Questions | None",
    words: list[str],
    parse: Callable[[bytes], _T],
    seconds: float = _ONCE_SECONDS,
) -> "dict[str, _T | HostProblem]":
    """Runs one command on each host; where ssh has to ask a person, it then runs a second time."""
    from mpsbar.core.host_readings import HostProblem
    from mpsbar.fleet.hosts import ask_hosts
    from mpsbar.fleet.ssh import build_command

    def build(hosts: list[str]) -> dict[str, list[str]]:
        sockets = {host: questions.socket_of(host) if questions else None for host in hosts}
        return {host: build_command(host, words, options.ssh, sockets[host]) for host in hosts}

    answers = ask_hosts(build(names), parse, seconds)
    opened = [
        host
        for host, answer in answers.items()
        if isinstance(answer, HostProblem) and answer.needs_person and _ask(host, questions)
    ]
    return answers | ask_hosts(build(opened), parse, seconds)


def _watch(
    names: list[str], options: argparse.Namespace, seconds: float, *, is_screen: bool = False
) -> int:
    from mpsbar.fleet.hosts import Hosts

    treat_signals_as_ctrl_c()
    words = ["status", "--json", "--watch", f"{seconds:g}"]
    with (
        asking(options) as questions,
        closing(Hosts(names, words, options.ssh, again=seconds)) as hosts,
    ):
        _wait_for_first(hosts)
        if _ask_for_passwords(hosts, questions):
            _wait_for_first(hosts)
        if is_screen:
            return _show_screen(hosts, options, questions)
        print_each(_render_again(hosts, seconds, options), options.json)
    return 0


def _show_screen(hosts: "Hosts", options: argparse.Namespace, questions: "Questions | None") -> int:
    from mpsbar.system.settings_file import read_settings
    from mpsbar.ui.terminal.hosts_app import HostsApp

    def free(host: str, pid: int | None, started: float | None) -> str:
        return _free_from_screen(host, pid, started, options, questions)

    def ask(host: str) -> bool:
        """Lets ssh ask its questions for a host that was slower than the others, or asked again."""
        is_open = _ask(host, questions)
        if questions is not None and is_open:
            hosts.restart(host, questions.socket_of(host))
        return is_open

    def hang_up(*_: object) -> None:
        """Ends every ssh and exits: the window was closed, so there is no screen to leave."""
        hosts.close()
        if questions is not None:
            questions.close()
        os._exit(128 + signal.SIGHUP)

    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, hang_up)
    app = HostsApp(lambda: hosts.readings, free, read_settings().settings, ask)
    app.run()
    return app.return_code or 0


def _free_from_screen(
    host: str,
    pid: int | None,
    started: float | None,
    options: argparse.Namespace,
    questions: "Questions | None",
) -> str:
    """Frees on a host and returns the outcome, one line per process; ssh may not prompt."""
    from mpsbar.fleet.hosts import ask_hosts
    from mpsbar.fleet.parse_status import parse_freed
    from mpsbar.fleet.ssh import build_command

    words = _free_words(None if pid is None else [pid], started)
    socket = questions.socket_of(host) if questions else None
    command = build_command(host, words, options.ssh, socket)
    outcomes_by_host = ask_hosts({host: command}, parse_freed, 2 * _ONCE_SECONDS)
    lines = list(_say_freed(outcomes_by_host))
    more = len(lines) - _MAX_NOTICE_LINES
    if more > 0:
        text = ngettext("{host}: and {n} more", "{host}: and {n} more", more)
        lines[_MAX_NOTICE_LINES:] = [text.format(host=host, n=more)]
    return "\n".join(lines)


def _wait_for_first(hosts: "Hosts") -> None:
    deadline = time.monotonic() + _FIRST_SECONDS
    while time.monotonic() < deadline and any(
        reading.status is None and reading.problem is None for reading in hosts.readings
    ):
        time.sleep(0.05)


@contextmanager
def asking(options: argparse.Namespace) -> "Iterator[Questions | None]":
    """Yields the connections for which ssh may ask a person; None without a terminal."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        yield None
        return
    from mpsbar.fleet.questions import Questions

    with closing(Questions(options.ssh)) as questions:
        yield questions


def _ask_for_passwords(hosts: "Hosts", questions: "Questions | None") -> bool:
    """Lets ssh ask its questions host by host, before anything is drawn.

    Returns whether a connection was opened.
    """
    waiting = [reading.host for reading in hosts.readings if reading.needs_person]
    opened = [host for host in waiting if _ask(host, questions)]
    for host in opened:
        assert questions is not None
        hosts.restart(host, questions.socket_of(host))
    return bool(opened)


def _ask(host: str, questions: "Questions | None") -> bool:
    if questions is None:
        return False
    print_stderr(_("mpsbar: connecting to {host}").format(host=host))
    return questions.ask(host)


def _render_again(hosts: "Hosts", seconds: float, options: argparse.Namespace) -> "Iterator[str]":
    while True:
        yield _render(hosts.readings, options)
        time.sleep(seconds)


def _render(readings: "list[HostReading]", options: argparse.Namespace) -> str:
    from mpsbar.ui.hosts_status import render_hosts
    from mpsbar.ui.text.hosts import build_hosts

    if options.json:
        return json.dumps(build_hosts(readings))
    from mpsbar.ui.text.cells import in_colour, plain

    width = None if options.wide else line_width()
    return render_hosts(readings, in_colour if is_coloured() else plain, width)


def _judge_late(reading: "HostReading") -> "HostReading":
    if reading.is_done or reading.problem is not None:
        return reading
    from dataclasses import replace

    return replace(
        reading, problem=_("silent for {seconds:g} seconds").format(seconds=_ONCE_SECONDS)
    )
