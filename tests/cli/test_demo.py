"""mpsbar demo: small real workers, or a recorded Mac."""

import re

import pytest
from cli.command_kit import shown_on_a_terminal
from worker_kit import NO_MPS, wait_for

from mpsbar.cli.demo import plan_workers


def test_the_demo_on_a_terminal_is_live_until_ctrl_c(workers, private):
    """Its workers without torch, whose import takes long; the others are in the next but one."""
    if "mlx_worker.py" not in plan_workers():
        pytest.skip("MLX is not here")
    only = "from mpsbar.cli import demo; demo.plan_workers = lambda: {'mlx_worker.py': {}}"
    code = f"{only}; from mpsbar.__main__ import main; main()"
    until = (b"mlx_worker.py", 2)  # the first says that it is starting
    shown = shown_on_a_terminal(workers, "demo", until=until, also=b"Quit", code=code)
    assert "\x1b[?1049l" in shown  # the modes of the terminal were put back
    assert shown.rstrip().endswith("a recorded Mac")  # what to try next


def test_the_demo_on_a_terminal_without_textual_is_text_until_ctrl_c(workers, private):
    """The first is printed, the second drawn at once, the third by the ticking thread."""
    without = "import sys; sys.modules['textual'] = None; from mpsbar.__main__ import main; main()"
    until = (b"Press Ctrl-C to stop", 3)
    shown = shown_on_a_terminal(workers, "demo", "--recorded", until=until, code=without)
    assert "RECORDED" in shown


def test_the_demo_of_a_recorded_mac(mpsbar):
    done = mpsbar("demo", "--recorded")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "An M1 Max with 64 GB under load. Made up for this recording: everything else"
    )
    assert " Apple M1 Max · 64.0 GB · pressure normal · RECORDED\n" in done.stdout
    assert " └ 2 child processes                    ≤ 610 MB  (not connected)\n" in done.stdout


def test_the_demo_without_a_terminal_frees_real_bytes_and_ends(mpsbar, workers):

    def run_demo():
        """On busy cores a main thread may come by too late for its Free."""
        done = mpsbar("demo")
        return None if ": busy: " in done.stdout else done

    done = wait_for(run_demo, "a Free")
    assert done.returncode == 0, done.stderr
    menus = done.stdout.split("⬢ ")[1:]
    assert len(menus) == 2
    expected = ["torch_worker.py"]
    expected += ["software_mps_worker.py"] if NO_MPS is None else []
    for name in expected:
        assert name in menus[0]
    freed = re.search(r"^freed ([\d.]+) ([kMG])B in ", done.stdout, re.MULTILINE)
    assert freed is not None
    assert float(freed[1]) > 0
    assert "(cached" in menus[0]
    assert "freed" in menus[1]
    assert list(workers.run_dir.iterdir()) == [] or wait_for(
        lambda: not mpsbar("status").stdout.startswith(" PID"), "end of the workers"
    )
