"""Writes resources/grafana/*.json, the dashboards, from the short description below.

    python packaging/build_dashboards.py

A test compares the files with what this makes, and asks a real Prometheus every query in them.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "resources/grafana"
# Grafana 10 and 11 read this one; newer ones bring it up to date by themselves.
SCHEMA = 39
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
HOST = 'job=~"$job", instance=~"$instance"'
RUN = HOST + ', pid=~"$pid"'

# (title, kind, unit, width of 24, [(query, legend)])
Panel = tuple[str, str, str, int, list[tuple[str, str]]]

OVERVIEW: list[Panel] = [
    ("Hosts", "stat", "none", 4, [('count(mpsbar_build_info{job=~"$job"})', "answering"),
                                  ('count(up{job=~"$job"} == 0) or vector(0)', "silent")]),
    ("Workers", "stat", "none", 4, [(f"sum by (state) (mpsbar_workers{{{HOST}}})", "{{state}}")]),
    ("Held by workers", "stat", "decbytes", 4, [(f"sum(mpsbar_worker_held_bytes{{{HOST}}})", "held"),
                                                (f"sum(mpsbar_worker_cached_bytes{{{HOST}}})", "of it cached")]),
    ("Ended, by verdict", "stat", "none", 12, [(f"sum by (how) (increase(mpsbar_worker_ends_total{{{HOST}}}[$__range]))", "{{how}}")]),
    ("Memory in use", "timeseries", "percentunit", 12, [(f"1 - mpsbar_machine_memory_available_bytes{{{HOST}}} / mpsbar_machine_memory_bytes{{{HOST}}}", "{{instance}}")]),
    ("Memory pressure (0 normal, 1 warning, 2 critical)", "timeseries", "none", 12, [(f"mpsbar_machine_memory_pressure{{{HOST}}}", "{{instance}}")]),
    ("Held by workers, by host", "timeseries", "decbytes", 12, [(f"sum by (instance) (mpsbar_worker_held_bytes{{{HOST}}})", "{{instance}}")]),
    ("GPU in use", "timeseries", "percentunit", 12, [(f"mpsbar_gpu_utilization_ratio{{{HOST}}}", "{{instance}}")]),
    ("GPU memory, share of Metal's budget", "timeseries", "percentunit", 12, [(f"mpsbar_gpu_memory_in_use_bytes{{{HOST}}} / mpsbar_gpu_memory_budget_bytes{{{HOST}}}", "{{instance}}")]),
    ("Swap in use", "timeseries", "decbytes", 12, [(f"mpsbar_machine_swap_used_bytes{{{HOST}}}", "{{instance}}")]),
    ("Who holds most", "table", "decbytes", 12, [(f"topk(20, sum by (instance, name, pid) (mpsbar_worker_held_bytes{{{HOST}}}))", "")]),
    ("Longest runs", "table", "s", 12, [(f"topk(20, time() - mpsbar_process_start_time_seconds{{{HOST}}})", "")]),
    ("Progress of runs", "bargauge", "percentunit", 12, [(f"topk(20, mpsbar_worker_progress_ratio{{{HOST}}})", "{{name}} {{pid}} on {{instance}}")]),
    ("Time left of runs", "table", "s", 12, [(f"bottomk(20, mpsbar_worker_left_seconds{{{HOST}}})", "")]),
    ("Findings (1 warning, 2 critical)", "table", "none", 12, [(f"mpsbar_finding{{{HOST}}}", "")]),
    ("Health by host (0 ok, 1 warning, 2 critical)", "table", "none", 12, [(f"mpsbar_health_level{{{HOST}}}", "")]),
]  # fmt: skip
HOST_PANELS: list[Panel] = [
    ("Computer", "table", "none", 12, [(f"mpsbar_machine_info{{{HOST}}}", "")]),
    ("Health (0 ok, 1 warning, 2 critical)", "stat", "none", 4, [(f"mpsbar_health_level{{{HOST}}}", "{{instance}}")]),
    ("Processes", "stat", "none", 4, [(f"sum by (connected) (mpsbar_processes{{{HOST}}})", "connected: {{connected}}")]),
    ("Freed", "stat", "decbytes", 4, [(f"sum(increase(mpsbar_freed_bytes_total{{{HOST}}}[$__range]))", "freed")]),
    ("Memory", "timeseries", "decbytes", 12, [(f"mpsbar_machine_memory_bytes{{{HOST}}}", "total"),
                                              (f"mpsbar_machine_memory_available_bytes{{{HOST}}}", "available"),
                                              (f"mpsbar_machine_swap_used_bytes{{{HOST}}}", "swap")]),
    ("GPU memory", "timeseries", "decbytes", 12, [(f"mpsbar_gpu_memory_in_use_bytes{{{HOST}}}", "in use"),
                                                  (f"mpsbar_gpu_memory_budget_bytes{{{HOST}}}", "Metal's budget")]),
    ("Held, by worker", "timeseries", "decbytes", 12, [(f"sum by (name, pid) (mpsbar_worker_held_bytes{{{HOST}}})", "{{name}} {{pid}}")]),
    ("Cached (kept for reuse), by worker", "timeseries", "decbytes", 12, [(f"sum by (name, pid) (mpsbar_worker_cached_bytes{{{HOST}}})", "{{name}} {{pid}}")]),
    ("Charged by the system, by process", "timeseries", "decbytes", 12, [(f"mpsbar_process_footprint_bytes{{{HOST}}}", "{{name}} {{pid}}")]),
    ("GPU in use", "timeseries", "percentunit", 12, [(f"mpsbar_gpu_utilization_ratio{{{HOST}}}", "all"),
                                                     (f"mpsbar_process_gpu_ratio{{{HOST}}}", "{{name}} {{pid}}")]),
    ("Progress of runs", "timeseries", "percentunit", 12, [(f"mpsbar_worker_progress_ratio{{{HOST}}}", "{{name}} {{pid}}")]),
    ("Time left of runs", "timeseries", "s", 12, [(f"mpsbar_worker_left_seconds{{{HOST}}}", "{{name}} {{pid}}")]),
    ("Alerts and frees", "timeseries", "none", 12, [(f"sum by (cause) (increase(mpsbar_alerts_total{{{HOST}}}[$__rate_interval]))", "alert: {{cause}}"),
                                                    (f"sum by (state) (increase(mpsbar_frees_total{{{HOST}}}[$__rate_interval]))", "free: {{state}}")]),
    ("mpsbar itself: share of one core", "timeseries", "percentunit", 12, [(f"rate(mpsbar_cpu_seconds_total{{{HOST}}}[$__rate_interval])", "{{instance}}")]),
    ("mpsbar itself: time of a reading and of a page", "timeseries", "s", 12, [(f"mpsbar_tick_duration_seconds{{{HOST}}}", "reading"),
                                                                               (f"mpsbar_scrape_duration_seconds{{{HOST}}}", "page")]),
    ("dtypes: operations by what they did in the last probe", "table", "none", 12, [(f"mpsbar_dtype_operations{{{HOST}}}", "")]),
]  # fmt: skip
RUN_PANELS: list[Panel] = [
    ("Holds", "stat", "decbytes", 6, [(f"sum(mpsbar_worker_held_bytes{{{RUN}}})", "held")]),
    ("Running for", "stat", "s", 6, [(f"max(time() - mpsbar_process_start_time_seconds{{{RUN}}})", "since start")]),
    ("Answers", "stat", "none", 6, [(f"min(mpsbar_worker_answering{{{RUN}}})", "1: yes")]),
    ("Share of Metal's budget", "stat", "percentunit", 6, [(f"sum(mpsbar_worker_held_bytes{{{RUN}}}) / max(mpsbar_worker_budget_bytes{{{RUN}}})", "held")]),
    ("Progress", "stat", "percentunit", 8, [(f"max(mpsbar_worker_progress_ratio{{{RUN}}})", "done")]),
    ("Time left", "stat", "s", 8, [(f"max(mpsbar_worker_left_seconds{{{RUN}}})", "left")]),
    ("Steps of its optimizer", "stat", "none", 8, [(f"max(mpsbar_worker_steps{{{RUN}}})", "steps")]),
    ("Its allocators", "timeseries", "decbytes", 24, [
        (f"mpsbar_worker_allocated_bytes{{{RUN}}}", "{{device}} allocated"),
        (f"mpsbar_worker_cached_bytes{{{RUN}}}", "{{device}} cached"),
        (f"mpsbar_worker_other_bytes{{{RUN}}}", "{{device}} other"),
        (f"mpsbar_worker_peak_bytes{{{RUN}}}", "{{device}} peak"),
        (f"mpsbar_worker_budget_bytes{{{RUN}}}", "{{device}} budget")]),
    ("Charged by the system", "timeseries", "decbytes", 12, [(f"mpsbar_process_footprint_bytes{{{RUN}}}", "{{name}}")]),
    ("Share of the GPU", "timeseries", "percentunit", 12, [(f"mpsbar_process_gpu_ratio{{{RUN}}}", "{{name}}")]),
    ("Progress over time", "timeseries", "percentunit", 12, [(f"mpsbar_worker_progress_ratio{{{RUN}}}", "{{name}}")]),
    ("Steps of its optimizer a second", "timeseries", "none", 12, [(f"mpsbar_worker_steps_per_second{{{RUN}}}", "{{name}}")]),
]  # fmt: skip

JOB = ("job", "Job", "label_values(mpsbar_build_info, job)", True)
INSTANCE = ("instance", "Host", 'label_values(mpsbar_build_info{job=~"$job"}, instance)', True)
ONE_INSTANCE = (*INSTANCE[:3], False)
PID = ("pid", "Process", 'query_result(mpsbar_worker_answering{instance=~"$instance"})', False)
DASHBOARDS: dict[str, tuple[str, str, list[tuple[str, str, str, bool]], list[Panel]]] = {
    "overview": ("mpsbar-overview", "mpsbar: all hosts", [JOB, INSTANCE], OVERVIEW),
    "host": ("mpsbar-host", "mpsbar: one host", [JOB, ONE_INSTANCE], HOST_PANELS),
    "run": ("mpsbar-run", "mpsbar: one run", [JOB, ONE_INSTANCE, PID], RUN_PANELS),
}


def build(name: str) -> dict[str, Any]:
    uid, title, variables, panels = DASHBOARDS[name]
    source = {"type": "datasource", "name": "datasource", "label": "Prometheus"}
    return {
        "id": None,
        "uid": uid,
        "title": title,
        "tags": ["mpsbar"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timepicker": {},
        "annotations": {"list": []},
        "links": [_link(other) for other in DASHBOARDS if other != name],
        "templating": {
            "list": [
                source | {"query": "prometheus", "hide": 0},
                *(_variable(*one) for one in variables),
            ]
        },
        "panels": _place(panels),
    }


def render(name: str) -> str:
    return json.dumps(build(name), indent=1, ensure_ascii=False) + "\n"


def _link(name: str) -> dict[str, Any]:
    uid, title = DASHBOARDS[name][:2]
    link = {"type": "link", "title": title, "url": f"/d/{uid}", "icon": "dashboard", "tags": []}
    same = {"asDropdown": False, "includeVars": True, "keepTime": True, "targetBlank": False}
    return link | same | {"tooltip": ""}


def _variable(name: str, label: str, query: str, is_multi: bool) -> dict[str, Any]:
    variable: dict[str, Any] = {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": is_multi,
        "includeAll": is_multi,
        "hide": 0,
    }
    if is_multi:
        variable["current"] = {"text": "All", "value": "$__all"}
    if query.startswith("query_result"):
        # Shown as name and pid, used as the pid.
        named = 'name="(?<text>[^"]*)'
        return variable | {"regex": f'/{named}.*pid="(?<value>[0-9]+)/'}
    return variable | {"regex": ""}


def _place(panels: list[Panel]) -> list[dict[str, Any]]:
    """From left to right, in rows as high as their highest panel."""
    placed: list[dict[str, Any]] = []
    x = y = height = 0
    for number, (title, kind, unit, width, queries) in enumerate(panels, 1):
        if x + width > 24:
            x, y, height = 0, y + height, 0
        high = 4 if kind == "stat" else 8
        panel = _panel(title, kind, unit, queries)
        panel |= {"id": number, "gridPos": {"x": x, "y": y, "w": width, "h": high}}
        placed.append(panel)
        x, height = x + width, max(height, high)
    return placed


def _panel(title: str, kind: str, unit: str, queries: list[tuple[str, str]]) -> dict[str, Any]:
    is_table = kind == "table"
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": SOURCE,
            "expr": query,
            "legendFormat": legend,
            "instant": kind != "timeseries",
            "range": kind == "timeseries",
            "format": "table" if is_table else "time_series",
        }
        for number, (query, legend) in enumerate(queries)
    ]
    defaults: dict[str, Any] = {"unit": unit, "min": 0}
    if unit == "percentunit":
        defaults["max"] = 1
    panel: dict[str, Any] = {
        "type": kind,
        "title": title,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {},
    }
    if is_table:
        hidden = dict.fromkeys(("Time", "__name__", "job"), True)
        options = {"excludeByName": hidden, "indexByName": {}, "renameByName": {}}
        panel["transformations"] = [{"id": "organize", "options": options}]
    return panel


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in DASHBOARDS:
        (FOLDER / f"{name}.json").write_text(render(name), encoding="utf-8")


if __name__ == "__main__":
    main()
