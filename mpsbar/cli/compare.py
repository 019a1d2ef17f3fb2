"""mpsbar compare: runs the user's model on the CPU and on the device, and says what differs."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mpsbar.cli.output import INTERRUPTED, print_stderr, run_cancellable, show_progress
from mpsbar.cli.python_choice import DEFAULT, find_candidates, print_choice, refuse_python
from mpsbar.core.errors import UserError
from mpsbar.language import _, ngettext

if TYPE_CHECKING:
    from mpsbar.dtypes.compare_runner import FileComparison

DESCRIPTION = _(
    "Runs your model on the CPU and on the device in several dtypes, in a short-lived process with "
    "your own Python, and names the module at fault: wrong results, NaN, operations that torch "
    "rejects or that fall back to the CPU. Also measures time and memory. FUNCTION takes no "
    "arguments and returns (model, inputs), or (step, model, batch) for a training step that "
    "returns its loss. Exit code 0: every dtype works, 1: one does not or it could not be "
    "compared, 2: wrong arguments, 130: canceled by Ctrl-C."
)
EXAMPLES = (
    "mpsbar compare model.py:make",
    "mpsbar compare model.py:make --dtypes float16,bfloat16 --device mps",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "subject", metavar="FILE.py:FUNCTION", help=_("your file, and the function in it to call")
    )
    parser.add_argument(
        "--dtypes",
        metavar="NAMES",
        help=_("default: float32,float16,bfloat16,autocast; also autocast:bfloat16"),
    )
    parser.add_argument(
        "--device", choices=("mps", "cuda", "cpu"), help=_("default: cuda, else mps, else cpu")
    )
    parser.add_argument(
        "--reference", choices=("float32", "float64"), help=_("dtype on the CPU (default: float32)")
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help=DEFAULT,
    )
    parser.add_argument("--no-timing", action="store_true", help=_("don't measure times"))
    parser.add_argument(
        "--json", action="store_true", help=_("print one JSON object instead of text")
    )
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    from mpsbar.dtypes.compare.render import render_text
    from mpsbar.dtypes.compare.text import use_language
    from mpsbar.dtypes.compare_runner import CompareRunner
    from mpsbar.ui.text.cells import width

    file, function = _parse_subject(options)
    chosen = {
        "dtypes": _parse_dtypes(options), "device": options.device,
        "reference": options.reference, "timing": False if options.no_timing else None,
    }  # fmt: skip
    runner = CompareRunner(find_candidates(options.python), str(file), function, chosen)
    # The user's model is loaded in a process of its own, which Ctrl-C ends.
    result = run_cancellable(lambda: runner.run(_show_step), runner.cancel)
    if result.ended == "cancelled" and result.data is None:
        return INTERRUPTED
    if result.data is None:
        _complain(result, function, options)
    if options.python is None:
        print_choice(result.python)
    if options.json:
        print(json.dumps(result.data))
    else:
        use_language(_, ngettext, width)
        print(render_text(result.data), end="")
    if result.ended == "cancelled":
        print_stderr(_("mpsbar: canceled; these dtypes were finished"))
        return INTERRUPTED
    works = all(dtype["state"] == "works" for dtype in result.data["dtypes"].values())
    return 0 if works else 1


def _parse_subject(options: argparse.Namespace) -> tuple[Path, str]:
    name, colon, function = options.subject.rpartition(":")
    if not colon or not name or not function.isidentifier():
        options.refuse(
            _("expected FILE.py:FUNCTION, such as model.py:make, not {given!r}").format(
                given=options.subject
            )
        )
    file = Path(name).expanduser().absolute()
    if not file.is_file():
        options.refuse(_("no such file: {name}").format(name=name))
    return file, function


def _parse_dtypes(options: argparse.Namespace) -> list[str] | None:
    if options.dtypes is None:
        return None
    from mpsbar.dtypes.compare.text import DTYPES

    known = (*DTYPES, "float64")
    names = [name for name in options.dtypes.split(",") if name]
    for name in names:
        if name.partition(":")[0] not in known:
            options.refuse(
                _("unknown dtype {name!r}: choose from {names}").format(
                    names=", ".join(known), name=name
                )
            )
    return names


def _show_step(name: str, done: int, total: int) -> None:
    if total > 1:
        text = ngettext(
            "Comparing… {name}: {done} of {n} call", "Comparing… {name}: {done} of {n} calls", total
        )
        show_progress(text.format(name=name, done=done, n=total))
    else:
        show_progress(_("Comparing… {name}: running").format(name=name))


def _complain(result: "FileComparison", function: str, options: argparse.Namespace) -> NoReturn:
    from mpsbar.dtypes.text import say_failure

    if result.ended == "failed":
        lines = [
            _("couldn't load {function}(): {problem}").format(
                function=function, problem=result.text
            ),
            *result.trace,
        ]
        raise UserError("\n  ".join(lines))
    if result.ended == "crashed":
        raise UserError(_("the comparison crashed: {problem}").format(problem=result.text))
    refuse_python(options, result.ended, say_failure(result.ended, result.python, result.text))
