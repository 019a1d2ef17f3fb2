"""mpsbar.get_device() and safe_dtype() on real torch, on the CPU and on the software MPS device."""

import json
import subprocess
import sys

import interpreters
import pytest
from fake_torch import make_torch, working
from fork_server import run_python
from worker_kit import NO_MPS, ROOT, TIMEOUT, need_module

needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
ALL = """
import json, mpsbar, torch
names = ["float64", "float32", "float16", "bfloat16", "complex128", "complex64", "complex32", "bool", "uint8",
         "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "qint8"]
short = lambda dtype: str(dtype).replace("torch.", "")
print(json.dumps({n: short(mpsbar.safe_dtype(device, getattr(torch, n))) for n in names if hasattr(torch, n)}))
"""


def run(workers, code, *, python=sys.executable, path="", **extra):
    env = workers.env(PYTHONPATH=f"{path}:{ROOT}" if path else str(ROOT), **extra)
    done = run_python([python, "-B", "-c", code], env=env, cwd="/", timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def dtypes(workers, device, **extra):
    return json.loads(run(workers, f"device = {device!r}\n" + ALL, **extra))


def changed(answers):
    return {wanted: given for wanted, given in answers.items() if wanted != given}


def test_on_the_cpu_every_wish_is_granted(workers):
    need_module("torch")
    if run(workers, "import torch; print(torch.cuda.is_available())") == "True":
        pytest.skip("there is a GPU here")
    assert run(workers, "import mpsbar, torch; print(mpsbar.get_device())") == "cpu"
    assert changed(dtypes(workers, None)) == {}
    assert changed(dtypes(workers, "cuda:1")) == {}


@needs_mps
def test_on_mps(workers):
    code = """
import mpsbar, torch
print(mpsbar.get_device(), mpsbar.safe_dtype(), mpsbar.safe_dtype(wanted=torch.float64))
for device in ("mps", "mps:0", torch.device("mps"), torch.device("mps", 0)):
    print(mpsbar.safe_dtype(device, "float64"), mpsbar.safe_dtype(device, "torch.float16"))
print(mpsbar.safe_dtype("cpu", torch.float64))
"""
    assert run(workers, code, SOFTMPS="1").split() == (
        ["mps", "torch.float32", "torch.float32"] + ["torch.float32", "torch.float16"] * 4 + ["torch.float64"]
    )  # fmt: skip


@needs_mps
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.2", {"bfloat16": "float32", "complex32": "complex64", "uint16": "int32", "uint32": "int64", "uint64": "int64"}),
        ("2.4", {"complex32": "complex64", "uint16": "int32", "uint32": "int64", "uint64": "int64"}),
        ("2.9", {"complex32": "complex64"}),
        ("2.12", {}),
    ],
)  # fmt: skip
def test_on_mps_by_release(workers, version, expected):
    always = {
        "float64": "float32", "complex128": "complex64", "float8_e4m3fn": "float16",
        "float8_e5m2": "float16", "qint8": "float32",
    }  # fmt: skip
    answers = dtypes(workers, "mps", SOFTMPS="1", SOFTMPS_TORCH=version)
    assert changed(answers) == {**always, **expected}


@needs_mps
@pytest.mark.parametrize("version", ["2.2", "2.4", "2.13"])
def test_what_is_called_safe_really_computes_on_the_device(workers, version):
    code = """
import mpsbar, torch
for name in ("float64", "float32", "float16", "bfloat16", "complex128", "int64", "uint8", "float8_e4m3fn"):
    dtype = mpsbar.safe_dtype("mps", name)
    assert (torch.ones(2, dtype=dtype, device="mps") + 1).cpu().to(torch.complex64).sum() == 4, name
print("all")
"""
    assert run(workers, code, SOFTMPS="1", SOFTMPS_TORCH=version) == "all"


@pytest.mark.parametrize(
    ("version", "is_14", "bfloat16", "float8"),
    [
        ("2.2.2", True, "float32", "float16"), ("2.3.0", True, "bfloat16", "float16"),
        ("2.8.0", False, "float32", "float16"), ("2.8.0", "1 / 0", "float32", "float16"),
        ("2.9.0", False, "bfloat16", "float16"), ("2.15.0", False, "bfloat16", "float8_e4m3fn"),
        ("2.16.0a0+git1", False, "bfloat16", "float8_e4m3fn"), ("unreadable", True, "float32", "float16"),
    ],
)  # fmt: skip
def test_releases_and_macs_that_cannot_be_had_here(
    workers, tmp_path, version, is_14, bfloat16, float8
):
    stand_in = working(version) + f"""
class dtype(str): __str__ = lambda self: "torch." + str.__str__(self)
for name in ("float32", "float16", "bfloat16", "float8_e4m3fn"): globals()[name] = dtype(name)
class device: type = "mps"
backends.mps.is_macos_or_newer = lambda major, minor: {is_14}
"""  # fmt: skip
    path = make_torch(tmp_path, stand_in)
    code = "import mpsbar, torch; print(*(mpsbar.safe_dtype(torch.device(), n) for n in ('bfloat16', 'float8_e4m3fn')))"
    answers = run(workers, code, path=path).split()
    assert answers == [f"torch.{bfloat16}", f"torch.{float8}"]


@pytest.mark.parametrize(
    ("code", "chosen"),
    [
        (working(cuda=True), "cuda"),
        (working(cuda="1 / 0"), "mps"),
        (working(available=False), "cpu"),
        (working(available="1 / 0"), "cpu"),
        ("__version__ = '1.11.0'", "cpu"),
        ("import types; backends = cuda = types.SimpleNamespace()", "cpu"),
    ],
)
@pytest.mark.parametrize("version", interpreters.OLDEST_AND_NEWEST)
def test_any_torch_in_any_python_gives_a_device(workers, tmp_path, code, chosen, version):
    answer = run(
        workers, "import mpsbar, torch; print(mpsbar.get_device())",
        path=make_torch(tmp_path, code), python=interpreters.need(version),
    )  # fmt: skip
    assert answer == chosen


def test_torch_is_the_hosts_to_import(workers):
    code = """
import sys, mpsbar
for ask in (mpsbar.get_device, mpsbar.safe_dtype):
    try: ask()
    except RuntimeError as error: print(error)
print("torch" in sys.modules)
"""
    env = workers.env(PYTHONPATH=str(ROOT))
    answer = subprocess.check_output([sys.executable, "-c", code], env=env, text=True)
    assert answer.splitlines() == [
        "import torch before mpsbar.get_device()",
        "import torch before mpsbar.safe_dtype()",
        "False",
    ]


@pytest.mark.parametrize("arguments", ["7, None", "'cpu', 'float'", "'cpu', int", "'cpu', 'nonsense'", "'msp', None"])  # fmt: skip
def test_a_mistake_is_told_and_not_guessed_at(workers, arguments):
    need_module("torch")
    code = f"""
import mpsbar, torch
try: print("given", mpsbar.safe_dtype({arguments}))
except (TypeError, RuntimeError) as error: print("refused", str(error)[:200])
"""
    answer = run(workers, code)
    # torch.float is another name of float32.
    assert answer.startswith("given torch.float32" if "'float'" in arguments else "refused")
