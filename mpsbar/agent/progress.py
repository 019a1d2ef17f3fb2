"""How far this run is: what tqdm, rich, Lightning and torch's optimizers know, only read.

Nothing of the host may end on the agent's thread: `tqdm.__del__` takes a lock and prints on the
thread that drops the last reference. So objects of the host are reached through weak references,
and each look is one call of C code (`list` over `map`), in which no other thread runs: it takes an
attribute and lets the object go before Python code of ours goes on. Only plain numbers and text
come out of it.
"""

import _signal  # type: ignore[import-not-found]
import sys
import time
from collections.abc import Iterable
from functools import partial
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from typing import Any, Callable, Optional
from weakref import ref as Ref  # noqa: N812 - it is a class

from .rates import Pace

MOST_BARS = 20
MOST_READ = 5  # from each end of the list
MOST_TEXT = 80
MOST_NUMBER = 2**53
# A bar that has not moved for so long is not what the run is doing, if another one moves.
STILL_SECONDS = 300.0
# Downloads, and what transformers shows while it loads: not what a person waits for.
_BYTES = frozenset(("B", "b", "iB", "bytes"))
_PREPARATIONS = ("Loading", "Downloading", "Fetching")

_PLAIN = frozenset((int, float, str, bool, type(None)))
_NUMBERS = (int, float)
_call = Ref.__call__
_TQDM_FIELDS = ("n", "total", "desc", "unit", "start_t", "initial", "last_print_t", "last_print_n")
_RICH_FIELDS = ("completed", "total", "description", "start_time", "stop_time", "visible")
# Class attributes by which reading a field would run somebody's Python code.
_RUNS_CODE = frozenset(("__getattribute__", "__getattr__"))

Fields = dict[str, Any]


class ProgressBar:
    """One progress bar, with numbers that can be shown. Times are seconds since the epoch."""

    def __init__(self, name: str, done: float, total: Optional[float], unit: str) -> None:
        self.name = name
        self.done = done
        # As tqdm does: a total that was passed is not one.
        self.total = None if total is None or done > total else total
        self.unit = unit
        self.began_at = 0.0  # what `done` was at the start: resumed runs do not begin at 0
        self.counted_at: Optional[float] = None  # when `done` was true; None: now

    @property
    def is_finished(self) -> bool:
        return self.total is not None and self.done >= self.total


class Candidate:
    """A bar that has not been read yet: when it began, and how to read it."""

    def __init__(
        self, started: float, key: "tuple[Any, ...]", read: "Callable[[], Optional[ProgressBar]]"
    ) -> None:
        self.started = started
        self.key = key
        self.read = read


class ProgressReader:
    """Reads how far the run is, and remembers enough of each bar to know its speed."""

    def __init__(self) -> None:
        self._paces: dict[tuple[Any, ...], Pace] = {}

    def read(self) -> "Optional[dict[str, Any]]":
        """The fields of `stats`, or None where nothing tells."""
        now = time.time()
        candidates = sorted(_find_candidates(now), key=lambda candidate: candidate.started)
        steps = _read_steps()
        used: dict[tuple[Any, ...], Pace] = {}
        outer, inner = self._choose(candidates, used, now)
        if outer is None and steps is None:
            return None
        found: dict[str, Any] = outer or {}
        found["inner"] = inner
        found["steps"] = steps
        found["steps_per_second"] = None
        if steps is not None:
            pace = used["steps",] = self._paces.get(("steps",)) or Pace(now, steps)
            pace.add(now, steps)
            found["steps_per_second"] = pace.rate(now)
        self._paces = used
        return found

    def _choose(
        self, candidates: "list[Candidate]", used: "dict[tuple[Any, ...], Pace]", now: float
    ) -> "tuple[Optional[dict[str, Any]], Optional[dict[str, Any]]]":
        """The outermost bar with a total, and the innermost that moves inside it.

        An outer bar is older than those inside it; so most bars need not be read.
        """
        best: Any = None
        for index, candidate in enumerate(candidates[:MOST_READ]):
            bar = candidate.read()
            if bar is None:
                continue
            pace = self._follow(candidate, bar, used, now)
            is_still = now - pace.moved_at >= STILL_SECONDS
            rank = (bar.total is None, bar.is_finished, is_still)
            if best is None or rank < best[0]:
                best = (rank, index, bar, pace)
            if not any(rank):
                break
        if best is None:
            return None, None
        _, index, bar, pace = best
        outer = _describe(bar, pace, now)
        for candidate in candidates[: max(index, len(candidates) - MOST_READ - 1) : -1]:
            bar = candidate.read()
            if bar is None or bar.is_finished:
                continue
            pace = self._follow(candidate, bar, used, now)
            if now - pace.moved_at < STILL_SECONDS:
                return outer, _describe(bar, pace, now)
        return outer, None

    def _follow(
        self,
        candidate: Candidate,
        bar: ProgressBar,
        used: "dict[tuple[Any, ...], Pace]",
        now: float,
    ) -> Pace:
        pace = self._paces.get(candidate.key) or Pace(candidate.started, bar.began_at)
        used[candidate.key] = pace
        pace.add(now if bar.counted_at is None else bar.counted_at, bar.done)
        return pace


def _describe(bar: ProgressBar, pace: Pace, now: float) -> "dict[str, Any]":
    rate = pace.rate(now)
    left = None
    if rate and bar.total is not None:
        left = max(0.0, (bar.total - bar.done) / rate - (now - pace.moved_at))
    return {
        "name": bar.name,
        "done": bar.done,
        "total": bar.total,
        "unit": bar.unit,
        "rate": rate,
        "seconds_left": left,
    }


def _find_candidates(now: float) -> "list[Candidate]":
    candidates: list[Candidate] = []
    for find in (_find_in_lightning, _find_in_tqdm, _find_in_rich):
        try:
            candidates += find(now)
        except Exception:  # noqa: BLE001, S112 - an unknown version: nothing is known of its bars
            continue
        if candidates and find is _find_in_lightning:
            break  # the bars that it draws show the same
    return candidates


# ------------------------------------------------------------------------ looking
def _read_fields(reference: "Ref[Any]", names: "tuple[str, ...]") -> Fields:
    """The plain values among the attributes of an object, whose class `_is_plain`.

    First the types alone: a value that is a tensor, say, never comes to us.
    """
    objects = map(_call, repeat(reference, len(names)))
    types = list(map(type, map(getattr, objects, names, repeat(None))))
    plain = [name for name, kind in zip(names, types) if kind in _PLAIN or _is_numpy(kind)]
    objects = map(_call, repeat(reference, len(plain)))
    return dict(zip(plain, map(getattr, objects, plain, repeat(None))))


def _find_started(
    references: "list[Ref[Any]]", names: "tuple[str, ...]", start: str, owner: type
) -> "list[tuple[float, int, Ref[Any]]]":
    """When each of these objects began, its id and itself; without those that have ended.

    `owner` is the class that is known to have plain attributes.
    """
    kinds = list(map(type, map(_call, references)))
    plain = {kind for kind in set(kinds) if _is_plain(kind, names, owner)}
    references = [each for each, kind in zip(references, kinds) if kind in plain]
    starts = list(map(getattr, map(_call, references), repeat(start), repeat(None)))
    identities = list(map(id, map(_call, references)))
    known = zip(starts, identities, references)
    return [(when, identity, each) for when, identity, each in known if type(when) is float]


def _is_plain(kind: type, names: Iterable[str], owner: type) -> bool:
    """Whether objects of this class have these attributes as `owner` made them."""
    if kind is owner:
        return True
    bases = type.__dict__["__mro__"].__get__(kind)
    if owner not in bases:
        return False  # also what is left of an object that has ended: None
    unsafe = _RUNS_CODE.union(names)
    above = bases[: bases.index(owner)]
    return all(unsafe.isdisjoint(type.__dict__["__dict__"].__get__(base)) for base in above)


def _is_numpy(kind: type) -> bool:
    """numpy's float64 and its like: a total is often one."""
    numpy = sys.modules.get("numpy")
    number = None if numpy is None else vars(numpy).get("number")
    return number in type.__dict__["__mro__"].__get__(kind)


def _number(value: Any) -> Optional[float]:
    """A number that can be shown, or None: no text, no NaN, nothing negative or absurd."""
    if type(value) is bool or not (isinstance(value, _NUMBERS) or _is_numpy(type(value))):
        return None
    number = value if type(value) is int else float(value)
    if not 0 <= number <= MOST_NUMBER:
        return None
    return int(number) if number == int(number) else number


def _text(value: Any) -> str:
    if type(value) is not str:
        return ""
    shown = "".join(c if c.isprintable() else " " for c in value[: 2 * MOST_TEXT])
    return " ".join(shown.split()).rstrip(":").strip()[:MOST_TEXT]


# --------------------------------------------------------------------------- tqdm
def _find_in_tqdm(now: float) -> "list[Candidate]":  # noqa: ARG001 - its times are as ours
    """All bars of tqdm and its subclasses, which share one set; disabled ones are not in it."""
    module = sys.modules.get("tqdm.std")
    owner = None if module is None else vars(module).get("tqdm")
    if owner is None:
        return []
    # A copy made by C code: another thread may make bars at the same time.
    references = list(vars(owner)["_instances"].data.copy())[:MOST_BARS]
    return [
        Candidate(started, ("tqdm", identity, started), partial(_read_tqdm, reference))
        for started, identity, reference in _find_started(
            references, _TQDM_FIELDS, "start_t", owner
        )
    ]


def _read_tqdm(reference: "Ref[Any]") -> Optional[ProgressBar]:
    fields = _read_fields(reference, _TQDM_FIELDS)
    done, unit, name = _number(fields.get("n")), fields.get("unit"), _text(fields.get("desc"))
    if done is None or unit in _BYTES or name.startswith(_PREPARATIONS):
        return None
    bar = ProgressBar(name, done, _number(fields.get("total")) or None, _text(unit))
    bar.began_at = _number(fields.get("initial")) or 0.0
    # `for x in tqdm(…)` stores its count when it prints, up to seconds after the last time.
    if done == fields.get("last_print_n"):
        bar.counted_at = _number(fields.get("last_print_t"))
    return bar


# --------------------------------------------------------------------------- rich
def _find_in_rich(now: float) -> "list[Candidate]":
    """The tasks of rich's Progress on the default console, or with a thread that draws it."""
    module = sys.modules.get("rich.progress")
    if module is None:
        return []
    owner, task_class = vars(module)["Progress"], vars(module)["Task"]
    lives = chain(_attributes("rich", "_console._live_stack"), _drawing_threads())
    shown = map(attrgetter("_get_renderable.__self__"), lives)
    displays = list(dict.fromkeys(map(Ref, shown)))[:MOST_BARS]
    kinds = list(map(type, map(_call, displays)))
    plain = [each for each, kind in zip(displays, kinds) if _is_plain(kind, ("_tasks",), owner)]
    tasks = map(dict.values, map(getattr, map(_call, plain), repeat("_tasks")))
    references = list(map(Ref, chain.from_iterable(tasks)))[:MOST_BARS]
    clock = now - time.monotonic()
    return [
        Candidate(started + clock, ("rich", identity, started), partial(_read_task, reference))
        for started, identity, reference in _find_started(
            references, _RICH_FIELDS, "start_time", task_class
        )
    ]


def _read_task(reference: "Ref[Any]") -> Optional[ProgressBar]:
    fields = _read_fields(reference, _RICH_FIELDS)
    done, name = _number(fields.get("completed")), _text(fields.get("description"))
    is_shown = fields.get("visible") and fields.get("stop_time") is None
    if done is None or not is_shown or name.startswith(_PREPARATIONS):
        return None
    return ProgressBar(name, done, _number(fields.get("total")) or None, "")


def _attributes(module: str, path: str) -> "Iterable[Any]":
    """What a global of a module leads to, or nothing."""
    try:
        return map(attrgetter(path), (sys.modules[module],)).__next__() or ()
    except (KeyError, AttributeError):
        return ()


def _drawing_threads() -> "Iterable[Any]":
    """The displays of rich that have a thread of their own, on whichever console."""
    live = sys.modules.get("rich.live")
    threading = sys.modules.get("threading")
    if live is None or threading is None:
        return ()
    kind = vars(live).get("_RefreshThread")
    active = (vars(threading)["_active"],)
    threads = list(map(Ref, chain.from_iterable(map(dict.values, active))))
    kinds = list(map(type, map(_call, threads)))
    drawing = [thread for thread, found in zip(threads, kinds) if found is kind]
    return map(attrgetter("live"), map(_call, drawing))


# ---------------------------------------------------------------------- Lightning
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


def _find_in_lightning(now: float) -> "list[Candidate]":
    """Epochs and batches of Lightning's Trainer, which draws with rich on a console of its own.

    While it fits, its handler for SIGTERM leads to it, whatever the program calls it.
    """
    for package in ("lightning.pytorch", "pytorch_lightning"):
        module = sys.modules.get(package + ".trainer.connectors.signal_connector")
        if module is None:
            continue
        kind = vars(module).get("_HandlersCompose")
        (found,) = map(type, map(_signal.getsignal, (_signal.SIGTERM,)))
        if found is kind:
            handlers = map(_signal.getsignal, (_signal.SIGTERM,))
            first = map(itemgetter(0), map(attrgetter("signal_handlers"), handlers))
            (trainer,) = list(map(Ref, map(_TRAINER, first)))
            return _read_trainer(trainer, now)
    return []


def _read_trainer(trainer: "Ref[Any]", now: float) -> "list[Candidate]":
    (identity,) = map(id, map(_call, (trainer,)))
    (values,) = map(_LOOPS, map(_call, (trainer,)))
    epoch, most_epochs, batch, most_batches, step, most_steps = map(_number, values)
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
        Candidate(started + index * 1e-3, ("lightning", identity, index), partial(_as_is, bar))
        for index, bar in enumerate(bars)
    ]


def _as_is(bar: ProgressBar) -> ProgressBar:
    return bar


# ---------------------------------------------------------------------- optimizer
_MOST_OPTIMIZERS = 16
_step_counts: "dict[int, int]" = {}  # by the id of each optimizer
_is_compiling: Any = None
_counts_steps = False


def count_steps(is_early: bool) -> None:
    """Have torch's optimizers count their steps, by the hook that torch has for it.

    Only where no other such hook is registered: adding one beside others, while a step walks
    through them, raises in that step. And not late where torch.compile is in use: it would compile
    steps again that it has compiled without a hook.
    """
    global _is_compiling, _counts_steps  # noqa: PLW0603 - one hook in a process
    optimizer = sys.modules.get("torch.optim.optimizer")
    compiler = sys.modules.get("torch.compiler")
    if _counts_steps or optimizer is None or compiler is None:
        return
    register = vars(optimizer).get("register_optimizer_step_post_hook")
    _is_compiling = vars(compiler).get("is_compiling")
    if register is None or _is_compiling is None or vars(optimizer)["_global_optimizer_post_hooks"]:
        return
    if is_early or "torch._dynamo" not in sys.modules:
        _counts_steps = True
        register(_count_step)


def _count_step(optimizer: Any, _args: Any, _kwargs: Any) -> None:
    if _is_compiling():  # torch.compile follows this: a changed number would compile again
        return
    key = id(optimizer)
    count = _step_counts.get(key, 0)
    if not count and len(_step_counts) >= _MOST_OPTIMIZERS:
        _step_counts.clear()
    _step_counts[key] = count + 1


def _read_steps() -> Optional[int]:
    """Steps of the optimizer that made most: two that take turns, as for a GAN, count once."""
    return max(_step_counts.copy().values(), default=None)


def after_fork() -> None:
    """The steps of the parent are not the child's."""
    _step_counts.clear()
