"""Starts the agent once a framework has been imported.

`mpsbar enable` copies this file as _mpsbar_start.py, and its .pth calls it when a framework is
looked for. It makes no import that Python has not made itself (typing is one: the annotations are
strings), and never raises.
"""

import os
import sys

# Every `module` of frameworks.py, which this file cannot import: `mpsbar enable` adds them to its
# copy (workers/enable.py), the sitecustomize of `mpsbar run` sets them.
NAMES: "tuple[str, ...]" = ()


class Finder:
    """First on sys.meta_path: lets the others find a framework, and watches its loader."""

    watches_for_mpsbar = True

    def __init__(self, folder: "str | None") -> None:
        self.folder = folder  # where `mpsbar run` has the agent; None: in this environment

    def find_spec(self, name: str, path: object = None, target: object = None) -> "object | None":
        if name not in NAMES:
            return None
        spec = ask_others(name, path, target)
        if spec is not None:
            self.watch(getattr(spec, "loader", None), name)
        return spec

    def watch(self, loader: object, name: str) -> None:
        """Wraps `loader` to start the agent once its module has run, not when it is found."""
        try:
            execute = loader.exec_module  # type: ignore[attr-defined]

            def exec_module(module: object) -> None:
                execute(module)
                self.start(name)

            loader.exec_module = exec_module  # type: ignore[attr-defined]
        except Exception:  # noqa: BLE001, S110 - an exotic loader: not connected, not disturbed
            pass

    def start(self, name: str = "") -> None:
        """Starts the agent, once; for a limit or --explain it watches on for other frameworks."""
        try:
            watching = [f for f in sys.meta_path if hasattr(f, "watches_for_mpsbar")]
            is_limited, is_explained = "MPSBAR_LIMIT" in os.environ, "MPSBAR_EXPLAIN" in os.environ
            stays = is_limited or is_explained
            if not stays or all(other in sys.modules for other in NAMES):
                for finder in watching:
                    sys.meta_path.remove(finder)
                if watching and self.folder is None:
                    answer_to_import()  # the .pth's finder, gone now, did that too
            if watching:
                lifecycle = find_agent(self.folder)
                if is_limited:
                    lifecycle.limit_at_import(name)  # type: ignore[attr-defined]
                lifecycle.attach_by_hook(quiet=self.folder is None)  # type: ignore[attr-defined]
                if is_explained:
                    lifecycle.explain_at_import(name)  # type: ignore[attr-defined]
        except Exception:  # noqa: BLE001, S110 - the program must start without an agent
            pass


def ask_others(name: str, path: object = None, target: object = None) -> "object | None":
    """Returns what the other finders of sys.meta_path find."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is None or hasattr(finder, "watches_for_mpsbar"):
            continue
        spec: object = find(name, path, target)
        if spec is not None:
            return spec
    return None


def find_agent(folder: "str | None") -> object:
    """Returns the agent's lifecycle: this environment's, copied or mpsbar's own, or the one in
    `folder`.
    """
    from importlib import import_module, util

    if folder is not None and "mpsbar_agent" not in sys.modules:
        init = os.path.join(folder, "__init__.py")
        spec = util.spec_from_file_location("mpsbar_agent", init)
        assert spec is not None
        assert spec.loader is not None
        package = sys.modules["mpsbar_agent"] = util.module_from_spec(spec)
        spec.loader.exec_module(package)
    try:
        return import_module("mpsbar_agent.lifecycle")
    except ImportError:
        return import_module("mpsbar.agent.lifecycle")


def find_spec(name: str, path: object = None, target: object = None) -> "object | None":
    """Does for the .pth what Finder.find_spec does, unless mpsbar is turned off. `import mpsbar`
    finds mpsbar itself, older or newer, where it is installed, and else what is enabled."""
    if name == "mpsbar":
        return ask_others(name, path, target) or find_mpsbar(name)
    return None if is_off() else Finder(None).find_spec(name, path, target)


def find_mpsbar(name: str, *_: object) -> "object | None":
    """Finds the agent's public API for `import mpsbar`; last on sys.meta_path."""
    if name != "mpsbar":
        return None
    from importlib import util

    agent = util.find_spec("mpsbar_agent")
    for folder in (agent and agent.submodule_search_locations) or ():
        file = os.path.join(folder, "enabled_mpsbar.py")
        if os.path.isfile(file):
            return util.spec_from_file_location(name, file)
    return None


def answer_to_import() -> None:
    """Has `import mpsbar` find the agent's public API from now on, if nothing else."""
    finder: object = find_mpsbar
    if not any(other is finder for other in sys.meta_path):
        find_mpsbar.find_spec = find_mpsbar  # type: ignore[attr-defined]
        sys.meta_path.append(find_mpsbar)  # type: ignore[arg-type]


def load_in_notebook(folder: str, shell: object) -> None:
    """Loads the agent in `folder` where there is none, with %mpsbar and import mpsbar."""
    find_agent(folder)
    from mpsbar_agent.notebook import load

    load(shell)
    answer_to_import()


def is_off() -> bool:
    return os.environ.get("MPSBAR_DISABLE", "") not in ("", "0")


def install(folder: "str | None" = None) -> None:
    """Watches for the frameworks, unless mpsbar is turned off or watches already."""
    try:
        if folder is None:  # called by the .start file of an enabled environment
            answer_to_import()
        if not is_off() and not any(hasattr(f, "watches_for_mpsbar") for f in sys.meta_path):
            sys.meta_path.insert(0, Finder(folder))  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001, S110 - whatever it is, Python must start
        pass
