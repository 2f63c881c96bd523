"""A whole town of processes: the service, the simulator and a partner's receiver, set up over HTTP."""

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

from crashes.partner import SOURCE, THROUGHPUT, Json, set_up
from crashes.plans import Plan
from crashes.processes import SETTLES_WITHIN_S, Child, NotInTime, free_port
from crashes.stored import stored_at, stored_in_file

ADMIN_TOKEN: Final = "the admin token of a crash test, long"
CONTROL_TOKEN: Final = "the control token of a crash test"
SECRET_KEY: Final = "0123456789abcdef" * 4
STOP_WITHIN_S: Final = 10
IDLE_S: Final = 1
"""How long our own client keeps an idle connection: shorter than any server."""
QUEUES: Final = ("outbound", "webhooks", "callbacks")
"""The queues that run empty; a doubt stays in its own for as long as `uncertain_for_s` says."""


@dataclass(frozen=True, slots=True)
class Restart:
    """One end of the service and its next start.

    Attributes:
        in_hand: messages whose POST was under way, as the store of the dead process says.
        newest: the last position of the journal at that moment.
        began_s: when it was started again, by the steady clock.
        answered_after_s: how long it took to be ready from there.
    """

    in_hand: frozenset[str]
    newest: int
    began_s: float
    answered_after_s: float


class Town:
    """The service, the simulator and a receiver as processes, and a client of their doors; opened and closed.

    Args:
        folder: of the stores, the logs and the receiver's file.
        plan: how it is laid out.
    """

    def __init__(self, folder: Path, plan: Plan | None = None) -> None:
        plan = plan or Plan()
        self.plan = plan
        simulator = plan.operator_port or free_port()
        receiver = plan.receiver_port or free_port()
        ports = [free_port() for _ in range(plan.services)]
        self.bases = [f"http://127.0.0.1:{port}" for port in ports]
        self.base = self.bases[0]
        self.graph = f"http://{plan.operator.host}:{simulator}"
        self.graph_seen = f"http://{plan.operator.host}:{plan.operator_seen_at or simulator}"
        self.callbacks = f"http://{plan.receiver.host}:{receiver}"
        self.callbacks_seen = f"http://{plan.receiver.host}:{plan.receiver_seen_at or receiver}"
        self.webhooks = f"http://{plan.seen_from_outside}:{ports[0]}"
        data = plan.data or folder / "service"
        stored_url = plan.stored_url or plan.database_url
        self.stored = stored_at(stored_url) if stored_url else stored_in_file(data / "waypost.db")
        self.received = folder / "callbacks.jsonl"
        self.services = [
            self._service(folder / f"service{number or ''}.log", data, port) for number, port in enumerate(ports)
        ]
        self.service = self.services[0]
        waypost = [sys.executable, "-m", "waypost"]
        self.simulator = Child(
            "the simulator",
            [
                *plan.operator.prefix,
                *waypost,
                "simulator",
                *("--data", str(folder / "simulator"), "--port", str(simulator)),
                *("--host", plan.operator.host),
            ],
            {"WAYPOST_CONTROL_TOKEN": CONTROL_TOKEN, "WAYPOST_LOG_LEVEL": "warning", **plan.operator.variables},
            folder / "simulator.log",
        )
        script = str(Path(__file__).with_name("receiver.py"))
        command = [sys.executable, script, plan.receiver.host, str(receiver), str(self.received)]
        self.receiver = Child(
            "the receiver", [*plan.receiver.prefix, *command], dict(plan.receiver.variables), folder / "receiver.log"
        )
        self.children = (*self.services, self.simulator, self.receiver)

    def _service(self, log: Path, data: Path, port: int) -> Child:
        plan = self.plan
        host = "127.0.0.1" if plan.seen_from_outside == "127.0.0.1" else "0.0.0.0"
        command = [sys.executable, "-m", "waypost", "serve", "--data", str(data)]
        command += ["--port", str(port), "--host", host]
        command += ["--workers", str(plan.workers)] if plan.workers > 1 else []
        database = {"WAYPOST_DATABASE_URL": plan.database_url} if plan.database_url else {}
        return Child(
            "the service",
            [*plan.service.prefix, *command],
            {
                "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN,
                "WAYPOST_SECRET_KEY": SECRET_KEY,
                "WAYPOST_RATES": "false",
                "WAYPOST_PER_SECOND": str(THROUGHPUT),
                "WAYPOST_ALLOWED_NETWORKS": "127.0.0.0/8,10.213.0.0/16",
                "WAYPOST_STOP_WITHIN_S": str(STOP_WITHIN_S),
                "WAYPOST_LOG_LEVEL": "warning",
                **database,
                **plan.service.variables,
                **plan.settings,
            },
            log,
        )

    @property
    def processes(self) -> int:
        """How many processes send, each with its own bound on what is in flight."""
        return self.plan.services * self.plan.workers

    async def open(self) -> None:
        """Start all of them and set them up, over HTTP only."""
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S), timeout=aiohttp.ClientTimeout(total=10)
        )
        for child in (self.service, self.simulator, self.receiver):
            child.start()
        await self._answers(self.receiver, self.callbacks + "/")
        await self._answers(self.simulator, self.graph + "/control/state")
        await self.is_ready(self.service)  # the first makes the store
        for service in self.services[1:]:
            service.start()
            await self.is_ready(service)
        self.partner = await set_up(self)

    async def close(self) -> None:
        """End all of them."""
        await self.http.close()
        for child in self.children:
            await asyncio.to_thread(child.close)

    async def sends_something(self) -> None:
        """Return as soon as a POST to the operator is under way; after a while return all the same."""
        for _ in range(1000):
            if self.stored.in_flight():
                return
            await asyncio.sleep(0.001)

    async def simulator_answers_again(self) -> None:
        """Start the simulator on the file that the killed one has left."""
        self.simulator.start()
        await self._answers(self.simulator, self.graph + "/control/state")

    def look_into(self, database_url: str) -> None:
        """What is stored is at another server from now on."""
        self.stored = stored_at(database_url)

    async def is_ready(self, service: Child) -> None:
        """Return when one of our service's processes answers that it is ready."""
        await self._answers(service, self.bases[self.services.index(service)] + "/readyz")

    async def date_s(self) -> float:
        """The time that the service's machine shows, by the head of an answer."""
        async with self.http.get(self.base + "/healthz") as answer:
            return parsedate_to_datetime(answer.headers["Date"]).timestamp()

    async def receiver_answers_again(self) -> None:
        """Start the receiver, which goes on writing its file."""
        self.receiver.start()
        await self._answers(self.receiver, self.callbacks + "/")

    async def arm(self, fault: Json) -> None:
        """Ask the simulator for a fault."""
        await self.control("POST", "faults", fault)

    async def disarm(self) -> None:
        """End every fault of the simulator."""
        await self.control("DELETE", "faults")

    async def kill_and_restart(self) -> Restart:
        """Kill the service, look into its store, and start it on the same store and port."""
        self.service.kill()
        return await self.restart()

    async def restart(self) -> Restart:
        """Look into the store that an ended service has left, and start the next on it."""
        in_flight = frozenset(self.stored.in_flight())
        newest = self.stored.newest_position()
        began_s = time.monotonic()
        self.service.start()
        await self._answers(self.service, self.base + "/readyz")
        return Restart(in_flight, newest, began_s, time.monotonic() - began_s)

    async def backlog_settled(self, restart: Restart, *, within_s: float = SETTLES_WITHIN_S) -> float:
        """How long after a restart everything was settled that the one before had left."""
        await self.until(
            lambda: self._has_settled_up_to(restart.newest),
            f"the backlog of the restart at position {restart.newest} settles",
            within_s=within_s,
        )
        return time.monotonic() - restart.began_s

    async def completed(self, *, within_s: float = SETTLES_WITHIN_S) -> None:
        """Return when nothing is on its way any more: queues empty, and every webhook delivered."""
        await self.until(self._is_quiet, "everything settles", within_s=within_s)

    async def until(
        self, is_so: Callable[[], Awaitable[bool]], what: str, *, within_s: float = SETTLES_WITHIN_S
    ) -> None:
        """Return when it is so.

        Raises:
            NotInTime: it is not; with what every process printed last.
        """
        until_s = time.monotonic() + within_s
        while not await is_so():
            if time.monotonic() > until_s:
                raise NotInTime(f"waited {within_s} s in vain: {what}\n{await self.report()}")
            await asyncio.sleep(0.05)

    async def has_no_doubts(self) -> bool:
        """Whether no uncertain message waits for its status any more."""
        return not (await self.queue_depths())["unconfirmed"]

    async def report(self) -> str:
        """Where everything stands, for a failure."""
        try:
            stands = json.dumps([await self.queue_depths(), await self.control("GET", "state")])
        except (aiohttp.ClientError, TimeoutError, AssertionError) as error:
            stands = f"(the doors do not answer: {error!r})"
        return "\n".join([stands, *(child.last_lines() for child in self.children)])

    async def queue_depths(self) -> dict[str, dict[str, int]]:
        """How many entries stand in each queue, by their state."""
        return await self.admin("GET", "queues")

    async def deliveries(self) -> list[Json]:
        """Every message that the simulator took, with the phone that has it."""
        found: list[Json] = []
        after = 0
        while True:
            page = await self.control("GET", f"deliveries?limit=5000&after={after}")
            found += page["deliveries"]
            if page["next"] is None:
                return found
            after = page["next"]

    async def admin(self, method: str, path: str, body: Json | None = None) -> Any:
        """One call of the administration door."""
        return await self._json(method, f"{self.base}/admin/{path}", ADMIN_TOKEN, body)

    async def control(self, method: str, path: str, body: Json | None = None) -> Any:
        """One call of the simulator's control door."""
        return await self._json(method, f"{self.graph}/control/{path}", CONTROL_TOKEN, body)

    async def writes(self, phone: str) -> None:
        """A phone writes to our number, which opens its window."""
        await self.control("POST", f"phones/{phone}/messages", {"to": SOURCE, "text": "Hello!"})

    async def app_call(self, app: Json, path: str, form: Json | None = None) -> Json:
        """One call of the partner API, with the app's token; a POST where there is a form."""
        async with self.http.request(
            "GET" if form is None else "POST",
            f"{self.base}/partner/app/{app['id']}/{path}",
            data=form,
            headers={"Authorization": app["app_token"]},
        ) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def _json(self, method: str, url: str, token: str, body: Json | None) -> Any:
        headers = {"Authorization": f"Bearer {token}", "Host": "127.0.0.1"}
        async with self.http.request(method, url, json=body, headers=headers) as answer:
            assert answer.status == 200, f"{method} {url}: {await answer.text()}"
            return await answer.json()

    async def _answers(self, child: Child, url: str) -> None:
        headers = {"Authorization": f"Bearer {CONTROL_TOKEN}", "Host": "127.0.0.1"}
        until_s = time.monotonic() + SETTLES_WITHIN_S
        while child.status is None and time.monotonic() < until_s:
            try:
                async with self.http.get(url, headers=headers) as answer:
                    if answer.status == 200:
                        return
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(0.02)
        raise NotInTime(f"{url} does not answer\n{child.last_lines()}")

    async def _has_settled_up_to(self, position: int) -> bool:
        return await asyncio.to_thread(self.stored.open_up_to, position) == 0

    async def _is_quiet(self) -> bool:
        """In the order of the street, so that nothing can slip by from a queue not yet looked at."""
        if (await self.queue_depths())["outbound"]:
            return False
        state = await self.control("GET", "state")
        if any(account["updates_waiting"] for account in state["accounts"]):
            return False
        queue_names = await self.queue_depths()
        return not any(queue_names[name] for name in QUEUES)
