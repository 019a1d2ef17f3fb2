"""Whether the metrics that the setting `export` promises are served, for `mpsbar doctor`."""

import socket
import time

from mpsbar.core.addresses import Address
from mpsbar.language import _

_SECONDS = 3.0
_MOST_BYTES = 4096


def find_service_problem(address: Address) -> str | None:
    """One sentence on why nobody can read them; None: an mpsbar answers there."""
    try:
        answer = _ask(address)
    except OSError:
        return _(
            "No metrics are served at {address}, the address in the setting export: "
            "the menu bar app serves them while it runs"
        ).format(address=address)
    if b"\r\nServer: mpsbar" in answer:
        return None
    return _(
        "Another program answers at {address}, the address in the setting export: "
        "choose another port (mpsbar config edit)"
    ).format(address=address)


def _ask(address: Address) -> bytes:
    """The beginning of what is answered there; a program that never ends it is not waited for."""
    deadline = time.monotonic() + _SECONDS
    answer = b""
    with socket.create_connection((address.host, address.port), timeout=_SECONDS) as connection:
        connection.sendall(f"GET / HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
        while len(answer) < _MOST_BYTES and (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                chunk = connection.recv(_MOST_BYTES)
            except OSError:  # it closed the connection, or says no more
                break
            if not chunk:
                break
            answer += chunk
    return answer
