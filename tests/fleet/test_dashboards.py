"""The dashboards: in step with their description, well-formed, and every query finds data."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import promql_parser
import pytest
from fleet_kit import MLX_WORKER, Prometheus, need_program, run_exporter, run_mpsbar, wait_page
from worker_kit import NO_MPS, ROOT, TIMEOUT, need_module, wait_for

FOLDER = ROOT / "resources/grafana"
FILES = sorted(FOLDER.glob("*.json"))
# Nearly all of a device with little memory: a finding. Its bar and its optimizer move.
MPS_WORKER = """
import time, torch, tqdm, mpsbar
kept = torch.ones(1 << 22, device="mps")  # in a heap of 1 GiB
from mpsbar.agent.lifecycle import attach_by_hook
assert attach_by_hook(quiet=False)  # as in an enabled environment: steps are counted from the start
weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for _ in tqdm.tqdm(range(1_000_000), mininterval=0.01, miniters=1, file=open("/dev/null", "w")):
    weight.sum().backward()
    optimizer.step()
    time.sleep(0.1)
"""


@pytest.fixture
def description(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import build_dashboards

    return build_dashboards


def panels_of(file):
    return json.loads(file.read_text())["panels"]


def queries_of(file):
    return [
        (panel["title"], target["expr"]) for panel in panels_of(file) for target in panel["targets"]
    ]


def fill_in(query):
    """As Grafana does when All is chosen, over ten minutes."""
    for name in ("$__rate_interval", "$__range", "$__interval"):
        query = query.replace(name, "10m")
    return re.sub(r"\$(job|instance|pid)", ".*", query)


def test_the_files_are_what_the_description_makes(description):
    assert {file.stem: file.read_text() for file in FILES} == {
        name: description.render(name) for name in description.DASHBOARDS
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_dashboard_is_well_formed(file):
    board = json.loads(file.read_text())
    assert board["id"] is None
    assert re.fullmatch(r"[a-z-]{8,40}", board["uid"])
    names = {variable["name"] for variable in board["templating"]["list"]}
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in board["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__range", "__rate_interval"}
            assert used <= names
            promql_parser.parse(fill_in(target["expr"]))
    for place, other in itertools.combinations((panel["gridPos"] for panel in board["panels"]), 2):
        assert is_apart(place, other)


def test_grafanas_own_types_have_every_field(tmp_path):
    """As objects that are written down in TypeScript: a field that they do not have is an error."""
    types, compiler = Path(sys.prefix, "grafana"), Path(sys.prefix, "typescript/tsc.js")
    if shutil.which("node") is None or not types.is_dir() or not compiler.is_file():
        pytest.skip("no node, or make setup could not have TypeScript and Grafana's types from npm")
    shutil.copytree(types, tmp_path / "grafana")

    def find_mistakes(boards):
        source = "import type { Dashboard } from './grafana/veneer/dashboard.types';\n"
        for number, text in enumerate(boards):
            source += f"export const board{number}: Dashboard = {text};\n"
        (tmp_path / "boards.ts").write_text(source)
        options = ["--strict", "--noEmit", "--skipLibCheck", "--lib", "es5"]
        done = subprocess.run(
            ["node", compiler, *options, "boards.ts"],
            cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT,
        )  # fmt: skip
        return done.stdout + done.stderr

    texts = [file.read_text() for file in FILES]
    assert find_mistakes(texts) == ""
    assert "'\"tootip\"' does not exist" in find_mistakes(
        [texts[0].replace('"tooltip"', '"tootip"')]
    )


def is_apart(place, other):
    beside = place["x"] + place["w"] <= other["x"] or other["x"] + other["w"] <= place["x"]
    return beside or place["y"] + place["h"] <= other["y"] or other["y"] + other["h"] <= place["y"]


def test_every_value_of_a_run_is_on_its_dashboard():
    """Also those that a metric's help alone would not bring there."""
    shown = " ".join(query for _, query in queries_of(FOLDER / "run.json"))
    for name in ("progress_ratio", "left_seconds", "steps", "steps_per_second"):
        assert f"mpsbar_worker_{name}{{" in shown
    for overview in ("progress_ratio", "left_seconds", "held_bytes"):
        queries = [query for _, query in queries_of(FOLDER / "overview.json")]
        assert any(f"mpsbar_worker_{overview}{{" in query for query in queries)


def test_the_process_menu_reads_what_prometheus_says(description):
    """Grafana makes the choice of a run from the series as text, by a regular expression."""
    (variable,) = (v for v in description.build("run")["templating"]["list"] if v["name"] == "pid")
    pattern = variable["regex"].strip("/").replace("(?<", "(?P<")
    text = 'mpsbar_worker_answering{instance="a:1", job="mpsbar", name="train.py", pid="47"} 1 17'
    assert re.search(pattern, text).groupdict() == {"text": "train.py", "value": "47"}


def test_every_query_finds_data(workers, tmp_path):
    """Two exporters: this computer with real workers and a real probe, and a recorded Mac."""
    need_program("prometheus", "prometheus")
    need_module("mlx")
    need_module("tqdm")
    if NO_MPS:
        pytest.skip(NO_MPS)
    with run_mpsbar(workers, "probe", "--device", "cpu", "--python", sys.executable) as probe:
        assert probe.communicate(timeout=TIMEOUT)[0]
    workers.start(MLX_WORKER)
    workers.start_mps(MPS_WORKER, SOFTMPS_MEMORY="1100MiB")
    with (
        run_exporter(workers) as (_, here),
        run_exporter(workers, MPSBAR_REPLAY="m1max-64gb") as (_, recorded),
    ):
        wait_page(here, "mpsbar_finding{", "mpsbar_dtype_operations{")
        targets = [url.split("/")[2] for url in (here, recorded)]
        with Prometheus(tmp_path / "prometheus", targets) as prometheus:
            prometheus.wait_query("count(mpsbar_build_info) == 2")
            asked = {(file.stem, *query) for file in FILES for query in queries_of(file)}
            assert len(asked) > 40

            def find_empty():
                return {query for query in asked if not prometheus.query(fill_in(query[2]))}

            wait_for(lambda: not find_empty(), f"data for all of {find_empty()}")
