"""One run: a partner sends template messages to phones while faults happen, and every promise is checked at the end."""

import asyncio
import contextlib
import json
import sqlite3
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from sqlalchemy import select

from simulation.choices import Choices
from simulation.faults import Faults, read_body, respond
from simulation.machine import Listener, simulated_clock
from simulation.postgresql import DatabaseRun
from waypost.admin import provisioning
from waypost.admin.apps import NewApp, add_app
from waypost.assembly.dev import demo
from waypost.assembly.http.servers import HttpServer
from waypost.assembly.service import Waypost
from waypost.base.encryption import hash_secret
from waypost.base.ids import SeededIds
from waypost.config import Settings
from waypost.domain.callbacks import Subscription
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import add_partner
from waypost.store.callbacks.subscriptions import add_subscription
from waypost.store.properties import seed_template
from waypost.store.tables import callbacks, messages, queue_jobs

SERVICE_PORT, OPERATOR_PORT, RECEIVER_PORT = 8001, 8002, 8003
MODES: Final = ("ENQUEUED", "SENT", "DELIVERED", "READ", "FAILED")
SENT_WITHIN_S: Final = 3
FAULTS_FOR_S: Final = 30
HEALED_WITHIN_S: Final = 24 * 3600
SHARES: Final = {"service": 0.05, "operator": 0.15, "receiver": 0.25}
"""Of the requests to each, those that meet a fault."""
CALLBACKS_OF: Final = {  # a message that the operator accepted has its statuses too, unless their webhook was lost
    "read": {"enqueued", "sent", "delivered", "read"},
    "delivered": {"enqueued", "sent", "delivered"},
    "sent": {"enqueued", "sent"},
    "failed": {"failed"},
}


@dataclass
class Outcome:
    """What a run did, and the promises that it broke."""

    acknowledged: int = 0
    callbacks: int = 0
    states: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return one line for a person."""
        states, faults = ({str(name): count for name, count in sorted(c.items())} for c in (self.states, self.faults))
        return (
            f"{self.acknowledged} acknowledged {states}, {self.callbacks} callbacks, {self.virtual_s:.0f} s, {faults}"
        )


@dataclass
class Receiver:
    """The partner's receiver: it keeps each callback with the time at which its request arrived."""

    received: list[tuple[float, str, int, dict[str, Any]]] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Take one callback."""
        headers = {name.decode(): text.decode() for name, text in scope["headers"]}
        body = await read_body(receive)
        if body:  # otherwise the service has given up the connection
            arrived_s = scope.get("arrived_s", asyncio.get_running_loop().time())
            sequence = int(headers["waypost-sequence"])
            self.received.append((arrived_s, headers["webhook-id"], sequence, json.loads(body)["payload"]))
        await respond(send, 200, [])


class World:
    """Service, simulator and receiver of one run, in one folder.

    Args:
        choices: of the seed, which is the one of its ids as well.
        transports: all ends of connections of the simulated network.
        has_faults: False if everything succeeds.
        database: of PostgreSQL; None: SQLite.
        processes: how many processes of the service share it, each with all stages.
    """

    def __init__(
        self,
        folder: Path,
        choices: Choices,
        transports: list[Any],
        *,
        has_faults: bool,
        database: DatabaseRun | None = None,
        processes: int = 1,
    ) -> None:
        self._folder = folder
        self._database = database
        self.choices = choices
        self._has_faults = has_faults
        self.faults = Faults(choices, transports)
        self.receiver = Receiver()
        clock = simulated_clock()
        self.simulator = Simulator(
            SimulatorSettings(path=folder / "simulator.db", deliver_after_ms=20, read_after_ms=20, gather_ms=5),
            clock,
            SeededIds(clock, f"operator {choices.seed}"),
        )
        settings = Settings(
            data=folder,
            database_url=None if database is None else database.url,
            uncertain_for_s=900 if database is None else 90,  # each virtual second costs statements
            secret_key=demo.INSTANCE_KEY,
            rates=False,
            allowed_networks=("127.0.0.0/8",),
            max_connections_per_address=0,
        )
        self.services = [
            Waypost(settings, clock, SeededIds(clock, f"service {choices.seed} {nth}"), process=str(nth))
            for nth in range(processes)
        ]
        self.waypost = self.services[0]

    async def open(self) -> None:
        """Start everything, and seed the partner."""
        await self.simulator.open()
        await self._seed_operator()
        await self.waypost.open()
        await self._seed_partner()
        for service in self.services[1:]:
            await service.open()
        self._servers = [
            self._server(self.simulator.application, "operator", OPERATOR_PORT),
            self._server(self.receiver, "receiver", RECEIVER_PORT),
            *(
                self._server(service.application, "service", SERVICE_PORT + 10 * nth)
                for nth, service in enumerate(self.services)
            ),
        ]
        for server in self._servers:
            await server.start()
        for service in self.services:
            service.start()
        if self._database is not None and self._has_faults:
            self._database.start_faults()

    def _server(self, application: Any, name: str, port: int) -> HttpServer:
        if self._has_faults:
            application = self.faults.around(application, name, SHARES[name])
        return HttpServer(application, Listener(port))

    async def _seed_operator(self) -> None:
        account = AccountSeed(
            waba_id=demo.WABA_ID,
            name="Simulation",
            namespace=demo.NAMESPACE,
            token=demo.GRAPH_TOKEN,
            app_id=demo.GRAPH_APP_ID,
            app_secret=demo.GRAPH_APP_SECRET,
            verify_token=demo.VERIFY_TOKEN,
            callback_uri=f"http://127.0.0.1:{SERVICE_PORT}/operator/webhook/{demo.OPERATOR_ACCOUNT}",
        )
        number = NumberSeed(demo.PHONE_NUMBER_ID, demo.WABA_ID, demo.SOURCE, demo.APP_NAME, 80)
        await self.simulator.seed(account, [number])
        draft = demo.template(0).draft
        await self.simulator.seed_template(
            template_id=demo.OPERATOR_TEMPLATE_ID,
            waba_id=demo.WABA_ID,
            name=draft.element_name or "",
            language=draft.language_code,
            category=draft.category or "",
            components=list(demo.COMPONENTS),
        )

    async def _seed_partner(self) -> None:
        context, database = self.waypost.admin_context, self.waypost.database
        now_ms = context.clock.now_ms()
        await provisioning.put_operator_account(context, demo.operator_account(f"http://127.0.0.1:{OPERATOR_PORT}"))
        await database.write(add_partner, demo.PARTNER, "no password", now_ms)
        await database.write(add_credential, CredentialKind.API_KEY, demo.PARTNER.id, hash_secret(demo.API_KEY), now_ms)
        await provisioning.add_business_account(context, demo.ACCOUNT)
        new_app = NewApp(demo.PARTNER.id, demo.APP_NAME, demo.SOURCE, demo.PHONE_NUMBER_ID, demo.WABA_ID)
        app = await add_app(context, new_app)
        await database.write(seed_template, replace(demo.template(now_ms), app_id=app.id))
        url = f"http://127.0.0.1:{RECEIVER_PORT}/callbacks"
        subscription = Subscription("", demo.PARTNER.id, app.id, "all", url, 2, MODES, now_ms, now_ms)
        await database.write(add_subscription, subscription, self.waypost.directory.seal, 5)

    async def run(self, count: int) -> Outcome:
        """Send messages under faults, heal, wait until no work is left, and check every promise."""
        breaking = asyncio.create_task(self.faults.break_connections()) if self._has_faults else None
        sent = await asyncio.gather(*(self._send(nth) for nth in range(count)))
        if breaking is not None:
            await asyncio.sleep(FAULTS_FOR_S)
            self.faults.stop()
            if self._database is not None:
                self._database.stop_faults()
            await breaking
        left = await self._wait_until_idle()
        states = {row.id: row.state for row in await self._rows(select(messages.c.id, messages.c.state))}
        outcome = Outcome(
            acknowledged=sum(message_id is not None for message_id in sent),
            callbacks=len(self.receiver.received),
            states=Counter(states.values()),
            faults=self.choices.counts,
            virtual_s=asyncio.get_running_loop().time(),
        )
        outcome.broken += [f"a job is left: {job}" for job in left]
        outcome.broken += [
            f"{message} was acknowledged and is lost" for message in sent if message and message not in states
        ]
        outcome.broken += self._check_phones()
        outcome.broken += self._check_callbacks(states)
        return outcome

    async def close(self) -> None:
        """Stop everything, as signals do."""
        for service, server in zip(self.services, self._servers[2:], strict=True):
            await server.stop()
            await service.drain()
            await service.close()
        for server in self._servers[:2]:
            await server.stop()
        await self.simulator.close()

    async def _send(self, nth: int) -> str | None:
        """Send one message to a phone of its own; return its id, None if it was not acknowledged."""
        if self._has_faults:
            await asyncio.sleep(self.choices.between("send after", 0, SENT_WITHIN_S))
        form = urlencode(
            {
                "channel": "whatsapp",
                "source": demo.SOURCE,
                "destination": str(15_560_000_000 + nth),
                "src.name": demo.APP_NAME,
                "template": json.dumps({"id": demo.TEMPLATE_ID, "params": ["Ann", "4711"]}),
            }
        )
        head = (
            f"POST /wa/api/v1/template/msg HTTP/1.1\r\nHost: service\r\napikey: {demo.API_KEY}\r\nConnection: close\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n"
        )
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._choose_port())
            writer.write((head + form).encode())
            response = await reader.read()
            writer.close()
        except OSError:
            return None
        first_line, _, rest = response.partition(b"\r\n")
        _, _, body = rest.partition(b"\r\n\r\n")
        try:
            return json.loads(body)["messageId"] if b" 200 " in first_line else None
        except ValueError:  # the connection broke within the response
            return None

    def _choose_port(self) -> int:
        """Return the port of one of the processes."""
        return self.choices.pick("port", [SERVICE_PORT + 10 * nth for nth in range(len(self.services))])

    async def _wait_until_idle(self) -> list[Any]:
        """Return the jobs and callbacks that are left when a day has passed; none if all ended before."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + HEALED_WITHIN_S
        left: list[Any] = []
        while loop.time() < until_s:
            await asyncio.sleep(20 if self._has_faults else 1)
            open_callbacks = select(callbacks).where(callbacks.c.ended_on_ms.is_(None))
            left = [*await self._rows(select(queue_jobs)), *await self._rows(open_callbacks)]
            if not left and not self._simulator_rows("SELECT 1 FROM outbox"):
                break
        return left

    async def _rows(self, query: Any) -> list[Any]:
        return await self.waypost.database.read(lambda connection: list(connection.execute(query)))

    def _simulator_rows(self, query: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self._folder / "simulator.db")) as simulator:
            return simulator.execute(query).fetchall()

    def _check_phones(self) -> list[str]:
        """Every message was sent to a phone of its own, so none may have two."""
        rows = self._simulator_rows("SELECT phone, count(*) FROM messages WHERE is_inbound=0 GROUP BY phone")
        return [f"phone {phone} has {count} messages" for phone, count in rows if count > 1]

    def _check_callbacks(self, states: dict[str, str]) -> list[str]:
        """Check that the callbacks of a message are complete, and first arrive in the order of their numbers."""
        broken: list[str] = []
        sequences: defaultdict[str, dict[str, int]] = defaultdict(dict)
        events: defaultdict[str, set[str]] = defaultdict(set)
        for _, callback_id, sequence, payload in sorted(self.receiver.received, key=lambda one: one[0]):
            message_id = payload.get("gsId") or payload["id"]
            sequences[message_id].setdefault(callback_id, sequence)
            events[message_id].add(payload["type"])
        for message_id, by_id in sequences.items():
            if list(by_id.values()) != sorted(by_id.values()):
                broken.append(f"the callbacks of {message_id} arrived in the order {list(by_id.values())}")
        for message_id, state in states.items():
            if missing := CALLBACKS_OF.get(state, {state}) - events[message_id]:
                broken.append(f"{message_id} is {state}, and its callbacks {sorted(missing)} never arrived")
        return broken


async def run_world(
    choices: Choices,
    count: int,
    transports: list[Any],
    *,
    has_faults: bool,
    database: DatabaseRun | None = None,
    processes: int = 1,
) -> Outcome:
    """Run a world in a folder of its own."""
    transports.clear()
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), choices, transports, has_faults=has_faults, database=database, processes=processes)
        await world.open()
        outcome = await world.run(count)
        await world.close()
        return outcome
