"""What doctor says about the metrics of the setting `export`, with real servers."""

import socket
import threading

from fleet_kit import find_free_port, run_mpsbar
from worker_kit import TIMEOUT

from mpsbar.core.addresses import Address
from mpsbar.fleet import service
from mpsbar.fleet.service import find_service_problem


class Program:
    """Something else than mpsbar at an address; `text` is all it ever says."""

    def __init__(self, text):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self.server.getsockname()[1])
        self._text, self._clients = text, []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        try:
            while True:
                client = self.server.accept()[0]
                self._clients.append(client)
                client.sendall(self._text)
        except OSError:
            return

    def close(self):
        for each in (self.server, *self._clients):
            each.close()


def test_nobody_a_stranger_and_one_that_never_answers(monkeypatch):
    monkeypatch.setattr(service, "_SECONDS", 0.5)  # none of them will ever answer
    nobody = Address("127.0.0.1", find_free_port())
    assert find_service_problem(nobody) == (
        f"No metrics are served at {nobody}, the address in the export setting: "
        "the menu bar app serves them while it runs"
    )
    for text in (b"HTTP/1.0 200 OK\r\nServer: nginx\r\n\r\n", b"x" * 100_000, b""):
        program = Program(text)
        try:
            assert find_service_problem(program.address) == (
                f"Another program answers at {program.address}, the address in the export setting: "
                "choose another port (mpsbar config edit)"
            )
        finally:
            program.close()


def test_doctor_asks_the_address_of_the_setting(workers):
    address = f"127.0.0.1:{find_free_port()}"
    arguments = ("doctor", "--python", "/nowhere/python")
    with run_mpsbar(workers, *arguments, MPSBAR_EXPORT=address) as doctor:
        out, _ = doctor.communicate(timeout=TIMEOUT)
    assert f"\nNo metrics are served at {address}, the address in the export setting: " in out
    with run_mpsbar(workers, "export", "--listen", address) as exporter:
        assert address in exporter.stdout.readline()
        with run_mpsbar(workers, *arguments, MPSBAR_EXPORT=address) as doctor:
            out, _ = doctor.communicate(timeout=TIMEOUT)
    assert "metrics" not in out
