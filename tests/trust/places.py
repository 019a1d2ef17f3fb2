"""Real workers in a run directory of their own, which this process uses too."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from worker_kit import Workers


@contextmanager
def workers_here() -> Iterator[Workers]:
    workers = Workers()
    before = os.environ.get("MPSBAR_RUN_DIR")
    os.environ["MPSBAR_RUN_DIR"] = str(workers.run_dir)
    try:
        yield workers
    finally:
        if before is None:
            del os.environ["MPSBAR_RUN_DIR"]
        else:
            os.environ["MPSBAR_RUN_DIR"] = before
        workers.end()
        shutil.rmtree(workers.folder, ignore_errors=True)


def list_pids(workers: Workers) -> list[int]:
    return [int(path.stem) for path in workers.run_dir.glob("*.sock")]
