"""Malicious requests: lone surrogates, huge numbers, IDs of other partners in forms, and unread streams.

Access to routes, headers, and stored markup: tests/console/test_security.py.
"""

import asyncio
import base64
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy import Connection, delete

from tests.console.conftest import LOOP, ConsoleClient
from tests.support.callback_sink import CallbackSink, ReceivedCallback, respond_always
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.admin import provisioning
from waypost.assembly.dev import demo
from waypost.console.rendering import NOTICES_COOKIE, read_notices, redirect
from waypost.console.web import streams
from waypost.store.tables import operator_accounts

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

PASSWORD: Final = "Correct-horse-1"
NUMBER: Final = "15550003000"
APP: Final = f"/apps/{demo.APP_ID}"
PHONE: Final = f"/phones/{demo.DESTINATION}"
CHAT: Final = f"{PHONE}/chats/{demo.SOURCE}"
LONE_SURROGATE: Final = "\\ud800"
HUGE_NUMBER: Final = "9" * 4500  # more digits than Python converts to a number


@dataclass
class SignedInClient:
    """A client that is signed in and sends arbitrary requests."""

    base_url: str
    http: aiohttp.ClientSession
    csrf: str

    async def request(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        """Send a request; return the status and text. Redirects are not followed."""
        headers = {"x-waypost-csrf": self.csrf, **options.pop("headers", {})}
        async with self.http.request(
            method, self.base_url + path, headers=headers, allow_redirects=False, **options
        ) as response:
            return response.status, await response.text(errors="replace")

    async def post(self, path: str, fields: Mapping[str, str]) -> int:
        """Post an action; return the status."""
        return (await self.request("POST", path, data=dict(fields)))[0]


@pytest_asyncio.fixture(loop_scope=LOOP)
async def attacker(console: ConsoleClient) -> SignedInClient:
    """The demo partner."""
    return SignedInClient(console.base_url, console.http, await console.csrf())


@dataclass
class OtherClient(SignedInClient):
    """Another partner, whose app is connected to a number of the same simulator."""

    app_id: str


@pytest_asyncio.fixture(loop_scope=LOOP)
async def other_client(console: ConsoleClient) -> AsyncGenerator[OtherClient]:
    partner = {"email": "eve@other.test", "name": "Other", "password": PASSWORD}
    partner_id = (await console.admin.json("POST", "/admin/partners", partner))["id"]
    ids = {"phone_number_id": "2000000000000002", "business_account_id": "2000000000000001"}
    waba_id = ids["business_account_id"]
    account = {
        "name": "Other", "token": demo.GRAPH_TOKEN, "app_id": demo.GRAPH_APP_ID,
        "app_secret": demo.GRAPH_APP_SECRET,
    }  # fmt: skip
    await console.control.json("PUT", f"/control/accounts/{waba_id}", account)
    number = {"waba_id": waba_id, "phone_number": NUMBER, "name": "Other"}
    await console.control.json("PUT", f"/control/numbers/{ids['phone_number_id']}", number)
    await console.admin.json(
        "POST",
        "/admin/business-accounts",
        {
            "id": waba_id, "partner_id": partner_id, "operator_account_id": "demo",
            "namespace": "other_namespace",
        },
    )  # fmt: skip
    app = {"partner_id": partner_id, "name": "Elsewhere", "phone_number": NUMBER, **ids}
    app_id = (await console.admin.json("POST", "/admin/apps", app))["id"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        form = {"email": partner["email"], "password": PASSWORD}
        async with http.post(console.base_url + "/sign-in", data=form, allow_redirects=False) as sign_in:
            assert sign_in.status == 303, await sign_in.text()
        async with http.get(f"{console.base_url}/apps/{app_id}") as page:
            csrf = (await page.text()).partition('data-csrf="')[2].partition('"')[0]
        yield OtherClient(console.base_url, http, csrf, app_id)


async def _inbox(console: ConsoleClient) -> list[dict[str, Any]]:
    inbox = await console.control.json("GET", f"/control/phones/{demo.DESTINATION}?limit=50")
    return inbox["messages"]


async def _subscription(console: ConsoleClient, url: str = "http://127.0.0.1:9/callbacks") -> str:
    form = {
        "modes": "MESSAGE", "tag": "orders", "url": url, "version": "2",
        "doCheck": "false",
    }  # fmt: skip
    response = await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", form)
    return str(response["subscription"]["id"])


async def test_ids_of_another_partner_in_forms_and_queries_give_no_access(
    console: ConsoleClient, other_client: OtherClient
) -> None:
    foreign_id, own = await _subscription(console), f"/apps/{other_client.app_id}"
    path = f"/partner/app/{console.app_id}/templates"
    template_id = (await console.api.json("GET", path))["templates"][0]["id"]
    fleet = {
        "name": "taken", "first": "15551000000", "count": "2", "script": "none",
        "open_window_to": demo.SOURCE,
    }  # fmt: skip

    replayed = await other_client.post(f"{own}/callbacks/replay", {"subscription": foreign_id})
    copied, _ = await other_client.request("GET", f"{own}/templates/new?from={template_id}")
    listed, shown = await other_client.request("GET", f"{own}/callbacks/deliveries?subscription={foreign_id}")
    fleet_status = await other_client.post("/simulator/fleets", fleet)
    switched = await other_client.post(f"{own}/settings/operator", {"operator_account_id": "nobody's"})
    assert (replayed, copied, listed, fleet_status) == (403, 404, 200, 400)
    assert "orders" not in shown
    assert switched in (400, 404)


async def test_reply_from_a_phone_cannot_quote_a_message_of_another_business(
    console: ConsoleClient, other_client: OtherClient
) -> None:
    await console.send_text("For your eyes only")
    inbox = await poll_until(lambda: _inbox(console), lambda inbox: "For your eyes only" in json.dumps(inbox))
    wamid = next(message["wamid"] for message in inbox if "For your eyes only" in json.dumps(message))

    status = await other_client.post(f"{PHONE}/chats/{NUMBER}/text", {"text": "What was that?", "context_id": wamid})
    _, shown = await other_client.request("GET", f"/phones?show={demo.DESTINATION}&chats={NUMBER}")

    assert status == 403
    assert "For your eyes only" not in shown


async def test_dead_letter_of_another_partner_cannot_be_seen_or_retried(
    console: ConsoleClient, other_client: OtherClient
) -> None:
    """A real dead letter: without its operator account, the message has a defect five times."""
    waypost: Any = console.dev._sides.waypost  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
    account = await waypost.directory.operator_account("demo")
    await waypost.database.write(_delete_operator_accounts)
    waypost.directory.invalidate()
    message_id = await console.send_text("Five times in vain")
    await console.control.json("POST", "/control/clock/advance", {"ms": 180_000})
    [dead_letter] = await poll_until(lambda: _list_dead_letters(console), len)
    await provisioning.put_operator_account(waypost.admin_context, account)
    retry_path = f"dead-letters/{dead_letter['position']}/retry"

    by_their_app = await other_client.request("POST", f"{APP}/{retry_path}", data={})
    by_own_app = await other_client.request("POST", f"/apps/{other_client.app_id}/{retry_path}", data={})
    _, shown = await other_client.request("GET", f"/apps/{other_client.app_id}")

    assert (by_their_app[0], by_own_app[0]) == (404, 404)
    assert "dead letter" not in shown
    assert await _list_dead_letters(console) == [dead_letter]
    assert "became a dead letter" in await console.get(APP)
    assert retry_path in await console.get(APP)

    await console.post(f"{APP}/{retry_path}")

    await poll_until(lambda: _inbox(console), lambda inbox: "Five times in vain" in json.dumps(inbox))
    assert await _list_dead_letters(console) == []
    assert message_id in await console.get(f"{APP}/messages/{message_id}")


async def _list_dead_letters(console: ConsoleClient) -> list[dict[str, Any]]:
    return (await console.admin.json("GET", "/admin/dead-letters"))["dead_letters"]


def _delete_operator_accounts(connection: Connection) -> None:
    connection.execute(delete(operator_accounts))


async def test_given_up_callback_of_another_partner_cannot_be_seen_or_replayed(
    console: ConsoleClient, other_client: OtherClient
) -> None:
    """A real one: its receiver responds with errors for three days."""
    sink = CallbackSink()
    await sink.open()
    try:
        sink.choose_status = respond_always(503)
        subscription_id = await _subscription(console, url=sink.url)
        message = {"to": demo.SOURCE, "text": "Is anybody there?"}
        await console.control.json("POST", f"/control/phones/{demo.DESTINATION}/messages", message)
        await poll_until(lambda: _tries(sink), len)
        await console.control.json("POST", "/control/clock/advance", {"ms": 3 * 86_400_000})
        given_up = await poll_until(
            lambda: console.get(f"{APP}/callbacks/deliveries?state=given+up"),
            lambda page: "callbacks/deliveries/0" in page,
        )
        [callback_id] = set(re.findall(r"callbacks/deliveries/([0-9a-f-]{36})", given_up))
        sink.choose_status, count_before = respond_always(200), len(sink.requests)

        statuses: dict[str, int] = {}
        shown: list[str] = []
        for app in (APP, f"/apps/{other_client.app_id}"):
            callback_path = f"{app}/callbacks/deliveries/{callback_id}"
            for method, path in (
                ("GET", callback_path),
                ("POST", f"{callback_path}/body"),
                ("POST", f"{callback_path}/reveal"),
                ("GET", f"{callback_path}/live"),
                ("POST", f"{callback_path}/replay"),
            ):
                status, text = await other_client.request(method, path)
                statuses[f"{method} {path}"] = status
                shown.append(text)
        own = f"/apps/{other_client.app_id}/callbacks"
        lists = ("deliveries?state=given+up", f"deliveries?q={callback_id}", "replay?which=given_up")
        shown += [(await other_client.request("GET", f"{own}/{path}"))[1] for path in lists]
        await other_client.post(f"{own}/replay", {"which": "given_up"})
        await other_client.post(f"{own}/replay", {"which": "given_up", "subscription": subscription_id})

        assert {path: status for path, status in statuses.items() if status != 404} == {}
        assert not [text for text in shown if "Is anybody there?" in text or sink.url in text]
        await asyncio.sleep(0.3)
        assert len(sink.requests) == count_before

        await console.post(f"{APP}/callbacks/deliveries/{callback_id}/replay")

        await poll_until(lambda: _tries(sink), lambda tries: len(tries) == count_before + 1)
        assert sink.requests[-1].body == sink.requests[0].body
    finally:
        await sink.close()


async def _tries(sink: CallbackSink) -> list[ReceivedCallback]:
    return sink.requests


# fmt: off
MALFORMED_FORMS: Final = (  # action, field, value
    (f"{PHONE}/items/1/respond",      "response", f'{{"a": "{LONE_SURROGATE}"}}'),
    (f"{PHONE}/items/1/order",        "order",    f'{{"a": {HUGE_NUMBER}}}'),
    (f"{PHONE}/items/1/react",        "emoji",    "\u0660" * 100),
    (f"{CHAT}/location",              "latitude", "nan"),
    (f"{PHONE}/settings",             "deliver_after_s", "1e400"),
    ("/simulator/clock/run",          "factor",   "1e400"),
    ("/simulator/clock/advance",      "to",       "0001-01-01T00:00+23:59"),
    ("/simulator/faults/json",        "json",     f'{{"on": "call", "what": {{"error": {HUGE_NUMBER}}}}}'),
    (f"{APP}/callbacks/replay",       "to_ms",    "9" * 15),
    (f"{APP}/callbacks/replay",       "from",     "9999-12-31T23:59-23:59"),
    (f"{APP}/templates/new",          "content",  "{{" + HUGE_NUMBER + "}}"),
)
MALFORMED_QUERIES: Final = (
    f"{APP}/callbacks/replay?which=both&to_ms=999999999999999",
    f"{APP}/callbacks/replay?which=both&from=0001-01-01T00:00%2B23:59",
    f"{APP}/callbacks/deliveries?to=9999-12-31T23:59-23:59",
    f"{APP}/callbacks/deliveries?before=1~{HUGE_NUMBER}~1~a",
    f"{APP}/callbacks/deliveries?q=" + "%25_" * 5000,
    f"{APP}/messages?from=0001-01-01T00:00%2B23:59&time=custom",
    f"{APP}/messages?before=999999999999999.~",
    f"{APP}/templates?page={HUGE_NUMBER}",
    f"{PHONE}/chats/{demo.SOURCE}/older?before={HUGE_NUMBER}",
    f"/phones?show={HUGE_NUMBER}&chats=%D9%A3",
)
# fmt: on


async def test_no_field_and_no_query_causes_a_defect(attacker: SignedInClient) -> None:
    statuses = {(path, name): await attacker.post(path, {name: value}) for path, name, value in MALFORMED_FORMS}
    statuses |= {(path, ""): (await attacker.request("GET", path))[0] for path in MALFORMED_QUERIES}

    assert {request: status for request, status in statuses.items() if status >= 500} == {}


# fmt: off
MALFORMED_PARTS: Final = (  # parameters of the Content-Type, and the header of a part
    ("; charset=utf-7",          b'form-data; name="file"; filename="+2AA-.txt"'),
    ("; charset=unicode_escape", b'form-data; name="file"; filename="' + rb"\\ud800" + b'.txt"'),
    ("; charset=no-such",        b'form-data; name="file"; filename="\xff\xfe.txt"'),
    ("",                         b'form-data; name="file"; filename="a\0b.txt"'),
    ("",                         b'form-data; name="value-\0"'),
    ("; charset=utf-7",          b'form-data; name="value-+2AA-"'),
    ("",                         b'form-data; name="card-' + b"9" * 4000 + b'-file"; filename="a.png"'),
    ("",                         b'form-data; name="text"; filename="a.png"'),
    ("",                         b"form-data"),
)
# fmt: on


async def test_no_part_of_a_form_causes_a_defect(attacker: SignedInClient) -> None:
    statuses: dict[tuple[str, bytes], int] = {}
    for path in (f"{CHAT}/file", f"{CHAT}/text", f"{APP}/templates/new"):
        for parameters, head in MALFORMED_PARTS:
            body = b"--x\r\nContent-Disposition: " + head + b"\r\n\r\n1\r\n--x--\r\n"
            headers = {"Content-Type": f"multipart/form-data; boundary=x{parameters}"}
            response = await attacker.request("POST", path, data=body, headers=headers)
            statuses[path, head[:60]] = response[0]

    assert {request: status for request, status in statuses.items() if status >= 500} == {}


async def test_file_name_with_a_lone_surrogate_is_rejected_with_a_reason(attacker: SignedInClient) -> None:
    head = b'Content-Disposition: form-data; name="file"; filename="+2AA-.txt"'
    headers = {"Content-Type": "multipart/form-data; boundary=x; charset=utf-7"}

    status, text = await attacker.request(
        "POST", f"{CHAT}/file", data=b"--x\r\n" + head + b"\r\n\r\n1\r\n--x--\r\n", headers=headers
    )

    assert status == 403
    assert "contains a character that cannot be stored" in text


# fmt: off
RANGES: Final = {  # of four bytes: 206 is a part, 416 is beyond the end, 200 is the whole
    "bytes=0-1": 206, "bytes=1-": 206, "bytes=0-99999": 206, "bytes=9-": 416, "bytes=2-1": 200, "bytes=-2": 206,
    "bytes=0-0,2-3": 200, f"bytes={HUGE_NUMBER}-": 200, f"bytes=0-{HUGE_NUMBER}": 200, "junk": 200,
}
# fmt: on


async def test_range_of_a_file_is_the_requested_part_or_the_whole(
    console: ConsoleClient, attacker: SignedInClient
) -> None:
    form = aiohttp.FormData()
    form.add_field("file", b"1234", filename="a.txt", content_type="text/plain")
    await attacker.request("POST", f"{CHAT}/file", data=form)
    media_ids = re.findall(r'"id": "(\d+)"', json.dumps((await _inbox(console))[-1]))
    path = f"/phones/media/{media_ids[0]}"

    responses = {
        range_header: await attacker.request("GET", path, headers={"Range": range_header}) for range_header in RANGES
    }

    assert {range_header: status for range_header, (status, _) in responses.items()} == RANGES
    assert responses["bytes=1-"][1] == "234"
    assert responses["bytes=-2"][1] == "34"
    assert responses["junk"][1] == "1234"


async def test_malformed_cookies_are_ignored(attacker: SignedInClient) -> None:
    def notices(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode()

    half = '[{"text": "' + LONE_SURROGATE + '"}]'
    async with aiohttp.ClientSession() as http:
        for cookie in (
            'waypost_session=\xe9\xff; waypost_app=<script>; waypost_theme="><x>',
            f"waypost_session={'a' * 5000}",
            f"{NOTICES_COOKIE}={notices(half)}",
            f"{NOTICES_COOKIE}={notices('[' * 2000)}",
            f"{NOTICES_COOKIE}=%%%",
        ):
            for path in ("/sign-in", APP):
                response = await http.get(attacker.base_url + path, headers={"Cookie": cookie}, allow_redirects=False)
                assert response.status in (200, 303), (cookie, path, await response.text())


async def test_notice_of_any_length_fits_into_a_cookie() -> None:
    response = redirect("/", notice="😀" * 600, hint="é" * 600)
    [value] = [text for name, text in response.headers.items() if name == "set-cookie"]

    assert len(value) < 4096
    [notice] = read_notices({NOTICES_COOKIE: SimpleCookie(value)[NOTICES_COOKIE].value})
    assert notice["text"] == "😀" * 300
    assert notice["hint"] == "é" * 600


async def test_one_partner_cannot_use_up_the_streams_of_others(
    console: ConsoleClient, attacker: SignedInClient, other_client: OtherClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_STREAMS_PER_PARTNER", 2)
    open_streams = [await attacker.http.get(f"{console.base_url}/simulator/faults/live") for _ in range(2)]
    for stream in open_streams:
        await stream.content.readany()

    rejected = await attacker.request("GET", "/simulator/faults/live")
    async with other_client.http.get(f"{console.base_url}/simulator/faults/live") as other:
        assert (rejected[0], other.status) == (503, 200)
    for stream in open_streams:
        stream.close()


async def test_open_stream_ends_soon_after_its_session(
    console: ConsoleClient, attacker: SignedInClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SESSION_CHECK_S", 0.2)
    async with attacker.http.get(f"{console.base_url}/simulator/faults/live") as stream:
        await stream.content.readany()

        await attacker.post("/sign-out", {})
        async with asyncio.timeout(HANGS_AFTER_S):
            remaining = await stream.content.read()

    assert b'event: go\ndata: {"to":"/sign-in"}' in remaining


async def test_stream_of_a_deleted_subscription_breaks_nothing(
    console: ConsoleClient, attacker: SignedInClient
) -> None:
    subscription_id = await _subscription(console)
    path = f"/apps/{console.app_id}/callbacks/subscriptions/{subscription_id}"
    async with attacker.http.get(f"{console.base_url}{path}/live") as stream:
        await stream.content.readany()

        assert await attacker.post(f"{path}/delete", {}) == 303
        await asyncio.sleep(0.1)
        assert (await attacker.request("GET", path))[0] == 404
        assert (await attacker.request("GET", f"{APP}/callbacks"))[0] == 200


async def test_unread_streams_do_not_delay_a_reset(
    capsys: pytest.CaptureFixture[str], console: ConsoleClient, attacker: SignedInClient
) -> None:
    open_streams = [
        await attacker.http.get(f"{console.base_url}{path}")
        for path in (f"{APP}/live", f"/phones/live?show={demo.DESTINATION}") * 10
    ]
    loop = asyncio.get_running_loop()
    began_s = loop.time()

    await console.control.json("POST", "/control/reset", {})

    assert loop.time() - began_s < 5
    for stream in open_streams:
        async with asyncio.timeout(HANGS_AFTER_S):
            await stream.content.read()  # until it ends
    assert (await attacker.request("GET", APP))[0] == 200
    assert "defect" not in capsys.readouterr().err


async def test_stream_ends_when_its_store_closes_during_a_read() -> None:
    closing = asyncio.Event()

    async def read_elements() -> list[streams.PageElement]:
        closing.set()
        raise RuntimeError("no calls are taken after the end")

    async def always_true(*_: Any) -> Any:
        return True

    runner = streams.StreamRunner(nullcontext, asyncio.Event, always_true, closing.is_set, always_true)
    request: Any = None

    events = [event async for event in runner.events(request, 1, read_elements, rest_s=0, at_least_s=0)]

    assert events == [b"retry: 1000\n\n"]
    assert runner.open_count == 0
