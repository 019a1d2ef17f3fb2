"""`import mpsbar` and %mpsbar in environments that have no mpsbar: enabled ones, and Jupyter's."""

import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import interpreters
import pytest
from jupyter_client import KernelManager
from worker_kit import TIMEOUT

import mpsbar
from mpsbar.workers import enable as setup
from mpsbar.workers import jupyter
from mpsbar.workers.environments import read_environment
from mpsbar.workers.run import copy_agent

PACKAGES = Path(pytest.__file__).parents[1]  # has torch, numpy and ipykernel, but not mpsbar
NAMES = "import mpsbar; print(*sorted(mpsbar.__all__)); print(mpsbar.__file__)"


class Venv:
    def __init__(self, folder, python, with_packages=False):
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.python = str(folder / "bin/python")
        self.site = next(folder.glob("lib/python*/site-packages"))
        if with_packages:
            (self.site / "packages.pth").write_text(f"{PACKAGES}\n")

    def run(self, workers, *arguments):
        # softmps is not among those packages, and torch would look for it.
        env = workers.env(TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        env = {k: v for k, v in env.items() if not k.startswith("PYTHON")}
        return subprocess.run(
            [self.python, "-W", "error", *arguments],
            env=env, cwd="/", capture_output=True, text=True, timeout=TIMEOUT,
        )  # fmt: skip

    def install(self, version):
        """A real mpsbar of another version, as far as an import can tell."""
        (self.site / "mpsbar").mkdir()
        (self.site / "mpsbar/__init__.py").write_text(f"__version__ = {version!r}\n")


@pytest.fixture
def this_venv(workers):
    base = interpreters.need(f"{sys.version_info[0]}.{sys.version_info[1]}")
    return Venv(workers.folder / "venv", base, with_packages=True)


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_an_enabled_environment_has_the_public_api(workers, version):
    venv = Venv(workers.folder / "venv", interpreters.need(version))
    environment = read_environment(venv.python)
    setup.enable(environment)
    assert not read_environment(venv.python).has_mpsbar  # what it finds there is ours
    seen = venv.run(workers, "-c", NAMES)
    names, file = seen.stdout.splitlines()
    assert names.split() == sorted(mpsbar.__all__)
    assert Path(file) == venv.site / "mpsbar_agent/enabled_mpsbar.py"
    memory = venv.run(workers, "-c", "import mpsbar; print(mpsbar.memory()['resident'] > 0)")
    assert (memory.stdout, memory.stderr) == ("True\n", "")
    setup.disable(environment)
    assert "No module named 'mpsbar'" in venv.run(workers, "-c", NAMES).stderr


def test_it_answers_after_torch_was_imported_and_while_mpsbar_is_turned_off(this_venv, workers):
    setup.enable(read_environment(this_venv.python))
    late = this_venv.run(
        workers, "-W", "default", "-c",
        "import torch, mpsbar; print(mpsbar.attach(), mpsbar.get_device(), mpsbar.safe_dtype('cpu'))",
    )  # fmt: skip
    assert late.stdout == "True cpu torch.float32\n", late.stderr
    off = this_venv.run(
        workers, "-c",
        "import os; os.environ['MPSBAR_DISABLE'] = '1'; import mpsbar; print(mpsbar.attach())",
    )  # fmt: skip
    assert off.stdout == "False\n"


COMPARE = """
import torch, mpsbar
model = torch.nn.Linear(4, 4)
print(mpsbar.compare(model, torch.ones(2, 4), device="cpu", dtypes=["float16"], timing=False))
"""


def test_compare_runs_there(this_venv, workers):
    setup.enable(read_environment(this_venv.python))
    done = this_venv.run(workers, "-W", "default", "-c", COMPARE)
    assert "float16" in done.stdout, done.stderr


def test_what_needs_the_whole_of_mpsbar_says_so(this_venv, workers):
    setup.enable(read_environment(this_venv.python))
    done = this_venv.run(workers, "-c", "import mpsbar; mpsbar.snapshot()")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: mpsbar.snapshot() is not part of what mpsbar enable brings:"
        " install mpsbar in this environment"
    )
    command = this_venv.run(workers, "-m", "mpsbar")
    assert (command.returncode, command.stderr) == (
        1,
        "mpsbar: the command is not part of what mpsbar enable brings:"
        " install mpsbar in this environment, or run mpsbar itself\n",
    )


@pytest.mark.parametrize("version", ["0.0.1", "99.0"])
def test_an_installed_mpsbar_is_found_first_and_never_touched(this_venv, workers, version):
    environment = read_environment(this_venv.python)
    setup.enable(environment)
    this_venv.install(version)  # after it was enabled, as pip would
    show = ("-c", "import mpsbar; print(mpsbar.__version__)")
    assert this_venv.run(workers, *show).stdout == f"{version}\n"
    assert read_environment(this_venv.python).has_mpsbar
    setup.disable(environment)
    assert this_venv.run(workers, *show).stdout == f"{version}\n"
    setup.enable(environment)
    shutil.rmtree(this_venv.site / "mpsbar")
    assert this_venv.run(workers, *show).stdout == f"{mpsbar.__version__}\n"


def test_an_editable_install_whose_path_comes_last_is_found_first(this_venv, workers, tmp_path):
    setup.enable(read_environment(this_venv.python))
    (tmp_path / "mpsbar.py").write_text("__version__ = 'checkout'\n")
    (this_venv.site / "zz.pth").write_text(f"{tmp_path}\n")
    done = this_venv.run(workers, "-c", "import mpsbar; print(mpsbar.__version__)")
    assert done.stdout == "checkout\n"


# ------------------------------------------------------------------------ real kernels
class Kernel:
    """A kernel of this Python, as Jupyter starts it; only IPYTHONDIR and the run folder are ours."""

    def __init__(self, workers, python):
        place = str(workers.folder / uuid.uuid4().hex[:8])
        env = {k: v for k, v in workers.env().items() if not k.startswith("PYTHON")}
        env["IPYTHONDIR"] = str(workers.folder / "ipython")
        self.manager = KernelManager(connection_file=f"{place}.json", transport="ipc", ip=place)
        self.manager.kernel_spec.argv[0] = python
        quiet = subprocess.DEVNULL
        self.manager.start_kernel(env=env, cwd=workers.folder, stderr=quiet, stdout=quiet)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(TIMEOUT)

    def run(self, code):
        said = []

        def hear(message):
            content = message["content"]
            shown = content.get("data", {}).get("text/plain")
            said.append(content.get("text") or shown or content.get("ename") or "")

        self.client.execute_interactive(code, timeout=TIMEOUT, output_hook=hear)
        return "".join(said).strip()

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def start_kernel(workers):
    started = []

    def start(python):
        started.append(Kernel(workers, python))
        return started[-1]

    yield start
    for kernel in started:
        kernel.end()


def test_load_ext_in_a_kernel_of_an_enabled_environment(this_venv, start_kernel):
    setup.enable(read_environment(this_venv.python))
    kernel = start_kernel(this_venv.python)
    assert kernel.run("%load_ext mpsbar") == ""
    assert kernel.run("%mpsbar") == "PyTorch or MLX not loaded yet"
    assert kernel.run("import mpsbar; print(mpsbar.attach())") == "True"


def test_enable_jupyter_alone_gives_the_magic(this_venv, start_kernel, workers, monkeypatch):
    """This environment was never enabled: the kernel uses the copy in mpsbar's own folder."""
    monkeypatch.setenv("IPYTHONDIR", str(workers.folder / "ipython"))
    jupyter.enable(copy_agent(workers.folder / "data").parent)
    kernel = start_kernel(this_venv.python)
    assert kernel.run("%mpsbar") == "PyTorch or MLX not loaded yet"
    assert kernel.run("%load_ext mpsbar") == ""
    assert kernel.run("import mpsbar; print(mpsbar.attach(), mpsbar.__version__)") == (
        f"True {mpsbar.__version__}"
    )
    assert kernel.run("print([name for name in globals() if 'mpsbar_load' in name])") == "[]"


def test_a_copy_that_is_gone_does_not_disturb(this_venv, start_kernel, workers, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(workers.folder / "ipython"))
    jupyter.enable(workers.folder / "nowhere")
    kernel = start_kernel(this_venv.python)
    assert kernel.run("print(6 * 7)") == "42"
