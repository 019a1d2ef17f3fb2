"""A block to paste into a bug report: versions, this computer, torch in each Python. Pure."""

from mpsbar.model.checkup import Checkup
from mpsbar.model.snapshot import Snapshot
from mpsbar.views.doctor import render_doctor
from mpsbar.views.status import render_table


def render_diagnostics(version: str, snapshot: Snapshot, checkup: Checkup, home: str) -> str:
    """Names of processes, but neither their arguments nor their paths; `home` as ~."""
    parts = [f"mpsbar {version}", render_doctor(checkup, home)]
    if snapshot.families:
        parts.append(render_table(snapshot))
    return "\n\n".join(parts) + "\n"
