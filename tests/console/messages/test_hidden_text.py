"""Text of messages is hidden until it is revealed, one-time codes always: on every page, stream, export and call.

The handset on the phone pages shows everything: it is the recipient's own.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.console.conftest import LOOP, ConsoleClient, close_console, open_console
from tests.console.support.addresses import EXTRA_QUERIES, NoSample, fill_path, list_routes
from tests.support.callback_sink import CallbackSink
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.console.list_filters import HIDDEN_TEXT_HINT
from waypost.console.route import RouteKind
from waypost.console.web.streams import MAX_STREAMS_PER_PARTNER

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

SENT: Final = "Zinnia sent words"
VALUE: Final = "Zinnia value"
RECEIVED: Final = "Zinnia received words"
OPEN: Final = (SENT, VALUE, RECEIVED)
CODE: Final = "730519"
REPLY: Final = f"My code is {CODE}"
PHONE: Final = demo.DESTINATION
MESSAGES: Final = f"/apps/{demo.APP_ID}/messages"
DELIVERIES: Final = f"/apps/{demo.APP_ID}/callbacks/deliveries"
HANDSET: Final = "/phones"
DAYS: Final = "time=week"


@dataclass
class Traffic:
    """Messages sent and received, and their callbacks.

    Attributes:
        ids: our IDs of the sent messages, by kind.
        callbacks: IDs of callbacks in both versions, by received text or our message ID.
        received: the operator's message IDs, by text.
    """

    console: ConsoleClient
    sink: CallbackSink
    ids: dict[str, str]
    callbacks: dict[str, list[str]]
    received: dict[str, str]

    def paths(self, *kinds: RouteKind) -> list[str]:
        """Return every path of these kinds except the handset's, for each message and callback."""
        addresses: list[str] = []
        for row in list_routes(*kinds):
            if row.path.startswith(HANDSET):
                continue
            for message_id in self.ids.values():
                for callback_id in (item for items in self.callbacks.values() for item in items):
                    values = {
                        "app_id": demo.APP_ID, "message_id": message_id, "callback_id": callback_id,
                        "template_id": demo.TEMPLATE_ID, "subscription_id": "1", "position": "1", "phone": PHONE,
                        "number": demo.SOURCE, "recipient_id": "1",
                    }  # fmt: skip
                    try:
                        path = fill_path(row, values)
                    except NoSample:
                        continue  # needs a fault, a fleet or a flow; none exists
                    addresses += [path, *(path + query for query in EXTRA_QUERIES.get(row.path, ()))]
        return list(dict.fromkeys(addresses))

    async def read_all(self) -> dict[str, str]:
        """Return everything that can be read without a reveal, by path."""
        pages = (
            *self.paths(RouteKind.PAGE, RouteKind.PART),
            f"{MESSAGES}?{DAYS}&text=Zinnia", f"{MESSAGES}?{DAYS}&text={CODE}", f"{MESSAGES}?kind=template",
            f"{MESSAGES}/received?text=Zinnia", f"{MESSAGES}/received?text={CODE}",
            "/commands/search?q=Zinnia", f"/commands/search?q={CODE}",
        )  # fmt: skip
        responses = {path: await self.page(path) for path in pages}
        streams = self.paths(RouteKind.LIVE)
        assert len(streams) <= MAX_STREAMS_PER_PARTNER
        contents = await asyncio.gather(*(self.stream(path) for path in streams))
        responses |= dict(zip(streams, contents, strict=True))
        calls = [
            f"/admin/apps/{demo.APP_ID}/messages", "/admin/messages", "/admin/queues", "/admin/audit",
            *(f"/admin/{call}/{message_id}" for call in ("trace", "messages") for message_id in self.ids.values()),
            *(f"/admin/callbacks/{callback_id}" for ids in self.callbacks.values() for callback_id in ids),
        ]  # fmt: skip
        responses |= {path: await self.call(path) for path in calls}
        assert f"{MESSAGES}/export" in responses
        return responses

    async def page(self, path: str) -> str:
        async with self.console.http.get(self.console.base_url + path) as response:
            assert response.status < 500, (path, response.status)
            return await response.text()

    async def call(self, path: str) -> str:
        """Return a response of the admin API as text."""
        return json.dumps(await self.console.admin.json("GET", path), ensure_ascii=False)

    async def stream(self, path: str) -> str:
        """Return the start of a stream: its first, complete update, and what follows up to the first pause."""
        async with self.console.http.get(self.console.base_url + path) as response:
            if response.status != 200:
                return await response.text()
            content = await response.content.readuntil(b"\n\n")  # the retry interval
            content += await response.content.readuntil(b"\n\n")
            try:
                while len(content) <= 1_000_000:
                    content += await asyncio.wait_for(response.content.readany(), 0.7)
            except TimeoutError:
                pass
            return content.decode()


async def send(console: ConsoleClient, endpoint: str, **fields: Any) -> str:
    form = {
        "channel": "whatsapp", "source": demo.SOURCE, "src.name": demo.APP_NAME, "destination": PHONE,
        **{name: json.dumps(value) for name, value in fields.items()},
    }  # fmt: skip
    path = f"/partner/app/{console.app_id}/{endpoint}"
    return (await console.api.form("POST", path, form))["messageId"]


async def send_passthrough(console: ConsoleClient, name: str, code: str) -> str:
    path = f"/partner/app/{console.app_id}/v3/message"
    body = {
        "messaging_product": "whatsapp", "to": PHONE, "type": "template",
        "template": {
            "name": name, "language": {"code": "en_US"},
            "components": [
                {"type": "body", "parameters": [{"type": "text", "text": code}]},
                {"type": "button", "sub_type": "url", "index": "0", "parameters": [{"type": "text", "text": code}]},
            ],
        },
    }  # fmt: skip
    return (await console.api.json("POST", path, body))["messages"][0]["id"]


async def create_code_template(console: ConsoleClient) -> str:
    await console.control.json("PUT", "/control/settings", {"review_delay_ms": 0})
    path = f"/partner/app/{console.app_id}/templates"
    fields = {
        "elementName": "sign_in", "languageCode": "en_US", "category": "AUTHENTICATION", "templateType": "TEXT",
        "vertical": "Sign in", "content": "{{1}} is your verification code.",
        "example": "123456 is your verification code.", "addSecurityRecommendation": "true",
        "buttons": json.dumps([{"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy the code"}]),
    }  # fmt: skip
    template_id = (await console.api.form("POST", path, fields))["template"]["id"]

    async def status() -> str:
        templates = (await console.api.json("GET", path))["templates"]
        return next(template["status"] for template in templates if template["id"] == template_id)

    await poll_until(status, lambda current: current == "APPROVED")
    return template_id


async def exchange_messages(console: ConsoleClient, sink: CallbackSink) -> Traffic:
    for tag, version, modes in (("two", "2", "MESSAGE,SENT"), ("three", "3", "MESSAGE,SENT")):
        form = {"modes": modes, "tag": tag, "version": version, "url": sink.url, "doCheck": "false"}
        await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", form)
    template_id = await create_code_template(console)
    received: dict[str, str] = {}

    async def send_from_phone(text: str, **more: Any) -> None:
        body = {"to": demo.SOURCE, "text": text, **more}
        response = await console.control.json("POST", f"/control/phones/{PHONE}/messages", body)
        received[text] = response["wamid"]

    await send_from_phone(RECEIVED)
    ids = {
        "text": await send(console, "msg", message={"type": "text", "text": SENT}),
        "template": await send(
            console, "template/msg", template={"id": demo.TEMPLATE_ID, "params": [VALUE, "7"]}
        ),
        "code": await send(console, "template/msg", template={"id": template_id, "params": [CODE, CODE]}),
        "passthrough": await send_passthrough(console, "sign_in", CODE),
    }  # fmt: skip

    async def traces() -> list[dict[str, Any]]:
        return [await console.admin.json("GET", f"/admin/trace/{message_id}") for message_id in ids.values()]

    traces_now = await poll_until(
        traces, lambda current: all(trace["state"] in ("delivered", "read") for trace in current)
    )
    code_wamid = dict(zip(ids, traces_now, strict=True))["code"]["operator_message_id"]
    await send_from_phone(REPLY, context_id=code_wamid)
    texts = (RECEIVED, REPLY)
    await sink.wait_until(lambda: all(len(_callback_ids(sink, text)) == 2 for text in texts))
    callbacks = {text: _callback_ids(sink, text) for text in texts}
    for message_id in ids.values():
        trace = await console.admin.json("GET", f"/admin/trace/{message_id}")
        callbacks[message_id] = [callback["id"] for callback in trace["callbacks"]]
    return Traffic(console, sink, ids, callbacks, received)


def _callback_ids(sink: CallbackSink, text: str) -> list[str]:
    return sorted({attempt.callback_id for attempt in sink.requests if text.encode() in attempt.body})


@pytest_asyncio.fixture(loop_scope=LOOP)
async def start_dev(tmp_path: Path, demo_data: Path) -> AsyncGenerator[Callable[..., Any]]:
    """Starts `waypost dev` with some settings, and exchanges the messages."""
    sink = CallbackSink()
    await sink.open()
    consoles: list[ConsoleClient] = []

    async def start(**changes: Any) -> Traffic:
        console = await open_console(tmp_path, demo_data=demo_data, changes={"rates": False, **changes})
        consoles.append(console)
        return await exchange_messages(console, sink)

    yield start
    for console in consoles:
        await close_console(console)
    await sink.close()


def find_texts(responses: Mapping[str, str], *texts: str) -> list[tuple[str, str]]:
    """Return the paths whose content has one of the texts, apart from the echo of a search for it."""
    return [
        (path, text)
        for path, content in responses.items()
        for text in texts
        if text in _remove_query_text(content, path)
    ]


def _remove_query_text(content: str, path: str) -> str:
    query_text = re.search(r"[?&]text=(\w+)", path)
    if query_text is None:
        return content
    return content.replace(f'value="{query_text[1]}"', "").replace(f"text={query_text[1]}", "")


async def test_neither_text_nor_code_is_shown_without_a_reveal(start_dev: Any) -> None:
    traffic = await start_dev(show_text=False)

    responses = await traffic.read_all()

    assert find_texts(responses, *OPEN, CODE) == []
    assert "(17 characters)" in responses[MESSAGES]
    assert "(one-time code)" in responses[MESSAGES]
    assert f"({len(RECEIVED)} characters)" in responses[f"{MESSAGES}/received"]
    assert f"m-{traffic.ids['text']}" in responses[f"{MESSAGES}?{DAYS}&text=Zinnia"]
    by_code = responses[f"{MESSAGES}?{DAYS}&text={CODE}"]
    assert not [message_id for message_id in traffic.ids.values() if f"m-{message_id}" in by_code]


SEARCHES: Final = (  # pages, parts and streams that search texts
    MESSAGES, f"{MESSAGES}/more", f"{MESSAGES}/live", f"{MESSAGES}/export",
    f"{MESSAGES}/received", f"{MESSAGES}/received/more", f"{MESSAGES}/received/live",
    f"/apps/{demo.APP_ID}/conversations/1",
)  # fmt: skip


async def search_hidden(traffic: Traffic, path: str, text: str) -> bool:
    """Return True if the response of a search has any of the messages."""
    query = f"{path}?{DAYS}&text={quote(text)}"
    content = await traffic.stream(query) if path.endswith("/live") else await traffic.page(query)
    return any(name in content for name in traffic.ids.values()) or re.search(r"r-[0-9a-f]{24}", content) is not None


async def finding(traffic: Traffic, text: str) -> list[str]:
    """Return the pages, parts and streams on which a search finds any of the messages; it is made on all at once."""
    found = await asyncio.gather(*(search_hidden(traffic, path, text) for path in SEARCHES))
    return [path for path, has_found in zip(SEARCHES, found, strict=True) if has_found]


async def test_hidden_text_is_searched_for_by_whole_words_and_each_search_is_audited(start_dev: Any) -> None:
    traffic = await start_dev(show_text=False)

    async def searches() -> list[tuple[str, str, str]]:
        entries = (await traffic.console.admin.json("GET", "/admin/audit?limit=200"))["entries"]
        assert not [entry for entry in entries if "innia" in json.dumps(entry)]
        return sorted(
            (entry["actor"], entry["action"], entry["subject"])
            for entry in entries if entry["detail"] == "searched in hidden texts"
        )  # fmt: skip

    for text in ("z", "zin", "zinn", "Zinni", "innia", "Zinnia w", CODE, f"code is {CODE}", "%"):
        assert await finding(traffic, text) == [], text
    before = await searches()
    assert await finding(traffic, "zinnia") == list(SEARCHES)
    assert "conversations?q=" not in await traffic.page("/commands/search?q=Zinnia")
    assert "/messages/" not in await traffic.page("/commands/search?q=Zinnia")
    await finding(traffic, "")
    after = await searches()
    fallow = await traffic.page(MESSAGES)
    wrong = await traffic.page(f"{MESSAGES}?text=zi")

    assert len(after) - len(before) == len(SEARCHES)
    assert {actor for actor, _, _ in after} == {demo.EMAIL}
    assert {action for _, action, _ in after} == {
        "GET " + path.replace(demo.APP_ID, "{app_id}").replace("conversations/1", "conversations/{recipient_id}")
        for path in SEARCHES
    }
    assert {subject.partition(" ")[0] for _, _, subject in after} == {f"app_id={demo.APP_ID}"}
    assert HIDDEN_TEXT_HINT in fallow
    assert HIDDEN_TEXT_HINT in wrong
    assert "Invalid filter" in wrong


async def test_shown_text_is_searched_for_by_its_parts_without_an_audit_entry(start_dev: Any) -> None:
    traffic = await start_dev(show_text=True)

    assert await finding(traffic, "zin") == list(SEARCHES)
    assert "/messages/" in await traffic.page("/commands/search?q=Zin")
    entries = json.dumps(await traffic.console.admin.json("GET", "/admin/audit?limit=200"))
    assert "GET /apps" not in entries
    assert HIDDEN_TEXT_HINT not in await traffic.page(MESSAGES)


async def test_a_reveal_shows_text_and_never_a_code(start_dev: Any) -> None:
    traffic = await start_dev(show_text=False)
    console, ids = traffic.console, traffic.ids

    contents = {name: await console.reveal(f"{MESSAGES}/{message_id}/content") for name, message_id in ids.items()}
    received = {
        text: await console.reveal(f"{MESSAGES}/received/reveal", {"id": wamid})
        for text, wamid in traffic.received.items()
    }
    deliveries = {
        text: [
            await console.reveal(f"{DELIVERIES}/{callback_id}/{action}")
            for callback_id in callback_ids for action in ("reveal", "body")
        ]
        for text, callback_ids in traffic.callbacks.items()
    }  # fmt: skip
    calls = {
        name: json.dumps(await console.admin.json("POST", f"/admin/trace/{message_id}/reveal", {}))
        for name, message_id in ids.items()
    }
    callback_calls = {
        text: [json.dumps(await console.admin.json("POST", f"/admin/callbacks/{callback_id}/reveal", {})) for callback_id in callback_ids]
        for text, callback_ids in traffic.callbacks.items()
    }  # fmt: skip

    everything = str([list(group.values()) for group in (contents, received, deliveries, calls, callback_calls)])
    assert CODE not in everything
    assert SENT in contents["text"]
    assert SENT in calls["text"]
    assert contents["text"].count(SENT) >= 3  # as text, as curl, as Python
    assert VALUE in contents["template"]
    assert VALUE in calls["template"]
    assert "curl" in contents["code"]
    assert "(6 characters)" in contents["code"]
    assert "(one-time code)" in contents["passthrough"]
    assert RECEIVED in received[RECEIVED]
    assert "(one-time code)" in received[REPLY]
    assert all(RECEIVED in content for content in deliveries[RECEIVED])
    assert all(RECEIVED in content for content in callback_calls[RECEIVED])
    [_, exact, *_] = deliveries[RECEIVED]
    assert exact.encode() in [attempt.body for attempt in traffic.sink.requests]


async def test_a_reveal_needs_the_token_of_the_session(start_dev: Any) -> None:
    traffic = await start_dev(show_text=False)
    [callback_id, *_] = traffic.callbacks[RECEIVED]
    for path in (
        f"{MESSAGES}/{traffic.ids['text']}/content", f"{MESSAGES}/received/reveal",
        f"{DELIVERIES}/{callback_id}/reveal", f"{DELIVERIES}/{callback_id}/body",
    ):  # fmt: skip
        url = traffic.console.base_url + path
        async with traffic.console.http.post(url, data={"id": traffic.received[RECEIVED]}) as response:
            assert response.status == 403, path
            assert not find_texts({path: await response.text()}, *OPEN)
        async with traffic.console.http.get(url) as response:
            assert response.status in (404, 405), path


async def test_a_reveal_by_the_admin_api_is_in_the_audit_log(start_dev: Any) -> None:
    traffic = await start_dev(show_text=False)
    await traffic.console.admin.json("POST", f"/admin/trace/{traffic.ids['text']}/reveal", {})
    [callback_id, *_] = traffic.callbacks[RECEIVED]
    await traffic.console.admin.json("POST", f"/admin/callbacks/{callback_id}/reveal", {})

    entries = json.dumps(await traffic.console.admin.json("GET", "/admin/audit"))

    assert "POST /admin/trace/{message_id:path}/reveal" in entries
    assert "POST /admin/callbacks/{callback_id}/reveal" in entries


async def test_show_text_setting_shows_text_and_no_code(start_dev: Any) -> None:
    traffic = await start_dev(show_text=True)

    responses = await traffic.read_all()

    _assert_text_and_no_code(traffic, responses)


async def test_dev_shows_text_by_default(start_dev: Any) -> None:
    """Some paths only: all of them are checked with the explicit setting."""
    traffic = await start_dev()
    pages, calls = paths_with_text(traffic)

    responses = {path: await traffic.page(path) for path in pages}
    responses |= {path: await traffic.call(path) for path in calls}

    _assert_text_and_no_code(traffic, responses)


def paths_with_text(traffic: Traffic) -> tuple[list[str], list[str]]:
    """Return pages, and paths of the admin API, that contain text."""
    [callback_id, *_] = traffic.callbacks[RECEIVED]
    pages = [MESSAGES, f"{MESSAGES}/received", f"{DELIVERIES}/{callback_id}"]
    calls = [f"/admin/trace/{traffic.ids['text']}", f"/admin/callbacks/{callback_id}"]
    return pages, calls


def _assert_text_and_no_code(traffic: Traffic, responses: Mapping[str, str]) -> None:
    (messages, received, delivery), (trace, callback) = paths_with_text(traffic)
    assert find_texts(responses, CODE) == []
    assert SENT in responses[messages]
    assert VALUE in responses[messages]
    assert "(one-time code)" in responses[messages]
    assert RECEIVED in responses[received]
    assert RECEIVED in responses[delivery]
    assert SENT in responses[trace]
    assert RECEIVED in responses[callback]
