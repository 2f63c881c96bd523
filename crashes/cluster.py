"""A cluster of processes: the service, the simulator and a partner's receiver, set up over HTTP."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final

import aiohttp

from crashes.layout import ClusterLayout
from crashes.partner import SOURCE, THROUGHPUT, Json, set_up
from crashes.processes import TIMEOUT_S, Child, NotInTime, free_port
from crashes.store_reader import create_postgresql_reader, create_sqlite_reader

ADMIN_TOKEN: Final = "the admin token of a crash test, long"
CONTROL_TOKEN: Final = "the control token of a crash test"
SECRET_KEY: Final = "0123456789abcdef" * 4
STOP_WITHIN_S: Final = 10
IDLE_S: Final = 1
"""How long our client keeps an idle connection: shorter than any server."""
QUEUES: Final = ("outbound", "webhooks", "callbacks")
"""The queues that become empty; an unconfirmed job stays in its queue for `uncertain_for_s`."""


@dataclass(frozen=True, slots=True)
class Restart:
    """One end of the service and its next start.

    Attributes:
        in_flight: messages that were in flight, from the store of the ended process.
        newest: the highest job position at that moment.
        began_s: when it was started again, by the monotonic clock.
        ready_after_s: seconds from there until it was ready.
    """

    in_flight: frozenset[str]
    last_position: int
    began_s: float
    ready_after_s: float


class ClusterUnderTest:
    """The service, the simulator and a receiver as processes, and a client of their APIs; opened and closed.

    Args:
        folder: the folder of the stores, the logs and the receiver's file.
        layout: the layout.
    """

    def __init__(self, folder: Path, layout: ClusterLayout | None = None) -> None:
        layout = layout or ClusterLayout()
        self.layout = layout
        simulator = layout.operator_port or free_port()
        receiver = layout.receiver_port or free_port()
        ports = [free_port() for _ in range(layout.services)]
        self.base_urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.base_url = self.base_urls[0]
        self.graph_url = f"http://{layout.operator.host}:{simulator}"
        self.service_graph_url = f"http://{layout.operator.host}:{layout.operator_proxy_port or simulator}"
        self.callbacks_url = f"http://{layout.receiver.host}:{receiver}"
        self.service_callbacks_url = f"http://{layout.receiver.host}:{layout.receiver_proxy_port or receiver}"
        self.webhooks_url = f"http://{layout.external_host}:{ports[0]}"
        data = layout.data or folder / "service"
        reader_url = layout.reader_url or layout.database_url
        self.store = create_postgresql_reader(reader_url) if reader_url else create_sqlite_reader(data / "waypost.db")
        self.callbacks_file = folder / "callbacks.jsonl"
        self.services = [
            self._service(folder / f"service{number or ''}.log", data, port) for number, port in enumerate(ports)
        ]
        self.service = self.services[0]
        waypost = [sys.executable, "-m", "waypost"]
        self.simulator = Child(
            "the simulator",
            [
                *layout.operator.prefix,
                *waypost,
                "simulator",
                *("--data", str(folder / "simulator"), "--port", str(simulator)),
                *("--host", layout.operator.host),
            ],
            {"WAYPOST_CONTROL_TOKEN": CONTROL_TOKEN, "WAYPOST_LOG_LEVEL": "warning", **layout.operator.variables},
            folder / "simulator.log",
        )
        script = str(Path(__file__).with_name("receiver.py"))
        command = [sys.executable, script, layout.receiver.host, str(receiver), str(self.callbacks_file)]
        self.receiver = Child(
            "the receiver",
            [*layout.receiver.prefix, *command],
            dict(layout.receiver.variables),
            folder / "receiver.log",
        )
        self.children = (*self.services, self.simulator, self.receiver)

    def _service(self, log: Path, data: Path, port: int) -> Child:
        layout = self.layout
        host = "127.0.0.1" if layout.external_host == "127.0.0.1" else "0.0.0.0"
        command = [sys.executable, "-m", "waypost", "serve", "--data", str(data)]
        command += ["--port", str(port), "--host", host]
        command += ["--workers", str(layout.workers)] if layout.workers > 1 else []
        database = {"WAYPOST_DATABASE_URL": layout.database_url} if layout.database_url else {}
        return Child(
            "the service",
            [*layout.service.prefix, *command],
            {
                "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN,
                "WAYPOST_SECRET_KEY": SECRET_KEY,
                "WAYPOST_RATES": "false",
                "WAYPOST_PER_SECOND": str(THROUGHPUT),
                "WAYPOST_ALLOWED_NETWORKS": "127.0.0.0/8,10.213.0.0/16",
                "WAYPOST_STOP_WITHIN_S": str(STOP_WITHIN_S),
                "WAYPOST_LOG_LEVEL": "warning",
                **database,
                **layout.service.variables,
                **layout.settings,
            },
            log,
        )

    @property
    def processes(self) -> int:
        """Number of processes that send, each with its own bound on messages in flight."""
        return self.layout.services * self.layout.workers

    async def open(self) -> None:
        """Start all processes and set them up, over HTTP only."""
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S), timeout=aiohttp.ClientTimeout(total=10)
        )
        for child in (self.service, self.simulator, self.receiver):
            child.start()
        await self._wait_for_status(200, self.receiver, self.callbacks_url + "/")
        await self._wait_for_status(200, self.simulator, self.graph_url + "/control/state")
        await self.wait_ready(self.service)  # the first creates the store
        for service in self.services[1:]:
            service.start()
            await self.wait_ready(service)
        self.partner = await set_up(self)

    async def close(self) -> None:
        """End all processes."""
        await self.http.close()
        for child in self.children:
            await asyncio.to_thread(child.close)

    async def wait_in_flight(self) -> None:
        """Return as soon as a POST to the operator is in flight, or after about a second."""
        for _ in range(1000):
            if self.store.in_flight():
                return
            await asyncio.sleep(0.001)

    async def restart_simulator(self) -> None:
        """Start the simulator on the file of the killed one."""
        self.simulator.start()
        await self._wait_for_status(200, self.simulator, self.graph_url + "/control/state")

    def read_store_from(self, database_url: str) -> None:
        """Read the store from another server from now on."""
        self.store = create_postgresql_reader(database_url)

    async def wait_ready(self, service: Child) -> None:
        """Return when a process of the service reports that it is ready."""
        await self._wait_for_status(200, service, self.base_urls[self.services.index(service)] + "/readyz")

    async def wait_not_ready(self) -> None:
        """Return once `/readyz` of every service responds with 503."""
        for service, base_url in zip(self.services, self.base_urls, strict=True):
            await self._wait_for_status(503, service, base_url + "/readyz")

    async def service_time_s(self) -> float:
        """Return the time of the service's clock, from the `Date` header of a response."""
        async with self.http.get(self.base_url + "/healthz") as response:
            return parsedate_to_datetime(response.headers["Date"]).timestamp()

    async def restart_receiver(self) -> None:
        """Start the receiver, which appends to its file."""
        self.receiver.start()
        await self._wait_for_status(200, self.receiver, self.callbacks_url + "/")

    async def add_fault(self, fault: Json) -> None:
        """Add a fault to the simulator."""
        await self.control("POST", "faults", fault)

    async def clear_faults(self) -> None:
        """Remove all faults of the simulator."""
        await self.control("DELETE", "faults")

    async def kill_and_restart(self) -> Restart:
        """Kill the service, read its store, and start it on the same store and port."""
        self.service.kill()
        return await self.restart()

    async def restart(self) -> Restart:
        """Read the store of an ended service, and start the service on it again."""
        in_flight = frozenset(self.store.in_flight())
        last_position = self.store.last_position()
        began_s = time.monotonic()
        self.service.start()
        await self._wait_for_status(200, self.service, self.base_url + "/readyz")
        return Restart(in_flight, last_position, began_s, time.monotonic() - began_s)

    async def wait_backlog_done(self, restart: Restart, *, within_s: float = TIMEOUT_S) -> float:
        """Wait until the jobs from before a restart are complete; return the seconds since the restart."""
        await self.wait_until(
            lambda: self._is_done_up_to(restart.last_position),
            f"the jobs up to position {restart.last_position} are complete",
            within_s=within_s,
        )
        return time.monotonic() - restart.began_s

    async def wait_idle(self, *, within_s: float = TIMEOUT_S) -> None:
        """Return when all queues are empty and every webhook is delivered."""
        await self.wait_until(self._is_idle, "all queues are empty", within_s=within_s)

    async def wait_until(
        self, condition: Callable[[], Awaitable[bool]], description: str, *, within_s: float = TIMEOUT_S
    ) -> None:
        """Return when the condition is true.

        Raises:
            NotInTime: it did not become true; with the last output of every process.
        """
        deadline_s = time.monotonic() + within_s
        while not await condition():
            if time.monotonic() > deadline_s:
                raise NotInTime(f"not true within {within_s} s: {description}\n{await self.report()}")
            await asyncio.sleep(0.05)

    async def has_no_unconfirmed(self) -> bool:
        """True if no uncertain message waits for its status."""
        return not (await self.queue_depths())["unconfirmed"]

    async def report(self) -> str:
        """Return the queues, the simulator's state and the last output, for a failure message."""
        try:
            state = json.dumps([await self.queue_depths(), await self.control("GET", "state")])
        except (aiohttp.ClientError, TimeoutError, AssertionError) as error:
            state = f"(the APIs do not respond: {error!r})"
        return "\n".join([state, *(child.last_lines() for child in self.children)])

    async def queue_depths(self) -> dict[str, dict[str, int]]:
        """Return the number of jobs of each queue, by state."""
        return await self.admin("GET", "queues")

    async def deliveries(self) -> list[Json]:
        """Return every message that the simulator accepted, with its phone."""
        deliveries: list[Json] = []
        after = 0
        while True:
            page = await self.control("GET", f"deliveries?limit=5000&after={after}")
            deliveries += page["deliveries"]
            if page["next"] is None:
                return deliveries
            after = page["next"]

    async def admin(self, method: str, path: str, body: Json | None = None) -> Any:
        """Call the admin API."""
        return await self._json(method, f"{self.base_url}/admin/{path}", ADMIN_TOKEN, body)

    async def control(self, method: str, path: str, body: Json | None = None) -> Any:
        """Call the simulator's control API."""
        return await self._json(method, f"{self.graph_url}/control/{path}", CONTROL_TOKEN, body)

    async def send_inbound_text(self, phone: str) -> None:
        """Send a text from a phone to our number, which opens its window."""
        await self.control("POST", f"phones/{phone}/messages", {"to": SOURCE, "text": "Hello!"})

    async def app_call(self, app: Json, path: str, form: Json | None = None) -> Json:
        """Call the partner API with the app's token: POST if there is a form, otherwise GET."""
        async with self.http.request(
            "GET" if form is None else "POST",
            f"{self.base_url}/partner/app/{app['id']}/{path}",
            data=form,
            headers={"Authorization": app["app_token"]},
        ) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def _json(self, method: str, url: str, token: str, body: Json | None) -> Any:
        headers = {"Authorization": f"Bearer {token}", "Host": "127.0.0.1"}
        async with self.http.request(method, url, json=body, headers=headers) as response:
            assert response.status == 200, f"{method} {url}: {await response.text()}"
            return await response.json()

    async def _wait_for_status(self, status: int, child: Child, url: str) -> None:
        headers = {"Authorization": f"Bearer {CONTROL_TOKEN}", "Host": "127.0.0.1"}
        deadline_s = time.monotonic() + TIMEOUT_S
        while child.status is None and time.monotonic() < deadline_s:
            try:
                async with self.http.get(url, headers=headers) as response:
                    if response.status == status:
                        return
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(0.02)
        raise NotInTime(f"{url} does not respond with {status}\n{child.last_lines()}")

    async def _is_done_up_to(self, position: int) -> bool:
        return await asyncio.to_thread(self.store.count_open_up_to, position) == 0

    async def _is_idle(self) -> bool:
        """Check in the order of the pipeline, so that no job moves past the check unseen."""
        if (await self.queue_depths())["outbound"]:
            return False
        state = await self.control("GET", "state")
        if any(account["updates_waiting"] for account in state["accounts"]):
            return False
        depths = await self.queue_depths()
        return not any(depths[name] for name in QUEUES)
