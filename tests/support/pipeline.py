"""A complete pipeline for tests: the service, the simulator as its operator, and a partner's receiver."""

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
from pytest_waypost.message import parse_trace
from tests.support.builders import ACCOUNT, ANN, APP, INSTANCE_KEY, OPERATOR, PARTNER, is_event
from tests.support.callback_sink import Callback, CallbackSink
from tests.support.manual_clock import ManualClock
from tests.support.operator_proxy import OperatorProxy
from tests.support.partner_seeding import store_partner
from tests.support.passing_time import advance_until
from tests.support.polling import HANGS_AFTER_S, poll_until
from tests.support.store_locations import StoreLocation
from waypost.admin import provisioning
from waypost.assembly.components import ADAPTERS, WEBHOOK_PATH, MakeOperator
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.service import Waypost
from waypost.base.clock import Clock, SystemClock, VirtualClock
from waypost.base.encryption import hash_secret
from waypost.base.ids import RandomIds, SeededIds
from waypost.base.time_travel import TimeTravel
from waypost.config import Settings
from waypost.domain.callbacks import MODE_BITS
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.queue.job_subjects import QueueName
from waypost.store.tables import messages, queue_jobs

API_KEY: Final = "pipeline-key"
ADMIN_TOKEN: Final = "pipeline-admin-token-of-thirty-two-or-more"
EVERY_MODE: Final = ",".join(mode for mode in MODE_BITS if mode not in ("ALL", "BILLING"))
"""All modes of version 2 except BILLING, whose event for each message most tests do not expect."""
APIS: Final = {"messaging": "/wa/api/v1", "partner": f"/partner/app/{APP.id}"}
"""The two APIs that send messages, and the base path of each."""
TWO_REPLIES: Final = ({"type": "QUICK_REPLY", "text": "Yes"}, {"type": "QUICK_REPLY", "text": "No"})

_DIRECTIONS: Final = {"from_phone": "sent", "to_phone": "received"}
_MAX_REPORTED: Final = 20
_NOT_VISIBLE: Final = frozenset(
    ("position", "wamid", "direction", "phone_number_id", "at_ms", "state", "context_id",
     "callback_data", "delivered_ms", "read_ms")
)  # fmt: skip


@dataclass(frozen=True)
class HttpResponse:
    """A response of an API."""

    status: int
    body: Any
    headers: Mapping[str, str]
    raw: bytes


@dataclass
class PipelineHarness:
    """A partner at one end and simulated phones at the other; everything between is real.

    Attributes:
        changes: settings that differ from the fast defaults below.
        simulator_changes: likewise for the simulator.
        operator_proxy: a proxy between service and operator, if a test needs one.
        store_location: the location of the store, if it is not in the folder.
        adapters: of the service, by operator kind.
    """

    folder: Path
    sink: CallbackSink
    http: aiohttp.ClientSession
    clock: Clock = field(default_factory=SystemClock)
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    simulator_changes: dict[str, Any] = field(default_factory=dict[str, Any])
    operator_proxy: OperatorProxy | None = None
    store_location: StoreLocation | None = None
    adapters: Mapping[str, MakeOperator] = field(default_factory=lambda: ADAPTERS)
    service_url: str = ""
    operator_url: str = ""
    app_token: str = ""

    async def open(self) -> None:
        """Start both sides, create the partner, and subscribe its receiver to everything but prices."""
        await self.open_existing()
        await self.make_partner()
        await self.subscribe()

    async def open_existing(self) -> None:
        """Start both sides on a folder that already has a partner."""
        self._ports = {"service": free_port(), "operator": free_port()}
        self._running: set[str] = set()
        self._operator_ids = SeededIds(self.clock, "pipeline")  # continues after a restart
        if self.operator_proxy is not None:
            await self.operator_proxy.open()
        await self.open_operator()
        await self.open_service()

    async def close(self) -> None:
        """Stop both sides."""
        await asyncio.gather(self.close_service(), self.close_operator())
        if self.operator_proxy is not None:
            await self.operator_proxy.close()

    async def open_service(self) -> None:
        """Start the service on its folder; it may be started again after `close_service`."""
        values: dict[str, Any] = {
            "data": self.folder,
            "secret_key": INSTANCE_KEY,
            "admin_token": ADMIN_TOKEN,
            "rates": False,
            "allowed_networks": ("127.0.0.0/8",),
            "stop_within_s": 2,
            **(self.store_location.settings if self.store_location else {}),
            **self.changes,
        }
        bound = bind_socket("127.0.0.1", self._ports["service"], option="--port")
        self.service_url = f"http://127.0.0.1:{port_of(bound)}"
        values.setdefault("public_url", self.service_url)
        settings = Settings(**values)
        self.waypost = Waypost(settings, self.clock, RandomIds(self.clock), adapters=self.adapters)
        try:
            await self.waypost.open()
        except BaseException:
            bound.close()
            raise
        self._server = HttpServer(self.waypost.logged_application, bound)
        self.waypost.observability.servers = [self._server.connections]
        await self._server.start()
        self._running.add("service")
        await self._connect_sides()
        self.waypost.start()

    async def close_service(self) -> None:
        """Stop the service as a signal does, and keep its folder."""
        if "service" not in self._running:
            return
        self._running.discard("service")
        await self._server.stop()
        await self.waypost.drain()
        await self.waypost.close()

    async def open_operator(self) -> None:
        """Start the simulator; it may be started again after `close_operator`."""
        values: dict[str, Any] = {
            "path": self.folder / "simulator.db",
            "review_delay_ms": 0,
            "deliver_after_ms": 0,
            "gather_ms": 0,
            **self.simulator_changes,
        }
        settings = SimulatorSettings(**values)
        bound = bind_socket("127.0.0.1", self._ports["operator"], option="--simulator-port")
        self.operator_url = f"http://127.0.0.1:{port_of(bound)}"
        self.simulator = Simulator(settings, self.clock, self._operator_ids)
        await self.simulator.open()
        self._operator_server = HttpServer(self.simulator.application, bound)
        await self._operator_server.start()
        self._running.add("operator")
        await self._connect_sides()

    async def close_operator(self) -> None:
        """Stop the simulator; its port is closed."""
        if "operator" not in self._running:
            return
        self._running.discard("operator")
        await self._operator_server.stop()
        await self.simulator.close()

    # The partner's side.

    async def send_request(
        self, method: str, path: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a request to the service."""
        async with self.http.request(method, self.service_url + path, data=form, headers=headers) as response:
            raw = await response.read()
            is_json = response.content_type == "application/json" and raw
            body = json.loads(raw) if is_json else None
            return HttpResponse(response.status, body, response.headers, raw)

    async def subscribe(self, **more: str) -> dict[str, Any]:
        """Subscribe the receiver to callbacks: to all of them, unless `modes` is given."""
        form = {"modes": EVERY_MODE, "tag": "all", "url": self.sink.url, "version": "2"}
        response = await self.send_request(
            "POST",
            f"/partner/app/{APP.id}/subscription",
            {**form, "doCheck": "false", **more},
            {"Authorization": self.app_token},
        )
        assert response.status == 200, response
        return response.body["subscription"]

    async def unsubscribe(self, tag: str) -> None:
        """Delete the subscription with this tag."""
        path, headers = f"/partner/app/{APP.id}/subscription", {"Authorization": self.app_token}
        subscriptions = (await self.send_request("GET", path, headers=headers)).body["subscriptions"]
        [subscription_id] = [subscription["id"] for subscription in subscriptions if subscription["tag"] == tag]
        response = await self.send_request("DELETE", f"{path}/{subscription_id}", headers=headers)
        assert response.status == 204, response

    async def create_template(self, *, buttons: Sequence[Mapping[str, Any]] = (), **fields: str) -> dict[str, Any]:
        """Submit a template and return its record; its review is pending."""
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
        response = await self.send_request(
            "POST", f"/partner/app/{APP.id}/templates", form | fields, {"Authorization": self.app_token}
        )
        assert response.status == 200, response
        return response.body["template"]

    async def approved_template(self, *, buttons: Sequence[Mapping[str, Any]] = TWO_REPLIES, **fields: str) -> str:
        """Submit a template, wait for the callback of its approval, and return its id."""
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
        """Send a template message, and return our id of it."""
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
        """Send a session text, and return our id of it."""
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
        """Send Ann a template message of any type, and return our id of it.

        Args:
            template_id: our id.
            by: one of the two APIs.
            params: of all its components, in order.
            message: the medium, the location or the cards.
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
        """Send Ann a session message of any type, and return our id of it."""
        return await self._submit_by(by, "msg", {"message": json.dumps(message)})

    async def send_passthrough(self, **message: Any) -> str:
        """Send Ann a message in the operator's format, and return our id of it."""
        form = {"to": ANN} | {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in message.items()
        }
        headers = {"Authorization": self.app_token}
        response = await self.send_request("POST", f"/partner/app/{APP.id}/v3/message", form, headers)
        assert response.status == 200, response
        return response.body["messages"][0]["id"]

    async def upload(self, content: bytes, file_type: str, *, name: str = "file") -> str:
        """Upload a file to send it, and return its media id."""
        body = await self._upload("media", content, file_type, name)
        return body["mediaId"]

    async def upload_sample(self, content: bytes, file_type: str, *, name: str = "file") -> str:
        """Upload a file as a template's sample, and return its handle id."""
        body = await self._upload("upload/media", content, file_type, name)
        return body["handleId"]["message"]

    async def publish_flow(self, name: str, flow_json: Mapping[str, Any]) -> str:
        """Create a flow through the partner API as real clients do, publish it, and return its id."""
        flows = f"{self.service_url}/partner/app/{APP.id}/flows"
        headers = {"Authorization": self.app_token}
        flow = {"name": name, "categories": ["SURVEY"]}
        async with self.http.post(flows, json=flow, headers=headers) as created:
            assert created.status == 200, await created.text()
            flow_id = (await created.json())["id"]
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
        """The callbacks that the partner's receiver has accepted, in order."""
        return self.sink.callbacks

    async def wait_for_callback(
        self, predicate: Callable[[Callback], bool], *, within_s: float = HANGS_AFTER_S
    ) -> Callback:
        """Return the first callback that matches."""
        return (await self.sink.wait_for(predicate, within_s=within_s))[0]

    async def events_of(self, message_id: str, *, until: str, within_s: float = HANGS_AFTER_S) -> list[dict[str, Any]]:
        """Return the payloads of a message's events, once the event `until` has arrived."""
        await self.sink.wait_until(
            lambda: any(payload["type"] == until for payload in self._events(message_id)), within_s=within_s
        )
        return self._events(message_id)

    # The phones' side.

    async def control(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the simulator control API, and return the body of the response."""
        async with self.http.request(
            method, f"{self.operator_url}/control/{path}", json=None if method == "GET" else body
        ) as response:
            content = await response.json()
            assert response.status == 200, content
            return content

    async def open_window(self, phone: str = ANN) -> None:
        """Send a text from the phone, so that session messages may be sent to it; return when the partner has it."""
        await self.reply(phone, "Hello?")

    async def reply(self, phone: str, text: str, *, to: str | None = None) -> Callback:
        """Send a text from the phone, perhaps in reply to a message by the operator's id; return the callback."""
        body = {"to": APP.phone_number, "text": text, "context_id": to}
        created = await self.control("POST", f"phones/{phone}/messages", body)
        return await self.wait_for_callback(is_event("message", id=created["wamid"]))

    async def tap(self, phone: str, index: int, **more: Any) -> Callback:
        """Tap a button of the newest message that has any; return the callback.

        Args:
            phone: its digits.
            index: of the button.
            more: further fields of the simulator control API: `card`, `message_id`, `not_requested`.
        """
        body = {"index": index, "wait_ms": 5000, **more}
        created = await self.control("POST", f"phones/{phone}/tap", body)
        return await self.wait_for_callback(is_event("message", id=created["wamid"]))

    async def read(self, phone: str = ANN) -> None:
        """Mark the phone's messages as read, once it has any."""
        await self.control("POST", f"phones/{phone}/read", {"wait_ms": 5000})

    async def inbox(self, phone: str = ANN) -> list[dict[str, Any]]:
        """Return the messages that the phone shows, oldest first."""
        return (await self.control("GET", f"phones/{phone}"))["messages"]

    async def visible_message(self, message_id: str, phone: str = ANN, *, until: str = "delivered") -> dict[str, Any]:
        """Return what the phone shows of our message, once it has a status; of a reaction that is `sent`."""
        await self.events_of(message_id, until=until)
        inbox = await self.inbox(phone)
        [message] = [message for message in inbox if message.get("callback_data") == message_id]
        return {name: value for name, value in message.items() if name not in _NOT_VISIBLE}

    async def deliveries(self, message_id: str) -> list[dict[str, Any]]:
        """Return the messages that the operator has accepted under our id; more than one is a duplicate."""
        return (await self.control("GET", f"deliveries?callback_data={message_id}"))["deliveries"]

    async def conversation(self) -> str:
        """Return what happened so far, for the report of a failed test: messages, phones and callbacks."""
        if self._running != {"service", "operator"}:
            return f"only these run: {', '.join(sorted(self._running)) or 'none'}"
        ids = await self.waypost.database.read(_newest_message_ids)
        traces = [str(parse_trace(await self.trace(message_id))) for message_id in ids]
        phones = (await self.control("GET", "phones"))["phones"]
        chats = [
            f"{phone['phone']} {_DIRECTIONS[item['direction']]} {item['type']}: {json.dumps(item.get('text', ''))}"
            for phone in phones
            for item in await self.inbox(phone["phone"])
        ]
        callbacks = [
            f"{request.status} {request.body.decode(errors='replace')[:300]}" for request in self.sink.requests
        ]
        sections = {"Messages": traces, "Phones": chats, "Callbacks": callbacks[-_MAX_REPORTED:]}
        return "\n".join(f"{title}:\n" + "\n".join(f"  {line}" for line in lines) for title, lines in sections.items())

    # Inside the service.

    def unavailable_store(self) -> AbstractAsyncContextManager[None]:
        """Make all writes of the service fail in this context."""
        assert self.store_location is not None
        return self.store_location.make_unavailable(self.waypost.database)

    async def trace(self, message_id: str) -> dict[str, Any]:
        """Return a message's state, events and callbacks, as the admin API shows them."""
        response = await self.send_request(
            "GET", f"/admin/messages/{message_id}", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}
        )
        assert response.status == 200, response
        return response.body

    async def queue_depths(self) -> dict[str, dict[str, int]]:
        """Return the number of jobs in each queue, by state."""
        response = await self.send_request("GET", "/admin/queues", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        return response.body

    async def submission_attempts(self) -> int:
        """Return the attempts of the oldest outbound job."""
        return await self.waypost.database.read(_attempts)

    async def wait_for_state(self, message_id: str, state: str) -> dict[str, Any]:
        """Return the trace of a message once it is in this state."""
        return await poll_until(lambda: self.trace(message_id), lambda trace: trace["state"] == state)

    async def pass_time_until(self, is_so: Callable[[], bool], *, step_ms: int = 500) -> None:
        """Advance a manual clock in steps until the condition holds; before each step the service finishes what is due."""
        assert isinstance(self.clock, ManualClock)
        await advance_until(self.clock, self.waypost, is_so, step_ms=step_ms)

    async def travel(self, *, ms: int, within_s: float = HANGS_AFTER_S) -> None:
        """Advance a virtual clock from due time to due time; return when both sides are idle.

        Args:
            ms: the time to advance.
            within_s: of real time; a busy machine may need long for the work that is due.
        """
        assert isinstance(self.clock, VirtualClock)
        travel = TimeTravel(self.clock, (self.waypost, self.simulator))
        await travel.advance(to_ms=self.clock.now_ms() + ms, stop_timeout_s=within_s)

    async def _submit(self, path: str, form: Mapping[str, str]) -> str:
        response = await self.send_request("POST", path, form, {"apikey": API_KEY})
        assert response.status == 200, response
        assert response.body["status"] == "submitted"
        return response.body["messageId"]

    async def _submit_by(self, api: str, path: str, form: Mapping[str, str]) -> str:
        """Submit with the credential of an API, and only the fields that it needs."""
        fields = {"source": APP.phone_number, "destination": ANN, **form}
        headers = {"Authorization": self.app_token}
        if api == "messaging":
            fields |= {"channel": "whatsapp", "src.name": APP.name}
            headers = {"apikey": API_KEY}
        response = await self.send_request("POST", f"{APIS[api]}/{path}", fields, headers)
        assert response.status == 200, response
        assert response.body["status"] == "submitted"
        return response.body["messageId"]

    async def _upload(self, path: str, content: bytes, file_type: str, name: str) -> Any:
        form = aiohttp.FormData(quote_fields=False)  # names as browsers write them
        form.add_field("file", content, filename=name, content_type=file_type)
        form.add_field("file_type", file_type)
        url = f"{self.service_url}/partner/app/{APP.id}/{path}"
        async with self.http.post(url, data=form, headers={"token": self.app_token}) as response:
            body = await response.json()
            assert response.status == 200, body
            assert body["status"] == "success"
            return body

    def _events(self, message_id: str) -> list[dict[str, Any]]:
        events = [callback["payload"] for callback in self.callbacks if callback["type"] == "message-event"]
        return [event for event in events if message_id in (event["id"], event.get("gsId"))]

    async def make_partner(self) -> None:
        """Create the partner with its key, its business account and its app."""
        context = self.waypost.admin_context
        self.app_token = await store_partner(context)
        key, now_ms = hash_secret(API_KEY), self.clock.now_ms()
        await context.database.write(add_credential, CredentialKind.API_KEY, PARTNER.id, key, now_ms)

    async def _connect_sides(self) -> None:
        """Give each side the URL of the other one, or of the proxy, once both are running."""
        if self._running != {"service", "operator"}:
            return
        operator_url, service_url = self.operator_url, self.service_url
        if self.operator_proxy is not None:
            self.operator_proxy.operator_url, self.operator_proxy.service_url = operator_url, service_url
            operator_url = service_url = self.operator_proxy.url
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


def _newest_message_ids(connection: Connection) -> list[str]:
    return list(connection.execute(select(messages.c.id).order_by(messages.c.id.desc()).limit(_MAX_REPORTED)).scalars())


def _attempts(connection: Connection) -> int:
    attempts = select(queue_jobs.c.attempt).where(queue_jobs.c.queue == int(QueueName.OUTBOUND))
    return connection.execute(attempts.order_by(queue_jobs.c.position).limit(1)).scalar_one()
