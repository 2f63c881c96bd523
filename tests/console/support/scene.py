"""A lively demonstration: something of everything that the console shows, made through doors that scripts use.

The words and the order of things are the same in every run; ids follow a seed. Screenshots, the walk over all
pages and the tests of what is accessible look at it.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.console.conftest import Desk, close_desk, open_desk
from tests.support.callback_sink import CallbackSink
from tests.support.waiting import patiently
from waypost.assembly.dev import demo
from waypost.base.clock import ClockSetting, VirtualClock
from waypost.client.api_client import ApiClient, HttpTransport

ANN: Final = demo.DESTINATION
BEN: Final = "15550002002"
CHI: Final = "15550002003"
DEE: Final = "15550002004"  # is offline
ELI: Final = "15550002005"  # is not on the channel
FAY: Final = "15550002006"  # whose messages are doubtful
GIL: Final = "15550002007"  # where the operator fails messages
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
SEED: Final = "console"
WHERE: Final = {
    "latitude": 52.5163, "longitude": 13.3777, "name": "Meadow Bakery", "address": "Mill Queue 4",
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
    """What there is, and how to name it.

    Attributes:
        templates: our ids by name.
        sent: our ids of messages by what became of them.
        values: of the parameters in the console's paths.
    """

    desk: Desk
    sink: CallbackSink
    clock: VirtualClock
    templates: dict[str, str] = field(default_factory=dict[str, str])
    sent: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, str] = field(default_factory=dict[str, str])

    async def send(self, message: Mapping[str, Any] | str, *, to: str = ANN) -> str:
        """A session message of any type; gives our id of it."""
        text = json.dumps({"type": "text", "text": message}) if isinstance(message, str) else json.dumps(message)
        return await self._submit("msg", to, {"message": text})

    async def send_template(
        self, name: str, params: Sequence[str] = (), *, to: str = ANN, postbacks: Sequence[str] = (),
        message: Mapping[str, Any] | None = None, **more: Any,
    ) -> str:  # fmt: skip
        """A template message; gives our id of it."""
        template = {"id": self.templates[name], "params": list(params), **more}
        form = {"template": json.dumps(template)}
        if message is not None:
            form["message"] = json.dumps(message)
        if postbacks:
            texts = [{"index": at, "text": text} for at, text in enumerate(postbacks)]
            form["postbackTexts"] = json.dumps(texts)
        return await self._submit("template/msg", to, form)

    async def _submit(self, what: str, to: str, form: Mapping[str, str]) -> str:
        fields = {
            "channel": "whatsapp", "source": demo.SOURCE, "src.name": demo.APP_NAME, "destination": to,
            **form,
        }  # fmt: skip
        path = f"/partner/app/{self.desk.app_id}/{what}"
        return (await self.desk.api.form("POST", path, fields))["messageId"]

    async def create(
        self, name: str, content: str, example: str | None = None, *, buttons: Sequence[Mapping[str, Any]] = (),
        **fields: str,
    ) -> str:  # fmt: skip
        """Submit a template; gives its id."""
        form = {
            "elementName": name, "languageCode": "en_US", "category": "MARKETING", "templateType": "TEXT",
            "vertical": "Bakery", "content": content, "example": example or content, **fields,
        }  # fmt: skip
        if buttons:
            form["buttons"] = json.dumps(list(buttons))
        path = f"/partner/app/{self.desk.app_id}/templates"
        made = (await self.desk.api.form("POST", path, form))["template"]["id"]
        self.templates[name] = made
        return made

    async def upload(self, content: bytes, kind: str, name: str, *, as_sample: bool = False) -> str:
        """Upload a file; gives the media id to send it by, or the handle id of a template's sample."""
        form = aiohttp.FormData({"file_type": kind})
        form.add_field("file", content, filename=name, content_type=kind)
        where = "upload/media" if as_sample else "media"
        path = f"{self.desk.base_url}/partner/app/{self.desk.app_id}/{where}"
        async with self.desk.http.post(path, data=form, headers=self._token) as answer:
            body = await answer.json()
            assert answer.status == 200, body
        return body["handleId"]["message"] if as_sample else body["mediaId"]

    async def publish_flow(self) -> str:
        """Make a flow as clients do, and publish it; gives its id."""
        flows = f"{self.desk.base_url}/partner/app/{self.desk.app_id}/flows"
        wish = {"name": "booking", "categories": ["APPOINTMENT_BOOKING"]}
        async with self.desk.http.post(flows, json=wish, headers=self._token) as made:
            assert made.status == 201, await made.text()
            flow_id = (await made.json())["id"]
        form = aiohttp.FormData({"name": "flow.json", "asset_type": "FLOW_JSON"})
        content = json.dumps(SCREENS).encode()
        form.add_field("file", content, filename="flow.json", content_type="application/json")
        async with self.desk.http.put(f"{flows}/{flow_id}/assets", data=form, headers=self._token) as put:
            assert put.status == 200, await put.text()
        async with self.desk.http.post(f"{flows}/{flow_id}/publish", headers=self._token) as published:
            assert published.status == 200, await published.text()
        self.values["flow_id"] = str(flow_id)
        return flow_id

    @property
    def _token(self) -> dict[str, str]:
        return {"Authorization": self.desk.running.variables["APP_TOKEN"]}

    async def partner(self) -> ApiClient:
        """The partner API as a login opens it."""
        over = HttpTransport(self.desk.base_url)
        wish = {"email": demo.EMAIL, "password": demo.CLIENT_SECRET}
        token = (await ApiClient(over, {}).form("POST", "/partner/account/login", wish))["token"]
        return ApiClient(over, {"Authorization": token})

    async def control(self, method: str, path: str, body: Any = None) -> Any:
        """A call of the simulator's control door."""
        return await self.desk.control.json(method, f"/control/{path}", body)

    async def says(self, phone: str, text: str, **more: Any) -> str:
        """A phone writes to the business; gives the operator's id of it."""
        return await self.does(phone, text=text, **more)

    async def does(self, phone: str, **wish: Any) -> str:
        """A phone sends anything to the business; gives the operator's id of it."""
        body = {"to": demo.SOURCE, **wish}
        return (await self.control("POST", f"phones/{phone}/messages", body))["wamid"]

    async def shown(self, phone: str) -> list[dict[str, Any]]:
        """What stands on a phone, oldest first."""
        return (await self.control("GET", f"phones/{phone}"))["messages"]

    async def advance(self, ms: int) -> None:
        """Let time pass, for everybody."""
        while ms:
            ms = (await self.control("POST", "clock/advance", {"ms": ms}))["left_ms"]

    async def states(self) -> dict[str, str]:
        """The state of every message that was sent, by our id."""
        path = f"/admin/apps/{self.desk.app_id}/messages?limit=100"
        return {one["id"]: one["state"] for one in (await self.desk.admin.json("GET", path))["messages"]}

    async def statuses(self) -> dict[str, str]:
        """The status of every template, by our id."""
        path = f"/partner/app/{self.desk.app_id}/templates"
        return {one["id"]: one["status"] for one in (await self.desk.api.json("GET", path))["templates"]}

    async def reached(self, **wanted: str) -> None:
        """Wait until messages, named as in `sent`, have reached these states.

        Raises:
            AssertionError: they have not in time.
        """
        await _all(self.states, {self.sent[name]: state for name, state in wanted.items()})

    async def reviewed(self, status: str, *names: str) -> None:
        """Wait until templates have a status.

        Raises:
            AssertionError: they have not in time.
        """
        await _all(self.statuses, {self.templates[name]: status for name in names})


async def _all(ask: Callable[[], Awaitable[dict[str, str]]], wanted: dict[str, str]) -> None:
    found: dict[str, str] = {}

    async def have() -> bool:
        found.update(await ask())
        return all(found.get(name) == one for name, one in wanted.items())

    try:
        await patiently(have)
    except TimeoutError:
        differ = {name: (found.get(name), one) for name, one in wanted.items() if found.get(name) != one}
        raise AssertionError(f"what came, and what should have: {differ}") from None


@asynccontextmanager
async def open_scene(
    folder: Path, tell: Callable[[Scene], Awaitable[None]], *, begins_ms: int | None = None
) -> AsyncGenerator[Scene]:
    """`waypost dev` with a receiver beside it, and what is told of them.

    Args:
        folder: where its data go.
        tell: makes everything.
        begins_ms: when the scene begins; now, unless pictures of it are to be the same every time.
    """
    clock = VirtualClock()
    if begins_ms is not None:
        clock.apply(ClockSetting(begins_ms, clock.setting.machine_ms, 1))
    sink = CallbackSink()
    await sink.open()
    desk = await open_desk(folder, changes={"rates": False}, clock=clock, seed=SEED)
    try:
        scene = Scene(desk, sink, clock)
        await tell(scene)
        yield scene
    finally:
        await close_desk(desk)
        await sink.close()
