"""The schemas in resources/schema: in step with the code, and real output is as they say.

What the other commands print is checked in their own tests, by tests/schema_kit.py.
"""

import json
import sys

import pytest
from jsonschema import Draft202012Validator
from schema_kit import FOLDER, check, read_json, validator
from worker_kit import ATTACH, ROOT, need_module


@pytest.fixture
def reference(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import build_reference

    return build_reference


def test_the_files_are_in_step_with_the_code(reference):
    built = reference.build_files()
    stale = [p for p, text in built.items() if (ROOT / p).read_text(encoding="utf-8") != text]
    assert stale == [], "make reference writes them"
    kept = {str(file.relative_to(ROOT)) for file in FOLDER.iterdir()}
    assert kept == {path for path in built if path.startswith("resources/schema/")}


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.stem)
def test_each_is_a_json_schema(file):
    Draft202012Validator.check_schema(json.loads(file.read_text()))


@pytest.mark.parametrize("recording", ["m1-8gb", "m1max-64gb"])
def test_status_of_recorded_macs(mpsbar, recording):
    status = read_json("status", mpsbar("status", "--json", MPSBAR_REPLAY=recording).stdout)
    assert status["workers"]
    assert status["machine"]["gpu"]["name"]


def test_status_of_real_workers(workers, mpsbar):
    need_module("torch")
    worker = workers.start(
        ATTACH
        + "import torch; hold = torch.ones(1 << 20)\n"
        + "import time\nwhile True: time.sleep(0.05)\n"
    )
    status = read_json("status", mpsbar("status", "--json").stdout)
    assert worker.pid in {each["pid"] for each in status["workers"]}
    one = read_json("status", mpsbar("status", str(worker.pid), "--json").stdout)
    assert [each["pid"] for each in one["workers"]] == [worker.pid]


def test_a_field_that_is_missing_additional_or_of_another_kind_is_noticed(mpsbar):
    status = json.loads(mpsbar("status", "--json", MPSBAR_REPLAY="m1-8gb").stdout)
    del status["workers"][0]["held"]
    status["machine"]["gpu"]["colour"] = "grey"
    status["health"]["level"] = "splendid"
    found = {error.json_path for error in validator("status").iter_errors(status)}
    assert found == {"$.workers[0]", "$.machine.gpu", "$.health.level"}
    with pytest.raises(AssertionError):
        check("status", status)


def test_a_later_mpsbars_field_is_allowed_by_the_shipped_one(mpsbar):
    status = json.loads(mpsbar("status", "--json", MPSBAR_REPLAY="m1-8gb").stdout)
    status["machine"]["gpu"]["colour"] = "grey"
    shipped = json.loads((FOLDER / "status.json").read_text())
    assert list(Draft202012Validator(shipped).iter_errors(status)) == []


def test_the_self_test(mpsbar):
    read_json("self-test", mpsbar("doctor", "--self-test", "--json").stdout)


def test_the_summary_of_a_run(mpsbar, tmp_path):
    file = tmp_path / "run.json"
    mpsbar("run", "--summary=json", str(file), sys.executable, "-c", "raise SystemExit(3)")
    summary = read_json("run-summary", file.read_text())
    assert summary["verdict"]["code"] == "exit_code"
