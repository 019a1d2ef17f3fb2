"""Addresses to listen at, and the names of hosts that ssh is asked for. Pure.

ipaddress is imported when it is needed: every command reads the settings, few have an address.
"""

import re
from dataclasses import dataclass

from mpsbar.core.errors import UserError
from mpsbar.core.naming import printable
from mpsbar.language import _

DEFAULT_ADDRESS = "127.0.0.1:9478"
# A name for ssh_config, user@host, an address; never an option, and nothing a shell would read.
_HOST = re.compile(r"[\w.@:%\[\]][\w.@:%\[\]+-]{0,252}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    host: str  # numeric
    port: int  # 0: any free one

    @property
    def is_loopback(self) -> bool:
        import ipaddress

        return ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ExportState:
    """Whether metrics are served; both None: nobody asked for it."""

    url: str | None = None
    problem: str | None = None  # one sentence on why they are not


def parse_address(text: str) -> Address:
    """Parses HOST:PORT with a numeric host or localhost; UserError says what is wrong."""
    import ipaddress

    host, colon, port = text.strip().rpartition(":")
    shown = printable(text, 80)
    if not colon or not host:
        complaint = _("{text!r} is not ADDRESS:PORT, for example {example}")
        raise UserError(complaint.format(text=shown, example=DEFAULT_ADDRESS))
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        complaint = _("{port!r} is not a port: it must be from 0 to 65535")
        raise UserError(complaint.format(port=printable(port, 20)))
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if bare == "localhost":
        bare = "127.0.0.1"
    try:
        number = ipaddress.ip_address(bare)
    except ValueError:
        complaint = _("{host!r} is not a numeric address of this computer, such as 127.0.0.1")
        raise UserError(complaint.format(host=printable(host, 60))) from None
    if number.version == 6 and bare == host:
        complaint = _("write an IPv6 address in brackets: {address}")
        raise UserError(complaint.format(address=f"[{bare}]:{port}"))
    return Address(str(number), int(port))


def is_host_name(text: str) -> bool:
    """Returns whether ssh may be asked for it."""
    return _HOST.fullmatch(text) is not None
