"""Both ends of the pipeline: the service, the simulator behind it, and a partner's receiver."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
from sqlalchemy import Connection, select

from crashes.processes import free_port
from tests.support.builders import ACCOUNT, ANN, APP, INSTANCE_KEY, OPERATOR, PARTNER, is_event
from tests.support.callback_sink import Callback, CallbackSink
from tests.support.operator_proxy import Between
from tests.support.seeding import store_partner
from tests.support.stores import Place
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.admin import provisioning
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.operators import ADAPTERS, MakeOperator
from waypost.assembly.service import WEBHOOK_PATH, Waypost
from waypost.base.clock import Clock, ManualClock, SystemClock, VirtualClock
from waypost.base.encryption import hash_secret
from waypost.base.ids import RandomIds, SeededIds
from waypost.base.time_travel import TimeTravel
from waypost.config import Settings
from waypost.domain.callbacks.subscription import MODE_BITS
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.queue.jobs import QueueName
from waypost.store.tables import queue_jobs

API_KEY: Final = "street-key"
ADMIN_TOKEN: Final = "street-admin-token-of-thirty-two-or-more"
EVERY_MODE: Final = ",".join(mode for mode in MODE_BITS if mode not in ("ALL", "BILLING"))
"""Of version 2, but for the price of each message, which would be in every journey's way."""
APIS: Final = {"messaging": "/wa/api/v1", "partner": f"/partner/app/{APP.id}"}
"""The two ways to send, and where each begins."""
TWO_REPLIES: Final = ({"type": "QUICK_REPLY", "text": "Yes"}, {"type": "QUICK_REPLY", "text": "No"})

_UNSEEN: Final = frozenset(
    ("position", "wamid", "direction", "phone_number_id", "at_ms", "state", "context_id",
     "callback_data", "delivered_ms", "read_ms")
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What a door answered."""

    status: int
    body: Any
    headers: Mapping[str, str]
    raw: bytes


@dataclass
class PipelineHarness:
    """A partner at one end and simulated phones at the other; everything between is real.

    Attributes:
        changes: settings that differ from the street's own quick ones.
        simulator_changes: likewise for the simulator.
        between: where a test wants to cut the line.
        place: where the store is, when it is not in the folder.
        adapters: of the service, by operator kind.
    """

    folder: Path
    sink: CallbackSink
    http: aiohttp.ClientSession
    clock: Clock = field(default_factory=SystemClock)
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    simulator_changes: dict[str, Any] = field(default_factory=dict[str, Any])
    between: Between | None = None
    place: Place | None = None
    adapters: Mapping[str, MakeOperator] = field(default_factory=lambda: ADAPTERS)
    service_url: str = ""
    operator_url: str = ""
    app_token: str = ""

    async def open(self) -> None:
        """Start both sides, make the partner, and subscribe its receiver to everything but prices."""
        await self.open_on_filled()
        await self.make_partner()
        await self.subscribe()

    async def open_on_filled(self) -> None:
        """Start both sides on a folder that has a partner already."""
        self._ports = {"service": free_port(), "operator": free_port()}
        self._running: set[str] = set()
        self._operator_ids = SeededIds(self.clock, "street")  # it goes on after a restart
        if self.between is not None:
            await self.between.open()
        await self.open_operator()
        await self.open_service()

    async def close(self) -> None:
        """Stop both sides."""
        await asyncio.gather(self.close_service(), self.close_operator())
        if self.between is not None:
            await self.between.close()

    async def open_service(self) -> None:
        """Start the service on its folder: also again, after `close_service`."""
        chosen: dict[str, Any] = {
            "data": self.folder,
            "secret_key": INSTANCE_KEY,
            "admin_token": ADMIN_TOKEN,
            "rates": False,
            "allowed_networks": ("127.0.0.0/8",),
            "stop_within_s": 2,
            **(self.place.settings if self.place else {}),
            **self.changes,
        }
        bound = bind_socket("127.0.0.1", self._ports["service"], option="--port")
        self.service_url = f"http://127.0.0.1:{port_of(bound)}"
        chosen.setdefault("public_url", self.service_url)
        settings = Settings(**chosen)
        self.waypost = Waypost(settings, self.clock, RandomIds(self.clock), adapters=self.adapters)
        await self.waypost.open()
        self._server = HttpServer(self.waypost.application, bound)
        self.waypost.observability.servers = [self._server.connections]
        await self._server.start()
        self._running.add("service")
        await self._tell_the_way()
        self.waypost.start()

    async def close_service(self) -> None:
        """Stop the service as a signal does; its folder stays."""
        if "service" not in self._running:
            return
        self._running.discard("service")
        await self._server.stop()
        await self.waypost.drain()
        await self.waypost.close()

    async def open_operator(self) -> None:
        """Start the simulator: also again, after `close_operator`."""
        chosen: dict[str, Any] = {
            "path": self.folder / "simulator.db",
            "review_delay_ms": 0,
            "deliver_after_ms": 0,
            "gather_ms": 0,
            **self.simulator_changes,
        }
        settings = SimulatorSettings(**chosen)
        bound = bind_socket("127.0.0.1", self._ports["operator"], option="--simulator-port")
        self.operator_url = f"http://127.0.0.1:{port_of(bound)}"
        self.simulator = Simulator(settings, self.clock, self._operator_ids)
        await self.simulator.open()
        self._operator_server = HttpServer(self.simulator.application, bound)
        await self._operator_server.start()
        self._running.add("operator")
        await self._tell_the_way()

    async def close_operator(self) -> None:
        """Stop the simulator: nothing listens any more."""
        if "operator" not in self._running:
            return
        self._running.discard("operator")
        await self._operator_server.stop()
        await self.simulator.close()

    # The partner's end.

    async def ask(
        self, method: str, path: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request to the service."""
        async with self.http.request(method, self.service_url + path, data=form, headers=headers) as answer:
            raw = await answer.read()
            is_json = answer.content_type == "application/json" and raw
            body = json.loads(raw) if is_json else None
            return Answer(answer.status, body, answer.headers, raw)

    async def subscribe(self, **more: str) -> dict[str, Any]:
        """Have callbacks sent to the receiver: all of them, unless `modes` says otherwise."""
        form = {"modes": EVERY_MODE, "tag": "all", "url": self.sink.url, "version": "2"}
        answer = await self.ask(
            "POST",
            f"/partner/app/{APP.id}/subscription",
            {**form, "doCheck": "false", **more},
            {"Authorization": self.app_token},
        )
        assert answer.status == 200, answer
        return answer.body["subscription"]

    async def unsubscribe(self, tag: str) -> None:
        """Delete the subscription with this tag."""
        path, headers = f"/partner/app/{APP.id}/subscription", {"Authorization": self.app_token}
        held = (await self.ask("GET", path, headers=headers)).body["subscriptions"]
        [named] = [one["id"] for one in held if one["tag"] == tag]
        answer = await self.ask("DELETE", f"{path}/{named}", headers=headers)
        assert answer.status == 204, answer

    async def create_template(self, *, buttons: Sequence[Mapping[str, Any]] = (), **fields: str) -> dict[str, Any]:
        """Submit a template and give its record; its review is on its way."""
        form = {
            "elementName": "greeting",
            "category": "UTILITY",
            "templateType": "TEXT",
            "vertical": "Greetings",
            "content": "Hi {{1}}, shall we come today?",
            "example": "Hi Ann, shall we come today?",
        }
        if buttons:
            form["buttons"] = json.dumps(list(buttons))
        answer = await self.ask(
            "POST", f"/partner/app/{APP.id}/templates", form | fields, {"Authorization": self.app_token}
        )
        assert answer.status == 200, answer
        return answer.body["template"]

    async def approved_template(self, *, buttons: Sequence[Mapping[str, Any]] = TWO_REPLIES, **fields: str) -> str:
        """Submit a template, wait until the partner hears that it is approved, and give its id."""
        template = await self.create_template(buttons=buttons, **fields)
        await self.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
        return template["id"]

    async def send(
        self,
        template_id: str,
        *,
        to: str = ANN,
        params: Sequence[str] = ("Ann",),
        postback_texts: Mapping[int, str] | None = None,
    ) -> str:
        """Send a template message, and give our id of it."""
        form = {
            "channel": "whatsapp",
            "source": APP.phone_number,
            "destination": to,
            "src.name": APP.name,
            "template": json.dumps({"id": template_id, "params": list(params)}),
        }
        if postback_texts is not None:
            items = [{"index": index, "text": text} for index, text in postback_texts.items()]
            form["postbackTexts"] = json.dumps(items)
        return await self._submit("/wa/api/v1/template/msg", form)

    async def send_text(self, text: str = "Hello", *, to: str = ANN, **message: Any) -> str:
        """Send a session text, and give our id of it."""
        form = {
            "channel": "whatsapp",
            "source": APP.phone_number,
            "destination": to,
            "src.name": APP.name,
            "message": json.dumps({"type": "text", "text": text, **message}),
        }
        return await self._submit("/wa/api/v1/msg", form)

    async def send_template(
        self,
        template_id: str,
        *,
        by: str = "messaging",
        params: Sequence[str] = (),
        message: Mapping[str, Any] | None = None,
        postback_texts: Mapping[int, str] | None = None,
        **more: Any,
    ) -> str:
        """Send Ann a template message of any type, and give our id of it.

        Args:
            template_id: ours.
            by: which of the two APIs.
            params: of all its components, in order.
            message: the medium, the place or the cards.
            postback_texts: by the button's index.
            more: further members of `template`.
        """
        template = {"id": template_id, "params": list(params), **more}
        form = {"template": json.dumps(template)}
        if message is not None:
            form["message"] = json.dumps(message)
        if postback_texts is not None:
            items = [{"index": index, "text": text} for index, text in postback_texts.items()]
            form["postbackTexts"] = json.dumps(items)
        return await self._submit_by(by, "template/msg", form)

    async def send_session(self, message: Mapping[str, Any], *, by: str = "messaging") -> str:
        """Send Ann a session message of any type, and give our id of it."""
        return await self._submit_by(by, "msg", {"message": json.dumps(message)})

    async def send_passthrough(self, **message: Any) -> str:
        """Send Ann a message in the operator's words, and give our id of it."""
        form = {"to": ANN} | {name: one if isinstance(one, str) else json.dumps(one) for name, one in message.items()}
        headers = {"Authorization": self.app_token}
        answer = await self.ask("POST", f"/partner/app/{APP.id}/v3/message", form, headers)
        assert answer.status == 200, answer
        return answer.body["messages"][0]["id"]

    async def upload(self, content: bytes, file_type: str, *, name: str = "file") -> str:
        """Upload a file to send it, and give its media id."""
        body = await self._upload("media", content, file_type, name)
        return body["mediaId"]

    async def upload_sample(self, content: bytes, file_type: str, *, name: str = "file") -> str:
        """Upload a file as a template's sample, and give its handle id."""
        body = await self._upload("upload/media", content, file_type, name)
        return body["handleId"]["message"]

    async def publish_flow(self, name: str, flow_json: Mapping[str, Any]) -> str:
        """Make a flow through the partner API as real clients do, publish it, and give its id."""
        flows = f"{self.service_url}/partner/app/{APP.id}/flows"
        headers = {"Authorization": self.app_token}
        wish = {"name": name, "categories": ["SURVEY"]}
        async with self.http.post(flows, json=wish, headers=headers) as made:
            assert made.status == 201, await made.text()
            flow_id = (await made.json())["id"]
        form = aiohttp.FormData({"name": "flow.json", "asset_type": "FLOW_JSON"})
        content = json.dumps(flow_json).encode()
        form.add_field("file", content, filename="flow.json", content_type="application/json")
        assets = f"{flows}/{flow_id}/assets"
        async with self.http.put(assets, data=form, headers=headers) as put:
            assert (await put.json())["validation_errors"] == []
        async with self.http.post(f"{flows}/{flow_id}/publish", headers=headers) as published:
            assert published.status == 200, await published.text()
        return flow_id

    @property
    def callbacks(self) -> list[Callback]:
        """What the partner's receiver has taken, in order."""
        return self.sink.callbacks

    async def wait_for_callback(
        self, predicate: Callable[[Callback], bool], *, within_s: float = HANGS_AFTER_S
    ) -> Callback:
        """The first callback that is meant."""
        return (await self.sink.wait_for(predicate, within_s=within_s))[0]

    async def events_of(self, message_id: str, *, until: str, within_s: float = HANGS_AFTER_S) -> list[dict[str, Any]]:
        """The payloads of a message's events, once the one that is meant has come."""
        await self.sink.wait_until(
            lambda: any(payload["type"] == until for payload in self._heard_of(message_id)), within_s=within_s
        )
        return self._heard_of(message_id)

    # The phones' end.

    async def control(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the simulator's control door."""
        async with self.http.request(
            method, f"{self.operator_url}/control/{path}", json=None if method == "GET" else body
        ) as answer:
            content = await answer.json()
            assert answer.status == 200, content
            return content

    async def open_window(self, phone: str = ANN) -> None:
        """The phone writes, so that session messages may be sent to it; returns when the partner has it."""
        await self.reply(phone, "Hello?")

    async def reply(self, phone: str, text: str, *, to: str | None = None) -> Callback:
        """The phone writes, perhaps in reply to the operator's id of a message; gives the callback."""
        body = {"to": APP.phone_number, "text": text, "context_id": to}
        told = await self.control("POST", f"phones/{phone}/messages", body)
        return await self.wait_for_callback(is_event("message", id=told["wamid"]))

    async def tap(self, phone: str, index: int, **more: Any) -> Callback:
        """The phone taps a button of the newest message that has any; gives the callback.

        Args:
            phone: its digits.
            index: of the button.
            more: what else the control door takes: `card`, `message_id`, `not_requested`.
        """
        wish = {"index": index, "wait_ms": 5000, **more}
        told = await self.control("POST", f"phones/{phone}/tap", wish)
        return await self.wait_for_callback(is_event("message", id=told["wamid"]))

    async def read(self, phone: str = ANN) -> None:
        """The phone reads what it has got, once there is something."""
        await self.control("POST", f"phones/{phone}/read", {"wait_ms": 5000})

    async def inbox(self, phone: str = ANN) -> list[dict[str, Any]]:
        """What the phone shows, oldest first."""
        return (await self.control("GET", f"phones/{phone}"))["messages"]

    async def shown(self, message_id: str, phone: str = ANN) -> dict[str, Any]:
        """All that a person sees of a message of ours, once it is delivered."""
        await self.events_of(message_id, until="delivered")
        inbox = await self.inbox(phone)
        [found] = [one for one in inbox if one.get("callback_data") == message_id]
        return {name: value for name, value in found.items() if name not in _UNSEEN}

    async def deliveries(self, message_id: str) -> list[dict[str, Any]]:
        """What the operator has taken under our id: more than one would be a message sent twice."""
        return (await self.control("GET", f"deliveries?callback_data={message_id}"))["deliveries"]

    # Behind the doors.

    def store_away(self) -> AbstractAsyncContextManager[None]:
        """While this lasts, the service can write nothing."""
        assert self.place is not None
        return self.place.away(self.waypost.database)

    async def trace(self, message_id: str) -> dict[str, Any]:
        """A message's state, news and callbacks, as the administrator sees them."""
        answer = await self.ask(
            "GET", f"/admin/messages/{message_id}", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}
        )
        assert answer.status == 200, answer
        return answer.body

    async def queue_depths(self) -> dict[str, dict[str, int]]:
        """How many entries each queue of the journal holds, by state."""
        answer = await self.ask("GET", "/admin/queues", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        return answer.body

    async def submission_attempts(self) -> int:
        """How often the first submission that waits has been tried."""
        return await self.waypost.database.read(_attempts)

    async def wait_for_state(self, message_id: str, state: str) -> dict[str, Any]:
        """The trace of a message once it stands there."""
        return await patiently(lambda: self.trace(message_id), lambda one: one["state"] == state)

    async def pass_time_until(self, is_so: Callable[[], bool], *, step_ms: int = 500) -> None:
        """Move a manual clock until the claim holds; on a busy machine it waits a little for the service."""
        assert isinstance(self.clock, ManualClock)
        async with asyncio.timeout(HANGS_AFTER_S):
            while not is_so():
                self.clock.advance(ms=step_ms)
                for _ in range(5):
                    await asyncio.sleep(0.01)
                    if not self.waypost.busy:
                        break

    async def travel(self, *, ms: int, within_s: float = HANGS_AFTER_S) -> None:
        """Move a virtual clock from due time to due time; returns when both sides rest there.

        Args:
            ms: how far.
            within_s: of real time; a busy machine may need long for what is due on the way.
        """
        assert isinstance(self.clock, VirtualClock)
        travel = TimeTravel(self.clock, (self.waypost, self.simulator))
        await travel.advance(to_ms=self.clock.now_ms() + ms, stop_timeout_s=within_s)

    async def _submit(self, path: str, form: Mapping[str, str]) -> str:
        answer = await self.ask("POST", path, form, {"apikey": API_KEY})
        assert answer.status == 200, answer
        assert answer.body["status"] == "submitted"
        return answer.body["messageId"]

    async def _submit_by(self, api: str, path: str, form: Mapping[str, str]) -> str:
        """The fields that each API needs, its credential, and no more."""
        whole = {"source": APP.phone_number, "destination": ANN, **form}
        headers = {"Authorization": self.app_token}
        if api == "messaging":
            whole |= {"channel": "whatsapp", "src.name": APP.name}
            headers = {"apikey": API_KEY}
        answer = await self.ask("POST", f"{APIS[api]}/{path}", whole, headers)
        assert answer.status == 200, answer
        assert answer.body["status"] == "submitted"
        return answer.body["messageId"]

    async def _upload(self, path: str, content: bytes, file_type: str, name: str) -> Any:
        form = aiohttp.FormData(quote_fields=False)  # names as browsers write them
        form.add_field("file", content, filename=name, content_type=file_type)
        form.add_field("file_type", file_type)
        url = f"{self.service_url}/partner/app/{APP.id}/{path}"
        async with self.http.post(url, data=form, headers={"token": self.app_token}) as answer:
            body = await answer.json()
            assert answer.status == 200, body
            assert body["status"] == "success"
            return body

    def _heard_of(self, message_id: str) -> list[dict[str, Any]]:
        events = [one["payload"] for one in self.callbacks if one["type"] == "message-event"]
        return [event for event in events if message_id in (event["id"], event.get("gsId"))]

    async def make_partner(self) -> None:
        """Make the partner with its key, its business account and its app."""
        office = self.waypost.admin_context
        self.app_token = await store_partner(office)
        key, now_ms = hash_secret(API_KEY), self.clock.now_ms()
        await office.database.write(add_credential, CredentialKind.API_KEY, PARTNER.id, key, now_ms)

    async def _tell_the_way(self) -> None:
        """Tell each side where the other one is, or what stands between; once both are there."""
        if self._running != {"service", "operator"}:
            return
        operator_url, service_url = self.operator_url, self.service_url
        if self.between is not None:
            self.between.operator_url, self.between.service_url = operator_url, service_url
            operator_url = service_url = self.between.url
        await provisioning.put_operator_account(self.waypost.admin_context, replace(OPERATOR, base_url=operator_url))
        await self.simulator.seed(
            AccountSeed(
                waba_id=ACCOUNT.id,
                name="Acme",
                namespace=ACCOUNT.namespace,
                token=OPERATOR["token"],
                app_id=OPERATOR["app_id"],
                app_secret=OPERATOR["app_secret"],
                verify_token=OPERATOR["verify_token"],
                callback_uri=f"{service_url}{WEBHOOK_PATH}/{OPERATOR.id}",
            ),
            [NumberSeed(APP.phone_number_id, ACCOUNT.id, APP.phone_number, "Acme Shop")],
        )


def _attempts(connection: Connection) -> int:
    queue_name = select(queue_jobs.c.attempt).where(queue_jobs.c.queue == int(QueueName.OUTBOUND))
    return connection.execute(queue_name.order_by(queue_jobs.c.position).limit(1)).scalar_one()
