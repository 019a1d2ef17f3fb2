"""What is pasted into a bug report tells enough, and nothing private."""

from dataclasses import replace

import pytest
from history_kit import make_doctor_report, make_report_snapshot
from report_kit import HOME, make_probe

from mpsbar.core.machine import Process
from mpsbar.doctor.diagnostics import bare_name, render_diagnostics
from mpsbar.dtypes.summary import render_brief


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("train.py", "train.py"),
        ("torchrun train.py rank 1 of 4", "torchrun train.py rank 1 of 4"),
        ("/Users/jane/secret/serve --key=hunter2 --port 80", "serve"),
        ("ray::Trainer /data/jane/run", "ray::Trainer run"),
        ("-m pkg.train", "-m pkg.train"),
        ("", ""),
    ],
)
def test_a_name_is_neither_a_path_nor_its_arguments(name, bare):
    assert bare_name(name) == bare


def test_versions_memory_processes_dtypes_and_nothing_private():
    cached = "/Users/jane/secret cache"
    odd = Process(
        4800, 1.0, "/Users/jane/secret/app --token=hunter2", ("torch",),
        command=("/Users/jane/secret/app", "--token=hunter2"),
        settings={"PYTORCH_KERNEL_CACHE_PATH": "/Users/jane/k\x1b[31m"}, environment=cached,
    )  # fmt: skip
    seen = make_report_snapshot()
    seen = replace(seen, processes=(*seen.processes, odd))
    text = render_diagnostics(
        "0.1.0 · Python 3.12.1", seen, make_doctor_report(), HOME, render_brief(make_probe())
    )
    assert text.startswith("mpsbar 0.1.0 · Python 3.12.1\n\nApple M3 Max · 36.0 GB")
    for word in ("hunter2", "secret", HOME, "\x1b"):
        assert word not in text
    assert "app (4800): PYTORCH_KERNEL_CACHE_PATH=~/k" in text
    assert "old_run.py (4100) ended 3 min ago, peak 11.2 GB, exit code unknown" in text
    assert "  float64        unsupported: as expected: TypeError" in text
    assert text.endswith("To check a specific Python: mpsbar doctor --python PATH\n")


def test_without_an_inspection_of_the_pythons():
    text = render_diagnostics("1", make_report_snapshot(), None, HOME)
    assert "4001  train_1.py" in text and "dtypes" not in text
