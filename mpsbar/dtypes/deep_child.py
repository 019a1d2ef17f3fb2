"""The child process of `mpsbar probe --deep`: runs torch's own samples of its operations.

A script of its own for any Python (3.9 and newer) with torch: it imports nothing of mpsbar but
child_answers, which starts it, and writes one marked JSON line for each operation and dtype as soon
as it is known. A crash or a hang costs that one: the runner starts the script again without it. The
plan comes as one JSON line on stdin: the device, the dtypes, which share of the operations this
child has, a pattern of names, the cells that are known already, and the most memory to use.

torch's samples are OpInfos (torch.testing._internal): they are in every wheel, but nothing promises
that they stay as they are. What cannot be read is reported as not known.
"""

from __future__ import annotations

import contextlib
import copy
import fnmatch
import itertools
import json
import math
import os
import random
import re
import sys
import types
import unittest
import warnings
from typing import Any, Callable  # noqa: UP035 - collections.abc's needs 3.9.2

from mpsbar.system.child_answers import (
    FALLBACK,
    NO_MEMORY,
    describe,
    guard,
    import_torch,
    limit_mps_memory,
    lower_priority,
    read_device_name,
    read_gpu_memory,
    read_python,
    send,
    start_device,
    take_stdout,
)

MARK = "\x1empsbar-deep "
# What a result holds for.
IDENTITY = ("prefix", "version", "system", "os", "fallback", "torch", "device")
_LAST_RESORT_SECONDS = 6 * 3600  # SIGALRM ends us if we hang and the runner was killed
_LONGEST_TEXT = 300
_SAMPLES = 1  # of each operation and dtype
# The error that rounding may cause, relative to the largest number of the result.
_TOLERANCE = {
    "float64": 1e-8, "complex128": 1e-8, "float32": 1e-3, "complex64": 1e-3, "float16": 2e-2,
    "bfloat16": 1e-1,
}  # fmt: skip
_ROUNDING_OVER_CPU = 8.0  # times the CPU's own error in the same dtype is still rounding
# The sign of their results is not determined.
_ANY_SIGN = re.compile(r"svd|eig|qr|lowrank|householder|cholesky_ex_none")
_UNINITIALISED = re.compile(r"(^|\.|_)empty")


def main() -> None:
    wire = take_stdout()
    plan = json.loads(sys.stdin.readline())
    lower_priority(_LAST_RESORT_SECONDS)
    send(wire, MARK, "python", guard(read_python, "unknown"))
    loaded = guard(import_torch, "unknown")
    send(wire, MARK, "import", loaded)
    if "version" in loaded:
        start = guard(lambda: _start(plan), "unknown")
        operations = start.pop("operations", {})
        resumed = _can_resume(plan)
        send(
            wire,
            MARK,
            "device",
            dict(start, operations=_list_expected(operations, plan), resumed=resumed),
        )
        if start.get("device"):
            _run_all(wire, plan, operations)
    send(wire, MARK, "end", {})


def _run_all(wire: int, plan: dict[str, Any], operations: dict[str, Any]) -> None:
    import torch

    cases = _DeepCases(torch, plan["device"])
    known, starter, before = set(plan["skip"]), os.getppid(), _read_memory(torch, plan["device"])
    if _can_resume(plan):
        known |= set(plan["resume"]["cells"])
    for name, (operation, _expected) in operations.items():
        left = [dtype for dtype in plan["dtypes"] if f"{name}/{dtype}" not in known]
        for dtype in left:
            cell = f"{name}/{dtype}"
            answer = guard(lambda d=dtype: cases.run(operation, d), "unknown")  # type: ignore[misc]  # noqa: B023
            send(wire, MARK, "cell", dict(answer, cell=cell))
        used = _read_memory(torch, plan["device"]) - before
        if left and (used > plan["ceiling"] or os.getppid() != starter):
            send(wire, MARK, "full", {"memory": used})
            os._exit(0)


def _list_expected(operations: dict[str, Any], plan: dict[str, Any]) -> dict[str, str]:
    """Returns letters for each operation, one a dtype: y works, n does not, ? is not known."""
    letters = {True: "y", False: "n", None: "?"}
    return {
        name: "".join(letters[expect(dtype)] for dtype in plan["dtypes"])
        for name, (_operation, expect) in operations.items()
    }


def _can_resume(plan: dict[str, Any]) -> bool:
    """Returns whether an earlier, unfinished run is of this torch, device and system."""
    resume = plan.get("resume")
    if not resume:
        return False
    here = dict(read_python(), torch=import_torch()["version"], device=plan["device"])
    return all(resume.get(name) == here[name] for name in IDENTITY)


def _start(plan: dict[str, Any]) -> dict[str, Any]:
    """Chooses the device, and this child's share of torch's operations by name."""
    import torch

    device = start_device(torch, plan["device"])
    if device is None:
        return {"device": None}
    plan["device"] = device
    if device == "mps":
        with contextlib.suppress(Exception):
            limit_mps_memory(torch, plan["ceiling"])
    database = _load_database()
    expectations = _read_expectations(torch, database, device)
    named = sorted(
        ((_name(operation), operation) for operation in database), key=lambda pair: pair[0]
    )
    pattern = plan.get("only") or "*"
    chosen = [pair for pair in named if fnmatch.fnmatchcase(pair[0], pattern)]
    share = chosen[plan["share"] :: plan["shares"]]
    operations = {name: (operation, expectations(operation)) for name, operation in share}
    return {"device": device, "name": read_device_name(torch, device), "operations": operations,
            "total": len(chosen)}  # fmt: skip


def _load_database() -> list[Any]:
    """Loads torch's OpInfos; they import expecttest, which few have and no sample uses."""
    try:
        __import__("expecttest")
    except ImportError:
        stub = types.ModuleType("expecttest")
        stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        stub.ACCEPT = False  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stub
    sys.argv = sys.argv[:1]  # torch's test modules read it
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def _name(operation: Any) -> str:
    variant = getattr(operation, "variant_test_name", "")
    return f"{operation.name}.{variant}" if variant else str(operation.name)


def _read_expectations(
    torch: Any, database: list[Any], device: str
) -> Callable[[Any], Callable[[str], bool | None]]:
    """Returns what tells whether torch's own tests expect an operation to work, by dtype."""
    failing: dict[int, list[Any]] = {}
    if device == "mps":
        failing = _read_mps_lists(database)

    def of(operation: Any) -> Callable[[str], bool | None]:
        try:
            supported = {str(dtype)[6:] for dtype in operation.supported_dtypes(device)}
        except Exception:  # noqa: BLE001 - another shape of OpInfo
            return lambda _: None
        if device == "mps" and id(operation) not in failing:
            return lambda dtype: None if dtype in supported else False
        decorators = failing.get(id(operation), [])

        def expect(dtype: str) -> bool | None:
            if dtype not in supported:
                return False
            active = [
                d for d in decorators if d.dtypes is None or getattr(torch, dtype) in d.dtypes
            ]
            if any(unittest.expectedFailure in d.decorators for d in active):
                return False
            return None if active else True  # a test that is skipped says nothing

        return expect

    return of


def _read_mps_lists(database: list[Any]) -> dict[int, list[Any]]:
    """Reads the expected failures that torch's tests for MPS add (torch 2.8 and later)."""
    try:
        from torch.testing._internal.common_mps import mps_ops_modifier

        copies = [copy.copy(operation) for operation in database]
        mps_ops_modifier(copies)
    except Exception:  # noqa: BLE001 - an older torch: not known
        return {}
    return {
        id(operation): list(changed.decorators[len(operation.decorators) :])
        for operation, changed in zip(database, copies)  # noqa: B905 - 3.9 has no strict
    }


class _DeepCases:
    """torch's samples on one device, compared with the CPU."""

    def __init__(self, torch: Any, device: str) -> None:
        self.torch, self.device = torch, device

    def run(self, operation: Any, dtype: str) -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = self._try(operation, dtype)
        texts = [str(warning.message).partition(" (Triggered")[0] for warning in caught]
        fallen = [text for text in texts if FALLBACK.search(text)]
        if fallen and answer["state"] == "works":
            return dict(answer, state="fallback", text=fallen[0][:_LONGEST_TEXT])
        return answer

    def _try(self, operation: Any, dtype: str) -> dict[str, Any]:
        if operation.name.startswith("jiterator") and self.device != "cuda":
            return {"state": "meaningless", "text": "only for CUDA"}
        self._seed(7)
        try:
            kind = getattr(self.torch, dtype)
            made = operation.sample_inputs_func(operation, "cpu", kind, False)
            samples = list(itertools.islice(made, _SAMPLES))
        except Exception as error:  # noqa: BLE001 - torch has no sample in this dtype
            return {"state": "meaningless", "text": describe(error)}
        answer = {"state": "meaningless", "text": "torch has no sample for it"}
        for sample in samples:
            answer = self._compare(operation, sample, dtype)
            if answer["state"] != "works":
                break
        return answer

    def _compare(self, operation: Any, sample: Any, dtype: str) -> dict[str, Any]:
        arguments = (sample.input, *sample.args), dict(sample.kwargs)
        right = None if self.device == "cpu" else self._call_on_cpu(operation, arguments)
        try:
            moved = _move(self.torch, arguments, self.device)
            if operation.name == "tensor_split":  # wants its indices on the CPU
                moved = ((moved[0][0], *arguments[0][1:]), moved[1])
            self._seed(7)
            got = _flatten(self.torch, operation.op(*moved[0], **moved[1]))
            got = [self._bring(value) for value in got]
        except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
            asks_for_float64 = self.torch.float64 in arguments[1].values()
            return self._refusal(error, right, asks_for_float64 and dtype != "float64")
        if self.device == "cpu":
            return {"state": "works"}
        if isinstance(right, Exception):
            return {"state": "works", "text": "not compared: the CPU lacks it"}
        return self._judge(operation, arguments, dtype, got, right)

    def _refusal(self, error: Exception, right: Any, asks_for_more: bool) -> dict[str, Any]:
        text = describe(error)
        if NO_MEMORY.search(text):
            return {"state": "no_memory", "text": text}
        # What the CPU refuses as well says nothing of the device.
        is_general = isinstance(right, Exception) and "MPS" not in text and "float64" not in text
        is_general = is_general or (asks_for_more and "float64" in text)
        return {"state": "meaningless" if is_general else "unsupported", "text": text}

    def _judge(
        self, operation: Any, arguments: Any, dtype: str, got: list[Any], right: Any
    ) -> dict[str, Any]:
        name, tolerance = _name(operation), _TOLERANCE.get(dtype, 0.0)
        is_any_sign = bool(_ANY_SIGN.search(name))
        error = self._measure(got, right, is_any_sign)
        if error <= tolerance:
            return {"state": "works", "error": error}
        if _UNINITIALISED.search(name) or self._is_random(operation, arguments):
            is_same_shape = [_shape(g) for g in got] == [_shape(r) for r in right]
            if is_same_shape:
                return {"state": "works", "text": "random: only the shape was compared"}
        wide = self._call_on_cpu(operation, _widen(self.torch, arguments))
        if not isinstance(wide, Exception) and tolerance:
            allowed = max(tolerance, _ROUNDING_OVER_CPU * self._measure(right, wide, is_any_sign))
            exact = self._measure(got, wide, is_any_sign)
            if exact <= allowed < math.inf:
                return {"state": "works", "error": exact}
        shown = f"{error:.3g}" if error < math.inf else "shape, NaN or infinity"
        return {"state": "inaccurate", "error": error if error < math.inf else None,
                "text": f"largest error: {shown}"}  # fmt: skip

    def _call_on_cpu(self, operation: Any, arguments: Any, seed: int = 7) -> Any:
        try:
            self._seed(seed)
            return _flatten(self.torch, operation.op(*arguments[0], **arguments[1]))
        except Exception as error:  # noqa: BLE001 - the CPU lacks it in this dtype
            return error

    def _is_random(self, operation: Any, arguments: Any) -> bool:
        first = self._call_on_cpu(operation, arguments, seed=1)
        second = self._call_on_cpu(operation, arguments, seed=2)
        if isinstance(first, Exception) or isinstance(second, Exception):
            return False
        return self._measure(first, second, False) > 0

    def _measure(self, got: list[Any], right: list[Any], is_any_sign: bool) -> float:
        if len(got) != len(right):
            return math.inf
        return max((self._difference(g, r, is_any_sign) for g, r in zip(got, right)), default=0.0)  # noqa: B905

    def _difference(self, got: Any, right: Any, is_any_sign: bool) -> float:
        """Returns the largest difference over the largest number; infinite if shapes differ."""
        torch = self.torch
        if not isinstance(got, torch.Tensor) or not isinstance(right, torch.Tensor):
            return 0.0 if got == right else _relative(got, right)
        got, right = _densify(torch, got), _densify(torch, right)
        if got.shape != right.shape:
            return math.inf
        if got.dtype == right.dtype != torch.complex32 and torch.equal(got, right):
            return 0.0
        kind = torch.complex128 if right.is_complex() or got.is_complex() else torch.float64
        got, right = got.to(kind), right.to(kind)
        if is_any_sign:
            got, right = got.abs(), right.abs()
        both = (got == right) | (got.isnan() & right.isnan())
        off = torch.where(both, torch.zeros_like(right), got - right).abs()
        largest = torch.where(right.isfinite(), right, torch.zeros_like(right)).abs()
        if not off.numel():
            return 0.0
        error = float(off.max()) / max(float(largest.max()), 1e-30)
        return math.inf if math.isnan(error) else error

    def _bring(self, value: Any) -> Any:
        return value.detach().cpu() if isinstance(value, self.torch.Tensor) else value

    def _seed(self, seed: int) -> None:
        random.seed(seed)
        self.torch.manual_seed(seed)


def _relative(got: Any, right: Any) -> float:
    try:
        if math.isnan(got) and math.isnan(right):
            return 0.0
        return float(abs(got - right)) / max(float(abs(right)), 1e-30)
    except Exception:  # noqa: BLE001 - not numbers
        return math.inf


def _shape(value: Any) -> Any:
    return tuple(value.shape) if hasattr(value, "shape") else type(value)


def _densify(torch: Any, tensor: Any) -> Any:
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()


def _flatten(torch: Any, value: Any) -> list[Any]:
    """Lists the tensors and numbers of a result, however nested."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [inner for item in value for inner in _flatten(torch, item)]
    if isinstance(value, dict):
        return [inner for key in sorted(value, key=str) for inner in _flatten(torch, value[key])]
    return [value]


def _map(change: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _map(change, item) for key, item in value.items()}
    if isinstance(value, tuple):
        items = [_map(change, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [_map(change, item) for item in value]
    return change(value)


def _move(torch: Any, arguments: Any, device: str) -> Any:
    def change(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(device)
        return torch.device(device) if isinstance(value, torch.device) else value

    if device == "cpu":
        return arguments
    positional, named = _map(change, arguments)
    return positional, {k: device if k == "device" else v for k, v in named.items()}


def _widen(torch: Any, arguments: Any) -> Any:
    """Returns the same arguments in the widest dtype."""

    def widest(dtype: Any) -> Any:
        if dtype.is_complex:
            return torch.complex128
        return torch.float64 if dtype.is_floating_point else dtype

    def change(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(widest(value.dtype))
        return widest(value) if isinstance(value, torch.dtype) else value

    return _map(change, arguments)


def _read_memory(torch: Any, device: str) -> int:
    """Reads the bytes that we hold now: of the device, or of the process."""
    try:
        if device != "cpu":
            return read_gpu_memory(torch, device)
        if sys.platform == "darwin":
            import resource

            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # its peak, in bytes there
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except Exception:  # noqa: BLE001 - not known here
        return 0


if __name__ == "__main__":
    main()
    os._exit(0)  # all answers are sent; a crash of torch at exit does not matter
