"""docs/reference against what really happens: the protocol page names what a real worker answers."""

import importlib

import pytest
from worker_kit import ATTACH, ROOT, UNPACED, need_module

from mpsbar.core.settings import KEYS


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    return importlib.import_module("reference_pages")


def test_every_field_that_a_worker_answers_is_on_the_page(workers, pages):
    need_module("mlx")
    code = f"{UNPACED}\nimport mlx.core as mx, time\nhold = mx.ones(1 << 20); mx.eval(hold)\n{ATTACH}print('attached')\nwhile True: time.sleep(0.05)\n"
    worker = workers.start(code)
    worker.wait_line("attached")
    worker.wait_asleep()  # a count waits five seconds for a main that does not wait yet
    answers = {"hello": {}, "stats": {}, "free": {}, "tensors": {}, "limit": {"bytes": 1 << 30}}
    assert list(pages.METHODS) == worker.ask("hello")["methods"] == list(answers)
    for method, params in answers.items():
        answer = worker.ask(method, **params)
        assert set(answer) == set(pages.METHODS[method][2]), method


def test_the_pages_name_every_setting_method_and_metric(pages):
    settings = pages.render_page("settings")
    assert all(f"| `{key}` |" in settings for key in KEYS)
    protocol = pages.render_page("protocol")
    assert all(f"\n## {method}\n" in protocol for method in pages.METHODS)
    metrics = pages.render_page("metrics")
    assert metrics.count("| `mpsbar_") == len(pages._list_metrics()) > 40
