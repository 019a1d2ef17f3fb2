"""mpsbar.compare(): a model or a training step on the CPU and on the device, and what differs."""

from __future__ import annotations

import contextlib
import copy as copying
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Callable

import torch

from .checking import Checker, ModuleVerdict
from .measuring import Timing, measure_time, measuring_peak, read_free_memory, time_modules
from .model_state import ModelState, RandomState, run_then_restore
from .recording import Call, CallRecorder, Hooks, choose_calls
from .results import Comparison, DtypeResult, build_comparison
from .same_random import SameRandom
from .structures import list_tensors, map_tensors
from .target import ComputeTarget, build_targets, find_device, parse_dtype
from .task import Task
from .text import DTYPES, mark
from .tolerance import RUNS, Difference, Noise, judge, measure
from .whole_run import (
    RunHooks,
    WholeRun,
    catching_fallbacks,
    describe,
    is_elsewhere,
    is_out_of_memory,
)

_MAX_CALLS = 4  # of one module that are checked alone
_MAX_RECORDED = 8 << 30
_TIMING_SECONDS = 1.0
_ROOM = 1.25  # activations and temporary copies, beside the parameters
# A whole run with noise is left out where the plain one takes longer.
_LONG_RUN = 20.0
_NOT_TIMED = mark("its time could not be measured")

_Results = dict[tuple[str, int], torch.Tensor]  # by label and number
OnProgress = Callable[[str, int, int], None]


def compare(  # noqa: PLR0913 - options with names
    model: Any,
    *inputs: Any,
    dtypes: Sequence[Any] = DTYPES,
    device: Any = None,
    reference: str = "float32",
    copy: bool = False,
    piecewise: bool | None = None,
    timing: bool = True,
    on_progress: OnProgress | None = None,
    on_partial: Callable[[Comparison], None] | None = None,
    **keywords: Any,
) -> Comparison:
    """Compare `model(*inputs, **keywords)` on the device in each dtype with the CPU.

    Instead of a model, a training step: a function that takes the model and a batch and returns
    the loss; then gradients are compared too. The model is left as it was; `copy=True` works on a
    deep copy. `piecewise` (default: where two copies do not fit) keeps one module at a time
    on the device, and measures neither time nor memory. `on_partial` is given the result so far
    after each dtype.
    """
    if copy:
        model, inputs, keywords = copying.deepcopy((model, inputs, keywords))
    task = Task(model, inputs, keywords)
    device = str(device or find_device())
    session = _ComparisonRun(task, device, parse_dtype(reference), piecewise, timing)
    session.on_progress = on_progress or (lambda *_: None)
    targets = build_targets(dtypes, device)
    session.on_partial = on_partial or (lambda _: None)
    run_then_restore(lambda: session.run(targets), session.restore)
    return session.build(targets)


class _ComparisonRun:
    """One comparison, from the first run to the last."""

    def __init__(
        self, task: Task, device: str, dtype: torch.dtype, piecewise: bool | None, timing: bool
    ) -> None:
        self.task, self.device, self.timing = task, device, timing
        self.reference = ComputeTarget("cpu", dtype)
        self.on_progress: OnProgress = lambda *_: None
        self.on_partial: Callable[[Comparison], None] = lambda _: None
        self.results: dict[str, DtypeResult] = {}
        self.calls: list[Call] = []
        self.output: Any = None
        self.gradients: dict[str, torch.Tensor] = {}
        self.cpu_timing: Timing | None = None
        self.cpu_modules: dict[str, float] = {}
        self.notes: list[str] = []
        self.not_restored: list[str] = []
        self._random = RandomState(device)
        self._seed = torch.get_rng_state()
        self._default = torch.get_default_dtype()
        self.state = ModelState(task.roots)
        if task.is_training:
            self.notes.append(
                mark("objects outside the model, such as a scheduler, are not restored")
            )
        if torch.device(device).type == "cpu":
            self.notes.append(mark("torch does not count memory on the CPU, so no peak is known"))
        self.piecewise = self._decide_piecewise(piecewise)
        if self.piecewise and task.is_training:
            self.notes.append(
                mark("compared piece by piece: gradients are checked per module only")
            )

    def restore(self) -> None:
        self.not_restored = self.state.restore()
        self._random.restore()
        torch.set_default_dtype(self._default)

    def build(self, targets: dict[str, ComputeTarget]) -> Comparison:
        return build_comparison(self, targets)

    def run(self, targets: dict[str, ComputeTarget]) -> None:
        _stop_dropout_of_recurrent(self.state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each would come a dozen times; fall-backs are counted
            self._record()
            for name, target in targets.items():
                self.results[name] = self._compare(name, target)
                self.on_partial(self.build(targets))

    def _decide_piecewise(self, piecewise: bool | None) -> bool:
        """Returns what the user chose; else True where two copies of the model do not fit."""
        if piecewise is not None:
            return piecewise
        target = ComputeTarget(self.device, torch.float32)
        pairs = (
            [(self.device, target)]
            if self.device == "cpu"
            else [("cpu", self.reference), (self.device, target)]
        )
        for device, where in pairs:
            free = read_free_memory(device)
            if free is not None and self.state.count_bytes(where) * _ROOM > free:
                self.notes.append(
                    mark("two copies of the model don't fit in memory: compared piece by piece")
                )
                return True
        return False

    @contextlib.contextmanager
    def _prepared(
        self, target: ComputeTarget, *, same_random: bool = True
    ) -> Iterator[Callable[[], Any]]:
        """Yields a function that runs the task on `target`, where the parameters are meanwhile."""
        substitute = self.state.substitute_piecewise if self.piecewise else self.state.substitute
        given = target.convert_all((self.task.args, self.task.kwargs))

        def run() -> Any:
            torch.set_rng_state(self._seed)
            args, kwargs = map_tensors(given, lambda tensor: tensor.clone())
            with contextlib.ExitStack() as stack:
                if same_random:
                    stack.enter_context(SameRandom())
                stack.enter_context(torch.set_grad_enabled(self.task.is_training))
                stack.enter_context(target.computing())
                return self.task.run(args, kwargs)

        with substitute(target):
            yield run

    def _record(self) -> None:
        """Run the task on the CPU, and time it."""
        self.on_progress("cpu", 0, 1)
        self._run_piecewise(self._record_calls)
        if self.timing and not self.piecewise:
            with self._prepared(self.reference, same_random=False) as run:
                self.cpu_timing = measure_time(run, "cpu", _TIMING_SECONDS)
                self.cpu_modules = time_modules(run, self.state.names, "cpu")

    def _record_calls(self) -> None:
        most = min(_MAX_RECORDED, (read_free_memory("cpu") or 2 * _MAX_RECORDED) // 2)
        recorder = CallRecorder(self.state.names, most, self.task.is_training)
        with self._prepared(self.reference) as run:
            with Hooks(self.state.modules, recorder.before, recorder.after):
                self.output = map_tensors(run(), lambda tensor: tensor.detach().clone())
            self.gradients = self.task.gradients()
        self.calls = recorder.calls

    def _run_piecewise(self, action: Callable[[], None]) -> None:
        """Repeats a piecewise run that fails with more stand-ins, while there are more."""
        while True:
            try:
                return action()
            except (RuntimeError, TypeError, ValueError):
                if not (self.piecewise and self.state.substitute_submodules_too()):
                    raise

    def _compare(self, name: str, target: ComputeTarget) -> DtypeResult:
        result = DtypeResult(name)
        for call in self.calls:
            call.input_dtypes = call.output_dtypes = None
        whole = self._run_whole(name, target, result)
        result.whole = whole
        self._check_alone(name, target, result)
        if whole.raised is None and whole.not_run is None and not result.culprits:
            self._check_output(target, result, whole)
        if self.timing and not self.piecewise and whole.raised is None:
            self._measure(target, result)
        return result

    def _run_whole(self, name: str, target: ComputeTarget, result: DtypeResult) -> WholeRun:
        self.on_progress(name, 0, len(self.calls))
        run_hooks = RunHooks(self.state.names, self.calls)

        def run_with_hooks() -> None:
            nonlocal run_hooks
            run_hooks = RunHooks(self.state.names, self.calls)
            hooks = Hooks(self.state.modules, run_hooks.before, run_hooks.after)
            measuring = measuring_peak(self.device, self.state.modules)
            with measuring as peak, self._prepared(target) as run:
                with hooks, catching_fallbacks(run_hooks):
                    run_hooks.seen.output = map_tensors(run(), lambda tensor: tensor.detach().cpu())
                run_hooks.seen.gradients = self.task.gradients()
            if not self.piecewise:
                result.peak = peak

        try:
            self._run_piecewise(run_with_hooks)
        except Exception as error:  # noqa: BLE001 - whatever the model raises is the answer
            failure = (run_hooks.path[-1] if run_hooks.path else "", describe(error))
            if self.piecewise and is_elsewhere(error):
                run_hooks.seen.not_run = failure
            else:
                run_hooks.seen.raised = failure
            run_hooks.seen.is_out_of_memory = is_out_of_memory(error)
        else:
            result.take_gradients(self.gradients, run_hooks.seen.gradients)
        return run_hooks.seen

    def _check_alone(self, name: str, target: ComputeTarget, result: DtypeResult) -> None:
        checker = Checker(self.state, target, self.reference, self.task.is_training)
        verdicts: list[ModuleVerdict] = list(checker.check_parameters())
        chosen = list(choose_calls(self.calls, _MAX_CALLS))
        for number, call in enumerate(chosen):
            self.on_progress(name, number, len(chosen))
            verdicts.append(checker.check(call))
        result.take_verdicts(verdicts)

    def _check_output(self, target: ComputeTarget, result: DtypeResult, whole: WholeRun) -> None:
        """Finds outputs and gradients that differ more than rounding in all modules explains."""
        actual = _label_results(whole.output, whole.gradients)
        expected = _label_results(self.output, self.gradients)
        candidates = [
            key
            for key, tensor in actual.items()
            if key in expected
            and not measure(key[0], tensor, expected[key], target.precision).is_explained
        ]
        if not candidates:
            return
        if self.cpu_timing is not None and self.cpu_timing.seconds > _LONG_RUN:
            result.notes.append(
                mark("a run takes too long: modules were checked, the whole result was not")
            )
            return
        exactly, disturbed, noise = self._disturb(target)
        differences = []
        for key in candidates:
            label, runs = key[0], [run[key] for run in disturbed if key in run]
            if key in exactly:
                # The derivative of a ReLU jumps, and those of others.
                jumps = noise.jumps or label != "output"
                differences.append(
                    judge(label, actual[key], exactly[key], runs, noise, jumps=jumps)
                )
        wrong = [difference for difference in differences if not difference.is_explained]
        if whole.nonfinite is not None:
            wrong = [difference for difference in wrong if not difference.nonfinite]
        result.unexplained = min(wrong, key=_rank, default=None)

    def _disturb(self, target: ComputeTarget) -> tuple[_Results, list[_Results], Noise]:
        """Run the task exactly on the CPU, then a few times with random errors in it."""
        exact = replace(
            self.reference, exact=True, rounded=None if target.autocast else target.dtype
        )
        with self._prepared(exact) as run:
            expected = _label_results(run(), self.task.gradients())
            disturbed = []
            for seed in range(RUNS):
                noise = Noise(target.precision, seed)
                with noise:
                    output = run()
                disturbed.append(_label_results(output, self.task.gradients()))
        return expected, disturbed, noise

    def _measure(self, target: ComputeTarget, result: DtypeResult) -> None:
        try:
            with self._prepared(target, same_random=False) as run:
                result.timing = measure_time(run, self.device, _TIMING_SECONDS)
                result.modules = time_modules(run, self.state.names, self.device)
        except Exception as error:  # noqa: BLE001 - attention's dropout may be refused, for example
            result.notes.append(f"{_NOT_TIMED}: {describe(error)}")


def _label_results(output: Any, gradients: dict[str, torch.Tensor]) -> _Results:
    """Outputs and gradients by label and number."""
    results = {("output", n): tensor.detach() for n, tensor in enumerate(list_tensors(output))}
    return results | {(f"gradient of {name}", 0): grad for name, grad in gradients.items()}


def _rank(difference: Difference) -> tuple[bool, float]:
    """Outputs come before gradients; of those, what exceeds rounding most."""
    most = difference.largest / max(difference.tolerance or 0.0, 1e-30)
    return difference.label != "output", -most


def _stop_dropout_of_recurrent(state: ModelState) -> None:
    """Turns off the dropout of nn.LSTM and its like: each device draws other numbers for it."""
    for module in state.modules:
        if isinstance(module, torch.nn.RNNBase):
            state.set_until_restored(module, "dropout", 0.0)
