"""Counts the steps of torch's optimizers, for runs that show no progress bar."""

import sys
from typing import Any, Optional

_MAX_OPTIMIZERS = 16
_step_counts: "dict[int, int]" = {}  # by the id of each optimizer
_is_compiling: Any = None
_counts_steps = False


def count_steps(is_early: bool) -> None:
    """Has torch's optimizers count their steps, by the hook that torch has for it.

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
    if not count and len(_step_counts) >= _MAX_OPTIMIZERS:
        _step_counts.clear()
    _step_counts[key] = count + 1


def read_steps() -> Optional[int]:
    """Returns the steps of the optimizer that made most: two that take turns, as for a GAN, count
    once.
    """
    return max(_step_counts.copy().values(), default=None)


def after_fork() -> None:
    """Forgets the steps of the parent: they are not the child's."""
    _step_counts.clear()
