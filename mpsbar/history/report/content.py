"""All that a report tells, in one value."""

from dataclasses import dataclass

from mpsbar.core.dtype_results import Probe
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.checkup import Checkup
from mpsbar.history.records import Period


@dataclass(frozen=True, slots=True)
class Report:
    version: str
    snapshot: Snapshot
    checkup: Checkup | None  # None: nobody looked at the Pythons
    spans: tuple[Period, ...] = ()  # the shortest first; none: nothing was recorded
    probe: Probe | None = None  # the last; None: never, or of another torch
    home: str = ""  # shown as ~
    diagnostics: str = ""  # to be pasted
