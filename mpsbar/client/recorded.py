"""Workers out of a recording, in place of live ones."""

from typing import Any

from mpsbar.client.parse import parse_worker
from mpsbar.model.snapshot import Worker


class RecordedWorkers:
    """Answers like Workers; nothing is connected."""

    def __init__(self, told: list[dict[str, Any]]) -> None:
        self._told = told

    def poll(self, gpu_clients: dict[int, bool] | None = None) -> tuple[Worker, ...]:  # noqa: ARG002
        return tuple(
            parse_worker(one["pid"], one.get("hello"), one.get("stats"), "live", 0.0)
            for one in self._told
        )

    def close(self) -> None:
        return
