"""mpsbar limit and mpsbar run --limit as a person types them, with real workers."""

import sys

import pytest
from schema_kit import read_json
from worker_kit import NO_MPS, wait_for

needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
LIVE = """
import queue, torch, mpsbar
live = torch.empty(600 << 20, dtype=torch.uint8, device="mps")
cached = torch.empty(600 << 20, dtype=torch.uint8, device="mps")
del cached
mpsbar.attach()
print("attached")
queue.Queue().get()
"""


@needs_mps
def test_a_limit_is_set_shown_refused_and_taken_off(mpsbar, workers):
    worker = workers.start_mps(LIVE, fresh=True)
    worker.wait_line("attached")
    worker.wait_asleep()  # a limit waits five seconds for a main that does not wait yet
    pid = str(worker.pid)
    name = f"{pid} worker0.py:"

    def limit(*arguments):
        """Its end: on busy cores main may come by too late for it."""

        def find_end():
            done = mpsbar("limit", pid, *arguments)
            return None if "busy" in done.stdout else done

        return wait_for(find_end, "a limit")

    done = limit("75%")
    assert (done.returncode, done.stdout) == (
        0, f"{name} limited to 3.0 GB; it holds 1.2 GB\n",
    )  # fmt: skip
    assert read_json("status", mpsbar("status", "--json").stdout)["workers"][0]["limit"] == 3 << 30
    done = limit("500MB")
    assert (done.returncode, done.stdout) == (
        1, f"{name} it needs 603 MB, more than 500 MB: no limit was set; 600 MB of its cache was freed\n",
    )  # fmt: skip
    done = limit("OFF", "--json")
    assert done.returncode == 0
    outcome = read_json("limit", done.stdout)["limited"]
    assert (outcome["state"], outcome["asked"], outcome["limit"]) == ("done", None, None)
    done = limit("9GB")
    assert done.returncode == 2
    assert "more than twice Metal's budget of 4.0 GB: '9GB'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("7",), "the following arguments are required: SIZE|off"),
        (("7", "24"), "not a size: '24'; for example 24GB, 1500MB or 75%"),
        (("7", "1MB"), "a limit must be at least 64 MB: '1MB'"),
        (("7", "75%"), "Metal's budget is not known here: give a size, such as 24GB"),
        (("x", "off"), "not a process ID: 'x'"),
    ],
)
def test_wrong_arguments_are_one_line(mpsbar, workers, arguments, complaint):
    done = mpsbar("limit", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_nobody_has_this_pid(mpsbar, workers):
    done = mpsbar("limit", "2147483646", "off")
    told = "2147483646: no process has this PID (run mpsbar status to list them)\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


def test_an_agent_without_limits_says_what_to_do(mpsbar, workers):
    worker = workers.start("""
import mpsbar.agent.methods as methods
methods.JOBS = ("free", "tensors")
import mpsbar, time
mpsbar.attach()
while True: time.sleep(0.05)
""")
    done = mpsbar("limit", str(worker.pid), "off")
    assert done.returncode == 1
    assert done.stdout.endswith("failed: its agent is too old to set limits: restart the process\n")


TRAIN = """
import torch
live, largest = [], 0
try:
    for _ in range(300):
        live.append(torch.empty(20 << 20, dtype=torch.uint8, device="mps"))
        largest = max(largest, torch.mps.driver_allocated_memory())
except RuntimeError as error:
    print(str(error).partition(" (")[0], largest <= 3 << 30, len(live))
"""


@needs_mps
def test_a_run_with_a_limit_is_refused_memory_before_it_exceeds_it(mpsbar, workers):
    # A recorded Mac has Metal's budget, the device in software has it too.
    mac = {"MPSBAR_REPLAY": "m1-8gb", "SOFTMPS": "1", "SOFTMPS_MEMORY": "5726633984"}
    done = mpsbar("run", "--limit", "3GB", sys.executable, "-c", TRAIN, **mac)
    assert done.stdout == "MPS backend out of memory True 153\n"
    done = mpsbar(
        "run",
        "--limit",
        "3GB",
        sys.executable,
        "-c",
        TRAIN,
        **mac,
        PYTORCH_MPS_HIGH_WATERMARK_RATIO="1.5",
    )
    assert done.stdout == ""
    assert done.stderr == (
        "mpsbar: PYTORCH_MPS_HIGH_WATERMARK_RATIO=1.5 is already set, so --limit does not apply to PyTorch\n"
    )


def test_a_limit_that_makes_no_sense_starts_nothing(mpsbar, workers):
    for size, complaint in (
        ("24", "not a size: '24'"),
        ("75%", "Metal's budget is not known here"),
    ):
        done = mpsbar("run", "--limit", size, sys.executable, "-c", "print('started')")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"mpsbar run: --limit: {complaint}" in done.stderr
    # Behind the command it is the command's own.
    done = mpsbar("run", sys.executable, "-c", "import sys; print(sys.argv[1:])", "--limit", "24")
    assert done.stdout == "['--limit', '24']\n"
