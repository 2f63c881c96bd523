"""Waypost as a product of the comparison: on SQLite or PostgreSQL, with the simulator or the minimal Cloud API."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from benchmarks.bare import SOURCES
from benchmarks.load import template_message
from benchmarks.peers.product import Surroundings
from benchmarks.processes import Child, free_port
from benchmarks.stores import SETTINGS, Store, Stores
from waypost import __version__

MODES = "ENQUEUED,DELIVERED,FAILED"


class WaypostProduct:
    """The service, its store and an upstream.

    Args:
        stores: of one engine.
        around: the surroundings.
        simulated: whether the upstream is the simulator of the box; otherwise the minimal one.
    """

    kinds = ("enqueued", "delivered")

    def __init__(self, stores: Stores, around: Surroundings, *, simulated: bool) -> None:
        self.name = f"Waypost, {'SQLite' if stores.engine == 'sqlite' else 'PostgreSQL'}" + (
            ", simulator" if simulated else ""
        )
        self._stores, self._around, self._simulated = stores, around, simulated
        self._store: Store | None = None
        self._sources = list(SOURCES)[:4]
        self.port = free_port()
        self._upstream_port = free_port()
        self._children: dict[str, Child] = {}
        self.description: dict[str, Any] = {
            "version": __version__,
            "store": stores.version,
            "settings": {"synchronous": "FULL"} if stores.engine == "sqlite" else SETTINGS,
            "upstream": "simulator" if simulated else "minimal Cloud API",
            "notifications": MODES,
        }

    def start(self) -> None:
        self._store = self._stores.new()
        self._start_service()
        if self._simulated:
            upstream = Child(
                "benchmarks.simulator",
                *("--data", str(Path(self._store.folder) / "simulator.db"), "--gather-ms", str(self._around.gather_ms)),
                *("--deliver-after-ms", str(self._around.report_after_ms), "--read-after-ms", "never"),
                *("--webhook", f"http://127.0.0.1:{self.port}/operator/webhook/demo"),
                port=self._upstream_port,
            )
        else:
            upstream = Child(
                "benchmarks.peers.upstream",
                *("--smpp-port", str(free_port()), "--webhook-port", str(self.port)),
                *("--report-after-ms", str(self._around.report_after_ms), "--gather-ms", str(self._around.gather_ms)),
                *("--respond-after-ms", str(self._around.respond_after_ms)),
                port=self._upstream_port,
            )
        self._children["upstream"] = upstream
        for child in self._children.values():
            child.wait_ready()
        self._children["product"].wait_responding()

    def end(self) -> None:
        for child in self._children.values():
            child.end()

    def kill(self) -> None:
        assert self._store is not None
        os.kill(self._children["product"].pid, signal.SIGKILL)
        self._children["product"].end()
        self._stores.kill_server()

    def restart(self) -> None:
        assert self._store is not None
        self._stores.start_server(self._store)
        self._start_service("--seeded")
        self._children["product"].wait_responding()

    def request(self, number: int) -> bytes:
        return template_message(int(self._around.recipient(number)), self._sources[number % len(self._sources)])

    def key(self, number: int, body: bytes) -> str:
        return json.loads(body)["messageId"]

    def trees(self) -> dict[str, list[int]]:
        trees = {role: [child.pid] for role, child in self._children.items()}
        if self._store is not None and self._store.server_pid is not None:
            trees["store"] = [self._store.server_pid]
        return trees

    def accepted_by_recipient(self) -> dict[str, int] | None:
        return None if self._simulated else self._children["upstream"].get("/control/accepted")

    def _start_service(self, *options: str) -> None:
        assert self._store is not None
        self._children["product"] = Child(
            "benchmarks.service",
            *("--stages", *self._store.options, *options),
            *("--operator", f"http://127.0.0.1:{self._upstream_port}"),
            *("--receiver", f"http://127.0.0.1:{self._around.receiver_port}/callbacks", "--modes", MODES),
            *("--uncertain-for-s", str(self._around.uncertain_for_s)),
            port=self.port,
        )
