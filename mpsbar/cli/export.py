"""mpsbar export: serves metrics to Prometheus until it is stopped."""

import argparse
import threading
from typing import TYPE_CHECKING

from mpsbar.agent.frameworks import join_labels
from mpsbar.cli.output import print_stderr, treat_signals_as_ctrl_c
from mpsbar.core.errors import UserError
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.fleet.exporter import Exporter, TextFile
    from mpsbar.fleet.server import MetricsServer
    from mpsbar.monitor import Monitor

DESCRIPTION = _(
    "Serves this computer, its {frameworks} processes and what their allocators hold as "
    "metrics for Prometheus, until Ctrl-C, SIGTERM or SIGHUP. Only programs on this computer can "
    "read them unless --listen names another address, which requires TLS or --insecure. With "
    "--textfile and without --listen it opens no port. Exit code 0: stopped, 1: it could not "
    "serve, 2: wrong arguments."
).format(frameworks=join_labels(_("and")))
EXAMPLES = (
    "mpsbar export",
    "mpsbar export --textfile /usr/local/var/mpsbar.prom",
    "mpsbar export --listen 10.0.0.7:9478 --tls-cert cert.pem",
    "mpsbar export --token-file token",
)
_FILE_SECONDS = 10.0  # Prometheus usually reads every 15 s or less often


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", metavar="ADDRESS:PORT", help=_("where to serve (default: 127.0.0.1:9478)")
    )
    parser.add_argument(
        "--textfile",
        metavar="FILE",
        help=_("write FILE.prom for node_exporter's textfile collector"),
    )
    parser.add_argument(
        "--tls-cert", metavar="FILE", help=_("serve over TLS with this certificate")
    )
    parser.add_argument(
        "--tls-key", metavar="FILE", help=_("private key (default: in the same file)")
    )
    parser.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        help=_("require a client certificate signed by this CA"),
    )
    secret = parser.add_mutually_exclusive_group()
    secret.add_argument(
        "--token-file", metavar="FILE", help=_("require the bearer token in this file")
    )
    secret.add_argument(
        "--password-file", metavar="FILE", help=_("require the USER:PASSWORD in this file")
    )
    parser.add_argument(
        "--insecure", action="store_true", help=_("serve other computers without encryption")
    )
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    _check(options)
    _import_prometheus()
    from mpsbar.cli.status import make_recorder
    from mpsbar.fleet.exporter import Exporter

    monitor = make_recorder()
    exporter = Exporter(monitor)
    # launchd and systemd end a service by SIGTERM; the file is then removed too.
    treat_signals_as_ctrl_c()
    server = _make_server(options, exporter)
    try:
        if server is not None:
            server.start()
            print(_("mpsbar: metrics at {url}").format(url=server.url), flush=True)
        _serve(monitor, exporter, options.textfile)
    except KeyboardInterrupt:
        return 0
    finally:
        if server is not None:
            server.stop()
        monitor.close()
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.tls_cert is None and (options.tls_key or options.tls_client_ca):
        options.refuse(_("--tls-key and --tls-client-ca require --tls-cert"))
    if options.listen is None and options.textfile is not None:
        given = ("tls_cert", "token_file", "password_file", "insecure")
        if any(getattr(options, name) for name in given):
            options.refuse(_("--textfile alone opens no port: name one with --listen"))


def _import_prometheus() -> None:
    try:
        import mpsbar.fleet.metrics  # noqa: F401
    except ImportError as problem:
        if (problem.name or "").startswith("mpsbar"):
            raise
        from mpsbar.ui.text.startup import no_prometheus

        raise UserError(no_prometheus(problem.name or str(problem))) from None


def _make_server(options: argparse.Namespace, exporter: "Exporter") -> "MetricsServer | None":
    """Returns the server of the metrics, or None if they are only written to a file."""
    if options.listen is None and options.textfile is not None:
        return None
    from mpsbar.core.addresses import DEFAULT_ADDRESS, parse_address
    from mpsbar.fleet import access
    from mpsbar.fleet.server import MetricsServer

    address = parse_address(options.listen or DEFAULT_ADDRESS)
    access.require_protection(address, options.tls_cert is not None, options.insecure)
    tls = None
    if options.tls_cert is not None:
        tls = access.make_tls(options.tls_cert, options.tls_key, options.tls_client_ca)
    guard = access.read_guard(options.token_file, options.password_file)
    return MetricsServer(exporter, address, tls, guard)


def _serve(monitor: "Monitor", exporter: "Exporter", path: str | None) -> None:
    """Serves until a signal comes."""
    from mpsbar.fleet.exporter import TextFile
    from mpsbar.system.waiting import wait_for_event

    file = None if path is None else TextFile(exporter, path)
    ticked = threading.Event()
    monitor.start(lambda _: ticked.set())
    wait_for_event(ticked)
    never = threading.Event()
    if file is None:
        wait_for_event(never)
        return
    try:
        failed = ""
        while True:
            exporter.follow()
            failed = _write(file, failed)
            never.wait(_FILE_SECONDS)
    finally:
        file.remove()


def _write(file: "TextFile", failed: str) -> str:
    """Writes the file and returns the error. The same error is printed once; the next write tries
    again, because a full disk may have room later."""
    try:
        file.write()
    except UserError as complaint:
        if str(complaint) != failed:
            print_stderr(f"mpsbar: {complaint}")
        return str(complaint)
    return ""
