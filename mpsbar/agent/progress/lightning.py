"""The loops of Lightning's Trainer: epochs, batches and steps."""

import _signal  # type: ignore[import-not-found]
import sys
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any
from weakref import ref as Ref  # noqa: N812 - it is a class

from .bars import Candidate, ProgressBar, get_object, to_number

_TRAINER = attrgetter("__self__.trainer")
_LOOPS = attrgetter(
    "fit_loop.epoch_progress.current.completed",
    "fit_loop.max_epochs",
    "fit_loop.epoch_loop.batch_progress.current.completed",
    "fit_loop.max_batches",
    "fit_loop.epoch_loop.automatic_optimization.optim_progress.optimizer.step.total.completed",
    "fit_loop.epoch_loop.max_steps",
)
_trainers: "dict[int, float]" = {}  # since when each is known, by its id


def find_bars(now: float) -> "list[Candidate]":
    """Finds epochs and batches of Lightning's Trainer, which draws with rich on a console of its
    own.

    While it fits, its handler for SIGTERM leads to it, whatever the program calls it.
    """
    for package in ("lightning.pytorch", "pytorch_lightning"):
        module = sys.modules.get(package + ".trainer.connectors.signal_connector")
        if module is None:
            continue
        kind = vars(module).get("_HandlersCompose")
        (handler_type,) = map(type, map(_signal.getsignal, (_signal.SIGTERM,)))
        if handler_type is kind:
            handlers = map(_signal.getsignal, (_signal.SIGTERM,))
            first = map(itemgetter(0), map(attrgetter("signal_handlers"), handlers))
            (trainer,) = list(map(Ref, map(_TRAINER, first)))
            return _read_trainer(trainer, now)
    return []


def _read_trainer(trainer: "Ref[Any]", now: float) -> "list[Candidate]":
    (identity,) = map(id, map(get_object, (trainer,)))
    (values,) = map(_LOOPS, map(get_object, (trainer,)))
    epoch, most_epochs, batch, most_batches, step, most_steps = map(to_number, values)
    started = _trainers.get(identity)
    if started is None:
        _trainers.clear()
        started = _trainers[identity] = now
    bars = []
    if step is not None and most_steps:
        bars.append(ProgressBar("", step, most_steps, "it"))
    elif epoch is not None and most_epochs:
        # Each epoch goes once through the batches: so the part of one is known too.
        part = batch / most_batches if batch is not None and most_batches else 0.0
        bars.append(ProgressBar("", min(epoch + part, most_epochs), most_epochs, "epoch"))
    if batch is not None:
        name = "" if epoch is None else f"Epoch {epoch}"
        bars.append(ProgressBar(name, batch, most_batches or None, "it"))
    for bar in bars:
        bar.began_at = bar.done  # it was not seen from the start
    return [
        Candidate(
            started + index * 1e-3, ("lightning", identity, index), partial(bars.__getitem__, index)
        )
        for index in range(len(bars))
    ]
