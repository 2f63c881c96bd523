"""What people write is hidden until it is revealed, and a one-time code always: on every page, stream, export and call.

The handset on the phones pages shows what a handset shows: it is the recipient's own.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.console.conftest import LOOP, Desk, close_desk, open_desk
from tests.console.support.addresses import ALSO, NoSample, filled, rows
from tests.support.callback_sink import CallbackSink
from tests.support.waiting import patiently
from waypost.assembly.dev import demo
from waypost.console.route import RouteKind
from waypost.console.web.streams import MAX_STREAMS_PER_PARTNER

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

SENT: Final = "Zinnia sent words"
VALUE: Final = "Zinnia value"
RECEIVED: Final = "Zinnia received words"
OPEN: Final = (SENT, VALUE, RECEIVED)
CODE: Final = "730519"
ANSWER: Final = f"My code is {CODE}"
PHONE: Final = demo.DESTINATION
MESSAGES: Final = f"/apps/{demo.APP_ID}/messages"
DELIVERIES: Final = f"/apps/{demo.APP_ID}/callbacks/deliveries"
HANDSET: Final = "/phones"
DAYS: Final = "time=week"


@dataclass
class Told:
    """What was sent, received and called back.

    Attributes:
        ids: ours of what was sent, by what it is.
        callbacks: ids by the text that came with them, in both versions.
        received: the operator's ids.
    """

    desk: Desk
    sink: CallbackSink
    ids: dict[str, str]
    callbacks: dict[str, list[str]]
    received: dict[str, str]

    def paths(self, *kinds: RouteKind) -> list[str]:
        """Every address of these kinds but the handset's, for each of the messages and callbacks."""
        found: list[str] = []
        for row in rows(*kinds):
            if row.path.startswith(HANDSET):
                continue
            for message_id in self.ids.values():
                for callback_id in (one for each in self.callbacks.values() for one in each):
                    values = {
                        "app_id": demo.APP_ID, "message_id": message_id, "callback_id": callback_id,
                        "template_id": demo.TEMPLATE_ID, "subscription_id": "1", "position": "1", "phone": PHONE,
                        "number": demo.SOURCE,
                    }  # fmt: skip
                    try:
                        path = filled(row, values)
                    except NoSample:
                        continue  # of a fault, a fleet or a flow, of which there is none here
                    found += [path, *(path + query for query in ALSO.get(row.path, ()))]
        return list(dict.fromkeys(found))

    async def seen(self) -> dict[str, str]:
        """Whatever can be looked at without a reveal, by its address."""
        pages = (
            *self.paths(RouteKind.PAGE, RouteKind.PART),
            f"{MESSAGES}?{DAYS}&text=Zinnia", f"{MESSAGES}?{DAYS}&text={CODE}", f"{MESSAGES}?kind=template",
        )  # fmt: skip
        answers = {path: await self.page(path) for path in pages}
        streams = self.paths(RouteKind.LIVE)
        assert len(streams) <= MAX_STREAMS_PER_PARTNER
        begun = await asyncio.gather(*(self._stream(path) for path in streams))
        answers |= dict(zip(streams, begun, strict=True))
        calls = [
            f"/admin/apps/{demo.APP_ID}/messages", "/admin/messages", "/admin/queues", "/admin/audit",
            *(f"/admin/{what}/{one}" for what in ("trace", "messages") for one in self.ids.values()),
            *(f"/admin/callbacks/{one}" for each in self.callbacks.values() for one in each),
        ]  # fmt: skip
        answers |= {path: await self.call(path) for path in calls}
        assert f"{MESSAGES}/export" in answers
        return answers

    async def page(self, path: str) -> str:
        async with self.desk.http.get(self.desk.base_url + path) as answer:
            assert answer.status < 500, (path, answer.status)
            return await answer.text()

    async def call(self, path: str) -> str:
        """What the admin API answers."""
        return json.dumps(await self.desk.admin.json("GET", path), ensure_ascii=False)

    async def _stream(self, path: str) -> str:
        """The beginning of a stream: its first look, which is whole, and what comes up to its first pause."""
        async with self.desk.http.get(self.desk.base_url + path) as answer:
            if answer.status != 200:
                return await answer.text()
            read = await answer.content.readuntil(b"\n\n")  # when to come again
            read += await answer.content.readuntil(b"\n\n")
            try:
                while len(read) <= 1_000_000:
                    read += await asyncio.wait_for(answer.content.readany(), 0.7)
            except TimeoutError:
                pass
            return read.decode()


async def send(desk: Desk, what: str, **fields: Any) -> str:
    form = {
        "channel": "whatsapp", "source": demo.SOURCE, "src.name": demo.APP_NAME, "destination": PHONE,
        **{name: json.dumps(one) for name, one in fields.items()},
    }  # fmt: skip
    path = f"/partner/app/{desk.app_id}/{what}"
    return (await desk.api.form("POST", path, form))["messageId"]


async def pass_through(desk: Desk, name: str, code: str) -> str:
    path = f"/partner/app/{desk.app_id}/v3/message"
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
    return (await desk.api.json("POST", path, body))["messages"][0]["id"]


async def make_code_template(desk: Desk) -> str:
    await desk.control.json("PUT", "/control/settings", {"review_delay_ms": 0})
    path = f"/partner/app/{desk.app_id}/templates"
    fields = {
        "elementName": "sign_in", "languageCode": "en_US", "category": "AUTHENTICATION", "templateType": "TEXT",
        "vertical": "Sign in", "content": "{{1}} is your verification code.",
        "example": "123456 is your verification code.", "addSecurityRecommendation": "true",
        "buttons": json.dumps([{"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy the code"}]),
    }  # fmt: skip
    made = (await desk.api.form("POST", path, fields))["template"]["id"]

    async def status() -> str:
        listed = (await desk.api.json("GET", path))["templates"]
        return next(one["status"] for one in listed if one["id"] == made)

    await patiently(status, lambda found: found == "APPROVED")
    return made


async def tell(desk: Desk, sink: CallbackSink) -> Told:
    for tag, version, modes in (("two", "2", "MESSAGE,SENT"), ("three", "3", "MESSAGE,SENT")):
        form = {"modes": modes, "tag": tag, "version": version, "url": sink.url, "doCheck": "false"}
        await desk.api.form("POST", f"/partner/app/{desk.app_id}/subscription", form)
    template_id = await make_code_template(desk)
    received: dict[str, str] = {}

    async def says(text: str, **more: Any) -> None:
        wish = {"to": demo.SOURCE, "text": text, **more}
        came = await desk.control.json("POST", f"/control/phones/{PHONE}/messages", wish)
        received[text] = came["wamid"]

    await says(RECEIVED)
    ids = {
        "text": await send(desk, "msg", message={"type": "text", "text": SENT}),
        "template": await send(
            desk, "template/msg", template={"id": demo.TEMPLATE_ID, "params": [VALUE, "7"]}
        ),
        "code": await send(desk, "template/msg", template={"id": template_id, "params": [CODE, CODE]}),
        "passthrough": await pass_through(desk, "sign_in", CODE),
    }  # fmt: skip

    async def traces() -> list[dict[str, Any]]:
        return [await desk.admin.json("GET", f"/admin/trace/{one}") for one in ids.values()]

    reached = await patiently(traces, lambda found: all(one["state"] in ("delivered", "read") for one in found))
    answered = dict(zip(ids, reached, strict=True))["code"]["operator_message_id"]
    await says(ANSWER, context_id=answered)
    texts = (RECEIVED, ANSWER)
    await sink.wait_until(lambda: all(len(_about(sink, one)) == 2 for one in texts))
    called = {text: _about(sink, text) for text in texts}
    for one in ids.values():
        trace = await desk.admin.json("GET", f"/admin/trace/{one}")
        called[one] = [each["id"] for each in trace["callbacks"]]
    return Told(desk, sink, ids, called, received)


def _about(sink: CallbackSink, text: str) -> list[str]:
    return sorted({one.callback_id for one in sink.tries if text.encode() in one.body})


@pytest_asyncio.fixture(loop_scope=LOOP)
async def opened(tmp_path: Path, begun: Path) -> AsyncGenerator[Callable[..., Any]]:
    """Starts `waypost dev` with these settings, and tells everything."""
    sink = CallbackSink()
    await sink.open()
    desks: list[Desk] = []

    async def start(**changes: Any) -> Told:
        desk = await open_desk(tmp_path, begun=begun, changes={"rates": False, **changes})
        desks.append(desk)
        return await tell(desk, sink)

    yield start
    for desk in desks:
        await close_desk(desk)
    await sink.close()


def found_in(answers: Mapping[str, str], *texts: str) -> list[tuple[str, str]]:
    """Where one of these texts stands; an address that asks for it holds it, as one who asks wrote it."""
    return [
        (path, text)
        for path, answer in answers.items()
        for text in texts
        if text in _without_what_was_asked(answer, path)
    ]


def _without_what_was_asked(answer: str, path: str) -> str:
    asked = re.search(r"[?&]text=(\w+)", path)
    if asked is None:
        return answer
    return answer.replace(f'value="{asked[1]}"', "").replace(f"text={asked[1]}", "")


async def test_neither_text_nor_code_is_anywhere_without_a_reveal(opened: Any) -> None:
    told = await opened(show_text=False)

    answers = await told.seen()

    assert found_in(answers, *OPEN, CODE) == []
    assert "(17 characters)" in answers[MESSAGES]
    assert "(one-time code)" in answers[MESSAGES]
    assert f"({len(RECEIVED)} characters)" in answers[f"{MESSAGES}/received"]
    assert f"m-{told.ids['text']}" in answers[f"{MESSAGES}?{DAYS}&text=Zinnia"]
    by_code = answers[f"{MESSAGES}?{DAYS}&text={CODE}"]
    assert not [one for one in told.ids.values() if f"m-{one}" in by_code]


async def test_a_reveal_shows_text_and_never_a_code(opened: Any) -> None:
    told = await opened(show_text=False)
    desk, ids = told.desk, told.ids

    words = {name: await desk.reveal(f"{MESSAGES}/{one}/content") for name, one in ids.items()}
    received = {
        text: await desk.reveal(f"{MESSAGES}/received/reveal", {"id": one}) for text, one in told.received.items()
    }
    shown = {
        text: [
            await desk.reveal(f"{DELIVERIES}/{one}/{what}")
            for one in called for what in ("reveal", "body")
        ]
        for text, called in told.callbacks.items()
    }  # fmt: skip
    calls = {
        name: json.dumps(await desk.admin.json("POST", f"/admin/trace/{one}/reveal", {})) for name, one in ids.items()
    }
    called = {
        text: [json.dumps(await desk.admin.json("POST", f"/admin/callbacks/{one}/reveal", {})) for one in callbacks]
        for text, callbacks in told.callbacks.items()
    }  # fmt: skip

    everything = str([list(one.values()) for one in (words, received, shown, calls, called)])
    assert CODE not in everything
    assert SENT in words["text"]
    assert SENT in calls["text"]
    assert words["text"].count(SENT) >= 3  # what it says, as curl, as Python
    assert VALUE in words["template"]
    assert VALUE in calls["template"]
    assert "curl" in words["code"]
    assert "(6 characters)" in words["code"]
    assert "(one-time code)" in words["passthrough"]
    assert RECEIVED in received[RECEIVED]
    assert "(one-time code)" in received[ANSWER]
    assert all(RECEIVED in one for one in shown[RECEIVED])
    assert all(RECEIVED in one for one in called[RECEIVED])
    [_, exact, *_] = shown[RECEIVED]
    assert exact.encode() in [one.body for one in told.sink.tries]


async def test_a_reveal_needs_the_token_of_the_session(opened: Any) -> None:
    told = await opened(show_text=False)
    [callback_id, *_] = told.callbacks[RECEIVED]
    for path in (
        f"{MESSAGES}/{told.ids['text']}/content", f"{MESSAGES}/received/reveal",
        f"{DELIVERIES}/{callback_id}/reveal", f"{DELIVERIES}/{callback_id}/body",
    ):  # fmt: skip
        address = told.desk.base_url + path
        async with told.desk.http.post(address, data={"id": told.received[RECEIVED]}) as answer:
            assert answer.status == 403, path
            assert not found_in({path: await answer.text()}, *OPEN)
        async with told.desk.http.get(address) as answer:
            assert answer.status in (404, 405), path


async def test_a_reveal_by_the_admin_api_is_in_the_audit_log(opened: Any) -> None:
    told = await opened(show_text=False)
    await told.desk.admin.json("POST", f"/admin/trace/{told.ids['text']}/reveal", {})
    [callback_id, *_] = told.callbacks[RECEIVED]
    await told.desk.admin.json("POST", f"/admin/callbacks/{callback_id}/reveal", {})

    entries = json.dumps(await told.desk.admin.json("GET", "/admin/audit"))

    assert "POST /admin/trace/{message_id:path}/reveal" in entries
    assert "POST /admin/callbacks/{callback_id}/reveal" in entries


async def test_with_the_setting_text_is_in_the_lists_and_no_code_is(opened: Any) -> None:
    told = await opened(show_text=True)

    answers = await told.seen()

    _assert_text_and_no_code(told, answers)


async def test_dev_shows_text_unless_it_is_told_otherwise(opened: Any) -> None:
    """A few addresses: what the setting shows elsewhere is looked at with the setting."""
    told = await opened()
    pages, calls = shows_text(told)

    answers = {path: await told.page(path) for path in pages}
    answers |= {path: await told.call(path) for path in calls}

    _assert_text_and_no_code(told, answers)


def shows_text(told: Told) -> tuple[list[str], list[str]]:
    """Pages, and calls of the admin API, that have text in them."""
    [callback_id, *_] = told.callbacks[RECEIVED]
    pages = [MESSAGES, f"{MESSAGES}/received", f"{DELIVERIES}/{callback_id}"]
    calls = [f"/admin/trace/{told.ids['text']}", f"/admin/callbacks/{callback_id}"]
    return pages, calls


def _assert_text_and_no_code(told: Told, answers: Mapping[str, str]) -> None:
    (messages, received, delivery), (trace, callback) = shows_text(told)
    assert found_in(answers, CODE) == []
    assert SENT in answers[messages]
    assert VALUE in answers[messages]
    assert "(one-time code)" in answers[messages]
    assert RECEIVED in answers[received]
    assert RECEIVED in answers[delivery]
    assert SENT in answers[trace]
    assert RECEIVED in answers[callback]
