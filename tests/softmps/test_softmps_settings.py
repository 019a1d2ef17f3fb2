"""The switches: their defaults, their forms, and what is said of a wrong one."""

import pytest
from device_child import run_child
from softmps.settings import Settings, read_settings, version_number

DEFAULT = Settings(strict=1, torch=None, memory=4 << 30, heaps=True, graph_bytes=64 << 10,
                   queue=False, float64=False)  # fmt: skip

SIZE = "must be a size such as 1048576, 512MiB or 4GiB"


def test_defaults() -> None:
    assert read_settings({}) == DEFAULT
    assert read_settings({"SOFTMPS": "1", "SOFTMPS_STRICT": ""}) == DEFAULT


def test_all_given() -> None:
    assert read_settings({
        "SOFTMPS_STRICT": "2", "SOFTMPS_TORCH": "2.4", "SOFTMPS_MEMORY": "512MiB",
        "SOFTMPS_HEAPS": "0", "SOFTMPS_GRAPHS": "0", "SOFTMPS_QUEUE": "1", "SOFTMPS_FLOAT64": "1",
    }) == Settings(2, "2.4.0", 512 << 20, False, 0, True, True)  # fmt: skip


@pytest.mark.parametrize(("name", "value", "text"), [
    ("SOFTMPS", "yes", "SOFTMPS must be 0 or 1, not 'yes'"),
    ("SOFTMPS_STRICT", "3", "SOFTMPS_STRICT must be 0, 1 or 2, not '3'"),
    ("SOFTMPS_QUEUE", "on", "SOFTMPS_QUEUE must be 0 or 1, not 'on'"),
    ("SOFTMPS_TORCH", "1.13",
     "SOFTMPS_TORCH must be a torch version such as 2.4 or 2.13, not '1.13'"),
    ("SOFTMPS_MEMORY", "1MiB", f"SOFTMPS_MEMORY {SIZE}, at least 67108864 bytes, not '1MiB'"),
    ("SOFTMPS_GRAPHS", "-1", f"SOFTMPS_GRAPHS {SIZE}, not '-1'"),
])  # fmt: skip
def test_wrong_values(name: str, value: str, text: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        read_settings({name: value})
    assert str(caught.value) == text


def test_versions_compare_by_number() -> None:
    assert version_number("2.9.1") < version_number("2.10") < version_number("2.13.0+cpu")


def test_import_torch_says_what_is_wrong(usable: None) -> None:
    done = run_child("import torch", SOFTMPS_STRICT="9")
    assert done.returncode == 1
    assert "ValueError: SOFTMPS_STRICT must be 0, 1 or 2, not '9'\n" in done.stderr
