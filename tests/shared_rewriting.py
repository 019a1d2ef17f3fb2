"""In a new checkout each process of a test run prepares its share of the files and reads what the others prepared.

pytest rewrites the asserts of each test file and keeps the result beside it. For all files that takes five
seconds of a core, and every process would do all of it at the same time as the others.
"""

import os
import sys
from pathlib import Path

import pytest


def rewrite_share(config: pytest.Config) -> None:
    """By pytest's own functions, which are not public: where they are others it only takes longer."""
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not number or sys.dont_write_bytecode:
        return
    try:
        from _pytest.assertion.rewrite import (
            PYC_TAIL,
            _read_pyc,
            _rewrite_test,
            _write_pyc,
            assertstate_key,
            get_cache_dir,
        )
    except ImportError:
        return
    # By size, so that all are ready at about the same time.
    files = sorted(Path(__file__).parent.rglob("test_*.py"), key=lambda file: file.stat().st_size)
    for file in files[int(number) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        folder = get_cache_dir(file)
        kept = folder / (file.stem + PYC_TAIL)
        if _read_pyc(file, kept) is None:
            folder.mkdir(exist_ok=True)
            stamp, code = _rewrite_test(file, config)
            _write_pyc(config.stash[assertstate_key], code, stamp, kept)
