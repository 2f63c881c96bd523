"""A pipeline under random faults, and the model of what must hold at the end.

Whatever is killed, disconnected, rejected, delayed, duplicated or reordered: every acknowledged message is
on the phone once or is accounted for, and its callbacks arrived once and in order.
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
from tests.properties.template_model import REVIEW_MS, TemplateModel, is_about_a_template, read_all_templates
from tests.support.builders import APP, INSTANCE_KEY
from tests.support.callback_sink import CallbackSink, ReceivedCallback
from tests.support.commit_proxy import CommitProxy
from tests.support.pipeline import ADMIN_TOKEN, API_KEY, PipelineHarness
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.service import Waypost
from waypost.base.clock import VirtualClock
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.queue.job import Job
from waypost.store.queue.job_subjects import QueueName
from waypost.store.tables import queue_jobs

PHONES: Final = tuple(str(15551230000 + number) for number in range(12))
STATE_ORDER: Final = ("enqueued", "sent", "delivered", "read")
VERSION_3_PATH: Final = "/three"
"""Suffix of the URL of the subscription in version 3."""
LULL_INTERVAL: Final = 30
VERSION_3_MODES: Final = "MESSAGE,ENQUEUED,SENT,DELIVERED,READ,FAILED"
UNCERTAIN_CODE: Final = 4002
"""The error code of a message that may have been delivered."""

CALL_FAULTS: Final = (
    {"error": 131016},
    {"error": 130429},
    {"error": 2, "status": 500},
    {"slow_ms": 60},
    {"reset": "after"},
    {"reset": "before"},
    {"garbage": "truncated", "status": 200, "processed": True},
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
class SentMessage:
    """One send as the partner saw it.

    Attributes:
        message_id: the acknowledged id; None if there was no response.
    """

    token: str
    to: str
    message_id: str | None


@dataclass
class PhoneMessage:
    """A message from a phone.

    Attributes:
        wamid: the operator's id of it.
        tapped: the id of the message whose button was tapped; None for a text.
        index: of the button.
    """

    wamid: str
    tapped: str | None = None
    index: int = 0


@dataclass
class ServiceProcess:
    """One running service."""

    waypost: Waypost
    server: HttpServer
    url: str


@dataclass
class ModelPipeline:
    """A pipeline whose service is one or two processes, each of which may be killed at any moment."""

    folder: Path
    sink: CallbackSink
    http: aiohttp.ClientSession
    chance: random.Random
    database_url: str | None
    commit_proxy: CommitProxy | None = None
    clock: VirtualClock = field(default_factory=VirtualClock)
    sent: list[SentMessage] = field(default_factory=list[SentMessage])
    phone_messages: list[PhoneMessage] = field(default_factory=list[PhoneMessage])
    processes: dict[str, ServiceProcess] = field(default_factory=dict[str, ServiceProcess])
    steps: Counter[str] = field(default_factory=Counter[str])
    step_log: list[str] = field(default_factory=list[str])
    defects: list[str] = field(default_factory=list[str])
    replayed: int = 0
    final_states: Counter[str] = field(default_factory=Counter[str])
    _ports: dict[str, int] = field(default_factory=dict[str, int])
    _error_statuses: list[int] = field(default_factory=list[int])
    _requests: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _shown: defaultdict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def process_names(self) -> tuple[str, ...]:
        """The names of all processes: SQLite has one."""
        return ("one",) if self.database_url is None else ("one", "two")

    async def open(self) -> None:
        """Start the pipeline, and open the window of every phone."""
        self.pipeline = PipelineHarness(self.folder, self.sink, self.http, clock=self.clock, changes=self._changes())
        await self.pipeline.open()
        url = self.pipeline.service_url
        self.processes["one"] = ServiceProcess(self.pipeline.waypost, self.pipeline._server, url)
        self._watch(self.pipeline.waypost)
        self._ports["one"] = self.pipeline._ports["service"]
        for name in self.process_names[1:]:
            await self.start(name)
        self.sink.choose_status = self._choose_status
        for phone in PHONES:
            await self.pipeline.open_window(phone)
        await self.pipeline.subscribe(
            tag="three", url=f"{self.sink.url}{VERSION_3_PATH}", version="3", modes=VERSION_3_MODES
        )
        self._template_id = await self.pipeline.approved_template()
        await self.pipeline.control("PUT", "settings", {"review_delay_ms": REVIEW_MS})
        self.templates = TemplateModel(self._request_any, self.chance)

    async def close(self) -> None:
        """Stop everything that still runs."""
        for task in self._requests:
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

    # Faults and traffic: each is one step.

    async def start(self, name: str) -> None:
        """Start a process on its port, on the existing store."""
        if self.commit_proxy is not None:
            self.commit_proxy.heal()  # a process that cannot open its store ends, and would be started again
        port = self._ports.setdefault(name, free_port())
        bound = bind_socket("127.0.0.1", port, option="--port")
        url = f"http://127.0.0.1:{port_of(bound)}"
        values: dict[str, Any] = {
            "data": self.folder,
            "secret_key": INSTANCE_KEY,
            "admin_token": ADMIN_TOKEN,
            "rates": False,
            "allowed_networks": ("127.0.0.0/8",),
            "stop_within_s": 2,
            "public_url": self.pipeline.service_url,
            **self._changes(),
        }
        waypost = Waypost(Settings(**values), self.clock, RandomIds(self.clock))
        await waypost.open()
        server = HttpServer(waypost.application, bound)
        await server.start()
        waypost.start()
        self._watch(waypost)
        self.processes[name] = ServiceProcess(waypost, server, url)

    def _watch(self, waypost: Waypost) -> None:
        """Record every defect: none of these faults may cause one."""
        retry = waypost.queue.retry_after_defect

        async def retry_after_defect(job: Job, error: BaseException) -> None:
            self.defects.append(f"{job.queue.name} {job.subject.ref}: {error!r}")
            await retry(job, error)

        waypost.queue.retry_after_defect = retry_after_defect

    async def stop(self, name: str) -> None:
        """Stop a process gracefully."""
        process = self.processes.pop(name)
        await process.server.stop()
        await process.waypost.drain()
        await process.waypost.close()
        await _close_late_connections(process.server)

    async def kill(self, name: str) -> None:
        """End a process as `kill -9` does: uncommitted work is lost, and it sends nothing more.

        A commit in progress finishes; then the store is closed. No code of the process that would
        write, return a job or respond runs after this.
        """
        process = self.processes.pop(name)
        database = process.waypost.database
        for writer in database._writers:
            writer.group._closed = True
            writer.group._waiting.clear()
        server = process.server._server
        server.should_exit = server.force_exit = True
        _close_connections(process.server)
        tasks = [*process.waypost._tasks]
        for stage in process.waypost._stages:
            tasks += list(stage._tasks)
        renewal = process.waypost.queue.shards._renewal_task
        for task in [*tasks, *([renewal] if renewal is not None else [])]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(database._readers.shutdown)
        for writer in database._writers[1:]:  # a commit in progress finishes
            writer.threads.shutdown()
        await database._writers[0].threads.run(database._engine.close)
        database._writers[0].threads.shutdown()
        await process.waypost._context.outbound.close()
        await process.waypost._context.operators.close()
        stopping = asyncio.ensure_future(process.server.stop())
        while not stopping.done():
            _close_connections(process.server)  # connections that were accepted meanwhile
            await asyncio.wait([stopping], timeout=0.005)
        await _close_late_connections(process.server)
        process.waypost.passwords.close()

    async def send(self) -> None:
        """Send a few messages at once, each to any running process; a missing response is a valid outcome."""
        for _ in range(self.chance.choice((1, 1, 2, 5))):
            self._start_request(self._send_one(self.chance.choice(PHONES)))
        await asyncio.sleep(0)

    async def _send_one(self, to: str) -> None:
        token = f"m{len(self.sent):05d}"
        sent = SentMessage(token, to, None)
        self.sent.append(sent)
        if not self.processes:
            return
        path, form = self._make_form(token, to)
        key = {"Idempotency-Key": token} if self.chance.random() < 0.5 else {}
        for _ in range(5 if key else 1):  # with its key it may be repeated until a response arrives
            response = await self._request_any("POST", path, form, {"apikey": API_KEY, **key})
            if response is not None and response[0] == 200:
                sent.message_id = response[1]["messageId"]
                return
            await asyncio.sleep(0.02)

    def _make_form(self, token: str, to: str) -> tuple[str, dict[str, str]]:
        """Return a message's path and form: a text, or a template with two buttons."""
        form = {"channel": "whatsapp", "source": APP.phone_number, "destination": to, "src.name": APP.name}
        if self.chance.random() < 0.7:
            form["message"] = json.dumps({"type": "text", "text": token})
            return "/wa/api/v1/msg", form
        form["template"] = json.dumps({"id": self._template_id, "params": [token]})
        form["postbackTexts"] = json.dumps([{"index": index, "text": f"{token}-{index}"} for index in range(2)])
        return "/wa/api/v1/template/msg", form

    async def _request_any(
        self, method: str, path: str, form: dict[str, str] | None, headers: dict[str, str]
    ) -> tuple[int, Any] | None:
        """Send a request to any running process; return None if there is no response."""
        url = self.chance.choice([process.url for process in self.processes.values()] or [""])
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with self.http.request(
                method,
                f"{url}{path}",
                data=form,
                headers={"Authorization": self.pipeline.app_token, **headers},
                timeout=aiohttp.ClientTimeout(total=HANGS_AFTER_S),
            ) as response:
                return response.status, await response.json(content_type=None)
        return None

    def _start_request(self, request: Any) -> None:
        task = asyncio.ensure_future(request)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def phone_reads_or_writes(self) -> None:
        """A phone reads its messages, or sends a text."""
        phone = self.chance.choice(PHONES)
        if "operator" not in self.pipeline._running:
            return
        if self.chance.random() < 0.6:
            await self.pipeline.control("POST", f"phones/{phone}/read", {})
        else:
            body = {"to": APP.phone_number, "text": "hm"}
            created = await self.pipeline.control("POST", f"phones/{phone}/messages", body)
            self.phone_messages.append(PhoneMessage(created["wamid"]))

    async def phone_taps(self) -> None:
        """A phone with a message with buttons taps one of them."""
        if "operator" not in self.pipeline._running:
            return
        for phone in self.chance.sample(PHONES, len(PHONES)):
            with_buttons = await self._messages_with_buttons(phone)
            if with_buttons:
                tapped, index = self.chance.choice(with_buttons)["wamid"], self.chance.randrange(2)
                body = {"message_id": tapped, "index": index}
                created = await self.pipeline.control("POST", f"phones/{phone}/tap", body)
                self.phone_messages.append(PhoneMessage(created["wamid"], tapped, index))
                return

    async def _messages_with_buttons(self, phone: str) -> list[dict[str, Any]]:
        return [message for message in await self._messages_on(phone) if message.get("buttons")]

    async def _messages_on(self, phone: str) -> list[dict[str, Any]]:
        """Return all messages to a phone that it has ever shown, without its own.

        Each call fetches only the newest thousand, and adds them to those of earlier calls.
        """
        inbox = await self.pipeline.control("GET", f"phones/{phone}?limit=1000")
        shown = self._shown[phone]
        shown |= {message["wamid"]: message for message in inbox["messages"] if message["direction"] == "to_phone"}
        return list(shown.values())

    async def templates_change(self) -> None:
        """A template is submitted, edited or deleted, perhaps with an operator fault."""
        if self.chance.random() < 0.5:
            await self._arm("call", **self.templates.fault())
        for _ in range(2 if self.processes else 0):
            self._start_request(self.templates.change_templates())

    async def operator_fails(self) -> None:
        """The next few calls fail in one of the ways."""
        await self._arm("call", call="messages.send", what=self.chance.choice(CALL_FAULTS))

    async def webhooks_fail(self) -> None:
        """The next few webhooks are late, duplicated, reordered, batched or wrongly signed."""
        await self._arm("webhook", what=self.chance.choice(WEBHOOK_FAULTS))

    async def _arm(self, on: str, **fault: Any) -> None:
        if "operator" not in self.pipeline._running:
            return
        spec = {"on": on, **fault, "when": {"next": self.chance.randint(1, 6)}}
        await self.pipeline.control("POST", "faults", {"faults": [spec]})

    async def receiver_fails(self) -> None:
        """The next few callbacks get an error response."""
        self._error_statuses = [self.chance.choice((500, 503, 429, 404))] * self.chance.randint(1, 8)

    async def receiver_stops_or_starts(self) -> None:
        """The receiver stops listening, or starts again."""
        if self.sink._runner is None:
            await self.sink.open()
        else:
            await self.sink.close()

    async def operator_restarts(self) -> None:
        """The operator stops, or starts again."""
        if "operator" in self.pipeline._running:
            await self.pipeline.close_operator()
            await _close_late_connections(self.pipeline._operator_server)
        else:
            await self._start_operator()

    async def _start_operator(self) -> None:
        self.pipeline._running.discard("service")  # the URLs have not changed
        await self.pipeline.open_operator()

    async def service_is_killed(self) -> None:
        """A process is killed, or started if it is not running."""
        name = self.chance.choice(self.process_names)
        if name in self.processes:
            await self.kill(name)
        else:
            await self.start(name)

    async def service_is_stopped(self) -> None:
        """A process is stopped gracefully, or started if it is not running."""
        name = self.chance.choice(self.process_names)
        if name in self.processes:
            await self.stop(name)
        else:
            await self.start(name)

    async def missing_part_starts(self) -> None:
        """One missing component, if any, is started: for most of a walk the service should be running."""
        if starts := self._missing_starts():
            await self.chance.choice(starts)()

    def _missing_starts(self) -> list[Callable[[], Awaitable[None]]]:
        """Return, for each component that is not running, the function that starts it."""
        starts: list[Callable[[], Awaitable[None]]] = [
            partial(self.start, name) for name in self.process_names if name not in self.processes
        ]
        if "operator" not in self.pipeline._running:
            starts.append(self._start_operator)
        if self.sink._runner is None:
            starts.append(self.sink.open)
        return starts

    async def lull(self) -> None:
        """Start everything, and let time pass until a phone has a message with buttons, or no work is left."""
        while starts := self._missing_starts():
            await starts[0]()
        while not any([await self._messages_with_buttons(phone) for phone in PHONES]) and await self._count_left():
            self.clock.set(at_ms=self.clock.now_ms() + 30_000)  # a message may be without a known outcome for 15 min
            await asyncio.sleep(0.02)

    async def callbacks_are_replayed(self) -> None:
        """The callbacks about a phone are replayed, while others are sent for the first time."""
        if not self.processes:
            return
        url = self.chance.choice([process.url for process in self.processes.values()])
        filters = {"app_id": APP.id, "recipient": self.chance.choice(PHONES)}
        self._start_request(self._replay(url, filters))

    async def _replay(self, url: str, filters: dict[str, str]) -> None:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with self.http.post(
                f"{url}/admin/callbacks/replay",
                json=filters,
                headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
                timeout=aiohttp.ClientTimeout(total=HANGS_AFTER_S),
            ) as response:
                self.replayed += response.status == 200

    async def commits_get_lost(self) -> None:
        """The next few commits get no response: some were done, and some were not."""
        if self.commit_proxy is not None:
            self.commit_proxy.lose_commits(self.chance, self.chance.randint(1, 4))

    async def time_passes(self) -> None:
        """The clock jumps ahead."""
        self.clock.set(at_ms=self.clock.now_ms() + self.chance.choice((500, 5_000, 60_000)))

    async def pause(self) -> None:
        """A pause for the work in progress."""
        await asyncio.sleep(self.chance.choice((0.005, 0.02, 0.05)))

    def _choose_status(self, _request: ReceivedCallback) -> int:
        return self._error_statuses.pop() if self._error_statuses else 200

    async def walk(self, steps: int) -> None:
        """Take a number of random steps."""
        weighted: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.send, 30),
            (self.pause, 20),
            (self.phone_reads_or_writes, 10),
            (self.phone_taps, 6),
            (self.templates_change, 10),
            (self.time_passes, 8),
            (self.operator_fails, 6),
            (self.webhooks_fail, 6),
            (self.receiver_fails, 4),
            (self.service_is_killed, 5),
            (self.service_is_stopped, 2),
            (self.operator_restarts, 2),
            (self.receiver_stops_or_starts, 2),
            (self.missing_part_starts, 12),
            (self.commits_get_lost, 6),
            (self.callbacks_are_replayed, 3),
        ]
        actions, weights = zip(*weighted, strict=True)
        for step in range(steps):
            if step and step % LULL_INTERVAL == 0:
                await self.lull()
            [action] = self.chance.choices(actions, weights)
            self.steps[action.__name__] += 1
            self.step_log.append(action.__name__)
            await action()

    # The checks at the end.

    async def heal(self) -> None:
        """Start everything, disarm all faults, and advance the clock until no work is left."""
        if self.commit_proxy is not None:
            self.commit_proxy.heal()
        self._error_statuses = []
        if self.sink._runner is None:
            await self.sink.open()
        if "operator" not in self.pipeline._running:
            await self._start_operator()
        await self.pipeline.control("DELETE", "faults")
        for name in self.process_names:
            if name not in self.processes:
                await self.start(name)
        while self._requests:
            await asyncio.wait(self._requests)
        idle_rounds, left, pause_s, loop = 0, -1, 0.05, asyncio.get_running_loop()
        progress_s = loop.time()
        while idle_rounds < 3:
            self.clock.set(at_ms=self.clock.now_ms() + 120_000)
            await asyncio.sleep(pause_s)
            before, left = left, await self._count_left()
            idle_rounds = idle_rounds + 1 if not left else 0
            if left != before:
                progress_s, pause_s = loop.time(), 0.05
            else:  # a busy machine needs longer for a job than a lease lasts if the clock jumps on all the time
                pause_s = min(2 * pause_s, 2)
            if loop.time() - progress_s > HANGS_AFTER_S:
                raise AssertionError(await self._describe_pending())

    async def _describe_pending(self) -> str:
        database = self.processes["one"].waypost.database
        jobs = await database.read(_all_jobs)
        now_ms = self.clock.now_ms()
        state = await self.pipeline.control("GET", "state")
        pending = "\n".join(
            f"{QueueName(row.queue).name} {row.concurrency_group} {row.ref} due in {row.due_ms - now_ms} ms, attempt "
            f"{row.attempt}, state {row.state}: {row.note}"
            for row in jobs[:20]
        )
        return f"work is left: {len(jobs)} jobs, {state}\n{pending}\n{' '.join(self.step_log)}"

    async def _count_left(self) -> int:
        """Return how many webhooks of the operator and jobs of ours are left."""
        state = await self.pipeline.control("GET", "state")
        waiting: int = sum(account["updates_waiting"] for account in state["accounts"])
        return waiting + sum(sum(states.values()) for states in (await self.pipeline.queue_depths()).values())

    async def violations(self) -> list[str]:
        """Describe everything that violates the model."""
        return [
            *await self._check_messages(),
            *self._check_sequences(),
            *self._check_events(),
            *self._check_inbound_once(),
            *await self._check_inbound(),
            *await self._check_templates(),
            *self.defects,
        ]

    async def _check_messages(self) -> list[str]:
        problems: list[str] = []
        shown: Counter[str] = Counter()
        for phone in PHONES:
            for message in await self._messages_on(phone):
                shown[json.dumps(message)] += 1
        texts = "\n".join(shown)
        for sent in self.sent:
            times = sum(count for text, count in shown.items() if sent.token in text)
            if times > 1:
                problems.append(f"{sent.token} is on the phone {times} times")
            if sent.message_id is None:
                continue
            accepted = len(await self.pipeline.deliveries(sent.message_id))
            trace = await self.pipeline.trace(sent.message_id)
            state, code = trace["state"], trace.get("code")
            self.final_states[f"{state} {code}" if code else state] += 1
            if accepted > 1:
                problems.append(f"{sent.token} was accepted {accepted} times")
            if state in ("accepted", "uncertain"):
                problems.append(f"{sent.token} stays {state}")
            elif state in STATE_ORDER and accepted != 1:
                problems.append(f"{sent.token} is {state} but was accepted {accepted} times")
            elif state == "failed" and code != UNCERTAIN_CODE and sent.token in texts:
                problems.append(f"{sent.token} failed with {code} and is on the phone")
        return problems

    def _check_sequences(self) -> list[str]:
        """Check, per subscription and recipient, that sequence numbers are complete, unique and in order."""
        problems: list[str] = []
        requests_by_key: defaultdict[str, list[ReceivedCallback]] = defaultdict(list)
        bodies: dict[str, bytes] = {}
        for request in self.sink.accepted:
            if bodies.setdefault(request.callback_id, request.body) != request.body:
                problems.append(f"callback {request.callback_id} was sent with two bodies")
            requests_by_key[_ordering_key(request)].append(request)
        for key, requests in requests_by_key.items():
            first: dict[str, int] = {}
            for request in requests:
                first.setdefault(request.callback_id, request.sequence)
            numbers = list(first.values())
            if numbers != sorted(numbers):
                problems.append(f"callbacks about {key} arrived in the order {numbers}")
            if sorted(numbers) != list(range(1, len(numbers) + 1)):
                problems.append(f"callbacks about {key} are not 1 to {len(numbers)}: {sorted(numbers)}")
        return problems

    def _check_inbound_once(self) -> list[str]:
        """Check that a phone's message has one callback id per subscription, however often it is attempted."""
        callback_ids: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for request in self.sink.accepted:
            inbound_id = _inbound_id(request)
            if inbound_id is not None:
                callback_ids[request.path, inbound_id].add(request.callback_id)
        return [
            f"{inbound_id} has {len(ids)} callbacks" for (_, inbound_id), ids in callback_ids.items() if len(ids) > 1
        ]

    async def _check_inbound(self) -> list[str]:
        """Check that every message from a phone reached both subscriptions, a tap with its postback text."""
        by_inbound_id: defaultdict[str, dict[str, ReceivedCallback]] = defaultdict(dict)
        for request in self.sink.accepted:
            by_inbound_id[_inbound_id(request) or ""][request.path] = request
        tokens = {
            message["wamid"]: sent.token
            for phone in PHONES
            for message in await self._messages_on(phone)
            for sent in self.sent
            if sent.token in json.dumps(message)
        }
        problems: list[str] = []
        for phone_message in self.phone_messages:
            requests = by_inbound_id[phone_message.wamid].values()
            if len(requests) != 2:
                problems.append(f"{phone_message} was sent to {len(requests)} subscriptions")
            expected = f"{tokens[phone_message.tapped]}-{phone_message.index}" if phone_message.tapped else None
            problems += [
                f"{phone_message} was sent with {postback!r}"
                for request in requests
                if (postback := _postback_of(request)) != expected
            ]
        return problems

    async def _check_templates(self) -> list[str]:
        stored = await self.processes["one"].waypost.database.read(read_all_templates)
        at_operator = (await self.pipeline.control("GET", "templates"))["templates"]
        return self.templates.violations(stored, at_operator, self.sink.accepted)

    def _check_events(self) -> list[str]:
        """Check that each state of a message was sent at most once, and in order."""
        problems: list[str] = []
        states_by_id: defaultdict[str, list[str]] = defaultdict(list)
        seen: set[str] = set()
        for request in self.sink.accepted:
            if request.callback_id in seen or request.value.get("type") != "message-event":
                continue
            seen.add(request.callback_id)
            payload = request.value["payload"]
            states_by_id[payload.get("gsId") or payload["id"]].append(payload["type"])
        for sent in self.sent:
            states = states_by_id.get(sent.message_id or "", [])
            if sent.message_id is not None and not states:
                problems.append(f"{sent.token} has no events")
            if len(set(states)) != len(states):
                problems.append(f"{sent.token} has repeated events: {states}")
            positions = [STATE_ORDER.index(state) for state in states if state in STATE_ORDER]
            if positions != sorted(positions):
                problems.append(f"{sent.token} has events out of order: {states}")
        return problems


async def _close_late_connections(server: HttpServer) -> None:
    """Close connections that a stopped server was still accepting: with a real process they would end."""
    await asyncio.sleep(0.01)
    _close_connections(server)


def _close_connections(server: HttpServer) -> None:
    state = server._server.server_state
    for connection in list(state.connections):
        connection.transport.abort()
    for task in state.tasks:
        task.cancel()


def _inbound_id(request: ReceivedCallback) -> str | None:
    """Return the operator's id of a callback's message from a phone; None if it is about something else."""
    if request.path.endswith(VERSION_3_PATH):
        messages = request.value["entry"][0]["changes"][0]["value"].get("messages")
        return messages[0]["id"] if messages else None
    return request.value["payload"]["id"] if request.value["type"] == "message" else None


def _postback_of(request: ReceivedCallback) -> str | None:
    """Return the postback text of a tapped button; None if there is none."""
    if request.path.endswith(VERSION_3_PATH):
        [message] = request.value["entry"][0]["changes"][0]["value"]["messages"]
        return message.get("button", {}).get("payload")
    return request.value["payload"]["payload"].get("postbackText")


def _all_jobs(connection: Connection) -> list[Any]:
    return list(connection.execute(select(queue_jobs).order_by(queue_jobs.c.position)))


def _ordering_key(request: ReceivedCallback) -> str:
    """Return a name for a callback's recipient or template, and its subscription."""
    if request.path.endswith(VERSION_3_PATH):
        value = request.value["entry"][0]["changes"][0]["value"]
        [item] = value.get("statuses") or value["messages"]
        return f"{item.get('recipient_id') or item['from']} in version 3"
    payload = request.value["payload"]
    if is_about_a_template(request):
        return f"template {payload['id']}"
    number = payload.get("destination") or payload.get("source") or payload.get("sender", {}).get("phone")
    return str(number)
