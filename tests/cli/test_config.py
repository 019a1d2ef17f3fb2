"""mpsbar config as a person types it."""

from functools import partial

import pytest
from cli.command_kit import run_command


@pytest.fixture
def file(tmp_path):
    (tmp_path / "config").mkdir()
    return tmp_path / "config" / "settings.toml"


@pytest.fixture
def mpsbar(workers, file):
    return partial(run_command, workers, MPSBAR_CONFIG_DIR=str(file.parent))


DEFAULTS = """\
bar = "memory"  # default
interval = 2  # default
alerts = true  # default
alert_causes = ["pressure", "memory", "swap", "leak", "speed", "ended", "reset"]  # default
cool_down = 600  # default
last_words = true  # default
keep_cache_below = "off"  # default
free_when_idle = false  # default
free_at_critical_pressure = false  # default
theme = "dark"  # default
welcome = true  # default
export = "off"  # default
hosts = []  # default
groups = {}  # default
"""


def test_without_a_file(mpsbar, file):
    assert mpsbar("config", "path").stdout == f"{file}\n"
    assert mpsbar("config", "print").stdout == f"# {file}\n{DEFAULTS}"
    done = mpsbar("config", "validate")
    assert (done.returncode, done.stdout) == (0, f"{file} does not exist; using the defaults\n")
    assert list(file.parent.iterdir()) == []


def test_what_is_printed_can_be_used_as_the_file(mpsbar, file):
    changed = {"MPSBAR_BAR": "gpu", "MPSBAR_ALERT_CAUSES": "leak", "MPSBAR_GROUPS": "a.b=c,d e=f"}
    file.write_text(mpsbar("config", "print", **changed).stdout)
    done = mpsbar("config", "validate")
    assert (done.returncode, done.stdout) == (0, f"{file}: no errors found\n")
    printed = mpsbar("config", "print", MPSBAR_ALERTS="0").stdout.splitlines()
    assert printed[1:4] == [
        'bar = "gpu"  # file',
        "interval = 2  # file",
        "alerts = false  # MPSBAR_ALERTS",
    ]
    assert printed[-1] == 'groups = {"a.b" = ["c", "d"], e = ["f"]}  # file'


def test_every_mistake_is_one_line(mpsbar, file):
    file.write_text('intervall = 3\nbar = "no"\n')
    done = mpsbar("config", "validate", MPSBAR_COOL_DOWN="never")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "settings.toml: intervall is not a setting; did you mean interval?",
        'settings.toml: bar is "no": it must be one of memory, gpu, progress, dot, icon',
        'MPSBAR_COOL_DOWN is "never": it must be a number of seconds from 0 to 86400',
    ]
    printed = mpsbar("config", "print")
    assert (printed.returncode, printed.stdout) == (0, f"# {file}\n{DEFAULTS}")
    assert printed.stderr.startswith("mpsbar: settings.toml: intervall is not a setting")


def test_a_broken_file_is_reported_and_left_where_it_is(mpsbar, file):
    file.write_text("bar = ")
    printed, done = mpsbar("config", "print"), mpsbar("config", "validate")
    assert (printed.returncode, printed.stdout) == (0, f"# {file}\n{DEFAULTS}")
    assert done.returncode == 1
    assert done.stdout.startswith(f"{file} can't be used (it is not TOML: ")
    assert printed.stderr == f"mpsbar: {done.stdout}"
    assert [path.name for path in file.parent.iterdir()] == ["settings.toml"]


@pytest.mark.parametrize(
    "arguments", [["config"], ["config", "set"], ["login"], ["login", "maybe"]]
)
def test_wrong_arguments_are_one_line(mpsbar, arguments):
    done = mpsbar(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"(see mpsbar {arguments[0]} --help)" in done.stderr


@pytest.mark.parametrize("command", ["config", "login"])
def test_help_has_examples(mpsbar, command):
    done = mpsbar(command, "--help")
    assert done.returncode == 0
    assert "examples:\n" in done.stdout
    assert f"mpsbar {command} " in done.stdout.split("examples:")[1]


def test_edit_opens_the_file_in_the_editor_and_validates_it(mpsbar, file, tmp_path):
    editor = tmp_path / "an editor"
    editor.write_text("#!/bin/sh\necho 'bar = 3' >> \"$2\" && echo $1\n")
    editor.chmod(0o755)
    done = mpsbar("config", "edit", EDITOR=f"'{editor}' --wait", VISUAL="")
    wrong = "settings.toml: bar is 3: it must be one of memory, gpu, progress, dot, icon"
    assert (done.returncode, done.stdout.splitlines()) == (1, ["--wait", wrong])
    text = file.read_text()
    assert '# bar = "memory"\n# interval = 2\n' in text
    done = mpsbar("config", "edit", VISUAL="true")  # a file that is there is left as it is
    assert (done.returncode, file.read_text()) == (1, text)


@pytest.mark.parametrize(
    ("editor", "told"),
    [
        (
            "no-such-editor -w",
            "the editor no-such-editor was not found: set $EDITOR to another one",
        ),
        ("'open", "$VISUAL or $EDITOR is not a command: 'open"),
        ("false", "the editor false ended with code 1"),
    ],
)
def test_an_editor_that_does_not_work(mpsbar, file, editor, told):
    done = mpsbar("config", "edit", VISUAL=editor)
    assert (done.returncode, done.stderr) == (1, f"mpsbar: {told}\n")
