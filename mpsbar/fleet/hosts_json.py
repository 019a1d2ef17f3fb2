"""Several hosts as JSON (schema 1): what each said, of it only what we understood. Pure."""

from typing import Any

from mpsbar.fleet.hosts import HostReading
from mpsbar.ui.text.status_json import build_status


def build_hosts(readings: list[HostReading]) -> dict[str, Any]:
    return {"schema": 1, "hosts": {reading.host: _host(reading) for reading in readings}}


def _host(reading: HostReading) -> dict[str, Any]:
    told: dict[str, Any] = {"problem": reading.problem, "heard": reading.heard, "status": None}
    if reading.status is not None:
        status = build_status(reading.status.snapshot)
        health = {"level": reading.status.level, "reasons": list(reading.status.reasons)}
        kept = ("schema", "time", "machine", "workers", "processes")
        told["status"] = {key: status[key] for key in kept} | {"health": health}
    return told
