"""The exporter's web server as strangers meet it: names, methods, passwords, TLS, slow clients."""

import contextlib
import gzip
import http.client
import socket
import ssl
import threading

import pytest
from fleet_kit import ask, make_certificate
from samples import make_snapshot, make_training
from worker_kit import wait_for

from mpsbar.core.addresses import Address
from mpsbar.core.errors import UserError
from mpsbar.fleet import exporter as exporters
from mpsbar.fleet import server as servers
from mpsbar.fleet.access import HttpAuth, make_tls
from mpsbar.fleet.exporter import Exporter
from mpsbar.fleet.server import MetricsServer


class Ticks:
    """A monitor that was ticked by hand."""

    def __init__(self, ticks=1):
        self.latest = make_snapshot(make_training())
        self.ticks = ticks
        self.tick_seconds = 0.002
        self.pause = 2.0


@pytest.fixture
def serve():
    started = []

    def start(monitor=None, **more):
        server = MetricsServer(Exporter(monitor or Ticks()), Address("127.0.0.1", 0), **more)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


def raw(server, *headers, path="/metrics", method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_the_page_in_three_shapes(serve):
    server = serve()
    status, headers, body = ask(server.url)
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert (
        b'mpsbar_worker_held_bytes{device="mps",framework="torch",name="train.py",pid="4711"}'
        in body
    )
    _, headers, body = ask(server.url, Accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    _, headers, body = ask(server.url, Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert b"mpsbar_build_info" in gzip.decompress(body)
    assert b"mpsbar_scrapes_total 3.0" in ask(server.url)[2]


def test_no_page_before_the_first_tick(serve):
    monitor = Ticks(ticks=0)
    server = serve(monitor)
    status, _, body = ask(server.url)
    assert (status, body) == (503, b"mpsbar has not read this computer yet.\n")
    monitor.ticks = 1
    assert ask(server.url)[0] == 200


def test_no_page_of_old_readings(serve, monkeypatch):
    """A monitor that hangs must not look like one where nothing changes."""
    monkeypatch.setattr(exporters, "_SHORTEST_AGE", 0.0)
    monitor = Ticks()
    monitor.pause = 0.0
    server = serve(monitor)
    wait_for(lambda: ask(server.url)[0] == 503, "refusal")
    assert ask(server.url)[2].startswith(b"mpsbar last read this computer ")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9478", "LOCALHOST.", "127.0.0.1:1", "[::1]:1", "127.8.8.8"]
)
def test_names_of_this_computer(serve, host):
    assert raw(serve(), ("Host", host))[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:9478", "127.0.0.1.evil.example", "10.0.0.1:80", "", "[::2]"],
)
def test_a_page_of_another_site_that_leads_its_name_here(serve, host):
    assert raw(serve(), ("Host", host)) == (403, b"ask for localhost or 127.0.0.1\n")


def test_other_paths_and_methods(serve):
    server = serve()
    root = server.url.removesuffix("/metrics")
    assert ask(root + "/")[0] == 200
    assert ask(root + "/metrics?x=1")[0] == 200
    assert ask(root + "/etc/passwd")[0] == 404
    assert ask(root + "/metrics/../x")[0] == 404
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert ask(server.url, method=method)[0] == 405
    status, headers, body = ask(server.url, method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_a_strange_accept_header_is_no_traceback(serve):
    server = serve()
    for accept in (
        "application/openmetrics-text; version=x.y",
        "text/plain; version=99999999999999999999.1",
        ",;;=,",
    ):
        assert ask(server.url, Accept=accept)[0] in (200, 500)
    assert ask(server.url)[0] == 200


@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
def test_a_password_or_token(serve, scheme):
    server = serve(guard=HttpAuth(scheme, b"ann:s3cret"))
    status, headers, body = ask(server.url)
    assert (status, headers["WWW-Authenticate"]) == (401, f'{scheme} realm="mpsbar"')
    assert b"mpsbar_" not in body
    right = {"Bearer": "Bearer ann:s3cret", "Basic": "Basic YW5uOnMzY3JldA=="}
    assert ask(server.url, Authorization=right[scheme])[0] == 200
    assert ask(server.url, Authorization=right[scheme] + "x")[0] == 401


def test_tls_and_a_client_that_does_not_speak_it(serve, tmp_path):
    cert, key = make_certificate(tmp_path)
    server = serve(tls=make_tls(str(cert), str(key), None))
    context = ssl.create_default_context(cafile=cert)
    assert server.url.startswith("https://")
    silent = socket.create_connection(("127.0.0.1", server.address.port))  # never shakes hands
    with socket.create_connection(("127.0.0.1", server.address.port)) as plain:
        plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"mpsbar_" not in plain.recv(4096)
    assert ask(server.url, context=context)[0] == 200
    silent.close()


def test_a_client_certificate(serve, tmp_path):
    cert, key = make_certificate(tmp_path)
    server = serve(tls=make_tls(str(cert), str(key), str(cert)))
    without = ssl.create_default_context(cafile=cert)
    with pytest.raises(OSError):
        ask(server.url, context=without)
    without.load_cert_chain(cert, key)
    assert ask(server.url, context=without)[0] == 200


def test_clients_that_hold_every_place_are_dropped(serve, monkeypatch):
    """They send a byte now and then; a scraper gets its page once their time is over."""
    monkeypatch.setattr(servers, "_REQUEST_SECONDS", 1.0)
    server = serve()
    slow = [socket.create_connection(("127.0.0.1", server.address.port)) for _ in range(40)]
    for client in slow:
        client.sendall(b"GET /met")

    def is_served():
        try:
            return ask(server.url)[0] == 200
        except OSError:
            return False

    wait_for(is_served, "page")
    for client in slow:
        client.close()


def test_many_at_once_get_the_same_page(serve):
    server = serve()
    found = []

    def ask_once():
        found.append(ask(server.url)[0])

    threads = [threading.Thread(target=ask_once) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 8


def test_an_address_that_is_taken_or_not_ours(serve):
    taken = serve().address
    with pytest.raises(UserError) as raised:
        MetricsServer(Exporter(Ticks()), taken)
    assert str(raised.value) == f"{taken} is in use by another program: choose another port"
    with pytest.raises(UserError) as raised:
        MetricsServer(Exporter(Ticks()), Address("192.0.2.1", 0))
    assert str(raised.value) == "192.0.2.1 is not an address of this computer"


def test_a_server_that_never_started_can_be_stopped():
    MetricsServer(Exporter(Ticks()), Address("127.0.0.1", 0)).stop()
