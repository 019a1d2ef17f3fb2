"""Whatever a child process writes: never an exception, a wrong type or a control character."""

import json

from hypothesis import given
from hypothesis import strategies as st

from mpsbar.core.machine import Machine
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.untrusted import parse_object
from mpsbar.doctor.parse import parse_device
from mpsbar.doctor.render import build_doctor_json, render_doctor
from mpsbar.doctor.rules import STAGES, Device, build_doctor_report

FIELDS = (
    "version", "implementation", "architecture", "system", "prefix", "os_version", "translated",
    "settings", "found", "file", "preloaded", "cuda", "hip", "mps", "mps_error", "cuda_error",
    "device", "sum", "dtypes", "error",
)  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.just(10**400) | st.sampled_from(["darwin", "2.13.0", "arm64", "14.2", "9" * 5000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=30), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
VALUES = st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=8)


def answer(stage, **values):
    """As it comes through the pipe: 10**400 and nan are numbers in Python's JSON."""
    return parse_object(json.dumps({**values, "stage": stage}).encode())


@given(
    st.lists(st.tuples(st.sampled_from((*STAGES, "end")), VALUES), max_size=10),
    st.binary(max_size=50),
    st.sampled_from([None, 0, 1, -6, -11, -64, -200]),
)
def test_anything_becomes_a_device_that_can_be_judged_and_shown(stages, tail, code):
    device = parse_device(
        "/p/python", [answer(stage, **values) for stage, values in stages], tail, code
    )
    for name in ("version", "torch", "chosen", "error", "compute_error", "signal"):
        value = getattr(device, name)
        assert value is None or (isinstance(value, str) and value.isprintable())
    for name in ("translated", "mps_built", "mps_available", "cuda_available"):
        assert getattr(device, name) in (True, False, None)
    machine = Machine(os="macOS 14.2", os_version=(14, 2), chip="Apple M1")
    report = build_doctor_report(Snapshot(0.0, machine=machine), (device,))
    json.dumps(build_doctor_json(report), allow_nan=False)
    text = render_doctor(report, "/p")
    assert all(line.isprintable() for line in text.splitlines())


def test_a_number_beyond_all_numbers_is_none():
    assert parse_device("p", [answer("computed", sum=10**400)], b"", 0).computed is None


def test_no_answer_is_no_python():
    assert parse_device("p", [], b"", 0).ended == "not_python"
    assert parse_device("p", [{"stage": ["python"]}], b"", None).ended == "hung"


def test_the_first_answer_of_a_stage_counts_and_texts_are_cut():
    answers = [answer("python", version="3.11.4"), answer("python", version="x" * 9999)]
    assert parse_device("p", answers, b"", 0).version == "3.11.4"
    assert len(parse_device("p", answers[1:], b"", 0).version or "") == 1000


def test_torchs_longer_sentences_become_one_line():
    values = [answer("python"), answer("import", error="OSError: no\n  such\x1b[31m file")]
    assert parse_device("p", [*values, answer("end")], b"", 0) == Device(
        "p", "broken_torch", error="OSError: no such�[31m file"
    )


def test_the_metadatas_version_stands_until_torch_itself_tells():
    values = [answer("python"), answer("torch", found=True, version="2.5.1")]
    assert parse_device("p", values, b"", -6).torch == "2.5.1"
    values.append(answer("import", version="2.6.0+git"))
    assert parse_device("p", values, b"", -6).torch == "2.6.0+git"
