"""Keys and passwords are not shown; what people call their files is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsbar.agent import secrets
from mpsbar.agent.secrets import mask, shorten_command, shorten_title
from mpsbar.core.naming import name_process
from mpsbar.core.torch_facts import mask_settings

HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
# Made up, each in the shape of its kind.
SECRETS = (
    "sk-proj-Ab12Cd34Ef56Gh78Ij90", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk-ant-api03-xyzXYZ123456",
    "hf_AbCdEfGhIjKlMnOpQrStUvWx", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "glpat-AbCd1234efGH5678ijKL",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrst", "xoxb-123456789012-abcdefGHIJKL", "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", "ya29.a0AfH6SMBxyz-123", "pypi-AgEIcHlwaS5vcmcCJDU3",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.dozjgNryP4J3jVmNHl0w5N", "npm_AbCdEfGhIjKlMnOpQrStUv12",
    "dckr_pat_AbCdEfGhIjKlMn", "SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8", "r8_AbCdEfGhIjKlMnOpQrSt",
    "nvapi-AbCdEfGhIjKlMnOpQrStUv", HEX, "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
)  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
def test_a_key_is_recognised_by_its_shape(secret):
    for text in (secret, f"could not log in with {secret}: denied", f"x_{secret}", f"[{secret}]"):
        assert secret not in mask(text)
        assert "***" in mask(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://jane:hunter2@host/x", "https://***@host/x"),
        ("Authorization: Bearer abc.def-123", "Authorization: ***"),
        ("token=hunter2 and more", "*** and more"),
        ("API_KEY:hunter2", "***"),
        ("WANDB_API_KEY=hunter2", "***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "***"),
    ],
)
def test_a_password_is_recognised_by_its_place(text, masked):
    assert "hunter2" not in mask(text)
    assert mask(text).replace("WANDB_", "") == masked


@pytest.mark.parametrize(
    "text",
    [
        "train.py", "torchrun train.py rank 1 of 4", "notebook kernel: attention-is-all-you-need.ipynb",
        "Llama-3.2-11B-Vision-Instruct-4bit.py", "gunicorn: worker [serve:app]", "-m mypackage.train",
        "tokenizer.py", "secret_santa.py", "author.py", "sk-learn.py", "basic_training.py", "desk-lamp-demo.py",
        "/Users/jane/miniforge3/envs/torch213/bin/python3.11", "/opt/homebrew/Cellar/python@3.11/3.11.7",
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.53 GB, other allocations: 1.2 GB)",
    ],
)  # fmt: skip
def test_what_people_call_things_is_kept(text):
    assert mask(text) == text


# To re, ſ is an s, \u212a a k, and ı and İ are an i, where small and capital letters are the same.
PARTS = (
    *SECRETS, "sk-", "PK_", "ghp_", "xoxb-", "AKIA", "eyJ", "SG.", "-----BEGIN ", "KEY-----", "://", "@", "Bearer ",
    "BAſIC ", "basİc ", "PAſſword", "ſecret", "to\u212aen", "api_\u212aey", "cookıe", "CREDENTİALS", "auth", "=", ":", "%3d",
    " ", "_", "-", "/", "+", "é", "ß", "0", "Ab1", HEX[:16], HEX[:32],
)  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=3)), max_size=12).map("".join))
def test_no_shape_is_left_out_that_could_be_there(text):
    every = re.compile("|".join((secrets._ISSUED, secrets._NAMED, secrets._RANDOM)), re.DOTALL)
    assert mask(text) == every.sub("***", text)


@pytest.mark.parametrize(
    "text",
    ["BAſİC hunter2", "PAſſword=hunter2", "ſecret:hunter2", "to\u212aen%3Dhunter2", "api_\u212aey=hunter2",
     "cookıe=hunter2", "COOKİE=hunter2", "credentİals=hunter2", "BEARER hunter2"],
)  # fmt: skip
def test_whatever_letters_a_keyword_is_written_in(text):
    assert mask(text) == "***"


def test_usual_texts_need_no_search():
    """A host waits at its end for what is compiled for it."""
    for text in (
        "/Users/jane/miniforge3/envs/torch213/bin/python3.11",
        "train.py",
        "2.13.0",
        "KeyError",
    ):
        assert secrets._find_kinds(text) == ()


@pytest.mark.parametrize(
    ("title", "short"),
    [
        ("serve --api-key hunter2", "serve"),
        ("serve -k hunter2 --port 80", "serve"),
        ("serve hunter key=hunter2", "serve hunter"),
        ("/opt/bin/serve --api-key hunter2", "/opt/bin/serve"),
        ("/opt/bin/serve\t-k hunter2/x", "/opt/bin/serve"),
        ("/opt/bin/serve hunter key=hunter2", "/opt/bin/serve hunter"),
        ("./serve --token hunter2", "./serve"),
        ("/Users/jane/Paint - old/bin/serve -k hunter2", "/Users/jane/Paint - old/bin/serve"),
        ("gunicorn: worker [serve:app]", "gunicorn: worker [serve:app]"),
        ("ray::train_fn()", "ray::train_fn()"),
        ("", ""),
    ],
)
def test_nothing_after_the_first_option_of_a_title_is_kept(title, short):
    assert shorten_title(title) == short
    if title:
        name = short.rpartition("/")[2]
        assert name_process((title,), executable="/usr/bin/python3") == name


@pytest.mark.parametrize(
    ("command", "short"),
    [
        (("python", "train.py"), ("python", "train.py")),
        (("python", "-u", "-X", "dev", "train.py", "data", "--key", "hunter2"),
         ("python", "-u", "-X", "dev", "train.py", "data", "…")),
        (("python", "-m", "pkg.train", "lr=1", "x"), ("python", "-m", "pkg.train", "…")),
        (("python", "-c", "login('hunter2')"), ("python", "…")),
        (("python", "-uc", "login('hunter2')"), ("python", "…")),
        (("python", "-uBclogin('hunter2')"), ("python", "…")),
        (("python", "-mpkg.train", "--key", "hunter2"), ("python", "-mpkg.train", "…")),
        (("python", "-uW", "ignore", "train.py", "-k", "hunter2"), ("python", "-uW", "ignore", "train.py", "…")),
        (("serve --api-key hunter2",), ("serve",)),
        (("/opt/bin/serve --api-key hunter2",), ("/opt/bin/serve",)),
        (("python", "x.py", HEX), ("python", "x.py", "***")),
        ((), ()),
    ],
)  # fmt: skip
def test_nothing_after_the_first_option_of_a_command_is_kept(command, short):
    assert shorten_command(command) == short


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("-c", "login('hunter2')"), "python -c"),
        (("-uc", "login('hunter2')"), "python -c"),
        (("-clogin('hunter2')",), "python -c"),
        (("-mtrain",), "train"),
        (("-um", "train"), "train"),
        (("-uX", "dev", "train.py"), "train.py"),
        (("-Wignore", "train.py"), "train.py"),
    ],
)
def test_joined_options_of_python_are_read_as_python_reads_them(options, name):
    assert name_process(("python", *options)) == name


def test_of_torchs_variables_only_known_ones_have_values():
    variables = {"PYTORCH_ENABLE_MPS_FALLBACK": "1", "PYTORCH_HUB_TOKEN": "hunter2", "HOME": "/"}
    assert mask_settings(variables) == {
        "PYTORCH_ENABLE_MPS_FALLBACK": "1",
        "PYTORCH_HUB_TOKEN": "***",
    }


@pytest.mark.parametrize("command", [("python", ""), ("", ""), ("", " ")])
def test_a_process_without_a_name_is_unknown(command):
    assert name_process(command) == "unknown"
    assert name_process((" ",), executable="/usr/bin/python3") == "unknown"
