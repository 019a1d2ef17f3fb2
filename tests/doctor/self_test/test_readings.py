"""The file of a self-test: complete, and without what is private."""

import json
import subprocess
import sys

from system.scripted import Scripted
from worker_kit import ROOT

from mpsbar.doctor.self_test.readings import collect_readings, hide_names
from mpsbar.system.platform import GpuClient


def test_all_is_read_timed_and_nobody_is_named():
    computer = Scripted(
        pids={7: 1.0, 8: 1.0, 9: 1.0},
        libraries={7: {"torch": "/Users/ada/secret/libtorch.dylib"}, 8: PermissionError(1)},
        clients={5: GpuClient(7, 12, True)},
    )
    found = collect_readings(computer)
    assert (found["processes"], found["gpu_clients"]) == (3, [[12, True]])
    assert found["frameworks"] == {"torch": 1, "PermissionError": 1}
    assert set(found["seconds"]) == {"machine", "processes", "gpu clients", "libraries"}
    assert found["machine"]["chip"] == "Apple M9"
    assert "ada" not in json.dumps(found)


def test_what_fails_is_a_reading_too():
    found = collect_readings(Scripted(machine=OSError("no"), pids=OSError("none")))
    assert (found["machine"], found["processes"]) == ("OSError: no", "OSError: none")


def test_names_are_taken_out_of_ioreg():
    tree = [{"model": "Apple M1", "children": [{"IOUserClientCreator": "pid 7, Ada's app, x"}]}]
    assert hide_names(tree) == [
        {"model": "Apple M1", "children": [{"IOUserClientCreator": "pid 7, …"}]}
    ]


def test_it_is_shown_before_it_is_shared(workers, private):
    command = [sys.executable, "-m", "mpsbar", "doctor", "--self-test"]
    env = workers.env()
    plain, shown = (
        subprocess.run([*command, *more], capture_output=True, text=True, cwd=ROOT, env=env)
        for more in ([], ["--share"])
    )
    assert plain.stdout.endswith("self-test.json; --share shows it.\n")
    assert json.loads(shown.stdout[shown.stdout.index("\n{\n") :])["schema"] == 1
    refused = subprocess.run(
        [*command[:-1], "--share"], capture_output=True, text=True, cwd=ROOT, env=env
    )
    assert (refused.returncode, refused.stderr) == (2, "mpsbar: --share requires --self-test\n")
