"""Jasmin as a product of the comparison: its three daemons from PyPI, with RabbitMQ and Redis from Debian, over SMPP.

Version 0.11.1 calls nobody back: it looks up each delivery report by the response to the message, which it fails to
read ("'SubmitSM' object has no attribute 'response'"). Version 0.11.0 is free of this.
"""

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.peers.external import External, NotInstalled, make_folder, require_programs
from benchmarks.peers.kannel import start_upstream
from benchmarks.peers.product import SOURCE, TEXT, Surroundings
from benchmarks.processes import Child, free_port

PACKAGE = "jasmin==0.11.0"
INSTALL = "apt-get install -y rabbitmq-server redis-server"
RABBITMQ, REDIS, EPMD = "/usr/lib/rabbitmq/bin/rabbitmq-server", "/usr/bin/redis-server", "/usr/bin/epmd"
LOCK = Path("/tmp/jasmind.lock")
"""jasmind starts once on a machine; a kill leaves its lock, and a person has to delete it."""
USER, PASSWORD = "bench", "bench"
# fmt: off
CONFIGURATION = """\
[amqp-broker]
host = 127.0.0.1
port = {amqp}
spec = {spec}

[redis-client]
host = 127.0.0.1
port = {redis}

[router]
bind = 127.0.0.1
port = {router}

[client-management]
bind = 127.0.0.1
port = {clients}

[smpp-server-pb]
bind = 127.0.0.1
port = {smpp_server_pb}

[smpp-server-pb-client]
port = {smpp_server_pb}

[http-api]
bind = 127.0.0.1
port = {port}
log_level = WARNING

[sm-listener]
log_level = WARNING
submit_retrial_delay_smppc_not_ready = 2

[dlr]
log_level = CRITICAL
dlr_lookup_retry_delay = 1

[dlr-thrower]
log_level = WARNING

[jcli]
bind = 127.0.0.1
port = {console}
authentication = False
"""
RABBITMQ_CONFIGURATION = """\
listeners.tcp.default = 127.0.0.1:{amqp}
loopback_users = none
"""
PROVISIONING = (  # the reply to each ends with the prompt of the console
    "group -a\ngid customers\nok",
    "user -a\nuid bench\ngid customers\nusername bench\npassword bench\nok",
    "smppccm -a\ncid upstream\nhost 127.0.0.1\nport {smpp}\nusername bench\npassword bench\nbind transceiver\n"
    "submit_throughput 0\nrequeue_delay 2\ncon_fail_delay 1\ncon_loss_delay 1\nok",
    "mtrouter -a\ntype DefaultRoute\nconnector smppc(upstream)\nrate 0.00\nok",
    "smppccm -1 upstream",
    "persist",
)
# fmt: on
_PROMPT = b"jcli : "


class JasminProduct:
    """jasmind, dlrlookupd and dlrd; RabbitMQ and Redis; and the SMPP upstream.

    Args:
        around: the surroundings.
        environment: the virtual environment that has the package.
    """

    name = "Jasmin"
    kinds = ("1", "2")

    def __init__(self, around: Surroundings, environment: Path) -> None:
        self._around, self._environment = around, environment
        self._folder = around.folder
        names = ("amqp", "dist", "epmd", "redis", "router", "clients", "smpp_server_pb", "console", "smpp")
        self._ports = {name: free_port() for name in names}
        self.port = free_port()
        self._upstream: Child | None = None
        self._brokers: list[External] = []
        self._daemons: list[External] = []
        self.description: dict[str, Any] = {
            "version": PACKAGE.partition("==")[2],
            "store": f"RabbitMQ {_version('rabbitmq-server')}, Redis {_version('redis-server')}",
            "settings": {"submit_throughput": 0, "dlr_lookup_retry_delay": 1, "log_level": "WARNING"},
            "upstream": "SMPP message centre",
            "notifications": "dlr-level 3, dlr-method GET",
        }

    def start(self) -> None:
        if LOCK.exists():
            raise NotInstalled(f"{LOCK} exists: another jasmind runs, or was killed; delete the file if none runs")
        make_folder(self._folder)
        for name in ("store", "log", "rabbitmq", "redis"):
            make_folder(self._folder / name)
        specifications = self._environment.glob(
            "lib/python*/site-packages/txamqp/specs/standard/amqp0-9-1.stripped.xml"
        )
        (self._folder / "jasmin.cfg").write_text(
            CONFIGURATION.format(spec=next(specifications), port=self.port, **self._ports)
        )
        (self._folder / "rabbitmq.conf").write_text(RABBITMQ_CONFIGURATION.format(**self._ports))
        self._upstream = start_upstream(self._around, self._ports["smpp"])
        self._start_brokers()
        self._start_jasmind()
        self._provision()
        self._start_others()

    def restart(self) -> None:
        self._start_brokers()
        self._start_jasmind()
        self._start_others()

    def end(self) -> None:
        for process in reversed(self._daemons):
            process.end()
        for process in reversed(self._brokers):
            process.end(within_s=20)
        self._unlock()
        if self._upstream is not None:
            self._upstream.end()

    def kill(self) -> None:
        for process in (*self._daemons, *self._brokers):
            process.kill()
        self._unlock()

    def request(self, number: int) -> bytes:
        query = urlencode({
            "username": USER, "password": PASSWORD, "from": SOURCE, "to": self._around.recipient(number),
            "content": TEXT, "dlr": "yes", "dlr-level": "3", "dlr-method": "GET",
            "dlr-url": f"http://127.0.0.1:{self._around.receiver_port}/n/{number}",
        })  # fmt: skip
        return f"GET /send?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()

    def key(self, number: int, body: bytes) -> str:
        return str(number)

    def trees(self) -> dict[str, list[int]]:
        return {
            "product": [process.pid for process in self._daemons],
            "store": [process.pid for process in self._brokers],
            "upstream": [self._upstream.pid] if self._upstream else [],
        }

    def accepted_by_recipient(self) -> dict[str, int] | None:
        return self._upstream.get("/control/accepted") if self._upstream else None

    def _start_brokers(self) -> None:
        folder, ports = self._folder, self._ports
        erlang = {"ERL_EPMD_PORT": str(ports["epmd"]), "ERL_EPMD_ADDRESS": "127.0.0.1"}
        names = External("epmd", [EPMD], folder=folder, environment=erlang)
        names.wait_listening(ports["epmd"])
        environment = {
            **erlang,
            "RABBITMQ_NODENAME": "peers@localhost",
            "RABBITMQ_DIST_PORT": str(ports["dist"]),
            "RABBITMQ_MNESIA_BASE": str(folder / "rabbitmq"),
            "RABBITMQ_LOG_BASE": str(folder / "rabbitmq"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "rabbitmq" / "no-plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        rabbitmq = External("rabbitmq", [RABBITMQ], folder=folder, environment=environment)
        command = (REDIS, "--bind", "127.0.0.1", "--port", str(ports["redis"]), "--dir", str(folder / "redis"))
        redis = External("redis", command, folder=folder)
        self._brokers = [names, rabbitmq, redis]
        redis.wait_listening(ports["redis"])
        rabbitmq.wait_listening(ports["amqp"])

    def _start_jasmind(self) -> None:
        self._daemons = [self._start("jasmind.py")]
        self._daemons[0].wait_listening(self._ports["console"])
        self._daemons[0].wait_listening(self.port)

    def _start_others(self) -> None:
        self._daemons += [self._start(name, "-i", str(self.port)) for name in ("dlrlookupd.py", "dlrd.py")]
        for name in ("messages.log", "dlr-thrower.log"):
            self._daemons[-1].wait_for((self._folder / "log" / name).exists)
        self._daemons[0].wait_for(self._is_bound)

    def _unlock(self) -> None:
        """Delete the locks of daemons that did not do it themselves."""
        if self._daemons:
            for lock in (LOCK, *(LOCK.with_name(f"{name}-{self.port}.lock") for name in ("dlrd", "dlrlookupd"))):
                lock.unlink(missing_ok=True)

    def _start(self, script: str, *options: str) -> External:
        paths = {
            "CONFIG_PATH": str(self._folder),
            "LOG_PATH": str(self._folder / "log"),
            "ROOT_PATH": str(self._folder),
        }
        program = self._environment / "bin" / script
        command = (self._environment / "bin" / "python", program, "-c", self._folder / "jasmin.cfg", *options)
        return External(
            script.partition(".")[0], command, folder=self._folder, environment=paths,
            drops_privileges=False,  # as Waypost: `nobody` may be unable to reach this interpreter
        )  # fmt: skip

    def _provision(self) -> None:
        with socket.create_connection(("127.0.0.1", self._ports["console"]), timeout=30) as console:
            console.sendall(b"\r\n")  # the first prompt comes only then
            _read_prompt(console)
            for command in PROVISIONING:
                console.sendall(command.format(**self._ports).replace("\n", "\r\n").encode() + b"\r\n")
                reply = _read_prompt(console)
                if b"error" in reply.lower() or b"failed" in reply.lower():
                    raise RuntimeError(f"jasmind: {command.splitlines()[0]}: {reply.decode(errors='replace')[-400:]}")

    def _is_bound(self) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._ports["console"]), 5) as console,
        ):
            console.sendall(b"\r\n")
            _read_prompt(console)
            console.sendall(b"smppccm -l\r\n")
            return b"BOUND_TRX" in _read_prompt(console)
        return False


def install(at: Path) -> Path:
    """Install the package into a virtual environment of its own; return it.

    Raises:
        NotInstalled: a broker or the package is missing.
    """
    require_programs((RABBITMQ, REDIS, EPMD), install=INSTALL)
    environment = at / "jasmin-venv"
    began_s = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = (environment / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", PACKAGE)
    completed = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=240)
    if completed.returncode:
        raise NotInstalled(f"pip install {PACKAGE}: {completed.stderr[-400:]}")
    print(f"installed {PACKAGE} in {time.monotonic() - began_s:.0f} s", flush=True)
    return environment


def _read_prompt(console: socket.socket) -> bytes:
    """Return what the console prints until its next prompt."""
    reply = b""
    while not reply.rstrip(b"\x1b[K").endswith(_PROMPT):
        part = console.recv(4096)
        if not part:
            raise RuntimeError(f"jasmind closed its console: {reply[-400:]!r}")
        reply += part
    return reply


def _version(package: str) -> str:
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "?"
