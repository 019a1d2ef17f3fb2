"""debugpy: a script that waits for a debugger and runs under it to its end."""

import json
import socket
import subprocess
import sys

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]


def send(link, number, command, **arguments):
    body = json.dumps(
        {"seq": number, "type": "request", "command": command, "arguments": arguments}
    ).encode()
    link.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)


def receive(file):
    length = 0
    while (line := file.readline().strip()) or not length:
        if not line and not length:
            raise EOFError
        if line.lower().startswith(b"content-length"):
            length = int(line.split(b":")[1])
    return json.loads(file.read(length))


def wait_for(file, **wanted):
    while True:
        message = receive(file)
        if all(message.get(key) == value for key, value in wanted.items()):
            assert message.get("success", True), message
            return message


listener = socket.create_server(("127.0.0.1", port))
program = subprocess.Popen(
    [sys.executable, "-Xfrozen_modules=off", "-m", "debugpy", "--connect", f"127.0.0.1:{port}",
     "--wait-for-client", "plain_loop.py"], stdout=subprocess.PIPE, text=True
)  # fmt: skip
listener.settimeout(120)
link, _ = listener.accept()
link.settimeout(120)
file = link.makefile("rb")
send(link, 1, "initialize", adapterID="wild")
send(link, 2, "attach", justMyCode=True)
wait_for(file, event="initialized")
send(link, 3, "setBreakpoints", source={"path": "small_model.py"}, breakpoints=[])
wait_for(file, command="setBreakpoints")
send(link, 4, "configurationDone")
wait_for(file, command="configurationDone")
print(program.stdout.read(), end="", flush=True)
print("result ended with", program.wait(60), flush=True)
