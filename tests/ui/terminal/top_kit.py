"""Snapshots for the screen of `mpsbar top`."""

from samples import GB, MB, SERVE, make_snapshot, make_training

TRAIN = make_training(command=("python", "train.py", "--lr", "0.1"))
BUSY = make_training(4712, "notebook kernel", 1400 * MB, 400 * MB, state="busy", age=3.2)
SINCE = 1_000_000_000.0


def seen():
    return make_snapshot(TRAIN, BUSY, processes=(SERVE,))


def build_series(person_steps=(1, 2, 3, 4, 3, 5, 6, 4, 2, 6)):
    """Looks two seconds apart, in which train.py holds more and less."""
    for number, held in enumerate(person_steps):
        worker = make_training(
            held=held * GB, cached=held * GB // 3, command=("python", "train.py", "--lr", "0.1")
        )
        yield make_snapshot(worker, BUSY, processes=(SERVE,), time=1000.0 + 3 * number)
