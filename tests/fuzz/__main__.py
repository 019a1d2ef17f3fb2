"""Coverage-guided fuzzing by atheris: python -m fuzz [RUNS] [TARGET …]. Needs pip install atheris.

The inputs that reach new code are kept in tests/fuzz/corpus, those that fail in tests/fuzz/found.
"""

import subprocess
import sys
from pathlib import Path

from signals_kit import restore_signals

HERE = Path(__file__).parent
_RUN = """
import sys, atheris
with atheris.instrument_imports(include=["mpsbar"]):
    from fuzz.targets import TARGETS
target = TARGETS[sys.argv.pop(1)]
atheris.Setup(sys.argv, target)
atheris.Fuzz()
"""


def main(runs: int = 100_000, *names: str) -> int:
    from fuzz.targets import TARGETS

    lost = total = 0
    for name in names or TARGETS:
        corpus, found = HERE / "corpus" / name, HERE / "found" / name
        for folder in (corpus, found):
            folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [
                sys.executable, "-c", _RUN, name, str(corpus), f"-runs={runs}", "-max_len=4096",
                "-reduce_inputs=1", "-timeout=30", f"-artifact_prefix={found}/", "-print_final_stats=1",
            ],
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        stats = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line]
        tried = int(stats[0].split()[-1]) if stats else 0
        lost += done.returncode != 0
        total += tried
        kept = len(list(corpus.iterdir()))
        print(
            f"{name:<16} tried {tried:>9}  lost {int(done.returncode != 0)}  corpus {kept}",
            flush=True,
        )
        if done.returncode:
            print(done.stderr[-3000:])
    print(f"fuzz: tried {total}, survived {total - lost}, lost {lost}")
    return 1 if lost else 0


if __name__ == "__main__":
    restore_signals()
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:]))
