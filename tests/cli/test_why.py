"""mpsbar why as a person types it: which runs ended, why, and how sure that is."""

import json
import subprocess
import sys

from endings.campaign import run_unseen
from endings.end_cases import QUICK
from schema_kit import read_json
from worker_kit import ROOT, TIMEOUT


def test_of_the_runs_that_ended_it_tells_of_those_that_were_asked_for(mpsbar, workers):
    nothing = mpsbar("why")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert nothing.stderr.startswith("mpsbar knows of no run that ended in the last 7 days")
    ways = {way.name: way for way in QUICK}
    pids = run_unseen(workers, [ways["exception"], ways["sys.exit(3)"]], library=None)
    by_name = {way.name: pid for pid, way in pids.items()}
    shown = mpsbar("why", "exception")
    assert shown.returncode == 0
    assert shown.stdout.startswith("exception.py ended with ValueError: bad at exception.py:")
    assert "  Certainty: known\n  Evidence: the exit record written by its agent" in shown.stdout
    assert ", ran for " in shown.stdout
    (record,) = read_json("why", mpsbar("why", str(by_name["sys.exit(3)"]), "--json").stdout)
    assert (record["verdict"]["code"], record["verdict"]["sure"]) == ("exited", "known")
    other = mpsbar("why", "nobody.py", "--json")
    assert (other.returncode, json.loads(other.stdout)) == (1, [])
    assert "matches 'nobody.py'" in mpsbar("why", "nobody.py").stderr
    assert mpsbar("why", "-n", "0").returncode == 2


def test_it_knows_what_the_summary_knew(mpsbar, workers):
    """The exit code is the parent's to know; of a killed command nobody else left anything."""
    (workers.folder / "three.py").write_text(
        "import mpsbar, sys; assert mpsbar.attach()\nsys.exit(3)\n"
    )
    done = mpsbar(
        "run", "--summary", sys.executable, "three.py",
        PYTHONPATH=str(ROOT), popen={"cwd": workers.folder},
    )  # fmt: skip
    assert "three.py ended with exit code 3" in done.stderr
    shown = mpsbar("why", "three.py").stdout
    assert shown.startswith("three.py ended with exit code 3.\n")
    assert ", ran for " in shown
    (workers.folder / "killed.py").write_text(
        "import mpsbar, time; assert mpsbar.attach()\nwhile True: time.sleep(0.1)\n"
    )
    (workers.folder / "parent.py").write_text(
        "import os, sys\n"
        "from mpsbar.cli import run_summary\n"
        "note = run_summary.Collector._note\n"
        "def note_and_kill(self, snapshot):\n"
        "    note(self, snapshot)\n"
        "    if self._root in self.usage.exit_record_pids: os.kill(self._root, 9)\n"
        "run_summary.Collector._note = note_and_kill\n"
        "run_summary.run([sys.executable, 'killed.py'], dict(os.environ), None)\n"
    )
    done = subprocess.run(
        [sys.executable, "parent.py"], env=workers.env(PYTHONPATH=str(ROOT)), cwd=workers.folder,
        capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.returncode == -9
    sentence = done.stderr.partition("mpsbar: ")[2].splitlines()[0]
    assert sentence.startswith("killed.py was killed")
    (record,) = read_json("why", mpsbar("why", "killed.py", "--json").stdout)
    assert (record["sentence"], record["verdict"]["values"]["signal"]) == (sentence, 9)


def test_it_does_not_take_an_unreadable_history_for_an_empty_one(mpsbar, workers):
    empty = mpsbar("why")
    assert empty.returncode == 1
    assert "knows of no run that ended in the last 7 days" in empty.stderr
    (workers.folder / "data").mkdir(mode=0o700, exist_ok=True)
    history = workers.folder / "data" / "history.sqlite"
    history.write_text("this is no database, but it is long enough to have a header" * 100)
    unreadable = mpsbar("why")
    assert (unreadable.returncode, unreadable.stderr) == (
        1,
        "mpsbar: the history can't be read, so runs may be missing here: file is not a database\n",
    )
