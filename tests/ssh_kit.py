"""Real ssh servers on loopback for tests: each with its own port, keys and `mpsbar`."""

import getpass
import os
import shlex
import subprocess
from pathlib import Path

from fleet_kit import PATIENT_MPSBAR, find_free_port, need_program
from worker_kit import ROOT, TIMEOUT, wait_for


class SshHosts:
    """`add` a host, then use `options` for --ssh; no file of the user is read or written."""

    def __init__(self, folder, workers):
        self.sshd = need_program("sshd", "openssh-server")
        self.keygen = need_program("ssh-keygen", "openssh-client")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(
                mode=0o755, exist_ok=True
            )  # it refuses to start as root without
        self.folder, self.workers = folder, workers
        self.config = folder / "ssh_config"
        self.servers = {}
        self.own_lines = {}  # of the configuration, by host
        self._make_key("user_key")
        self._make_key("host_key")
        (folder / "authorized_keys").write_text((folder / "user_key.pub").read_text())
        self._write_config()

    @property
    def options(self):
        return f"-F {shlex.quote(str(self.config))}"

    def add(self, name, script=None):
        """A host whose `mpsbar` is this shell script; none given: the real one; "": none at all."""
        port = find_free_port()
        bin_folder = self.folder / f"bin-{name}"
        bin_folder.mkdir()
        if script != "":
            real = f'cd {shlex.quote(str(ROOT))} && exec {shlex.join(PATIENT_MPSBAR)} "$@"'
            command = bin_folder / "mpsbar"
            command.write_text(f"#!/bin/sh\n{script or real}\n")
            command.chmod(0o755)
        env = {key: value for key, value in self.workers.env().items() if key.startswith("MPSBAR_")}
        # Not /usr/local/bin and ~/.local/bin: an mpsbar of this computer may be there.
        env |= {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": str(self.folder)}
        settings = self.folder / f"sshd-{name}"
        settings.write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host_key\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
            f"PidFile none\nMaxStartups 200\nSetEnv {' '.join(f'{k}={v}' for k, v in env.items())}\n"
        )
        log = (self.folder / f"log-{name}").open("w")
        server = subprocess.Popen(
            [self.sshd, "-D", "-e", "-f", str(settings)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        log.close()
        self.servers[name] = (port, server)
        self._write_config()
        wait_for(lambda: self._is_up(name), f"sshd: {(self.folder / f'log-{name}').read_text()}")
        return server

    def add_port(self, name, port):
        """A host that is something else than an ssh server."""
        self.servers[name] = (port, None)
        self._write_config()

    def make_unknown(self, name):
        """ssh has never seen this host's key."""
        self.own_lines[name] = (
            f"  UserKnownHostsFile {self.folder}/known-{name}\n"
            f"  IdentityFile {self.folder}/user_key\n"
        )
        self._write_config()

    def lock_key(self, name, passphrase):
        """Only a key with a passphrase opens this host."""
        self._make_key(f"locked-{name}", passphrase)
        with (self.folder / "authorized_keys").open("a") as keys:
            keys.write((self.folder / f"locked-{name}.pub").read_text())
        self.own_lines[name] = f"  IdentityFile {self.folder}/locked-{name}\n"
        self._write_config()

    def end(self):
        for _, server in self.servers.values():
            if server is not None:
                server.kill()
                server.wait(timeout=TIMEOUT)

    def _make_key(self, name, passphrase=""):
        subprocess.run(
            [self.keygen, "-q", "-t", "ed25519", "-N", passphrase, "-f", self.folder / name],
            check=True,
            timeout=TIMEOUT,
        )

    def _write_config(self):
        blocks = [
            f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
            + self.own_lines.get(name, f"  IdentityFile {self.folder}/user_key\n")
            for name, (port, _) in self.servers.items()
        ]
        known = self.folder / "known_hosts"
        key = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        known.write_text(
            "".join(f"[127.0.0.1]:{port} {key}\n" for port, _ in self.servers.values())
        )
        self.config.write_text(
            "".join(blocks) + "Host *\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n  IdentityAgent none\n"
        )

    def _is_up(self, name):
        server = self.servers[name][1]
        assert server.poll() is None, (self.folder / f"log-{name}").read_text()
        done = subprocess.run(
            ["ssh", "-F", self.config, "-oBatchMode=yes", name, "true"],
            capture_output=True,
            timeout=TIMEOUT,
        )
        return done.returncode == 0
