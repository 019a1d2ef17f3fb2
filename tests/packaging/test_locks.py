"""What CI installs is locked by hashes, and has what pyproject.toml asks for on that system."""

import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from worker_kit import ROOT

try:
    import tomllib
except ImportError:
    import tomli as tomllib

FOLDER = ROOT / "packaging"
LOCKS = {
    "ci-requirements.txt": {
        "python_version": "3.11", "python_full_version": "3.11.9", "sys_platform": "linux",
        "platform_system": "Linux", "platform_machine": "x86_64",
    },
    "ci-requirements-macos.txt": {
        "python_version": "3.13", "python_full_version": "3.13.1", "sys_platform": "darwin",
        "platform_system": "Darwin", "platform_machine": "arm64",
    },
}  # fmt: skip
PIN = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def read_lock(text):
    """The version of each package; every one has a hash, and nothing else is in the file."""
    versions = {}
    for entry in text.replace("\\\n", " ").splitlines():
        pin, *hashes = entry.split()
        match = PIN.fullmatch(pin)
        assert match, entry[:80]
        assert hashes, f"{pin} has no hash"
        assert all(HASH.fullmatch(each) for each in hashes), pin
        versions[canonicalize_name(match[1])] = match[2]
    return versions


def list_wanted(system):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for text in (*project["dependencies"], *extras["dev"], *extras["workers"]):
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate(system):
            yield wanted


def find_disagreements(versions, system):
    for wanted in list_wanted(system):
        version = versions.get(canonicalize_name(wanted.name))
        if version is None:
            yield f"{wanted.name} is missing"
        elif not wanted.specifier.contains(version, prereleases=True):
            yield f"{wanted} is locked at {version}"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_what_the_project_asks_for(name):
    """After a change of pyproject.toml: the command that is in .ci/run writes it anew."""
    versions = read_lock((FOLDER / name).read_text())
    assert list(find_disagreements(versions, LOCKS[name])) == []
    assert "torch" not in versions  # the Makefile brings it, by its version


def test_a_disagreement_is_found():
    system = LOCKS["ci-requirements-macos.txt"]
    versions = read_lock((FOLDER / "ci-requirements-macos.txt").read_text())
    assert versions["rumps"] == "0.4.0"
    changed = versions | {"rumps": "0.3.0"}
    del changed["psutil"]
    found = list(find_disagreements(changed, system))
    assert [line.split()[0] for line in found] == ["psutil", "rumps==0.4.0;"]
    with pytest.raises(AssertionError, match="has no hash"):
        read_lock("psutil==7.2.2\n")


def test_each_lock_is_what_its_job_installs():
    option = "--require-hashes -r packaging/"
    assert f"{option}ci-requirements.txt" in (ROOT / ".ci/run").read_text()
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    assert f"{option}ci-requirements-macos.txt" in workflow


def test_the_trainers_are_locked_too():
    """They depend on torch, so they are installed after it, without what they ask for."""
    versions = read_lock((FOLDER / "trainer-requirements.txt").read_text())
    lightning = {"lightning", "lightning-utilities", "pytorch-lightning", "torchmetrics"}
    assert set(versions) == {"accelerate"} | lightning
