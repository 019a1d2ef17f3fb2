"""The switches: environment variables, read once and checked with a clear message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
DEFAULTS = {
    "SOFTMPS_STRICT": "1",
    "SOFTMPS_TORCH": "",
    "SOFTMPS_MEMORY": "4GiB",
    "SOFTMPS_HEAPS": "1",
    "SOFTMPS_GRAPHS": "64KiB",
    "SOFTMPS_QUEUE": "0",
    "SOFTMPS_FLOAT64": "0",
    "SOFTMPS_FAULTS": "",
}
# As c10 calls them.
DTYPES = {
    "*": "*", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "float64": "Double",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble", "int8": "Char", "uint8": "Byte",
    "int16": "Short", "int32": "Int", "int64": "Long", "uint16": "UInt16", "bool": "Bool",
    "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2",
}  # fmt: skip
KINDS = (
    "wrong", "zero", "nan", "unchanged", "fallback", "fallback:qr", "fallback:pool", "abort", "hang",
    "slow",
)  # fmt: skip
TEXTS = (
    "unimplemented", "float64", "float64_tensor", "float64_kernel", "dtype", "undefined",
    "bfloat16", "out_of_memory", "macos", "buffer", "linear", "softmax", "conv_transpose",
    "dropout", "index_reduce", "batch_norm", "exponent",
)  # fmt: skip
WHEN = ("", "noncontiguous", "long", "seldom")
LAST_WITHOUT_BFLOAT16 = 208

Fault = tuple[str, str, str, str]  # kind, kernel, dtype in c10's words, when


@dataclass(frozen=True, slots=True)
class Settings:
    """How the device of this process behaves."""

    strict: int
    torch: str | None  # the version to behave as; None: the real one
    memory: int
    heaps: bool
    graph_bytes: int
    queue: bool
    float64: bool
    faults: tuple[Fault, ...] = ()


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The switches as the environment sets them; ValueError names the variable at fault."""
    if environ.get("SOFTMPS", "1") not in ("", "0", "1"):
        raise ValueError(f"SOFTMPS must be 0 or 1, not {environ['SOFTMPS']!r}")
    text = {name: environ.get(name) or default for name, default in DEFAULTS.items()}
    return Settings(
        strict=int(_one_of("SOFTMPS_STRICT", text, "0", "1", "2")),
        torch=_version(text["SOFTMPS_TORCH"]),
        memory=_size("SOFTMPS_MEMORY", text, at_least=64 << 20),
        heaps=_one_of("SOFTMPS_HEAPS", text, "0", "1") == "1",
        graph_bytes=_size("SOFTMPS_GRAPHS", text, at_least=0),
        queue=_one_of("SOFTMPS_QUEUE", text, "0", "1") == "1",
        float64=_one_of("SOFTMPS_FLOAT64", text, "0", "1") == "1",
        faults=_faults(text["SOFTMPS_FAULTS"], text["SOFTMPS_TORCH"]),
    )


def version_number(version: str) -> int:
    """`2.13.0+cpu` -> 213: major and minor as one number that compares rightly."""
    major, minor = version.split(".")[:2]
    return int(major) * 100 + int(minor)


def _one_of(name: str, text: Mapping[str, str], *allowed: str) -> str:
    if text[name] not in allowed:
        raise ValueError(
            f"{name} must be {', '.join(allowed[:-1])} or {allowed[-1]}, not {text[name]!r}"
        )
    return text[name]


def _size(name: str, text: Mapping[str, str], *, at_least: int) -> int:
    match = re.fullmatch(r"(\d+) ?(|KiB|MiB|GiB)", text[name])
    size = int(match[1]) * UNITS[match[2]] if match else -1
    if size < at_least:
        bound = f", at least {at_least} bytes" if at_least else ""
        raise ValueError(
            f"{name} must be a size such as 1048576, 512MiB or 4GiB{bound}, not {text[name]!r}"
        )
    return size


def _version(text: str) -> str | None:
    if not text:
        return None
    if not re.fullmatch(r"2\.\d{1,2}(\.\d+)?", text):
        raise ValueError(f"SOFTMPS_TORCH must be a torch version such as 2.4 or 2.13, not {text!r}")
    return text if text.count(".") == 2 else f"{text}.0"


def _faults(text: str, version: str) -> tuple[Fault, ...]:
    """`wrong mm float16; refuse:dtype add * long`: kind, kernel, dtype, and when."""
    return tuple(_fault(each, version) for each in text.split(";") if each.strip())


def _fault(text: str, version: str) -> Fault:
    words = text.split()
    words += [""] * (len(words) == 3)
    kind, _, wanted = (words[0] if words else "").partition(":")
    known = (words[:1] and words[0] in KINDS) or (kind == "refuse" and wanted in TEXTS)
    if len(words) != 4 or not known or words[2] not in DTYPES or words[3] not in WHEN:
        raise ValueError(
            "SOFTMPS_FAULTS must be faults such as 'wrong mm float16; refuse:dtype add * long', "
            f"not {text.strip()!r}"
        )
    newer = not version or version_number(version) > LAST_WITHOUT_BFLOAT16
    if wanted == "bfloat16" and newer:
        raise ValueError("SOFTMPS_FAULTS: from torch 2.9 on there is no text that refuses bfloat16")
    return words[0], words[1], DTYPES[words[2]], words[3]
