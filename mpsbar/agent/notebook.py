"""In IPython and Jupyter: the %mpsbar magic, and the name of the notebook.

The rest of the agent is imported where it is used, as `methods` imports this module.
"""

import os
import sys
import time
from typing import Any, Optional

from . import notebook_text
from .language import _, mark

USAGE = mark("use %mpsbar, %mpsbar free [--outputs], %mpsbar tensors or %mpsbar why")
# `mpsbar why` takes a fraction of a second; a slow disk may add to that.
_WHY_SECONDS = 30.0
_STEP_SECONDS = 0.001
_CO_COROUTINE = 0x80  # as in inspect, which the agent does not import
_PLAIN = {"·": "-", "×": "x", "≤": "<=", "…": "...", "→": "->", "−": "-"}
_UNDERSCORES = ("_", "__", "___")


def load(shell: Any) -> None:
    """Shows this process in mpsbar and gives `shell` the %mpsbar magic. Never raises."""
    try:
        from .lifecycle import attach

        attach()

        def mpsbar(line: str, cell: Optional[str] = None) -> None:
            """%mpsbar: what this kernel holds and how far it is; %mpsbar free [--outputs] frees.
            %mpsbar tensors: the largest live tensors. %mpsbar why: how the last kernels of this
            notebook ended. %%mpsbar: the time and the memory of one cell.

            free also drops the last traceback, and with --outputs all of Out: what they hold
            cannot be freed otherwise.
            """
            if cell is None:
                run_magic(shell, line)
            else:
                run_cell(shell, line, cell)

        shell.register_magic_function(mpsbar, "line_cell", "mpsbar")
    except Exception as error:  # noqa: BLE001 - a notebook must start without us
        _complain(_("%mpsbar couldn't be loaded: {error}").format(error=error))


def unload(shell: Any) -> None:
    """Takes the magic away. The agent stays: others than the notebook may have attached it."""
    try:
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop("mpsbar", None)
    except Exception as error:  # noqa: BLE001 - as above
        _complain(_("%mpsbar couldn't be unloaded: {error}").format(error=error))


def find_name() -> Optional[str]:
    """Returns the notebook's file name, without its folder, where this process is a kernel that
    knows it.

    A child of a kernel inherits JPY_SESSION_NAME, but is no notebook.
    """
    kernel = _kernel()
    if kernel is None:
        return None
    namespace = getattr(getattr(kernel, "shell", None), "user_ns", None) or {}
    for path in (os.environ.get("JPY_SESSION_NAME"), namespace.get("__vsc_ipynb_file__")):
        if type(path) is str and path.endswith(".ipynb"):
            return os.path.basename(path)[:300]
    return None


def run_magic(shell: Any, line: str) -> None:
    words = line.split()
    if not words:
        show(shell, *describe())
    elif words in (["free"], ["free", "--outputs"]):
        drop_errors(shell)
        if "--outputs" in words:
            drop_outputs(shell)
        _say(free())
    elif words == ["tensors"]:
        _say(count_tensors())
    elif words == ["why"]:
        _say(why())
    else:
        text = _("{words!r} is not an option; {usage}")
        _complain(text.format(words=" ".join(words)[:60], usage=_(USAGE)))


# ------------------------------------------------------------------- what it holds
def describe() -> "tuple[str, str]":
    """Says what each allocator of this process holds, and how far its progress bars are: as text,
    and as HTML.
    """
    from .methods import stats as read
    from .notebook_card import render_card

    report = read({})
    memory = notebook_text.describe_memory(report["backends"])
    progress = notebook_text.describe_progress(report["progress"])
    card = render_card(report["backends"], report["progress"])
    return f"{memory}\n{progress}" if progress else memory, card


def show(shell: Any, text: str, card: str) -> None:
    """Shows the card in a notebook, the text in a terminal."""
    if _kernel() is not None and card:
        shell.display_pub.publish({"text/plain": text, "text/html": card})
    else:
        _say(text)


def count_tensors() -> str:
    from .notebook_card import describe_tensors
    from .tensors import TensorCensus

    job = TensorCensus(None)
    try:
        while (report := job.step()) is None:
            time.sleep(_STEP_SECONDS)
    finally:
        _clean_up()
    return describe_tensors(report)


def run_cell(shell: Any, line: str, cell: str) -> None:
    """Runs the cell of %%mpsbar as it stands and says what it took. An error is the cell's own."""
    import ast  # IPython has it loaded long ago

    from .notebook_card import describe_cell, read_counters

    if words := line.split():
        refusal = _("%%mpsbar takes no options, not {words!r}; the cell was not run")
        _complain(refusal.format(words=" ".join(words)[:60]))
        return
    text = "\n" + shell.transform_cell(cell)  # below %%mpsbar: lines are numbered as they are seen
    name = shell.compile.cache(text, shell.execution_count)  # for tracebacks
    tree = shell.compile.ast_parse(text, name)
    code = compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & _CO_COROUTINE:
        _complain(_("%%mpsbar doesn't support await outside a function; the cell was not run"))
        return
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    before = read_counters()
    began = time.perf_counter()
    try:
        exec(shell.compile(tree, name, "exec"), shell.user_ns)  # noqa: S102 - the person's own
        if isinstance(last, ast.Expr):
            value = eval(shell.compile(ast.Expression(last.value), name, "eval"), shell.user_ns)  # noqa: S307
            if not cell.rstrip().endswith(";"):
                shell.displayhook(value)
    finally:
        seconds = time.perf_counter() - began
        _say(describe_cell(before, read_counters(), seconds))


# ---------------------------------------------------------------------------- free
def free() -> str:
    """Frees every cache from where the magic runs, and says how it ended."""
    from .free import FreeJob
    from .methods import stats as read

    job = FreeJob(None)
    try:
        while (report := job.step()) is None:
            time.sleep(_STEP_SECONDS)  # on main the pending call that frees comes in between
    finally:
        _clean_up()
    still_cached = notebook_text.add_up_cached(read({})["backends"])
    return notebook_text.say_freed(report, still_cached)


def _clean_up() -> None:
    """Restores the settings of this process after a Free, also one that a Ctrl-C has cut short."""
    from .gc_pause import end_job
    from .host_settings import restore_settings

    end_job()
    restore_settings()


# ----------------------------------------------------------------- why a kernel died
def why() -> str:
    """Says how the last kernels of this notebook ended: the command `mpsbar why` knows."""
    command = _find_command()
    if command is None:
        return _("mpsbar isn't installed in this environment; in a terminal: mpsbar why kernel")
    import subprocess  # a kernel has it loaded long ago

    name = find_name() or "notebook kernel"
    try:
        done = subprocess.run(
            [*command, "why", name], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_WHY_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return _("mpsbar why failed: {error}").format(error=error)
    return (done.stdout or done.stderr).decode("utf-8", "replace").strip()


def _find_command() -> "Optional[list[str]]":
    """Finds this environment's mpsbar, else the one on PATH."""
    from importlib import util

    try:
        if util.find_spec("mpsbar.cli") is not None:
            return [sys.executable, "-B", "-m", "mpsbar"]
    except ImportError:
        pass
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "mpsbar")
        if os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK):
            return [path]
    return None


# --------------------------------------------------------- what notebooks hold by accident
def drop_errors(shell: Any) -> None:
    """Lets go of the last failed cell: its traceback holds its frames, and they hold tensors."""
    for name in ("last_traceback", "last_value", "last_type", "last_exc"):
        if hasattr(sys, name):  # gone, not None: %debug and %tb look for the attribute
            delattr(sys, name)
    for path in (
        ("InteractiveTB", "tb"),
        ("InteractiveTB", "pdb"),  # after %debug; made anew when there is none
        ("SyntaxTB", "last_syntax_error"),
        ("last_execution_result", "error_in_exec"),
    ):
        holder = getattr(shell, path[0], None)
        if getattr(holder, path[1], None) is not None:
            setattr(holder, path[1], None)


def drop_outputs(shell: Any) -> None:
    """Empties Out and all that IPython made of it; a variable the user has assigned stays.

    Not %reset out: it leaves the last three in user_ns_hidden, and takes a user's own _ along.
    """
    hook, seen, hidden = shell.displayhook, shell.user_ns, shell.user_ns_hidden
    outputs = seen.get("_oh") or {}
    for number, value in list(outputs.items()):
        for namespace in (seen, hidden):
            if namespace.get(f"_{number}") is value:
                del namespace[f"_{number}"]
    outputs.clear()
    for name in _UNDERSCORES:
        value = getattr(hook, name, "")
        for namespace in (seen, hidden):
            if namespace.get(name) is value:
                namespace[name] = ""
        setattr(hook, name, "")
    if getattr(shell, "last_execution_result", None) is not None:
        shell.last_execution_result.result = None


def _kernel() -> Optional[Any]:
    """Returns ipykernel's application, if this process is one."""
    application = getattr(sys.modules.get("ipykernel.kernelapp"), "IPKernelApp", None)
    return getattr(application, "_instance", None)


def _say(text: str) -> None:
    """Prints a text, also where stdout has no more than ASCII (LC_ALL=C)."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        for character, plain in _PLAIN.items():
            text = text.replace(character, plain)
        text = text.encode("ascii", "replace").decode()
    print(text)  # noqa: T201 - a magic prints


def _complain(text: str) -> None:
    if sys.stderr is not None:
        print(f"mpsbar: {text}", file=sys.stderr)  # noqa: T201 - the one line
