"""What another host says is untrusted: bounded, checked, and safe to show."""

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import MB, make_snapshot, make_training

from mpsbar.core.gpu import Gpu
from mpsbar.core.host_readings import HostReading
from mpsbar.core.machine import Machine, Process
from mpsbar.fleet.parse_status import (
    UnusableAnswerError,
    parse_ends,
    parse_freed,
    parse_machine,
    parse_status,
)
from mpsbar.ui.hosts_status import render_hosts
from mpsbar.ui.text.status_json import build_machine, build_status

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "pid",
        "name",
        "state",
        "backends",
        "held",
        "framework",
        "frameworks",
        "footprint",
        "parent",
        "started",
        "age_s",
    ]
)
ROWS = st.lists(st.dictionaries(KEYS, JSON | st.integers(1, 99), max_size=6) | JSON, max_size=4)


def test_the_way_there_and_back():
    snapshot = make_snapshot(make_training())
    status = parse_status(json.dumps(build_status(snapshot)).encode())
    (worker,) = status.snapshot.workers
    assert (worker.pid, worker.name, worker.held) == (4711, "train.py", snapshot.held)
    assert status.snapshot.machine.gpu == snapshot.machine.gpu
    assert status.level == "ok"


def test_every_value_of_a_computer_and_its_gpu_comes_from_another_host():
    """Also one that is new: the fields are read by their types."""
    gpu = Gpu("Apple M4 Pro", 20, 42.5, 3 * MB, 4 * MB, 0, 2)
    cores = (("Performance", 8), ("Efficiency", 4))
    machine = Machine(
        "macOS 26.3.2", (26, 3, 2), "Mac14,12", "Apple M4 Pro", 12, cores, 5 * MB, 4 * MB, MB,
        "warning", False, True, gpu, "mac",
    )  # fmt: skip
    for said in (machine, gpu):
        usual = [getattr(type(said)(), field.name) for field in fields(said)]
        assert all(getattr(said, f.name) != u for f, u in zip(fields(said), usual, strict=True))
    assert parse_machine(json.loads(json.dumps(build_machine(machine)))) == machine


def test_every_value_of_a_process_comes_from_another_host():
    process = Process(
        4711, 1.7e9, "train.py", ("torch", "mlx"), 4000, ("python", "train.py"), "/usr/bin/python3.11",
        "/venv/bin/python", "/venv", {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}, 3 * MB, 4 * MB, "rss", 42.5,
        True, False, True, True,
    )  # fmt: skip
    usual = Process(0, 0.0, "", ())
    assert all(getattr(process, f.name) != getattr(usual, f.name) for f in fields(process))
    snapshot = replace(make_snapshot(), processes=(process,))
    (read,) = parse_status(json.dumps(build_status(snapshot)).encode()).snapshot.processes
    assert read == replace(process, settings={})  # which nobody is shown of another host


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({}, Process(1, 0.0, "process 1", ("?",))),
        ({"name": "", "frameworks": [], "started": "now", "footprint_kind": "size"},
         Process(1, 0.0, "process 1", ("?",))),
        ({"name": 3, "frameworks": 9 * [30 * "x"], "gpu_percent": 101, "is_enabled": 1},
         Process(1, 0.0, "process 1", 5 * (20 * "x",))),
        ({"settings": {"A": "1"}, "command": ["python", "serve.py", 3, "--key", "x"]},
         Process(1, 0.0, "process 1", ("?",), command=("python", "serve.py", "…"))),
    ],
)  # fmt: skip
def test_wrong_types_and_sizes_of_a_process_are_not_known(sent, read):
    said = {"schema": 1, "workers": [], "processes": [{"pid": 1, **sent}]}
    assert parse_status(json.dumps(said).encode()).snapshot.processes == (read,)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"cores": -1, "memory_total": 2**60, "model": 3, "on_battery": 1}, Machine()),
        ({"pressure": "high", "os_version": [26, "3"], "core_kinds": [["P"], ["E", 4]]}, Machine()),
        ({"pressure": [], "os_version": "26", "core_kinds": {"P": 8}, "gpu": []}, Machine()),
        ({"model": "Mac\x1b[2J" + 300 * " x", "os_version": 30 * [1]},
         Machine(model=("Mac�[2J" + 300 * " x")[:200], os_version=20 * (1,))),
        ({"gpu": {"utilization": 101, "recoveries": 3}}, Machine(gpu=Gpu(recoveries=3))),
    ],
)  # fmt: skip
def test_wrong_types_and_sizes_of_a_computer_are_not_known(sent, read):
    assert parse_machine(sent) == read


MACHINE_KEYS = [field.name for kind in (Machine, Gpu) for field in fields(kind)]
MACHINES = st.dictionaries(
    st.sampled_from(MACHINE_KEYS),
    JSON | st.dictionaries(st.sampled_from(MACHINE_KEYS), JSON, max_size=4),
)


@given(ROWS, ROWS | st.none(), MACHINES | JSON, JSON)
def test_whatever_it_says_can_be_shown(workers_said, processes, machine, health):
    said = {
        "schema": 1,
        "time": 1,
        "workers": workers_said,
        "processes": processes,
        "machine": machine,
        "health": health,
    }
    status = parse_status(json.dumps(said).encode())
    shown = render_hosts([HostReading("mac", status, 1.0)])
    assert all(line.isprintable() for line in shown.split("\n"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "its output is not JSON"),
        (b"{" * 100_000, "its output is not JSON"),
        (b"[]", "its output is not a status"),
        (b'{"schema": 1}', "its output is not a status"),
        (
            b'{"schema": "\\u001b[2J", "workers": []}',
            "its mpsbar is another version (schema �[2J)",
        ),
        (b"\xff\xfe", "its output is not JSON"),
    ],
)
def test_what_is_no_status(line, why):
    with pytest.raises(UnusableAnswerError) as raised:
        parse_status(line)
    assert str(raised.value) == why


def test_rows_are_bounded():
    said = {"schema": 1, "workers": [{"pid": number + 1} for number in range(5000)]}
    assert len(parse_status(json.dumps(said).encode()).snapshot.workers) == 2000


def test_what_was_freed():
    said = {
        "schema": 1,
        "freed": [
            {"pid": 1, "name": "a\x1b[2J", "state": "done", "freed": MB},
            {"pid": 2, "state": "?"},
            3,
        ],
    }
    done, failed = parse_freed(json.dumps(said).encode())
    assert (done.name, done.state, done.freed) == ("a�[2J", "done", MB)
    assert failed.state == "failed"
    with pytest.raises(UnusableAnswerError):
        parse_freed(b'{"schema": 1, "freed": 3}')


def test_the_certainty_of_an_end_that_an_older_mpsbar_tells():
    ends = [{"pid": 7, "certainty": "known"}, {"pid": 8, "sureness": "likely"}, {"pid": 9}]
    found = parse_ends(json.dumps(ends).encode())
    assert [end.certainty for end in found] == ["known", "likely", None]
