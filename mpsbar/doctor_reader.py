"""Reads the doctor's report: torch in each Python, and what is known of mpsbar itself.

For `mpsbar doctor`, `mpsbar report`, Copy Diagnostics and Open Report, which say the same.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from mpsbar.core.addresses import parse_address
from mpsbar.core.machine import Problem
from mpsbar.core.settings import OFF
from mpsbar.core.snapshot import Snapshot
from mpsbar.desktop.icon_visibility import draws_no_icon, read_icon
from mpsbar.desktop.notifications import read_delivery
from mpsbar.doctor.pythons import OnInspected, find_pythons, inspect_all
from mpsbar.doctor.rules import DoctorReport
from mpsbar.fleet.service import find_service_problem
from mpsbar.system.own_use_file import read_own_use
from mpsbar.system.settings_file import read_settings
from mpsbar.workers.environments import read_enabled


def read_doctor_report(
    snapshot: Snapshot,
    pythons: list[str] | None = None,
    on_progress: OnInspected | None = None,
    stop: Event | None = None,
) -> DoctorReport:
    """Inspects these Pythons, or all in which torch may be; takes seconds for each."""
    if pythons is None:
        pythons = find_pythons(snapshot, read_enabled())
    report = inspect_all(snapshot, pythons, on_progress, stop)
    return replace(
        report,
        problems=(*report.problems, *_find_problems(snapshot)),
        icon=read_icon(),
        no_icon=draws_no_icon() if sys.platform == "darwin" else None,
        alerts=read_delivery(),
    )


def _find_problems(snapshot: Snapshot) -> Iterator[Problem]:
    """Finds what is wrong with mpsbar itself, also with one that runs in another process."""
    # A monitor that is over its budget says so on its own snapshots.
    is_known = any(problem.reader == "own use" for problem in snapshot.problems)
    if not is_known and (own_use := read_own_use()):
        yield Problem("own use", own_use)
    export = read_settings().settings.export
    if export != OFF and (service := find_service_problem(parse_address(export))):
        yield Problem("metrics", service)
