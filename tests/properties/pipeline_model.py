"""A pipeline under random mishaps, and the model that says what must be true at its end.

Whatever is killed, cut, refused, delayed, doubled or told out of order: every message that was
acknowledged is at the phone once or is accounted for, and its callbacks came once and in order.
"""

# pyright: reportPrivateUsage=false

import asyncio
import contextlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
from sqlalchemy import Connection, select

from crashes.processes import free_port
from tests.properties.template_model import REVIEW_MS, TemplateModel, every_template, is_of_a_template
from tests.support.builders import APP, INSTANCE_KEY
from tests.support.callback_sink import CallbackSink, Try
from tests.support.cut_connection import CutLine
from tests.support.pipeline import ADMIN_TOKEN, API_KEY, PipelineHarness
from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.service import Waypost
from waypost.base.clock import VirtualClock
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.queue.job import Job
from waypost.store.queue.jobs import QueueName
from waypost.store.tables import queue_jobs

PHONES: Final = tuple(str(15551230000 + number) for number in range(12))
ORDER: Final = ("enqueued", "sent", "delivered", "read")
THREE: Final = "/three"
"""Ends the address of the subscription of version 3."""
LULL_EVERY: Final = 30
MODES_OF_THREE: Final = "MESSAGE,ENQUEUED,SENT,DELIVERED,READ,FAILED"
DOUBT: Final = 4002
"""The code of a message that may have arrived."""

CALL_FAULTS: Final = (
    {"error": 131016},
    {"error": 130429},
    {"error": 2, "status": 500},
    {"slow_ms": 60},
    {"reset": "after"},
    {"reset": "before"},
    {"garbage": "truncated", "status": 200, "taken": True},
    {"fail": 131026},
)
WEBHOOK_FAULTS: Final = (
    {"delay_ms": 20_000},
    {"duplicate": 2},
    {"reorder": True},
    {"batch": 7},
    {"wrong_signature": True},
)


@dataclass
class Sent:
    """One send as the partner saw it.

    Attributes:
        message_id: what was acknowledged; None when no answer came.
    """

    token: str
    to: str
    message_id: str | None


@dataclass
class Heard:
    """What a phone has sent us.

    Attributes:
        wamid: the operator's id of it.
        tapped: of the message whose button it tapped; None: it wrote.
        index: of the button.
    """

    wamid: str
    tapped: str | None = None
    index: int = 0


@dataclass
class Process:
    """One running service."""

    waypost: Waypost
    server: HttpServer
    url: str


@dataclass
class ModelPipeline:
    """A pipeline whose service is one or several processes, any of which may be killed at any moment."""

    folder: Path
    sink: CallbackSink
    http: aiohttp.ClientSession
    chance: random.Random
    database_url: str | None
    line: CutLine | None = None
    clock: VirtualClock = field(default_factory=VirtualClock)
    sent: list[Sent] = field(default_factory=list[Sent])
    heard: list[Heard] = field(default_factory=list[Heard])
    processes: dict[str, Process] = field(default_factory=dict[str, Process])
    steps: Counter[str] = field(default_factory=Counter[str])
    story: list[str] = field(default_factory=list[str])
    defects: list[str] = field(default_factory=list[str])
    replayed: int = 0
    ends: Counter[str] = field(default_factory=Counter[str])
    _ports: dict[str, int] = field(default_factory=dict[str, int])
    _refusals: list[int] = field(default_factory=list[int])
    _asking: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _shown: defaultdict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def names(self) -> tuple[str, ...]:
        """The processes there are when all are well: SQLite has one."""
        return ("one",) if self.database_url is None else ("one", "two")

    async def open(self) -> None:
        """Both ends, with every window open."""
        self.pipeline = PipelineHarness(self.folder, self.sink, self.http, clock=self.clock, changes=self._changes())
        await self.pipeline.open()
        url = self.pipeline.service_url
        self.processes["one"] = Process(self.pipeline.waypost, self.pipeline._server, url)
        self._watch(self.pipeline.waypost)
        self._ports["one"] = self.pipeline._ports["service"]
        for name in self.names[1:]:
            await self.start(name)
        self.sink.answers = self._answer
        for phone in PHONES:
            await self.pipeline.open_window(phone)
        await self.pipeline.subscribe(tag="three", url=f"{self.sink.url}{THREE}", version="3", modes=MODES_OF_THREE)
        self._with_buttons = await self.pipeline.approved_template()
        await self.pipeline.control("PUT", "settings", {"review_delay_ms": REVIEW_MS})
        self.templates = TemplateModel(self._ask_any, self.chance)

    async def close(self) -> None:
        """Whatever still runs."""
        for task in self._asking:
            task.cancel()
        for name in list(self.processes):
            await self.stop(name)
        self.pipeline._running.discard("service")
        await self.pipeline.close_operator()

    def _changes(self) -> dict[str, Any]:
        return {
            "database_url": self.database_url,
            "operator_timeout_s": 0.4,
            "order_hold_s": 100_000_000,
            "pause_callbacks_after_s": 100_000_000,
            "lease_s": 0.6,
            "log_level": "error",
        }

    # Mishaps and traffic: each is one step.

    async def start(self, name: str) -> None:
        """Start a process on its port, on the store as it is."""
        if self.line is not None:
            self.line.heal()  # one that cannot open its store ends, and would be started again
        port = self._ports.setdefault(name, free_port())
        bound = bind_socket("127.0.0.1", port, option="--port")
        url = f"http://127.0.0.1:{port_of(bound)}"
        given: dict[str, Any] = {
            "data": self.folder,
            "secret_key": INSTANCE_KEY,
            "admin_token": ADMIN_TOKEN,
            "rates": False,
            "allowed_networks": ("127.0.0.0/8",),
            "stop_within_s": 2,
            "public_url": self.pipeline.service_url,
            **self._changes(),
        }
        waypost = Waypost(Settings(**given), self.clock, RandomIds(self.clock))
        await waypost.open()
        server = HttpServer(waypost.application, bound)
        await server.start()
        waypost.start()
        self._watch(waypost)
        self.processes[name] = Process(waypost, server, url)

    def _watch(self, waypost: Waypost) -> None:
        """Note every defect: none of these mishaps is one of our code."""
        retry = waypost.queue.retry_after_defect

        async def retry_after_defect(job: Job, error: BaseException) -> None:
            self.defects.append(f"{job.queue.name} {job.subject.ref}: {error!r}")
            await retry(job, error)

        waypost.queue.retry_after_defect = retry_after_defect

    async def stop(self, name: str) -> None:
        """Stop a process in order."""
        process = self.processes.pop(name)
        await process.server.stop()
        await process.waypost.drain()
        await process.waypost.close()
        await _bury(process.server)

    async def kill(self, name: str) -> None:
        """End a process as `kill -9` does: what it has not committed is gone, and it says nothing more.

        A commit that is under way ends; then the store is shut beneath it. No line of the process that
        would write, give back or answer runs after this.
        """
        process = self.processes.pop(name)
        database = process.waypost.database
        for writer in database._writers:
            writer.group._closed = True
            writer.group._waiting.clear()
        server = process.server._server
        server.should_exit = server.force_exit = True
        _hang_up(process.server)
        tasks = [*process.waypost._tasks]
        for stage in process.waypost._stages:
            tasks += list(stage._tasks)
        keeper = process.waypost.queue.shards._renewal_task
        for task in [*tasks, *([keeper] if keeper is not None else [])]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(database._readers.shutdown)
        for writer in database._writers[1:]:  # a commit that is under way ends
            writer.shutdown()
        await database._writers[0].run(database._engine.close)
        database._writers[0].shutdown()
        await process.waypost._outbound.close()
        await process.waypost._operators.close()
        stopping = asyncio.ensure_future(process.server.stop())
        while not stopping.done():
            _hang_up(process.server)  # on who has come meanwhile
            await asyncio.wait([stopping], timeout=0.005)
        await _bury(process.server)
        process.waypost.passwords.close()

    async def send(self) -> None:
        """A few texts at once, to whichever process is there; no answer is an answer too."""
        for _ in range(self.chance.choice((1, 1, 2, 5))):
            self._ask(self._send_one(self.chance.choice(PHONES)))
        await asyncio.sleep(0)

    async def _send_one(self, to: str) -> None:
        token = f"m{len(self.sent):05d}"
        sent = Sent(token, to, None)
        self.sent.append(sent)
        if not self.processes:
            return
        path, form = self._form_of(token, to)
        key = {"Idempotency-Key": token} if self.chance.random() < 0.5 else {}
        for _ in range(5 if key else 1):  # under its key it may be sent until an answer comes
            told = await self._ask_any("POST", path, form, {"apikey": API_KEY, **key})
            if told is not None and told[0] == 200:
                sent.message_id = told[1]["messageId"]
                return
            await asyncio.sleep(0.02)

    def _form_of(self, token: str, to: str) -> tuple[str, dict[str, str]]:
        """Where a message goes and its form: a text, or one with two buttons."""
        form = {"channel": "whatsapp", "source": APP.phone_number, "destination": to, "src.name": APP.name}
        if self.chance.random() < 0.7:
            form["message"] = json.dumps({"type": "text", "text": token})
            return "/wa/api/v1/msg", form
        form["template"] = json.dumps({"id": self._with_buttons, "params": [token]})
        form["postbackTexts"] = json.dumps([{"index": index, "text": f"{token}-{index}"} for index in range(2)])
        return "/wa/api/v1/template/msg", form

    async def _ask_any(
        self, method: str, path: str, form: dict[str, str] | None, headers: dict[str, str]
    ) -> tuple[int, Any] | None:
        """Ask any process that is there; None: no answer came."""
        url = self.chance.choice([one.url for one in self.processes.values()] or [""])
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with self.http.request(
                method,
                f"{url}{path}",
                data=form,
                headers={"Authorization": self.pipeline.app_token, **headers},
                timeout=aiohttp.ClientTimeout(total=HANGS_AFTER_S),
            ) as answer:
                return answer.status, await answer.json(content_type=None)
        return None

    def _ask(self, asking: Any) -> None:
        task = asyncio.ensure_future(asking)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def phone_acts(self) -> None:
        """A phone reads what it has, or writes."""
        phone = self.chance.choice(PHONES)
        if "operator" not in self.pipeline._running:
            return
        if self.chance.random() < 0.6:
            await self.pipeline.control("POST", f"phones/{phone}/read", {})
        else:
            body = {"to": APP.phone_number, "text": "hm"}
            told = await self.pipeline.control("POST", f"phones/{phone}/messages", body)
            self.heard.append(Heard(told["wamid"]))

    async def phone_taps(self) -> None:
        """A phone that has a message with buttons taps one of them."""
        if "operator" not in self.pipeline._running:
            return
        for phone in self.chance.sample(PHONES, len(PHONES)):
            with_buttons = await self._with_buttons_at(phone)
            if with_buttons:
                tapped, index = self.chance.choice(with_buttons)["wamid"], self.chance.randrange(2)
                wish = {"message_id": tapped, "index": index}
                told = await self.pipeline.control("POST", f"phones/{phone}/tap", wish)
                self.heard.append(Heard(told["wamid"], tapped, index))
                return

    async def _with_buttons_at(self, phone: str) -> list[dict[str, Any]]:
        return [one for one in await self._sent_to(phone) if one.get("buttons")]

    async def _sent_to(self, phone: str) -> list[dict[str, Any]]:
        """What a phone has ever shown of what was sent to it; not what it has sent itself.

        It is asked for its newest thousand only: what it showed before is remembered.
        """
        inbox = await self.pipeline.control("GET", f"phones/{phone}?limit=1000")
        shown = self._shown[phone]
        shown |= {one["wamid"]: one for one in inbox["messages"] if one["direction"] == "to_phone"}
        return list(shown.values())

    async def templates_change(self) -> None:
        """A template is submitted, edited or deleted, and perhaps the operator errs about it."""
        if self.chance.random() < 0.5:
            await self._arm("call", **self.templates.fault())
        for _ in range(2 if self.processes else 0):
            self._ask(self.templates.act())

    async def operator_errs(self) -> None:
        """The next few calls go wrong in one of the ways."""
        await self._arm("call", call="messages.send", what=self.chance.choice(CALL_FAULTS))

    async def webhooks_err(self) -> None:
        """The next few webhooks are late, doubled, out of order, gathered or not to be trusted."""
        await self._arm("webhook", what=self.chance.choice(WEBHOOK_FAULTS))

    async def _arm(self, on: str, **fault: Any) -> None:
        if "operator" not in self.pipeline._running:
            return
        wish = {"on": on, **fault, "when": {"next": self.chance.randint(1, 6)}}
        await self.pipeline.control("POST", "faults", {"faults": [wish]})

    async def receiver_errs(self) -> None:
        """The next few callbacks are refused."""
        self._refusals = [self.chance.choice((500, 503, 429, 404))] * self.chance.randint(1, 8)

    async def receiver_goes(self) -> None:
        """Nobody listens for callbacks, or somebody does again."""
        if self.sink._runner is None:
            await self.sink.open()
        else:
            await self.sink.close()

    async def operator_restarts(self) -> None:
        """The operator goes away, or comes back."""
        if "operator" in self.pipeline._running:
            await self.pipeline.close_operator()
            await _bury(self.pipeline._operator_server)
        else:
            await self._operator_comes()

    async def _operator_comes(self) -> None:
        self.pipeline._running.discard("service")  # nothing of the way has changed
        await self.pipeline.open_operator()

    async def service_is_killed(self) -> None:
        """One process is killed, or one that is not there comes."""
        name = self.chance.choice(self.names)
        if name in self.processes:
            await self.kill(name)
        else:
            await self.start(name)

    async def service_is_stopped(self) -> None:
        """One process stops in order, or one that is not there comes."""
        name = self.chance.choice(self.names)
        if name in self.processes:
            await self.stop(name)
        else:
            await self.start(name)

    async def who_is_away_comes(self) -> None:
        """One of those that are not there, if any: most of a walk should have somebody to send by."""
        if away := self._away():
            await self.chance.choice(away)()

    def _away(self) -> list[Callable[[], Awaitable[None]]]:
        """Of each who is not there, what brings it back."""
        away: list[Callable[[], Awaitable[None]]] = [
            partial(self.start, name) for name in self.names if name not in self.processes
        ]
        if "operator" not in self.pipeline._running:
            away.append(self._operator_comes)
        if self.sink._runner is None:
            away.append(self.sink.open)
        return away

    async def lull(self) -> None:
        """All are there, until some phone has something to act upon, or for a second."""
        while away := self._away():
            await away[0]()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANGS_AFTER_S):
                while not any(  # noqa: ASYNC110  nobody tells
                    [await self._with_buttons_at(phone) for phone in PHONES]
                ):
                    await asyncio.sleep(0.02)

    async def callbacks_are_replayed(self) -> None:
        """What was told about a phone is told again, beside what is told for the first time."""
        if not self.processes:
            return
        url = self.chance.choice([one.url for one in self.processes.values()])
        wanted = {"app_id": APP.id, "recipient": self.chance.choice(PHONES)}
        self._ask(self._replay(url, wanted))

    async def _replay(self, url: str, wanted: dict[str, str]) -> None:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with self.http.post(
                f"{url}/admin/callbacks/replay",
                json=wanted,
                headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
                timeout=aiohttp.ClientTimeout(total=HANGS_AFTER_S),
            ) as answer:
                self.replayed += answer.status == 200

    async def commits_get_lost(self) -> None:
        """Of the next few commits nobody hears: some were done, and some were not."""
        if self.line is not None:
            self.line.lose(self.chance, self.chance.randint(1, 4))

    async def time_passes(self) -> None:
        """The clock jumps ahead."""
        self.clock.set(at_ms=self.clock.now_ms() + self.chance.choice((500, 5_000, 60_000)))

    async def breathe(self) -> None:
        """A moment in which things happen by themselves."""
        await asyncio.sleep(self.chance.choice((0.005, 0.02, 0.05)))

    def _answer(self, came: Try) -> int:
        return self._refusals.pop() if self._refusals else 200

    async def walk(self, steps: int) -> None:
        """So many steps at random."""
        weighted: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.send, 30),
            (self.breathe, 20),
            (self.phone_acts, 10),
            (self.phone_taps, 6),
            (self.templates_change, 10),
            (self.time_passes, 8),
            (self.operator_errs, 6),
            (self.webhooks_err, 6),
            (self.receiver_errs, 4),
            (self.service_is_killed, 5),
            (self.service_is_stopped, 2),
            (self.operator_restarts, 2),
            (self.receiver_goes, 2),
            (self.who_is_away_comes, 12),
            (self.commits_get_lost, 6),
            (self.callbacks_are_replayed, 3),
        ]
        acts, weights = zip(*weighted, strict=True)
        for step in range(steps):
            if step and step % LULL_EVERY == 0:
                await self.lull()
            [act] = self.chance.choices(acts, weights)
            self.steps[act.__name__] += 1
            self.story.append(act.__name__)
            await act()

    # The end.

    async def heal(self) -> None:
        """Everybody is there and well, and all the time passes that anything could wait for."""
        if self.line is not None:
            self.line.heal()
        self._refusals = []
        if self.sink._runner is None:
            await self.sink.open()
        if "operator" not in self.pipeline._running:
            await self._operator_comes()
        await self.pipeline.control("DELETE", "faults")
        for name in self.names:
            if name not in self.processes:
                await self.start(name)
        while self._asking:
            await asyncio.wait(self._asking)
        try:
            async with asyncio.timeout(HANGS_AFTER_S):
                quiet = 0
                while quiet < 3:
                    self.clock.set(at_ms=self.clock.now_ms() + 120_000)
                    await asyncio.sleep(0.05)
                    quiet = quiet + 1 if await self._is_quiet() else 0
        except TimeoutError:
            raise AssertionError(await self._what_waits()) from None

    async def _what_waits(self) -> str:
        database = self.processes["one"].waypost.database
        jobs = await database.read(_entries)
        now_ms = self.clock.now_ms()
        state = await self.pipeline.control("GET", "state")
        waiting = "\n".join(
            f"{QueueName(row.queue).name} {row.concurrency_group} {row.ref} due in {row.due_ms - now_ms} ms, attempt "
            f"{row.attempt}, state {row.state}: {row.note}"
            for row in jobs[:20]
        )
        return f"does not come to rest: {len(jobs)} entries, {state}\n{waiting}\n{' '.join(self.story)}"

    async def _is_quiet(self) -> bool:
        state = await self.pipeline.control("GET", "state")
        waiting = sum(account["updates_waiting"] for account in state["accounts"])
        return not waiting and not any((await self.pipeline.queue_depths()).values())

    async def complaints(self) -> list[str]:
        """What is not as it must be."""
        return [
            *await self._about_messages(),
            *self._about_order(),
            *self._about_news(),
            *self._about_inbound(),
            *await self._about_heard(),
            *await self._about_templates(),
            *self.defects,
        ]

    async def _about_messages(self) -> list[str]:
        wrong: list[str] = []
        shown: Counter[str] = Counter()
        for phone in PHONES:
            for one in await self._sent_to(phone):
                shown[json.dumps(one)] += 1
        texts = "\n".join(shown)
        for sent in self.sent:
            times = sum(count for text, count in shown.items() if sent.token in text)
            if times > 1:
                wrong.append(f"{sent.token} is at the phone {times} times")
            if sent.message_id is None:
                continue
            taken = len(await self.pipeline.deliveries(sent.message_id))
            trace = await self.pipeline.trace(sent.message_id)
            state, code = trace["state"], trace.get("code")
            self.ends[f"{state} {code}" if code else state] += 1
            if taken > 1:
                wrong.append(f"{sent.token} was taken {taken} times")
            if state in ("accepted", "uncertain"):
                wrong.append(f"{sent.token} is {state} for ever")
            elif state in ORDER and taken != 1:
                wrong.append(f"{sent.token} is {state} but was taken {taken} times")
            elif state == "failed" and code != DOUBT and sent.token in texts:
                wrong.append(f"{sent.token} failed with {code} and is at the phone")
        return wrong

    def _about_order(self) -> list[str]:
        """Per subscription and recipient: every number once, none missing, none before an earlier one."""
        wrong: list[str] = []
        ways: defaultdict[str, list[Try]] = defaultdict(list)
        bodies: dict[str, bytes] = {}
        for one in self.sink.taken:
            if bodies.setdefault(one.callback_id, one.body) != one.body:
                wrong.append(f"callback {one.callback_id} came with two bodies")
            ways[_about(one)].append(one)
        for about, tries in ways.items():
            first: dict[str, int] = {}
            for one in tries:
                first.setdefault(one.callback_id, one.sequence)
            numbers = list(first.values())
            if numbers != sorted(numbers):
                wrong.append(f"callbacks about {about} came in the order {numbers}")
            if sorted(numbers) != list(range(1, len(numbers) + 1)):
                wrong.append(f"callbacks about {about} are not 1 to {len(numbers)}: {sorted(numbers)}")
        return wrong

    def _about_inbound(self) -> list[str]:
        """What a phone wrote is told once to each subscription, under one id however often it is tried."""
        told: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for one in self.sink.taken:
            heard_id = _heard_id(one)
            if heard_id is not None:
                told[one.path, heard_id].add(one.callback_id)
        return [f"{heard_id} was told {len(ids)} times" for (_, heard_id), ids in told.items() if len(ids) > 1]

    async def _about_heard(self) -> list[str]:
        """All that phones have sent is told to both subscriptions, a tap with the text behind its button."""
        told: defaultdict[str, dict[str, Try]] = defaultdict(dict)
        for one in self.sink.taken:
            told[_heard_id(one) or ""][one.path] = one
        tokens = {
            one["wamid"]: sent.token
            for phone in PHONES
            for one in await self._sent_to(phone)
            for sent in self.sent
            if sent.token in json.dumps(one)
        }
        wrong: list[str] = []
        for heard in self.heard:
            tries = told[heard.wamid].values()
            if len(tries) != 2:
                wrong.append(f"{heard} was told to {len(tries)} subscriptions")
            wanted = f"{tokens[heard.tapped]}-{heard.index}" if heard.tapped else None
            wrong += [
                f"{heard} was told with {postback!r}" for one in tries if (postback := _postback_of(one)) != wanted
            ]
        return wrong

    async def _about_templates(self) -> list[str]:
        kept = await self.processes["one"].waypost.database.read(every_template)
        held = (await self.pipeline.control("GET", "templates"))["templates"]
        return self.templates.complaints(kept, held, self.sink.taken)

    def _about_news(self) -> list[str]:
        """Of each message every state at most once, and never backwards."""
        wrong: list[str] = []
        told: defaultdict[str, list[str]] = defaultdict(list)
        seen: set[str] = set()
        for one in self.sink.taken:
            if one.callback_id in seen or one.value.get("type") != "message-event":
                continue
            seen.add(one.callback_id)
            payload = one.value["payload"]
            told[payload.get("gsId") or payload["id"]].append(payload["type"])
        for sent in self.sent:
            news = told.get(sent.message_id or "", [])
            if sent.message_id is not None and not news:
                wrong.append(f"nothing was told of {sent.token}")
            if len(set(news)) != len(news):
                wrong.append(f"{sent.token} was told {news}")
            places = [ORDER.index(one) for one in news if one in ORDER]
            if places != sorted(places):
                wrong.append(f"{sent.token} went backwards: {news}")
        return wrong


async def _bury(server: HttpServer) -> None:
    """What was being accepted when a server stopped is a connection a moment later: with a process it would end."""
    await asyncio.sleep(0.01)
    _hang_up(server)


def _hang_up(server: HttpServer) -> None:
    state = server._server.server_state
    for connection in list(state.connections):
        connection.transport.abort()
    for task in state.tasks:
        task.cancel()


def _heard_id(one: Try) -> str | None:
    """The operator's id of the message from a phone that a callback is about; None: it is about something else."""
    if one.path.endswith(THREE):
        messages = one.value["entry"][0]["changes"][0]["value"].get("messages")
        return messages[0]["id"] if messages else None
    return one.value["payload"]["id"] if one.value["type"] == "message" else None


def _postback_of(one: Try) -> str | None:
    """The text behind the button that was tapped; None: nothing was tapped, or there is none."""
    if one.path.endswith(THREE):
        [message] = one.value["entry"][0]["changes"][0]["value"]["messages"]
        return message.get("button", {}).get("payload")
    return one.value["payload"]["payload"].get("postbackText")


def _entries(connection: Connection) -> list[Any]:
    return list(connection.execute(select(queue_jobs).order_by(queue_jobs.c.position)))


def _about(one: Try) -> str:
    """Whom a callback is about, and which subscription told it."""
    if one.path.endswith(THREE):
        value = one.value["entry"][0]["changes"][0]["value"]
        [news] = value.get("statuses") or value["messages"]
        return f"{news.get('recipient_id') or news['from']} in version 3"
    payload = one.value["payload"]
    if is_of_a_template(one):
        return f"template {payload['id']}"
    number = payload.get("destination") or payload.get("source") or payload.get("sender", {}).get("phone")
    return str(number)
