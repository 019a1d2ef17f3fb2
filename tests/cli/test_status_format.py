"""mpsbar status --format as a status bar calls it."""

import json
import time

import pytest
from fleet_kit import MLX_WORKER, run_mpsbar
from worker_kit import TIMEOUT, need_module

from mpsbar.cli.main import run


def ask(workers, *arguments):
    with run_mpsbar(workers, "status", *arguments) as process:
        out, err = process.communicate(timeout=TIMEOUT)
        return process.returncode, out, err


def cache(workers):
    return workers.folder / "data/status-line.json"


def test_a_worker_and_the_kept_answer(workers):
    need_module("mlx")
    workers.start(MLX_WORKER)
    assert ask(workers, "--format", "{held} {top}") == (0, "20.0 MB worker0.py\n", "")
    record = json.loads(cache(workers).read_text())
    # What another status bar has just read is taken.
    record |= {"time": time.time() + 0.0, "fields": record["fields"] | {"held": "kept"}}
    for moment, expected in ((3600.0, "20.0 MB\n"), (-3600.0, "20.0 MB\n")):
        cache(workers).write_text(json.dumps(record | {"time": time.time() + moment}))
        assert ask(workers, "--format", "{held}")[1] == expected


def test_a_fresh_answer_is_taken(workers, monkeypatch, capsys):
    for name, value in workers.env().items():
        monkeypatch.setenv(name, value)
    assert run(["status", "--format", "{held}"]) == 0
    record = json.loads(cache(workers).read_text())
    fields = record["fields"] | {"held": "kept"}
    cache(workers).write_text(json.dumps({"time": time.time(), "fields": fields}))
    monkeypatch.setattr("mpsbar.cli.status._FRESH_SECONDS", 3600.0)
    capsys.readouterr()
    assert run(["status", "--format", "{held}"]) == 0
    assert capsys.readouterr().out == "kept\n"


def test_damaged_answers_are_replaced(workers):
    cache(workers).parent.mkdir(0o700)
    said = f"mpsbar will not use {cache(workers)}: it is "
    for text in ("", "[]", '{"time": "x"}', "[" * 5000, "\x00" * 99):
        cache(workers).write_text(text)
        assert ask(workers, "--format", "{workers}") == (0, "0\n", f"{said}damaged\n")
    cache(workers).write_text('{"time": 1e400, "fields": {}}')  # of another time
    assert ask(workers, "--format", "{workers}") == (0, "0\n", "")
    cache(workers).unlink()
    cache(workers).mkdir()
    assert ask(workers, "--format", "{workers}") == (0, "0\n", f"{said}not a file\n")


@pytest.mark.parametrize("other", [("1",), ("--watch",), ("--host", "mac1"), ("--hosts",)])
def test_what_it_cannot_do_is_not_passed_over(capsys, other):
    with pytest.raises(SystemExit) as end:
        run(["status", "--format", "{held}", *other])
    assert end.value.code == 2
    assert capsys.readouterr() == (
        "",
        "mpsbar status: --format prints one line about this computer: it can't be combined with PID, --watch or --host"
        " (see mpsbar status --help)\n",
    )


def test_a_wrong_field_is_one_sentence(workers):
    code, out, err = ask(workers, "--format", "{helt}")
    assert (code, out) == (1, "")
    assert err.startswith("mpsbar: {helt} is not a field of --format; the fields are held, ")
    assert ask(workers, "--format", "x", "--json")[0] == 2
