"""Twenty kinds of secrets in a real worker's title, arguments, variables and notebook: none comes out."""

import subprocess
import sys
import sysconfig

import pytest
from core.test_secrets import SECRETS
from fleet_kit import run_exporter, wait_page
from worker_kit import ATTACH, TORCH, wait_for

from mpsbar.history.recorder import Recorder
from mpsbar.monitor import Monitor

HIDDEN = "hunter2"  # of no known shape: only its place tells


def plant(workers):
    """Two workers with secrets; the script they run, and their files."""
    arguments = [f"--key-{number}={secret}" for number, secret in enumerate(SECRETS)]
    variables = {f"PYTORCH_SECRET_{number}": secret for number, secret in enumerate(SECRETS)}
    script = workers.folder / "serve.py"
    script.write_text(TORCH + ATTACH + "import time\nwhile True: time.sleep(0.05)\n")
    titled = f"serve --api-key {HIDDEN} {' '.join(SECRETS)}"
    # Under another name Python does not find its venv.
    site = sysconfig.get_path("purelib")
    run = f"import runpy, site, sys; site.addsitedir({site!r}); sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    planted = [
        workers.run(
            [sys.executable, str(script), "data", *arguments, "--password", HIDDEN], **variables
        ),
        # Python under a title of its own, as setproctitle makes it.
        workers.run(
            [titled, "-c", run, str(script)], popen={"executable": sys.executable}, **variables
        ),
    ]
    for worker in planted:
        worker.wait_attached()
    return script


def search(texts):
    for text in texts:
        for secret in (*SECRETS, HIDDEN):
            assert secret not in text, text[max(0, text.find(secret) - 200) :][:400]


def test_no_output_and_no_file_has_a_planted_secret(mpsbar, workers, private, monkeypatch):
    script = plant(workers)
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(workers.folder / "data"))
    problems = []
    monitor = Monitor(recorder=Recorder(problems.append))
    for _ in range(3):
        monitor.tick()
    monitor.close()
    report = workers.folder / "report.html"
    outputs = [
        mpsbar(*verb)
        for verb in (
            ["status"], ["status", "--json"], ["free", "--all"], ["free", "--all", "--json"],
            ["status", "--format", "{top} {health} {held} {processes}"], ["enable", "--list"],
            ["doctor", "--python", sys.executable], ["doctor", "--json", "--python", sys.executable],
            ["doctor", "--self-test", "--share"], ["report", "-o", str(report)],
        )
    ]  # fmt: skip
    texts = [done.stdout + done.stderr for done in outputs]
    assert "serve.py" in texts[0]
    files = [path for path in workers.folder.rglob("*") if path.is_file() and path != script]
    texts += [path.read_bytes().decode("utf-8", "replace") for path in files]
    assert any(path.name == "history.sqlite" for path in files)
    assert report in files
    search(texts)


def test_no_page_and_no_file_of_the_exporter_has_one(workers, tmp_path):
    plant(workers)
    file = tmp_path / "mpsbar.prom"
    with run_exporter(workers, "--textfile", str(file)) as (_, url):
        page = wait_page(url, 'name="serve.py"', 'mpsbar_workers{state="live"} 2.0')
        wait_for(lambda: file.exists() and "serve.py" in file.read_text(), "the file")
        search([page, file.read_text()])


def test_no_answer_of_another_host_has_one(workers, ssh_hosts, mpsbar):
    plant(workers)
    ssh_hosts.add("alpha")
    lying = (
        '{"schema": 1, "time": 1, "workers": [{"pid": 7, "name": "x --key %s"}], "processes": []}'
    )
    ssh_hosts.add("beta", f"echo '{lying % SECRETS[0]}'")
    options = ["--ssh", ssh_hosts.options, "--host", "alpha", "--host", "beta"]
    outputs = [mpsbar("status", *options), mpsbar("status", "--json", *options)]
    outputs.append(mpsbar("free", "--all", "--json", *options))
    assert "serve.py" in outputs[0].stdout
    assert "beta" in outputs[0].stdout
    search([done.stdout + done.stderr for done in outputs])


RAISES = """
import os, torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
    def forward(self, x):
        if {when}: raise ValueError({text!r})
        return self.layer(x)
def make():
    {first}
    return Model(), torch.ones(2, 4)
"""


@pytest.mark.parametrize(
    ("when", "first"), [("True", ""), ("False", "raise ValueError({text!r})"), ("False", "os._exit(3)")]
)  # fmt: skip
def test_compare_shows_none_of_what_a_model_raises(mpsbar, workers, when, first):
    text = f"could not log in: api_key={HIDDEN} {' '.join(SECRETS)}"
    script = workers.folder / "model.py"
    script.write_text(RAISES.format(when=when, first=first.format(text=text), text=text))
    for arguments in ([], ["--json"]):
        done = mpsbar("compare", f"{script}:make", "--python", sys.executable, *arguments)
        assert done.stdout + done.stderr
        search([done.stdout + done.stderr])


assert subprocess  # it starts processes
