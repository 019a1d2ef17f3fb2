"""200 hosts of 20 workers in one real Prometheus, and the query of each panel."""

import json
import shutil
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

HOSTS, WORKERS_EACH, SCRAPES = 200, 20, 12


def run(folder: Path) -> None:
    if shutil.which("prometheus") is None:
        print("  no prometheus: apt-get install prometheus")
        return
    with tempfile.TemporaryDirectory(prefix="mpsbar-fleet-") as place:
        _print_prometheus(Path(place))


def make_exporter(workers: int, first_pid: int = 1):
    from samples import make_snapshot, make_training

    from mpsbar.fleet.exporter import Exporter

    class Ticked:
        latest = make_snapshot(
            *(
                make_training(first_pid + number, f"train{number % 7}.py")
                for number in range(workers)
            )
        )
        ticks, tick_seconds, pause = 1, 0.002, 2.0

    return Exporter(Ticked())


def _print_prometheus(place: Path) -> None:
    """Pages of the real exporter, served at one port under a path for each host."""
    from fleet_kit import Prometheus

    pages = {
        f"/host{number}/metrics": make_exporter(WORKERS_EACH, 1000 * (number + 1)).render()
        for number in range(HOSTS)
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            page = pages[self.path]
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    target = f"127.0.0.1:{server.server_address[1]}"
    extra = "  relabel_configs:\n" + "".join(
        f"  - {{source_labels: [number], regex: '{n}', target_label: __metrics_path__, replacement: /host{n}/metrics}}\n"
        f"  - {{source_labels: [number], regex: '{n}', target_label: instance, replacement: 'host{n}:9478'}}\n"
        for n in range(HOSTS)
    )
    prometheus = Prometheus(place / "prometheus", [target], extra=extra, interval="5s")
    config = place / "prometheus/prometheus.yml"
    hosts = [{"targets": [target], "labels": {"number": str(n)}} for n in range(HOSTS)]
    text = config.read_text().replace(
        f"static_configs: [{{targets: {json.dumps([target])}}}]",
        f"static_configs: {json.dumps(hosts)}",
    )
    prometheus.process.kill()
    prometheus.process.wait()
    config.write_text(text)
    with prometheus.restart():
        time.sleep(SCRAPES * 5)
        _print_answers(prometheus)
    server.shutdown()


def _print_answers(prometheus) -> None:
    from fleet.test_dashboards import FILES, fill_in, queries_of

    memory = psutil.Process(prometheus.process.pid).memory_info().rss
    (up,) = prometheus.query("count(up == 1)")
    (series,) = prometheus.query("sum(scrape_samples_scraped)")
    (slowest,) = prometheus.query("max(scrape_duration_seconds)")
    print(
        f"  {up['value'][1]} hosts of {WORKERS_EACH} workers in one Prometheus: {series['value'][1]} series, "
        f"slowest scrape {float(slowest['value'][1]):.3f} s, {memory / 1e6:.0f} MB"
    )
    took = []
    for file in FILES:
        for title, query in queries_of(file):
            began = time.perf_counter()
            prometheus.query(fill_in(query))
            took.append((time.perf_counter() - began, f"{file.stem}: {title}"))
    took.sort()
    print(
        f"  {len(took)} panel queries: median {1000 * took[len(took) // 2][0]:.0f} ms, slowest {1000 * took[-1][0]:.0f} ms ({took[-1][1]})"
    )


if __name__ == "__main__":
    sys.exit(run(Path("/tmp")))
