"""`mpsbar status --json`: every key."""

import json

from samples import GB
from ui.text.scene_kit import SCENE

from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.text.status_json import build_status


def test_status_as_json_keeps_to_the_schema():
    status = json.loads(json.dumps(build_status(SCENE)))
    assert (status["schema"], status["time"], len(status["workers"])) == (1, 1700000000.0, 8)
    assert {"machine", "workers", "processes", "health", "dtypes"} <= set(status)
    assert {
        "os",
        "model",
        "chip",
        "memory_total",
        "memory_available",
        "swap_used",
        "pressure",
        "gpu",
    } <= set(status["machine"])
    assert status["machine"]["gpu"] == {
        "name": "Apple M3 Max", "cores": 30, "utilization": 43.0, "memory_in_use": int(9.8 * GB),
        "memory_budget": 27 * GB, "wired_limit": 0, "recoveries": None,
    }  # fmt: skip
    assert [(p["pid"], p["framework"], p["connected"]) for p in status["processes"]] == [
        (4711, "torch", True), (4720, "torch", False), (4721, "torch", False),
        (4731, "torch", False), (4732, "torch", False), (4733, "torch", False),
    ]  # fmt: skip
    assert {"pid", "started", "name", "footprint", "gpu_percent"} <= set(status["processes"][0])
    assert status["health"] == {"level": "ok", "reasons": [], "causes": []}
    assert json.loads(json.dumps(build_status(Snapshot(0.0, processes=None))))["processes"] is None
    train = status["workers"][0]
    backends = train.pop("backends")
    assert train == {
        "pid": 4711, "parent": None, "name": "train.py", "command": [], "python": None, "python_version": None,
        "framework": "torch", "framework_version": "2.13.0", "device": "mps", "state": "live",
        "age_s": 0.0, "agent": None, "allocated": int(2.4 * GB), "cached": 3328599655,
        "cached_is_bound": False, "other": 751619276, "reserved": int(5.5 * GB),
        "driver": int(6.2 * GB), "peak": 5 * GB, "held": int(6.2 * GB), "budget": 27 * GB, "limit": None,
        "started": 1699999000.0, "footprint": 7 * GB, "footprint_kind": "footprint",
        "footprint_peak": 9 * GB, "gpu_percent": 41.6, "progress": None, "settings": {},
    }  # fmt: skip
    assert [backend["name"] for backend in backends] == ["mps", "cpu"]
    unknown = status["workers"][5]
    assert unknown["held"] is unknown["allocated"] is unknown["age_s"] is None
