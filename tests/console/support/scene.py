"""The scene: a populated demo with an example of everything that the console shows, created through the APIs.

Texts and their order are the same in every run; IDs follow a seed. The screenshots, the test of all pages and the
accessibility tests use it.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.console.conftest import ConsoleClient, close_console, open_console
from tests.support.callback_sink import CallbackSink
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.base.clock import ClockSetting, VirtualClock
from waypost.client.api_client import ApiClient, HttpTransport

ANN: Final = demo.DESTINATION
BEN: Final = "15550002002"
CHI: Final = "15550002003"
DEE: Final = "15550002004"  # is offline
ELI: Final = "15550002005"  # is not on the channel
FAY: Final = "15550002006"  # whose messages stay unconfirmed
GIL: Final = "15550002007"  # to whom the operator fails messages
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
SEED: Final = "console"
PLACE: Final = {
    "latitude": 52.5163, "longitude": 13.3777, "name": "Meadow Bakery", "address": "Mill Road 4",
}  # fmt: skip
CONTACT: Final = {
    "name": {"firstName": "Mia", "lastName": "Miller", "formattedName": "Mia Miller"},
    "phones": [{"phone": "+15550009001", "type": "WORK", "wa_id": "15550009001"}],
    "emails": [{"email": "mia@meadow.test", "type": "WORK"}],
    "org": {"company": "Meadow Bakery", "title": "Baker"},
}
MENU: Final = {
    "type": "list", "title": "Today", "body": "What shall we bake for you?", "footer": "Until noon", "msgid": "menu",
    "globalButtons": [{"type": "text", "title": "Show the breads"}],
    "items": [
        {"title": "Rye", "subtitle": "", "options": [
            {"type": "text", "title": "Whole loaf", "description": "1 kg", "postbackText": "rye-1"},
            {"type": "text", "title": "Half a loaf", "description": "500 g", "postbackText": "rye-2"}]},
        {"title": "Wheat", "subtitle": "", "options": [
            {"type": "text", "title": "Baguette", "description": "Two", "postbackText": "wheat-1"}]},
    ],
}  # fmt: skip
SCREENS: Final[dict[str, Any]] = {
    "version": "7.0",
    "screens": [
        {
            "id": "START", "title": "Book a table", "terminal": True,
            "layout": {"type": "SingleColumnLayout", "children": [
                {"type": "TextHeading", "text": "When will you come?"},
                {"type": "TextInput", "name": "guests", "label": "Guests", "required": True},
                {"type": "Footer", "label": "Book",
                 "on-click-action": {"name": "complete", "payload": {}}},
            ]},
        }
    ],
}  # fmt: skip


@dataclass
class Scene:
    """The running console, its receiver of callbacks, and the IDs of what was created.

    Attributes:
        templates: our template IDs by name.
        sent: our message IDs by outcome.
        values: of the parameters in the console's paths.
    """

    console: ConsoleClient
    sink: CallbackSink
    clock: VirtualClock
    templates: dict[str, str] = field(default_factory=dict[str, str])
    sent: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, str] = field(default_factory=dict[str, str])

    async def send(self, message: Mapping[str, Any] | str, *, to: str = ANN) -> str:
        """Send a session message of any type; return our message ID."""
        text = json.dumps({"type": "text", "text": message}) if isinstance(message, str) else json.dumps(message)
        return await self._submit("msg", to, {"message": text})

    async def send_template(
        self, name: str, params: Sequence[str] = (), *, to: str = ANN, postbacks: Sequence[str] = (),
        message: Mapping[str, Any] | None = None, **more: Any,
    ) -> str:  # fmt: skip
        """Send a template message; return our message ID."""
        template = {"id": self.templates[name], "params": list(params), **more}
        form = {"template": json.dumps(template)}
        if message is not None:
            form["message"] = json.dumps(message)
        if postbacks:
            texts = [{"index": at, "text": text} for at, text in enumerate(postbacks)]
            form["postbackTexts"] = json.dumps(texts)
        return await self._submit("template/msg", to, form)

    async def _submit(self, endpoint: str, to: str, form: Mapping[str, str]) -> str:
        fields = {
            "channel": "whatsapp", "source": demo.SOURCE, "src.name": demo.APP_NAME, "destination": to,
            **form,
        }  # fmt: skip
        path = f"/partner/app/{self.console.app_id}/{endpoint}"
        return (await self.console.api.form("POST", path, fields))["messageId"]

    async def create_template(
        self, name: str, content: str, example: str | None = None, *, buttons: Sequence[Mapping[str, Any]] = (),
        **fields: str,
    ) -> str:  # fmt: skip
        """Submit a template; return its ID."""
        form = {
            "elementName": name, "languageCode": "en_US", "category": "MARKETING", "templateType": "TEXT",
            "vertical": "Bakery", "content": content, "example": example or content, **fields,
        }  # fmt: skip
        if buttons:
            form["buttons"] = json.dumps(list(buttons))
        path = f"/partner/app/{self.console.app_id}/templates"
        template_id = (await self.console.api.form("POST", path, form))["template"]["id"]
        self.templates[name] = template_id
        return template_id

    async def upload(self, content: bytes, media_type: str, name: str, *, as_sample: bool = False) -> str:
        """Upload a file; return its media ID, or the handle ID of a template's sample."""
        form = aiohttp.FormData({"file_type": media_type})
        form.add_field("file", content, filename=name, content_type=media_type)
        endpoint = "upload/media" if as_sample else "media"
        path = f"{self.console.base_url}/partner/app/{self.console.app_id}/{endpoint}"
        async with self.console.http.post(path, data=form, headers=self._token) as response:
            body = await response.json()
            assert response.status == 200, body
        return body["handleId"]["message"] if as_sample else body["mediaId"]

    async def publish_flow(self, name: str = "booking", content: Mapping[str, Any] = SCREENS) -> str:
        """Create and publish a flow by the API; return its ID."""
        flows = f"{self.console.base_url}/partner/app/{self.console.app_id}/flows"
        flow = {"name": name, "categories": ["APPOINTMENT_BOOKING"]}
        async with self.console.http.post(flows, json=flow, headers=self._token) as created:
            assert created.status == 200, await created.text()
            flow_id = (await created.json())["id"]
        form = aiohttp.FormData({"name": "flow.json", "asset_type": "FLOW_JSON"})
        form.add_field(
            "file", json.dumps(content, indent=2).encode(), filename="flow.json", content_type="application/json"
        )
        async with self.console.http.put(f"{flows}/{flow_id}/assets", data=form, headers=self._token) as uploaded:
            assert uploaded.status == 200, await uploaded.text()
        async with self.console.http.post(f"{flows}/{flow_id}/publish", headers=self._token) as published:
            assert published.status == 200, await published.text()
        self.values["flow_id"] = str(flow_id)
        return flow_id

    @property
    def _token(self) -> dict[str, str]:
        return {"Authorization": self.console.running.variables["APP_TOKEN"]}

    async def partner(self) -> ApiClient:
        """Return a client of the partner API with the token of a login."""
        transport = HttpTransport(self.console.base_url)
        credentials = {"email": demo.EMAIL, "password": demo.CLIENT_SECRET}
        token = (await ApiClient(transport, {}).form("POST", "/partner/account/login", credentials))["token"]
        return ApiClient(transport, {"Authorization": token})

    async def control(self, method: str, path: str, body: Any = None) -> Any:
        """Call the simulator's control API."""
        return await self.console.control.json(method, f"/control/{path}", body)

    async def send_text_from(self, phone: str, text: str, **more: Any) -> str:
        """Send a text from a phone to the business; return the operator's message ID."""
        return await self.send_from(phone, text=text, **more)

    async def send_from(self, phone: str, **message: Any) -> str:
        """Send any message from a phone to the business; return the operator's message ID."""
        body = {"to": demo.SOURCE, **message}
        return (await self.control("POST", f"phones/{phone}/messages", body))["wamid"]

    async def list_phone_messages(self, phone: str) -> list[dict[str, Any]]:
        """Return the messages on a phone, oldest first."""
        return (await self.control("GET", f"phones/{phone}"))["messages"]

    async def advance(self, ms: int) -> None:
        """Advance the clock of the service and the simulator."""
        while ms:
            ms = (await self.control("POST", "clock/advance", {"ms": ms}))["left_ms"]

    async def states(self) -> dict[str, str]:
        """Return the state of every sent message, by our ID."""
        path = f"/admin/apps/{self.console.app_id}/messages?limit=100"
        return {message["id"]: message["state"] for message in (await self.console.admin.json("GET", path))["messages"]}

    async def statuses(self) -> dict[str, str]:
        """Return the status of every template, by our ID."""
        path = f"/partner/app/{self.console.app_id}/templates"
        return {
            template["id"]: template["status"] for template in (await self.console.api.json("GET", path))["templates"]
        }

    async def wait_for_states(self, **expected: str) -> None:
        """Wait until messages, named as in `sent`, have reached these states.

        Raises:
            AssertionError: they have not in time.
        """
        await _wait_for(self.states, {self.sent[name]: state for name, state in expected.items()})

    async def wait_for_status(self, status: str, *names: str) -> None:
        """Wait until templates have a status.

        Raises:
            AssertionError: they have not in time.
        """
        await _wait_for(self.statuses, {self.templates[name]: status for name in names})


async def _wait_for(fetch: Callable[[], Awaitable[dict[str, str]]], expected: dict[str, str]) -> None:
    actual: dict[str, str] = {}

    async def is_reached() -> bool:
        actual.update(await fetch())
        return all(actual.get(name) == state for name, state in expected.items())

    try:
        await poll_until(is_reached)
    except TimeoutError:
        differences = {name: (actual.get(name), state) for name, state in expected.items() if actual.get(name) != state}
        raise AssertionError(f"actual and expected: {differences}") from None


@asynccontextmanager
async def open_scene(
    folder: Path, populate: Callable[[Scene], Awaitable[None]], *, begins_ms: int | None = None
) -> AsyncGenerator[Scene]:
    """Start `waypost dev` and a receiver of callbacks, and populate them.

    Args:
        folder: for its data.
        populate: creates the content.
        begins_ms: start of the scene; None: now. Screenshots need the same time in every run.
    """
    clock = VirtualClock()
    if begins_ms is not None:
        clock.apply(ClockSetting(begins_ms, clock.setting.machine_ms, 1))
    sink = CallbackSink()
    await sink.open()
    console = await open_console(folder, changes={"rates": False}, clock=clock, seed=SEED)
    try:
        scene = Scene(console, sink, clock)
        await populate(scene)
        yield scene
    finally:
        await close_console(console)
        await sink.close()
