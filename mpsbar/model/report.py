"""All that a report tells, in one value."""

from dataclasses import dataclass

from mpsbar.model.checkup import Checkup
from mpsbar.model.dtypes import Probe
from mpsbar.model.past import Span
from mpsbar.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Report:
    version: str
    snapshot: Snapshot
    checkup: Checkup | None  # None: nobody looked at the Pythons
    spans: tuple[Span, ...] = ()  # the shortest first; none: nothing was recorded
    probe: Probe | None = None  # the last; None: never, or of another torch
    home: str = ""  # shown as ~
    diagnostics: str = ""  # to be pasted
