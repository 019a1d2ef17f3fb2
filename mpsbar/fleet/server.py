"""Serves the metrics over HTTP: one read-only page, with limits on what a client may do."""

import contextlib
import errno
import gzip
import ipaddress
import logging
import socket
import socketserver
import ssl
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from mpsbar.core.addresses import Address
from mpsbar.core.errors import UserError, reason_of
from mpsbar.fleet.access import HttpAuth
from mpsbar.fleet.exporter import Exporter, NoReadingError
from mpsbar.language import _

_log = logging.getLogger("mpsbar")
# Prometheus has one connection at a time; the rest are for people.
_MAX_CLIENTS = 16
_READ_SECONDS = 10.0
# The longest request, for a client that sends a byte now and then.
_REQUEST_SECONDS = 30.0
_FOLLOW_SECONDS = 0.5  # the shortest time between two ticks
_INDEX = b"mpsbar exporter: the metrics are at /metrics\n"


class MetricsServer(socketserver.ThreadingTCPServer):
    """Binds at once, so that a wrong address is reported first; `start` serves."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 32

    def __init__(
        self,
        exporter: Exporter,
        address: Address,
        tls: ssl.SSLContext | None = None,
        guard: HttpAuth | None = None,
    ) -> None:
        self.exporter, self.guard = exporter, guard
        self.is_loopback = address.is_loopback
        self._tls = tls
        self._since: dict[socket.socket, float] = {}  # when each connection began
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        try:
            super().__init__((address.host, address.port), _Handler)
        except OSError as problem:
            raise UserError(_say_not_bound(address, problem)) from None
        self.address = Address(address.host, self.server_address[1])
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_FOLLOW_SECONDS,), name="mpsbar-export", daemon=True
        )

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{self.address}/metrics"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():  # else shutdown() would wait forever
            self.shutdown()
        self.server_close()

    def service_actions(self) -> None:
        """Counts events and ends overdue connections, twice a second on the server's thread."""
        try:
            self.exporter.follow()
        except Exception as error:  # noqa: BLE001 - it must go on serving
            _log.warning("counting events failed: %r", error)
        overdue = time.monotonic() - _REQUEST_SECONDS
        for client, since in list(self._since.items()):
            if since < overdue:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self._since) >= _MAX_CLIENTS:
            self.shutdown_request(request)
            return
        self._since[request] = time.monotonic()
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Runs on the client's own thread: a TLS handshake that hangs delays nobody else."""
        request.settimeout(_READ_SECONDS)
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        # wrap_socket takes the descriptor, so from here on the new object counts.
        with self._tls.wrap_socket(
            request, server_side=True, do_handshake_on_connect=False
        ) as wrapped:
            self._since[wrapped] = self._since.pop(request, time.monotonic())
            try:
                wrapped.do_handshake()
                super().finish_request(wrapped, client_address)
            finally:
                self._since.pop(wrapped, None)

    def shutdown_request(self, request: Any) -> None:
        self._since.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Logs a client that disconnected or did not speak TLS, without a traceback on stderr."""
        _log.debug("a client of the exporter failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    server_version = "mpsbar"
    sys_version = ""
    timeout = _READ_SECONDS

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        guard = self.server.guard
        if self.server.is_loopback and not _is_local_name(self.headers.get("Host")):
            # A web page can point its own name at 127.0.0.1 and read what is there (DNS rebinding).
            self._send(HTTPStatus.FORBIDDEN, b"ask for localhost or 127.0.0.1\n")
        elif guard is not None and not guard.allows(self.headers.get("Authorization")):
            ask = {"WWW-Authenticate": f'{guard.scheme} realm="mpsbar"'}
            self._send(HTTPStatus.UNAUTHORIZED, b"a password or token is needed\n", ask)
        elif path == "/":
            self._send(HTTPStatus.OK, _INDEX)
        elif path != "/metrics":
            self._send(HTTPStatus.NOT_FOUND, b"only /metrics is here\n")
        else:
            self._send_metrics()

    do_HEAD = do_GET  # noqa: N815 - the names are http.server's

    def _refuse(self) -> None:
        allowed = {"Allow": "GET, HEAD"}
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n", allowed)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse  # noqa: N815

    def _send_metrics(self) -> None:
        try:
            page, content_type = self.server.exporter.render_for(self.headers.get("Accept", ""))
        except NoReadingError as reason:
            text = f"{reason}\n".encode()
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, text, {"Retry-After": "2"})
            return
        except Exception as error:  # noqa: BLE001 - a request must not end it
            _log.warning("a page for Prometheus failed: %r", error)
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, b"internal error\n")
            return
        headers = {"Content-Type": content_type}
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            page = gzip.compress(page, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        self._send(HTTPStatus.OK, page, headers)

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        usual = {
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Length": str(len(body)),
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in (usual | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing: one line per scrape would fill a service's log."""


def _is_local_name(host: str | None) -> bool:
    """Returns whether a Host header names this computer; a browser always sends the header."""
    if host is None:
        return True
    name, _, port = host.strip().rpartition(":")
    if not port.isdigit():
        name = host.strip()
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _say_not_bound(address: Address, problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return _("{address} is in use by another program: choose another port").format(
            address=address
        )
    if problem.errno == errno.EADDRNOTAVAIL:
        return _("{host} is not an address of this computer").format(host=address.host)
    if problem.errno == errno.EACCES:
        return _("port {port} requires administrator rights: use 1024 or higher").format(
            port=address.port
        )
    return _("couldn't listen on {address}: {problem}").format(
        address=address, problem=reason_of(problem)
    )
