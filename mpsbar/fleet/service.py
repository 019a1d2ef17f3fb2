"""Serves metrics from inside another program, such as the menu bar app, if a setting says so.

The server takes 14 MB, so it is imported when it is first turned on. `mpsbar doctor` checks here
whether it answers.
"""

import logging
import socket
import threading
import time
from typing import TYPE_CHECKING

from mpsbar.core.addresses import Address, ExportState, parse_address
from mpsbar.core.errors import UserError
from mpsbar.core.settings import OFF
from mpsbar.language import _
from mpsbar.ui.text.startup import no_prometheus

if TYPE_CHECKING:
    from mpsbar.fleet.exporter import TickingMonitor
    from mpsbar.fleet.server import MetricsServer

_log = logging.getLogger("mpsbar")
_SECONDS = 3.0  # for an answer
_MAX_BYTES = 4096


class MetricsService:
    """Serves the metrics of a monitor that ticks in this process already."""

    def __init__(self, monitor: "TickingMonitor") -> None:
        self._monitor = monitor
        self._lock = threading.Lock()
        self._server: MetricsServer | None = None
        self.state = ExportState()
        self._wanted = OFF

    def serve(self, setting: str) -> None:
        """Serves at the address in `setting`, or stops if it is "off"; `state` has the result.

        Any thread may call it; without a change it does nothing.
        """
        with self._lock:
            if setting != self._wanted:
                self._wanted = setting
                self._stop()
                if setting != OFF:
                    self.state = self._start(setting)

    def close(self) -> None:
        self.serve(OFF)

    def _start(self, setting: str) -> ExportState:
        try:
            self._server = self._make_server(setting)
        except UserError as problem:
            _log.warning("metrics are not served: %s", problem)
            return ExportState(problem=str(problem))
        self._server.start()
        _log.info("metrics at %s", self._server.url)
        return ExportState(url=self._server.url)

    def _make_server(self, setting: str) -> "MetricsServer":
        try:
            from mpsbar.fleet.exporter import Exporter
            from mpsbar.fleet.server import MetricsServer
        except ImportError as problem:
            raise UserError(no_prometheus(problem.name or str(problem))) from None
        return MetricsServer(Exporter(self._monitor), parse_address(setting))

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
        self.state = ExportState()


def find_service_problem(address: Address) -> str | None:
    """Returns one sentence on why nobody can read the metrics there, or None if they can."""
    try:
        answer = _ask(address)
    except OSError:
        return _(
            "No metrics are served at {address}, the address in the export setting: "
            "the menu bar app serves them while it runs"
        ).format(address=address)
    if b"\r\nServer: mpsbar" in answer:
        return None
    return _(
        "Another program answers at {address}, the address in the export setting: "
        "choose another port (mpsbar config edit)"
    ).format(address=address)


def _ask(address: Address) -> bytes:
    """Returns the beginning of the answer; a program that never ends it is not waited for."""
    deadline = time.monotonic() + _SECONDS
    answer = b""
    with socket.create_connection((address.host, address.port), timeout=_SECONDS) as connection:
        connection.sendall(f"GET / HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
        while len(answer) < _MAX_BYTES and (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                chunk = connection.recv(_MAX_BYTES)
            except OSError:  # it closed the connection, or says no more
                break
            if not chunk:
                break
            answer += chunk
    return answer
