"""The result of a deep probe, made up."""

from mpsbar.dtypes.deep_results import DeepCell, DeepProbe

CELLS = (
    DeepCell("add", "float32", "works", True, error=0.0),
    DeepCell("add", "float64", "unsupported", False, "TypeError: no float64"),
    DeepCell("mm", "float32", "crashed", True, "SIGABRT"),
    DeepCell("mm", "float16", "inaccurate", True, "largest error: 0.3"),
    DeepCell("mm", "bfloat16", "works", False),
    DeepCell("sort", "int8", "meaningless", False),
)


def make(cells=CELLS, **values):
    given = {
        "python": "/venv/bin/python", "ended": "ok", "prefix": "/venv", "version": "3.11.7", "torch": "2.13.0",
        "system": "15.1", "os": "macOS", "device": "mps", "device_name": "Apple M1", "total": len(cells),
        "time": 1.7e9, "seconds": 90.0, "cells": cells,
    }  # fmt: skip
    return DeepProbe(**(given | values))
