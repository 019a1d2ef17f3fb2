"""The page for Prometheus: whole, with unknown values left out, and safe against hostile names."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from samples import GB, MB, make_backend, make_process, make_snapshot, make_training, make_worker

from mpsbar.core.dtype_results import Cell, Check, Probe
from mpsbar.core.findings import Health, Reason
from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine, Problem
from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.core.snapshot import Snapshot
from mpsbar.fleet.metrics import Totals, build_metrics


class _Page:
    def __init__(self, snapshot):
        self.snapshot = snapshot

    def collect(self):
        return build_metrics(self.snapshot, Totals())


def render(snapshot):
    registry = CollectorRegistry()
    registry.register(_Page(snapshot))
    return generate_latest(registry).decode()


def read(snapshot):
    """{(name, labels): value}, as Prometheus would read it; each series once."""
    samples = [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(render(snapshot))
        for sample in family.samples
    ]
    assert len(dict(samples)) == len(samples)
    return dict(samples)


def names(snapshot):
    return {name for name, _ in read(snapshot)}


def labels_of(snapshot, wanted):
    return [dict(labels) for name, labels in read(snapshot) if name == wanted]


PROBE = Probe(
    "/v/bin/python", "ok", device="mps", time=900.0,
    cells=(Cell("add", "float16", "works"), Cell("mul", "float16", "works"), Cell("add", "float64", "unsupported")),
    checks=(Check("argmax", "right"), Check("cumsum", "wrong")),
)  # fmt: skip


def make_full():
    mlx = make_worker(
        5, "notebook kernel", backends=[make_backend("mlx", allocated=MB, reserved=3 * MB, peak=2 * MB)],
        process=make_process(5, "python", frameworks=("mlx",), footprint=7 * MB, gpu_percent=12.5),
    )  # fmt: skip
    health = Health(
        "critical", (Reason("gpu_memory", "critical"), Reason("leak", "warning", pid=4711))
    )
    return make_snapshot(
        make_training(budget=27 * GB, peak=5 * GB), mlx,
        processes=(make_process(9, "serve.py", footprint=2 * GB),), health=health, dtypes=PROBE,
        problems=(Problem("gpu", "no answer"),),
    )  # fmt: skip


def test_the_whole_page(check_golden):
    check_golden("metrics.txt", render(make_full()))


def test_promtool_finds_nothing_to_say():
    if shutil.which("promtool") is None:
        pytest.skip("no promtool: apt-get install prometheus")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=render(make_full()), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_unknown_is_absent():
    nothing = Snapshot(1.0, machine=Machine(), processes=None)
    gone = {"mpsbar_processes", "mpsbar_machine_swap_used_bytes", "mpsbar_gpu_utilization_ratio"}
    assert not names(nothing) & gone
    assert read(nothing)["mpsbar_workers", frozenset({("state", "live")})] == 0
    not_counted = make_snapshot(make_worker(1, device="cpu"))
    assert not [name for name in names(not_counted) if name.startswith("mpsbar_worker_held")]


def test_how_far_a_run_is_while_it_answers():
    bar = RunBar("Epoch 1", 30, 120, "it", 1.5, 60.0)
    far = RunProgress(bar, steps=300, steps_per_second=2.5)
    found = read(make_snapshot(make_training(progress=far)))
    labels = frozenset({("pid", "4711"), ("name", "train.py")})
    values = {"progress_ratio": 0.25, "left_seconds": 60, "steps": 300, "steps_per_second": 2.5}
    for name, value in values.items():
        assert found[f"mpsbar_worker_{name}", labels] == value
    silent = make_snapshot(make_training(progress=far, state="busy", age=40.0))
    only_steps = make_snapshot(make_training(progress=RunProgress(steps=300)))
    assert not names(silent) & {f"mpsbar_worker_{name}" for name in values}
    assert "mpsbar_worker_steps" in names(only_steps)
    assert not names(only_steps) & {"mpsbar_worker_progress_ratio", "mpsbar_worker_left_seconds"}


def test_resets_of_the_gpu_are_counted_where_they_are_known():
    machine = Machine(gpu=Gpu(recoveries=3))
    assert read(make_snapshot(machine=machine))["mpsbar_gpu_resets_total", frozenset()] == 3
    assert "mpsbar_gpu_resets_total" not in names(make_snapshot(machine=Machine()))


def test_a_health_that_was_not_judged_is_absent():
    health = Health("ok", (Reason("not_judged", "ok"),))
    assert "mpsbar_health_level" not in names(make_snapshot(health=health))
    assert "mpsbar_health_level" in names(make_snapshot())


def test_who_does_not_answer_has_no_old_numbers():
    snapshot = make_snapshot(make_training(state="busy", age=40.0))
    assert "mpsbar_worker_held_bytes" not in names(snapshot)
    key = ("mpsbar_worker_answering", frozenset({("pid", "4711"), ("name", "train.py")}))
    assert read(snapshot)[key] == 0
    assert "mpsbar_process_footprint_bytes" in names(snapshot)


def test_who_has_ended_has_no_series():
    assert (
        labels_of(
            make_snapshot(make_training(state="gone", process=None)), "mpsbar_worker_answering"
        )
        == []
    )


def test_the_same_pid_with_two_devices_and_one_lie():
    """An agent names its devices itself: what is no device of ours is one word, and one series."""
    backends = [
        make_backend(name, allocated=1) for name in ("mps", "cpu", "x" * 500, "evil\ndevice", "mps")
    ]
    found = labels_of(
        make_snapshot(make_worker(1, backends=backends)), "mpsbar_worker_allocated_bytes"
    )
    assert sorted(labels["device"] for labels in found) == ["cpu", "mps", "other"]


HOSTILE = st.text(st.characters(), min_size=1, max_size=300) | st.sampled_from(
    [
        'a"} 1\nmpsbar_up 0',
        "back\\slash",
        "\ud800half",
        "\x1b]0;title\x07",
        "\u202etxt.exe",
        "\x00",
        "# HELP x",
        " ",
    ]
)


@given(HOSTILE)
def test_no_name_breaks_the_page(name):
    snapshot = make_snapshot(
        make_worker(1, name, allocated=1), processes=(make_process(2, name, footprint=3),)
    )
    (labels,) = labels_of(snapshot, "mpsbar_worker_allocated_bytes")
    assert labels["name"].isprintable()
    assert len(labels["name"]) <= 100
    assert labels.keys() == {"pid", "name", "device", "framework"}


def test_no_command_line_and_no_path_in_any_label():
    secret = make_training(
        command=("python", "train.py", "--token=hunter2"), executable="/Users/ann/v/bin/python"
    )
    assert "hunter2" not in render(make_snapshot(secret))
    assert "ann" not in render(make_snapshot(secret))


def test_a_probe_of_somebody_elses_words_is_bounded():
    strange = Probe("p", "ok", device="weird", cells=(Cell("add", "no dtype at all!", "works"),))
    assert labels_of(make_snapshot(dtypes=strange), "mpsbar_dtype_operations") == []
