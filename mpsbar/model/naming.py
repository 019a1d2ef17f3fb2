"""A name made for people from a command line. Pure."""

from pathlib import PurePath

KERNEL = "notebook kernel"
# Options of python that take the next argument.
_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}


def name_process(command: tuple[str, ...], notebook: str | None = None) -> str:
    """What the person started: train.py, a module, a prompt, a kernel and its notebook if known."""
    name = _name_command(command)
    return f"{KERNEL}: {notebook}" if notebook and name == KERNEL else name


def _name_command(command: tuple[str, ...]) -> str:
    arguments = iter(command[1:])
    for argument in arguments:
        if argument in _WITH_VALUE:
            next(arguments, None)
        elif argument == "-m":
            return _name_module(next(arguments, "?"))
        elif argument == "-c":
            return "python -c"
        elif argument == "-" or not argument.startswith("-"):
            return _name_script(argument)
    return "Python prompt" if command else "unknown"


def _name_module(module: str) -> str:
    return KERNEL if module.startswith("ipykernel") else f"-m {module}"


def _name_script(path: str) -> str:
    if path == "-":
        return "python from a pipe"
    name = PurePath(path).name
    return KERNEL if name.startswith("ipykernel") else name
