"""The files that `mpsbar compare` hands to another Python: all of them, each after those that it imports."""

import ast
from pathlib import Path

import mpsbar.dtypes.compare
from mpsbar.dtypes.compare_runner import MODULES

FOLDER = Path(mpsbar.dtypes.compare.__file__).parent


def test_every_file_is_handed_over():
    assert sorted(MODULES) == sorted(
        path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__"
    )


def test_each_comes_after_those_it_imports():
    for number, name in enumerate(MODULES):
        tree = ast.parse((FOLDER / f"{name}.py").read_text())
        needed = {
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.level
        }
        assert needed <= set(MODULES[:number]), name
