"""Who may read the metrics: each mistake is one sentence, and nothing else can be read."""

import base64

import pytest

from mpsbar.core.addresses import Address, parse_address
from mpsbar.core.errors import UserError
from mpsbar.fleet.access import make_tls, read_guard, require_protection


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9478", Address("127.0.0.1", 9478)),
        ("localhost:0", Address("127.0.0.1", 0)),
        ("[::1]:65535", Address("::1", 65535)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("9478", "'9478' is not ADDRESS:PORT, for example 127.0.0.1:9478"),
        (":9478", "':9478' is not ADDRESS:PORT, for example 127.0.0.1:9478"),
        ("127.0.0.1:65536", "'65536' is not a port: it must be from 0 to 65535"),
        ("127.0.0.1:-1", "'-1' is not a port: it must be from 0 to 65535"),
        ("127.0.0.1:٣", "'٣' is not a port: it must be from 0 to 65535"),
        ("mac.local:1", "'mac.local' is not a numeric address of this computer, such as 127.0.0.1"),
        ("::1:9478", "write an IPv6 address in brackets: [::1]:9478"),
    ],
)
def test_bad_addresses_are_one_sentence(text, complaint):
    with pytest.raises(UserError) as raised:
        parse_address(text)
    assert str(raised.value) == complaint


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.7", "::", "fe80::1"])
def test_other_computers_need_tls_or_a_persons_word(host):
    address = Address(host, 9478)
    with pytest.raises(UserError, match="can be reached from other computers"):
        require_protection(address, has_tls=False, is_insecure=False)
    require_protection(address, has_tls=True, is_insecure=False)
    require_protection(address, has_tls=False, is_insecure=True)
    require_protection(Address("127.0.0.1", 1), has_tls=False, is_insecure=False)


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_token(tmp_path):
    guard = read_guard(write(tmp_path / "token", "s3cret\n"), None)
    assert guard.scheme == "Bearer"
    assert guard.allows("Bearer s3cret")
    assert guard.allows("bearer  s3cret")
    for wrong in (
        None,
        "",
        "Bearer",
        "Bearer s3cre",
        "Bearer s3cret2",
        "Basic s3cret",
        "s3cret",
        "Bearer ü",
    ):
        assert not guard.allows(wrong)


def test_a_password(tmp_path):
    guard = read_guard(None, write(tmp_path / "password", "ann:a:b\n"))
    encoded = base64.b64encode(b"ann:a:b").decode()
    assert guard.allows(f"Basic {encoded}")
    assert not guard.allows(f"Basic {base64.b64encode(b'ann:a').decode()}")


@pytest.mark.parametrize(
    ("text", "mode", "complaint"),
    [
        ("s3cret", 0o644, "other users can read "),
        ("", 0o600, "must hold exactly one line"),
        ("a\nb", 0o600, "must hold exactly one line"),
        ("two words", 0o600, "must hold one token without spaces"),
        ("x" * 5000, 0o600, "token: it is larger than 4 KiB"),
    ],
)
def test_bad_token_files(tmp_path, text, mode, complaint):
    with pytest.raises(UserError) as raised:
        read_guard(write(tmp_path / "token", text, mode), None)
    assert complaint in str(raised.value)


def test_bad_password_files(tmp_path):
    with pytest.raises(UserError, match="must hold one line USER:PASSWORD"):
        read_guard(None, write(tmp_path / "password", "nocolon"))
    with pytest.raises(UserError, match=r"couldn't read .*: No such file or directory"):
        read_guard(None, str(tmp_path / "nothing"))


def test_bad_certificates(tmp_path):
    text = write(tmp_path / "cert.pem", "no certificate")
    with pytest.raises(UserError, match="can't be used for TLS: "):
        make_tls(text, None, None)
    with pytest.raises(UserError, match=r"couldn't read .*: No such file or directory"):
        make_tls(str(tmp_path / "nothing"), None, None)
