"""Twenty kinds of secrets in a real worker's title, arguments, variables and notebook: none comes out."""

import json
import logging
import os
import sys
import sysconfig

import pytest
from agent.test_secrets import SECRETS
from cli.command_kit import shown_on_a_terminal
from fleet_kit import run_exporter, wait_page
from fork_server import run_mpsbar
from host_kit import add_stand_in
from ui.menubar_kit import MenuBarUser
from worker_kit import ATTACH, ROOT, TIMEOUT, TORCH, wait_for

from mpsbar.history.recorder import Recorder
from mpsbar.monitor import Monitor
from mpsbar.system import paths
from mpsbar.system.log import start_log

TITLES = ("serve --api-key", "/opt/bin/serve --api-key", "./serve --token")
HIDDEN = "hunter2"  # of no known shape: only its place tells
ERROR = f"could not log in: api_key={HIDDEN} {' '.join(SECRETS)}"
# Its traceback is the program's own: only what mpsbar shows of the error is searched.
RAISE = f"""
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
raise ValueError({ERROR!r})
"""


def plant(workers):
    """Workers with secrets, one without a title and one for each; the script that they run."""
    arguments = [f"--key-{number}={secret}" for number, secret in enumerate(SECRETS)]
    variables = {f"PYTORCH_SECRET_{number}": secret for number, secret in enumerate(SECRETS)}
    variables["PYTHONPATH"] = f"{add_stand_in(workers.folder)}:{ROOT}"  # for torch
    script = workers.folder / f"serve{os.getpid()}.py"  # others may test on this machine too
    stop = f"{workers.folder}/stop"
    wait = f"import os, time\nwhile not os.path.exists({stop!r}): time.sleep(0.05)\n"
    script.write_text(TORCH + ATTACH + wait + RAISE)
    # Under another name Python does not find its venv.
    site = sysconfig.get_path("purelib")
    run = f"import runpy, site, sys; site.addsitedir({site!r}); sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    planted = [
        workers.run(
            [sys.executable, str(script), "data", *arguments, "--password", HIDDEN], **variables
        ),
    ]
    for title in TITLES:  # Python under a title of its own, as setproctitle makes it
        command = [f"{title} {HIDDEN} {' '.join(SECRETS)}", "-c", run, str(script)]
        planted.append(workers.run(command, popen={"executable": sys.executable}, **variables))
    for worker in planted:
        worker.wait_attached()
    return script


def end_planted(workers):
    """Each ends by an exception whose text has all of the secrets."""
    (workers.folder / "stop").touch()
    for worker in workers.started:
        assert worker.process.wait(TIMEOUT) == 1


def search(texts):
    for text in texts:
        for secret in (*SECRETS, HIDDEN):
            assert secret not in text, text[max(0, text.find(secret) - 200) :][:400]


def test_no_output_and_no_file_has_a_planted_secret(
    mpsbar, workers, private, monkeypatch, light_torch
):
    script = plant(workers)
    pid = str(workers.started[0].pid)
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(workers.folder / "data"))
    top = shown_on_a_terminal(
        workers, "top", until=(script.name.encode(), 1), COLUMNS="160", LINES="40", end=b"q"
    )
    problems = []
    monitor = Monitor(recorder=Recorder(problems.append))
    for _ in range(3):
        monitor.tick()
    limited = [mpsbar("limit", pid, "1GB", *options) for options in ([], ["--json"])]
    assert script.name in limited[0].stdout + limited[0].stderr
    end_planted(workers)
    for _ in range(3):
        monitor.tick()
    monitor.close()
    raising = workers.folder / "raises.py"
    raising.write_text("import os\n" + ATTACH + RAISE)
    summary = workers.folder / "summary.json"
    command = [sys.executable, str(raising), f"--password={HIDDEN}", *SECRETS]
    runs = [
        mpsbar("run", "--summary", *command),
        mpsbar("run", "--summary=json", str(summary), *command),
        mpsbar("run", "--summary", "--explain", *command),
    ]
    assert "ValueError" in runs[0].stderr
    assert "ValueError" in summary.read_text()
    report = workers.folder / "report.html"
    outputs = [
        mpsbar(*arguments, PYTHONPATH=light_torch)
        for arguments in (
            ["status"], ["status", "--json"], ["free", "--all"], ["free", "--all", "--json"],
            ["status", "--format", "{top} {health} {held} {processes}"], ["enable", "--list"],
            ["doctor", "--python", sys.executable], ["doctor", "--json", "--python", sys.executable],
            ["doctor", "--self-test", "--share"], ["report", "-o", str(report)], ["why"],
            ["why", "--json", "-n", "50"], ["why", script.name], ["config", "print"], ["login", "status"],
        )
    ]  # fmt: skip
    texts = [top, *(done.stdout + done.stderr for done in (*outputs, *limited, *runs))]
    assert {end["name"] for end in json.loads(outputs[-4].stdout)} >= {script.name, "serve"}
    ours = (script, raising)
    files = [path for path in workers.folder.rglob("*") if path.is_file() and path not in ours]
    ended = [path.read_text() for path in files if path.parent.name == "ended"]
    assert len(ended) == 1 + len(TITLES) + len(runs)
    assert all("could not log in: ***" in text for text in ended)
    texts += [path.read_bytes().decode("utf-8", "replace") for path in files]
    assert any(path.name == "history.sqlite" for path in files)
    assert report in files
    search(texts)


def end_log():
    logger = logging.getLogger("mpsbar")
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True


# On a Mac the ticking thread ends with the process; here it may find AppKit gone.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_no_row_notice_and_line_of_the_log_has_one(mac, workers, calm_computer):
    """The menu bar, on the double of AppKit: its rows, its notices, its log and Copy Diagnostics."""
    from AppKit import NSPasteboard, NSPasteboardTypeString

    start_log()
    script = plant(workers)
    monitor = Monitor(interval=0.2)
    user = MenuBarUser(mac, monitor)
    shown = []

    def is_told():
        """Of the script itself: the others end beside it, some sooner."""
        is_logged = f"{script.name} ended" in paths.log_file().read_text()
        return is_logged and "could not log in: ***" in str(user.notices.told)

    def person():
        mac.wait_for(lambda: len(monitor.latest.workers) == 1 + len(TITLES), TIMEOUT)
        mac.wait(5)
        shown.append(user.lines())
        shown.append(user.lines(script.name))
        user.click(script.name, "Notify When Finished")
        user.click("Copy Diagnostics")
        board = NSPasteboard.generalPasteboard()
        mac.wait_for(lambda: mac.wait(0.2) or board.stringForType_(NSPasteboardTypeString), TIMEOUT)
        end_planted(workers)
        mac.wait_for(lambda: mac.wait(0.2) or is_told(), TIMEOUT)
        mac.wait(5)
        shown.append(user.lines())
        shown.append(board.stringForType_(NSPasteboardTypeString))

    try:
        user.run(person)
    finally:
        monitor.close()
        end_log()
    log = paths.log_file().read_text()
    assert script.name in shown[-1]  # the diagnostics
    assert f"{script.name} ended" in log
    assert "could not log in: ***" in str(user.notices.told)
    search([log, str(user.notices.told), str(shown)])


def test_no_page_and_no_file_of_the_exporter_has_one(workers, tmp_path):
    script = plant(workers)
    file = tmp_path / "mpsbar.prom"
    with run_exporter(workers, "--textfile", str(file)) as (_, url):
        live = f'mpsbar_workers{{state="live"}} {1 + len(TITLES)}.0'
        page = wait_page(url, f'name="{script.name}"', live)
        wait_for(lambda: file.exists() and script.name in file.read_text(), "the file")
        search([page, file.read_text()])


def test_no_answer_of_another_host_has_one(workers, ssh_hosts, mpsbar):
    script = plant(workers)
    ssh_hosts.add("alpha")
    lying = (
        '{"schema": 1, "time": 1, "workers": [{"pid": 7, "name": "x --key %s"}], "processes": []}'
    )
    ssh_hosts.add("beta", f"echo '{lying % SECRETS[0]}'")
    options = ["--ssh", ssh_hosts.options, "--host", "alpha", "--host", "beta"]
    outputs = [mpsbar("status", *options), mpsbar("status", "--json", *options)]
    outputs.append(mpsbar("free", "--all", "--json", *options))
    assert script.name in outputs[0].stdout
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
def test_compare_shows_none_of_what_a_model_raises(workers, when, first):
    text = ERROR
    script = workers.folder / "model.py"
    script.write_text(RAISES.format(when=when, first=first.format(text=text), text=text))
    for arguments in ([], ["--json"]):
        command = ["compare", f"{script}:make", "--python", sys.executable, *arguments]
        done = run_mpsbar(command, env=workers.env(), cwd=ROOT, timeout=TIMEOUT)
        assert done.stdout + done.stderr
        search([done.stdout + done.stderr])
