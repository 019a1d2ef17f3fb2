"""The one line for status bars: every field, nothing known, and names that mean something there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GB, make_snapshot, make_training

from mpsbar.core.errors import UserError
from mpsbar.core.machine import Machine
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.text.status_line import FIELDS, build_fields, make_safe, parse_format, render_line


def show(text, snapshot):
    return render_line(parse_format(text), build_fields(snapshot))


def test_every_field():
    snapshot = make_snapshot(make_training(), make_training(5, "small.py", held=GB, cached=0))
    everything = " ".join(f"{name}={{{name}}}" for name in FIELDS)
    assert show(everything, snapshot) == (
        "held=7.0 GB cached=3.0 GB gpu=43% gpu_memory=9.8 GB budget=27.0 GB available=12.0 GB memory=36.0 GB "
        "swap=0 B pressure=normal health=ok workers=2 processes=2 progress=? left=? top=train.py top_held=6.0 GB"
    )
    assert set(build_fields(snapshot)) == set(FIELDS)


def test_nothing_known():
    nothing = Snapshot(1.0, machine=Machine(), processes=None)
    assert (
        show("{held} {gpu} {top} {top_held} {pressure} {processes} {workers}", nothing)
        == "? ? ? ? ? ? 0"
    )


def test_braces_and_lines():
    assert show("{{held}} a\nb", make_snapshot()) == "{held} a b"


@pytest.mark.parametrize(
    "text", ["{helt}", "{held.__class__}", "{held!r}", "{held:>5}", "{0}", "{}", "{held[0]}"]
)
def test_other_fields_are_refused(text):
    with pytest.raises(
        UserError, match="is not a field of --format; the fields are held, cached, gpu, "
    ):
        parse_format(text)


@pytest.mark.parametrize("text", ["{held", "held}"])
def test_broken_formats(text):
    with pytest.raises(UserError, match="the format is not valid: "):
        parse_format(text)


@given(
    st.text()
    | st.sampled_from(
        ["a | shell=/bin/evil", "#[fg=red]#(evil)", "$(evil)`evil`", "%F{red}", "a\nb", "\x1b[2J"]
    )
)
def test_no_name_speaks_to_the_status_bar(name):
    safe = make_safe(name)
    assert not set(safe) & set("|#$`%\\\"'<>{}()[];&\n\r\t\x1b")
    assert safe.isprintable() or safe == ""
