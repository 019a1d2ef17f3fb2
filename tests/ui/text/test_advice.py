"""Every sentence on what to do next, as a literal."""

import pytest

from mpsbar.core.findings import Advice
from mpsbar.ui.text import advice
from mpsbar.ui.text.advice import say_advice

GB = 1 << 30

PYTHON = "/Users/me/my env/bin/python"
ADVICE = [
    (
        Advice("free_cache", {"cached": 3 * GB}, 7),
        "Free 3.0 GB cached by train.py: mpsbar free 7",
    ),
    (
        Advice("free_when_possible", {"cached": 3 * GB}, 7),
        "train.py was busy; free 3.0 GB when possible: mpsbar free --when-possible 7",
    ),
    (
        Advice("free_all", {"cached": 4 * GB, "number": 2}),
        "Free 2 caches, 4.0 GB in total: mpsbar free --all",
    ),
    (
        Advice("smaller_batch", pid=7),
        "Use a smaller batch size in train.py: halve it until it fits (4 to 32 is typical)",
    ),
    (
        Advice("shorter_input", pid=7),
        "Give train.py smaller inputs: audio in chunks of 10 to 20 s, smaller images, shorter texts",
    ),
    (
        Advice("float32", {"dtypes": "bfloat16, float16", "operations": 3}),
        "Use float32 instead of bfloat16, float16 (failed operations here: 3): model.to(torch.float32)",
    ),
    (
        Advice("newer_torch", {"version": "2.8.0", "python": PYTHON, "package": "torch>=2.13,<2.15"}, 7),
        "train.py uses torch 2.8.0; with 2.13 or later, mpsbar can see and free more:"
        " '/Users/me/my env/bin/python' -m pip install --upgrade 'torch>=2.13,<2.15'",
    ),
    (
        Advice("newer_torch", {"version": "2.8.0", "python": None, "package": "torch"}, 7),
        "train.py uses torch 2.8.0; with 2.13 or later, mpsbar can see and free more:"
        " python -m pip install --upgrade torch",
    ),
    (
        Advice("fallback_on", pid=7),
        "train.py runs operations that MPS lacks on the CPU, which is slow; to find them,"
        " start it with mpsbar run --explain",
    ),
    (
        Advice("core_ml_or_mlx", pid=7),
        "train.py serves on MPS; for inference alone, MLX (pip install mlx) or Core ML"
        " (pip install coremltools) may be faster",
    ),
    (
        Advice("connect", {"python": "/env/bin/python", "kind": "script", "number": 1}, 7),
        "Connect train.py to see and free its cache: mpsbar enable --python /env/bin/python,"
        " then restart it (or for one run: mpsbar run /env/bin/python …)",
    ),
    (
        Advice("connect", {"python": PYTHON, "kind": "server", "number": 3}, 7),
        "Connect train.py, one of 3 unconnected processes: mpsbar enable --python"
        " '/Users/me/my env/bin/python', then restart the server",
    ),
    (
        Advice("connect", {"python": "/p\n;rm", "kind": "?", "number": 1}, 7),
        "Connect train.py to see and free its cache: mpsbar enable --python '/p�;rm',"
        " then restart it (or for one run: mpsbar run '/p�;rm' …)",
    ),
    (
        Advice("activity_monitor", {"why": "leak"}, 7),
        "Watch train.py in Activity Monitor: Memory tab, PID 7",
    ),
    (
        Advice("activity_monitor", {"why": "speed"}, 7),
        "Watch the GPU in Activity Monitor: Window > GPU History",
    ),
    (
        Advice("instruments", {"why": "leak"}, 7),
        "See what train.py allocates in Instruments: Allocations template, PID 7",
    ),
    (
        Advice("instruments", {"why": "speed"}, 7),
        "See what the GPU does for train.py: xcrun xctrace record"
        " --template 'Metal System Trace' --time-limit 10s --attach 7",
    ),
    (
        Advice("torch_profiler", {"why": "leak"}, 7),
        "Find out what allocates memory in train.py: with torch.profiler.profile(profile_memory=True) as p,"
        " then print(p.key_averages().table())",
    ),
    (
        Advice("torch_profiler", {"why": "speed"}, 7),
        "Find the slow operations in train.py: with torch.profiler.profile() as p,"
        " then print(p.key_averages().table())",
    ),
    (Advice("watermark", pid=7), "Let train.py use more memory, at the risk of slowing the whole computer: PYTORCH_MPS_HIGH_WATERMARK_RATIO=1.0 (0.0 removes the limit)"),
    (Advice("watermark_lower", pid=7), "Let train.py fail with an error message before the system kills it: PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.7 PYTORCH_MPS_LOW_WATERMARK_RATIO=0.6"),
    (Advice("watch_memory", pid=7), "Run train.py again with mpsbar running: its last minutes of memory show whether the system or a person ended it"),
    (Advice("shorter_kernels", pid=7), "Give the GPU less work at once in train.py: a smaller batch, shorter sequences"),
    (Advice("relax_timeout", pid=7), "If it happens again, try AGX_RELAX_CDM_CTXSTORE_TIMEOUT=1 in the environment of train.py (it has helped in some cases)"),
    (Advice("display_asleep", pid=7), "Let the display sleep while train.py runs: macOS ends long GPU work to keep the screen responsive"),
    (Advice("restart_process", pid=7), "Start train.py again: macOS ignores the GPU work of a process after repeated errors"),
    (Advice("redo_results", pid=7), "Go back to a checkpoint from before the reset: results after it may be wrong"),
    (Advice("newer_framework", pid=7), "Update the framework that train.py uses, and macOS"),
    (Advice("newer_macos", pid=7), "Install the newest macOS: it fixes kernel panics under GPU load"),
    (Advice("report_bug", pid=7), "If it happens again, report it with: mpsbar doctor"),
    (Advice("fault_handler", pid=7), "To see where in Python train.py was, start it with python -X faulthandler"),
    (Advice("torch_that_raises", {"version": "2.13.0"}, 7), "train.py uses torch 2.13.0; from 2.15 on, a failed command buffer on MPS raises an error instead of continuing with wrong results"),
    (Advice("float32_on_mps", pid=7), "Use float32 instead of float64 in train.py: MPS has no float64; call model.to(torch.float32), and convert its inputs too"),
    (Advice("try_float32", pid=7), "If train.py uses float16 or bfloat16, try float32: Metal aborts when some dtypes are mixed"),
    (Advice("fallback_to_cpu", pid=7), "Set PYTORCH_ENABLE_MPS_FALLBACK=1 in the environment of train.py to run operations that MPS lacks on the CPU (slow)"),
    (Advice("of_a_later_version"), "of_a_later_version (no description)"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "text"), ADVICE)
def test_advice(step, text):
    assert say_advice(step, "train.py") == text


def test_advice_without_a_name():
    assert say_advice(Advice("smaller_batch", pid=7)).startswith(
        "Use a smaller batch size in process 7:"
    )


def test_no_sentence_is_without_its_literal_here():
    said = {f"{a.code}.{why}" if (why := a.values.get("why")) else a.code for a, _ in ADVICE}
    assert said >= set(advice._advice()) - {"connect.many"}
