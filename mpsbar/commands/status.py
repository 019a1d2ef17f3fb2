"""mpsbar status: one look."""

import argparse
import json

from mpsbar.monitor import Monitor
from mpsbar.views.status import build_status, render_status


def run(options: argparse.Namespace) -> int:
    monitor = Monitor()
    try:
        snapshot = monitor.tick()
    finally:
        monitor.close()
    print(json.dumps(build_status(snapshot)) if options.json else render_status(snapshot))
    return 0
