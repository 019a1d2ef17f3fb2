"""A real Prometheus from Debian scrapes a real exporter with real workers."""

import subprocess

import pytest
from fleet_kit import (
    MLX_WORKER,
    Prometheus,
    make_certificate,
    need_program,
    run_exporter,
    wait_page,
)
from worker_kit import need_module, wait_for

pytestmark = pytest.mark.usefixtures("workers")


def test_what_is_scraped_is_what_is_there(workers, tmp_path):
    need_module("mlx")
    need_program("prometheus", "prometheus")
    worker = workers.start(MLX_WORKER)
    with run_exporter(workers) as (_, url):
        page = wait_page(url, f'pid="{worker.pid}"')
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=page, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        with Prometheus(tmp_path / "prometheus", [url.split("/")[2]]) as prometheus:
            query = f'mpsbar_worker_allocated_bytes{{pid="{worker.pid}"}}'
            (series,) = prometheus.wait_query(query)
            assert series["value"][1] == "4194304"
            assert series["metric"]["job"] == "mpsbar"
            worker.end()
            # Not after five minutes: a series that is missing from the page ends at once.
            wait_for(lambda: not prometheus.query(query), "end of the series")
            assert prometheus.query('up{job="mpsbar"}')[0]["value"][1] == "1"


def test_over_tls_with_a_token(workers, tmp_path):
    need_program("prometheus", "prometheus")
    cert, key = make_certificate(tmp_path)
    token = tmp_path / "token"
    token.write_text("s3cret")
    token.chmod(0o600)
    given = ("--tls-cert", str(cert), "--tls-key", str(key), "--token-file", str(token))
    extra = f"  tls_config: {{ca_file: {cert}}}\n  authorization: {{credentials_file: {token}}}\n"
    with run_exporter(workers, *given) as (_, url):
        target = [url.split("/")[2]]
        with Prometheus(tmp_path / "prometheus", target, scheme="https", extra=extra) as prometheus:
            assert prometheus.wait_query("mpsbar_build_info")
