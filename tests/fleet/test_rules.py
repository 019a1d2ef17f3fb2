"""The alert rules: checked by promtool, each tested on made-up time series, and loaded by a real server."""

import json
import re
import subprocess

import pytest
from fleet_kit import Prometheus, need_program, run_exporter
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.core.verdicts import END_KINDS

RULES = ROOT / "resources/prometheus/mpsbar.rules.yml"
HOST = 'instance="mac1:9478", job="mpsbar"'
# alert: ({series: values, one a minute}, minute of no alert, minute of the alert, its summary)
COURSES = {
    "MpsbarHostSilent": ({f"up{{{HOST}}}": "1 0x20"}, 2, 4, "mac1:9478 does not answer"),
    "MpsbarBudgetNearlyFull": (
        {f"mpsbar_gpu_memory_in_use_bytes{{{HOST}}}": "50 95x20", f"mpsbar_gpu_memory_budget_bytes{{{HOST}}}": "100x30"},
        2, 4, "GPU memory of mac1:9478 is 95% of Metal's budget",
    ),
    "MpsbarMemoryPressure": (
        {f"mpsbar_machine_memory_pressure{{{HOST}}}": "0 1 1 2x20"}, 2, 6, "Memory pressure on mac1:9478 is critical",
    ),
    "MpsbarLeak": (
        {f'mpsbar_finding{{code="leak", name="train.py", pid="47", {HOST}}}': "1x20"},
        4, 6, "train.py (47) on mac1:9478 grows outside its allocator",
    ),
    "MpsbarRunEndedBadly": (
        {f'mpsbar_worker_ends_total{{how="killed_for_memory", {HOST}}}': "0 0 0 1x5", f'mpsbar_worker_ends_total{{how="stopped", {HOST}}}': "0 5x8"},
        2, 4, "A run on mac1:9478 ended badly: killed_for_memory",
    ),
    "MpsbarGpuReset": (
        {f"mpsbar_gpu_resets_total{{{HOST}}}": "3 3 3 4x5"}, 2, 4, "The GPU of mac1:9478 was reset",
    ),
    "MpsbarReadingsFail": (
        {f'mpsbar_read_problems{{reader="gpu", {HOST}}}': "1x40"}, 10, 16, "mpsbar on mac1:9478 cannot read: gpu",
    ),
}  # fmt: skip


def run_promtool(*arguments):
    command = [need_program("promtool", "prometheus"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)


def test_promtool_accepts_rules_and_example():
    assert "SUCCESS: 7 rules found" in run_promtool("check", "rules", RULES).stdout
    assert run_promtool("check", "config", RULES.with_name("prometheus.yml")).returncode == 0


def test_every_rule_has_a_course():
    assert set(COURSES) == {
        line.split()[-1] for line in RULES.read_text().splitlines() if "- alert:" in line
    }


def test_an_end_is_bad_where_mpsbar_notifies_of_it():
    (named,) = re.findall(r'how!~"([a-z_|]+)"', RULES.read_text())
    assert set(named.split("|")) == {code for code, kind in END_KINDS.items() if kind.is_normal}


@pytest.mark.parametrize("alert", COURSES)
def test_an_alert_comes_when_it_should(alert, tmp_path):
    series, before, after, summary = COURSES[alert]

    def expect_none(minute):
        test = {
            "rule_files": [str(RULES)],
            "evaluation_interval": "1m",
            "tests": [{
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []}],
            }],
        }  # fmt: skip
        file = tmp_path / "test.yml"
        file.write_text(json.dumps(test))  # YAML, too
        return run_promtool("test", "rules", file)

    assert expect_none(before).returncode == 0
    # promtool fails where none was expected, and its complaint has what was raised.
    raised = expect_none(after)
    assert raised.returncode != 0
    assert summary in raised.stdout + raised.stderr


def test_a_real_server_loads_them_and_misses_a_silent_host(workers, tmp_path):
    need_program("prometheus", "prometheus")
    with run_exporter(workers) as (process, url):
        with Prometheus(tmp_path / "prometheus", [url.split("/")[2]], rules=[RULES]) as prometheus:
            prometheus.wait_query('up{job="mpsbar"} == 1')
            process.terminate()
            prometheus.wait_query('ALERTS{alertname="MpsbarHostSilent"}')

            def read_healths():
                (group,) = prometheus.get("/api/v1/rules")["groups"]
                return {rule["health"] for rule in group["rules"]}

            wait_for(lambda: read_healths() == {"ok"}, "look at every rule")
