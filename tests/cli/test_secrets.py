"""Twenty kinds of secrets in a real worker's title, arguments, variables and notebook: none comes out."""

import subprocess
import sys
import sysconfig

from core.test_secrets import SECRETS
from worker_kit import ATTACH, TORCH

from mpsbar.history.recorder import Recorder
from mpsbar.monitor import Monitor

HIDDEN = "hunter2"  # of no known shape: only its place tells


def test_no_output_and_no_file_has_a_planted_secret(mpsbar, workers, private, monkeypatch):
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
            ["status"], ["status", "--json"], ["free", "--all", "--json"],
            ["doctor", "--python", sys.executable], ["report", "-o", str(report)],
        )
    ]  # fmt: skip
    texts = [done.stdout + done.stderr for done in outputs]
    assert "serve.py" in texts[0]
    files = [path for path in workers.folder.rglob("*") if path.is_file() and path != script]
    texts += [path.read_bytes().decode("utf-8", "replace") for path in files]
    assert any(path.name == "history.sqlite" for path in files)
    assert report in files
    for text in texts:
        for secret in (*SECRETS, HIDDEN):
            assert secret not in text, text[max(0, text.find(secret) - 200) :][:400]


assert subprocess  # it starts processes
