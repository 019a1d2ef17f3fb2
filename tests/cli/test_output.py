"""Streams that can't take all characters get ASCII in their place, never a question mark."""

import io
import re
import subprocess
import sys

import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.cli.output import use_plain_characters


def write(text, encoding="ascii"):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    use_plain_characters(stream)
    stream.write(text)
    stream.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("62% · 3.1 it/s", "62% - 3.1 it/s"),
        ("3 × float32 [2×3]", "3 x float32 [2x3]"),
        ("└ rank 1", "` rank 1"),
        ("notebook kerne…  12 MB", "notebook kerne~  12 MB"),
        ("\x1b[1mfinetun…\x1b[0m", "\x1b[1mfinetun~\x1b[0m"),
        ("mpsbar run CMD …", "mpsbar run CMD ..."),
        ("Reading…", "Reading..."),
        ("≤ 3 GB → Free", "<= 3 GB -> Free"),
        ("▁▄█░", "_=#."),
        ("⣿┼▟", ":+#"),
        ("Zoë’s", "Zoe's"),
        ("실험.py", "??.py"),
    ],
)
def test_ascii_for_each(text, shown):
    assert write(text) == shown


def test_a_stream_that_has_the_character_keeps_it():
    assert write("3 × 2 · …", "utf-8") == "3 × 2 · …"
    assert write("3 × 2 · …", "latin-1") == "3 × 2 · ..."


def test_every_character_of_ours_has_a_stand_in():
    """Also those that a later change brings in; letters of names are not ours."""
    sources = "".join(
        path.read_text() for path in (ROOT / "mpsbar").rglob("*.py") if "agent" not in path.parts
    )
    ours = set(re.findall(r"[^\x00-\x7f]", sources)) - {"\N{REPLACEMENT CHARACTER}"}
    assert {c for c in ours if "?" in write(c)} == set()


@pytest.mark.parametrize(
    "arguments", [["status"], ["status", "--wide"], ["doctor", "--python", "/nowhere/…"], ["why"], ["help"], ["…"]]
)  # fmt: skip
def test_commands_in_an_ascii_locale(workers, arguments):
    env = workers.env(
        PYTHONIOENCODING="ascii", MPSBAR_REPLAY="m1-8gb", HOME=str(workers.folder),
        MPSBAR_DATA_DIR=str(workers.folder / "data"), PATH=str(workers.folder),
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "mpsbar", *arguments],
        env=env, capture_output=True, cwd=ROOT, timeout=TIMEOUT,
    )  # fmt: skip
    text = (done.stdout + done.stderr).decode("ascii")
    assert text
    # "?" alone is a number that is not known; "did you mean free?" ends a sentence.
    assert not re.search(r"\w\?\w|\? \?|\?\?", text)
    assert "Traceback" not in text
