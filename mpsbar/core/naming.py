"""Names processes for people by their command line; makes hostile text printable. Pure."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Literal

from mpsbar.agent.secrets import (
    cut_options,
    find_module,
    has_value,
    is_code,
    mask,
    shorten_title,
)

Kind = Literal["script", "notebook", "server"]

KERNEL = "notebook kernel"
CHILD = "child process"
UNKNOWN = "unknown"
# Programs that start a script or an app, and the pattern of its argument.
_SCRIPT = re.compile(r".+\.py")
_APP = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.()]*")
_LAUNCHERS: dict[str, re.Pattern[str] | None] = {
    "torchrun": _SCRIPT, "accelerate": _SCRIPT, "deepspeed": _SCRIPT, "streamlit": _SCRIPT,
    "fastapi": _SCRIPT, "debugpy": _SCRIPT, "uvicorn": _APP, "gunicorn": _APP, "hypercorn": _APP,
    "flask": None, "vllm": None, "mlx_lm.server": None, "mlx_lm.generate": None,
}  # fmt: skip
_MODULES = {"torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun"}
# Modules that nobody starts by hand, and what they are.
_WORKER_MODULES = {
    "joblib.externals.loky": CHILD,
    "loky": CHILD,
    "torch._inductor.compile_worker": "torch.compile worker",
    "distributed.cli.dask_worker": "dask worker",
}
_SERVERS = {
    "uvicorn", "gunicorn", "gunicorn:", "hypercorn", "fastapi", "flask", "streamlit", "vllm",
    "mlx_lm.server",
}  # fmt: skip


def name_process(
    command: tuple[str, ...],
    notebook: str | None = None,
    variables: Mapping[str, str] | None = None,
    executable: str | None = None,
) -> str:
    """Returns what the person started: train.py, a module, a prompt, a kernel or its notebook,
    a rank of torchrun, a served app; for a program that is not Python the name of its file."""
    name = mask(_name_program(command, executable)).strip() or UNKNOWN
    variables = variables or {}
    return add_notebook(name, notebook or _find_notebook(variables)) + _rank(variables, name)


def _find_notebook(variables: Mapping[str, str]) -> str | None:
    """Returns the notebook that Jupyter names in the environment of a kernel and its children."""
    path = variables.get("JPY_SESSION_NAME", "")
    return PurePath(path).name if path.endswith(".ipynb") else None


def add_notebook(name: str, notebook: str | None) -> str:
    """Returns the notebook's name for a kernel, if it is known; any other name stays."""
    return mask(notebook) if notebook and name == KERNEL else name


def kind_of(name: str) -> Kind:
    """Returns script, notebook or server: each is connected in another way."""
    if name.startswith(KERNEL) or name.endswith(".ipynb"):
        return "notebook"
    return "server" if name.partition(" ")[0] in _SERVERS else "script"


def list_short_names(name: str) -> list[str]:
    """Returns names to type instead: train.py for a rank of it, gunicorn for gunicorn app:app."""
    whole = name.partition(" rank ")[0]
    launcher = whole.partition(" ")[0]
    return [whole, launcher] if launcher in _LAUNCHERS else [whole]


def is_called(typed: str, *names: str) -> bool:
    """Returns whether a person who typed this means a process with one of these names.

    A name may be typed in full or shorter, with or without .py, in upper or lower case; never in
    part: what is meant is freed.
    """
    wanted = typed.lower()
    for name in names:
        known = [form.lower() for form in (name, *list_short_names(name))]
        if wanted in known or wanted in (form.removesuffix(".py") for form in known):
            return True
    return False


def _rank(variables: Mapping[str, str], name: str) -> str:
    rank, size = variables.get("RANK", ""), variables.get("WORLD_SIZE", "")
    if not (rank.isdecimal() and size.isdecimal() and int(size) > 1):
        return ""
    return "" if name.startswith("torchrun") else f" rank {int(rank)} of {int(size)}"


def _name_program(command: tuple[str, ...], executable: str | None) -> str:
    # An agent's may be the title that its Python was started under.
    executable = executable and cut_options(executable)
    if not command:
        return PurePath(executable).name if executable else UNKNOWN
    program = PurePath(command[0]).name
    if not program.lower().startswith("python") and executable is not None:
        if not PurePath(executable).name.lower().startswith("python"):
            return PurePath(executable).name  # another program
        # py2app's start, or the process wrote a title over its arguments.
        title = shorten_title(command[0])
        return PurePath(title).name if title.startswith(("/", "./")) else title
    return _name_python(command)


def _name_python(command: tuple[str, ...]) -> str:
    arguments = iter(command[1:])
    for argument in arguments:
        if has_value(argument):
            next(arguments, None)
        elif (module := find_module(argument)) is not None:
            return _name_module(module or next(arguments, "?"), arguments)
        elif is_code(argument):
            return _name_code(next(arguments, "") if argument.endswith("c") else "")
        elif argument == "-" or not argument.startswith("-"):
            return _name_script(argument, arguments)
    return "Python prompt"


def _name_module(module: str, arguments: Iterator[str]) -> str:
    if module.startswith("ipykernel"):
        return KERNEL
    for known, name in _WORKER_MODULES.items():
        if module == known or module.startswith(f"{known}."):
            return name
    launcher = _MODULES.get(module, module)
    if launcher in _LAUNCHERS:
        return _name_launched(launcher, arguments)
    return module if module.isidentifier() else f"-m {module}"  # -m pytest is pytest


def _name_code(code: str) -> str:
    return CHILD if code.startswith("from multiprocessing.") else "python -c"


def _name_script(path: str, arguments: Iterator[str]) -> str:
    if path == "-":
        return "python from a pipe"
    name = PurePath(path).name
    if name.startswith("ipykernel"):
        return KERNEL
    return _name_launched(name, arguments) if name in _LAUNCHERS else name


def _name_launched(launcher: str, arguments: Iterator[str]) -> str:
    """Returns the launcher and what it starts, such as torchrun train.py or uvicorn serve:app."""
    pattern = _LAUNCHERS[launcher]
    for argument in arguments if pattern is not None else ():
        if pattern is _SCRIPT and argument in ("-m", "--module"):
            return f"{launcher} -m {next(arguments, '?')}"
        if pattern is not None and pattern.fullmatch(argument):
            return f"{launcher} {PurePath(argument).name}"
    return launcher


REPLACED = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, most: int = 300) -> str:
    """Returns the text on one line, without control characters and terminal escapes."""
    if text.isprintable():
        return text[:most]
    return "".join(c if c.isprintable() else REPLACED for c in text[:most])
