"""Writes what is made from the code: schemas of the JSON, man page, completions, docs/reference.

    python packaging/build_reference.py      (or: make reference)

A test compares the files with what this makes.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

# Found by the line above. The order counts: command_line sets what the words depend on.
import command_line  # noqa: E402, F401
import completions  # noqa: E402
import json_schemas  # noqa: E402
import man_page  # noqa: E402
import reference_pages  # noqa: E402


def build_files() -> dict[str, str]:
    """The text of each file, by its path in the repository."""
    files = {f"resources/schema/{n}.json": json_schemas.render_file(n) for n in json_schemas.FILES}
    files["packaging/shell/mpsbar.1"] = man_page.build_man_page()
    for shell, name in completions.FILES.items():
        files[f"packaging/shell/{name}"] = completions.build_completion(shell)
    for page in reference_pages.PAGES:
        files[f"docs/reference/{page}.md"] = reference_pages.render_page(page)
    return files


def main() -> None:
    for path, text in build_files().items():
        file = ROOT / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"written: {path}")


if __name__ == "__main__":
    main()
