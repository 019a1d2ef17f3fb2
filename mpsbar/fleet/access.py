"""Decides who may read the metrics: protection of the address, TLS, a password or token."""

import base64
import hmac
import ssl
import stat
from pathlib import Path

from mpsbar.core.addresses import Address
from mpsbar.core.errors import UserError, reason_of
from mpsbar.language import _
from mpsbar.system.files import read_bytes

_LONGEST_SECRET = 4096


def require_protection(address: Address, has_tls: bool, is_insecure: bool) -> None:
    """Raises UserError if other computers can reach the address without TLS or --insecure."""
    if not address.is_loopback and not has_tls and not is_insecure:
        raise UserError(
            _(
                "{host} can be reached from other computers: add --tls-cert and --tls-key, "
                "or --insecure to serve it unencrypted"
            ).format(host=address.host)
        )


def make_tls(cert: str, key: str | None, client_ca: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An encrypted key would be asked for on the terminal, where nobody may be.
        context.load_cert_chain(cert, key, password=lambda: b"")
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except ssl.SSLError as problem:
        files = ", ".join(name for name in (cert, key, client_ca) if name)
        reason = (problem.reason or "").replace("_", " ").lower() or _("not in PEM format")
        raise UserError(
            _("{files} can't be used for TLS: {reason}").format(files=files, reason=reason)
        ) from None
    except OSError as problem:
        files = _(" or ").join(name for name in (cert, key, client_ca) if name)
        raise UserError(
            _("couldn't read {files}: {problem}").format(files=files, problem=reason_of(problem))
        ) from None
    return context


class HttpAuth:
    """Checks a request's Authorization header against the secret."""

    def __init__(self, scheme: str, secret: bytes) -> None:
        self.scheme = scheme  # named in the answer to a request without it
        sent = secret if scheme == "Bearer" else base64.b64encode(secret)
        self._expected = scheme.encode() + b" " + sent

    def allows(self, header: str | None) -> bool:
        given = (header or "").strip()
        word, _, rest = given.partition(" ")
        normal = f"{word.title()} {rest.strip()}".encode("utf-8", "replace")
        return hmac.compare_digest(normal, self._expected)


def read_guard(token_file: str | None, password_file: str | None) -> HttpAuth | None:
    if token_file is not None:
        token = _read_secret(token_file)
        if not token.isascii() or b" " in token:
            raise UserError(_("{file} must hold one token without spaces").format(file=token_file))
        return HttpAuth("Bearer", token)
    if password_file is not None:
        secret = _read_secret(password_file)
        user, colon, password = secret.partition(b":")
        if not (user and colon and password):
            raise UserError(_("{file} must hold one line USER:PASSWORD").format(file=password_file))
        return HttpAuth("Basic", secret)
    return None


def _read_secret(path: str) -> bytes:
    """Reads a secret: one line of a file that no other user can read."""
    try:
        mode = Path(path).stat().st_mode
        secret = read_bytes(Path(path), _LONGEST_SECRET).strip()
    except OSError as problem:
        raise UserError(
            _("couldn't read {path}: {problem}").format(path=path, problem=reason_of(problem))
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(_("other users can read {path}: chmod go= {path}").format(path=path))
    if not secret or b"\n" in secret:
        raise UserError(_("{path} must hold exactly one line").format(path=path))
    return secret
