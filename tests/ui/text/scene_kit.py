"""A Mac with every kind of process, as it is shown in words."""

from functools import partial

from samples import GB, MB, make_backend, make_process, make_worker

from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine
from mpsbar.core.snapshot import Snapshot

MPS = make_backend(
    allocated=int(2.4 * GB), reserved=int(5.5 * GB), driver=int(6.2 * GB), peak=5 * GB,
    budget=27 * GB,
)  # fmt: skip
OLD = make_backend(allocated=1 * GB, driver=int(1.4 * GB))
MLX = make_backend("mlx", allocated=64 * MB, reserved=256 * MB, peak=300 * MB)
CPU = make_backend("cpu")
UNKNOWN_MPS = make_backend(state="not known")

MACHINE = Machine(
    os="macOS 26.3.2", os_version=(26, 3, 2), model="Mac15,10", chip="Apple M3 Max", cores=14,
    core_kinds=(("Performance", 10), ("Efficiency", 4)), memory_total=36 * GB,
    memory_available=int(12.1 * GB), swap_used=0, pressure="normal", on_battery=False,
    is_virtual=False,
    gpu=Gpu("Apple M3 Max", 30, 43.0, int(9.8 * GB), 27 * GB, 0),
)  # fmt: skip

process = partial(make_process, started=1699999000.0)
TRAIN = process(
    4711, "train.py", footprint=7 * GB, footprint_peak=9 * GB, gpu_percent=41.6, gpu_client=True
)
SERVE = process(4714, "serve.py", footprint=800 * MB, gpu_percent=0.0)
WORKERS = (
    make_worker(
        4711, "train.py", backends=(MPS, CPU), frameworks={"torch": "2.13.0"}, process=TRAIN
    ),
    make_worker(4712, "notebook kernel", backends=(OLD, CPU), state="busy", age=3.2),
    make_worker(4713, "serve.py", backends=(MLX,)),
    make_worker(4714, "serve.py", backends=(CPU,), process=SERVE),
    make_worker(
        4715, "a_very_long_name_of_an_experiment_number_17.py", backends=(UNKNOWN_MPS, CPU)
    ),
    make_worker(4716, "process 4716", backends=(), state="busy", age=None),
    make_worker(4717, "prepare.py", backends=()),
    make_worker(4718, "loader", backends=(CPU,), parent=4711),
)
UNCONNECTED = (
    process(4720, "uvicorn app:app", footprint=2 * GB, python="/v/bin/python", gpu_percent=None),
    process(4721, "Paint", footprint=300 * MB, frameworks=("torch", "mlx"), gpu_percent=3.0),
    process(4731, "train.py", footprint=100 * MB, parent=4711),
    process(4732, "train.py", footprint=300 * MB, parent=4711),
    process(4733, "child process", footprint=50 * MB, parent=4720),
)
SCENE = Snapshot(1700000000.0, WORKERS, MACHINE, (TRAIN, *UNCONNECTED))
