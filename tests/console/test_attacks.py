"""What nobody's browser sends: half characters, endless numbers, another's ids in forms, and streams without end.

Whose addresses one may ask for, headers, and words that would run: tests/console/test_security.py.
"""

import asyncio
import base64
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from http.cookies import SimpleCookie
from types import SimpleNamespace
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy import Connection, delete

from tests.console.conftest import LOOP, Desk
from tests.support.callback_sink import CallbackSink, Try, always
from tests.support.waiting import HANGS_AFTER_S, patiently
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
HALF: Final = "\\ud800"
ENDLESS: Final = "9" * 4500  # more digits than Python turns into a number


@dataclass
class Browser:
    """Somebody who is signed in, and sends what he likes."""

    base_url: str
    http: aiohttp.ClientSession
    csrf: str

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        """Status and text of an answer that is not followed."""
        headers = {"x-waypost-csrf": self.csrf, **options.pop("headers", {})}
        async with self.http.request(
            method, self.base_url + path, headers=headers, allow_redirects=False, **options
        ) as answer:
            return answer.status, await answer.text(errors="replace")

    async def post(self, path: str, fields: Mapping[str, str]) -> int:
        """The status of an act."""
        return (await self.ask("POST", path, data=dict(fields)))[0]


@pytest_asyncio.fixture(loop_scope=LOOP)
async def attacker(desk: Desk) -> Browser:
    """The demonstration's own partner."""
    return Browser(desk.base_url, desk.http, await desk.csrf())


@dataclass
class Stranger(Browser):
    """Another partner, whose app is connected to a number of the same simulator."""

    app_id: str


@pytest_asyncio.fixture(loop_scope=LOOP)
async def stranger(desk: Desk) -> AsyncGenerator[Stranger]:
    who = {"email": "eve@other.test", "name": "Other", "password": PASSWORD}
    partner_id = (await desk.admin.json("POST", "/admin/partners", who))["id"]
    ids = {"phone_number_id": "2000000000000002", "business_account_id": "2000000000000001"}
    waba_id = ids["business_account_id"]
    account = {
        "name": "Other", "token": demo.GRAPH_TOKEN, "app_id": demo.GRAPH_APP_ID,
        "app_secret": demo.GRAPH_APP_SECRET,
    }  # fmt: skip
    await desk.control.json("PUT", f"/control/accounts/{waba_id}", account)
    number = {"waba_id": waba_id, "phone_number": NUMBER, "name": "Other"}
    await desk.control.json("PUT", f"/control/numbers/{ids['phone_number_id']}", number)
    await desk.admin.json(
        "POST",
        "/admin/business-accounts",
        {
            "id": waba_id, "partner_id": partner_id, "operator_account_id": "demo",
            "namespace": "other_namespace",
        },
    )  # fmt: skip
    app = {"partner_id": partner_id, "name": "Elsewhere", "phone_number": NUMBER, **ids}
    app_id = (await desk.admin.json("POST", "/admin/apps", app))["id"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        form = {"email": who["email"], "password": PASSWORD}
        async with http.post(desk.base_url + "/sign-in", data=form, allow_redirects=False) as came:
            assert came.status == 303, await came.text()
        async with http.get(f"{desk.base_url}/apps/{app_id}") as page:
            csrf = (await page.text()).partition('data-csrf="')[2].partition('"')[0]
        yield Stranger(desk.base_url, http, csrf, app_id)


async def _inbox(desk: Desk) -> list[dict[str, Any]]:
    found = await desk.control.json("GET", f"/control/phones/{demo.DESTINATION}?limit=50")
    return found["messages"]


async def _subscription(desk: Desk, url: str = "http://127.0.0.1:9/callbacks") -> str:
    form = {
        "modes": "MESSAGE", "tag": "orders", "url": url, "version": "2",
        "doCheck": "false",
    }  # fmt: skip
    made = await desk.api.form("POST", f"/partner/app/{desk.app_id}/subscription", form)
    return str(made["subscription"]["id"])


async def test_ids_of_another_partner_in_forms_and_queries_name_nothing(desk: Desk, stranger: Stranger) -> None:
    theirs, own = await _subscription(desk), f"/apps/{stranger.app_id}"
    path = f"/partner/app/{desk.app_id}/templates"
    template_id = (await desk.api.json("GET", path))["templates"][0]["id"]
    fleet = {
        "name": "taken", "first": "15551000000", "count": "2", "script": "none",
        "open_window_to": demo.SOURCE,
    }  # fmt: skip

    replayed = await stranger.post(f"{own}/callbacks/replay", {"subscription": theirs})
    copied, _ = await stranger.ask("GET", f"{own}/templates/new?from={template_id}")
    listed, shown = await stranger.ask("GET", f"{own}/callbacks/deliveries?subscription={theirs}")
    crowd = await stranger.post("/simulator/fleets", fleet)
    switched = await stranger.post(f"{own}/settings/operator", {"operator_account_id": "nobody's"})
    assert (replayed, copied, listed, crowd) == (403, 404, 200, 400)
    assert "orders" not in shown
    assert switched in (400, 404)


async def test_reply_from_a_phone_quotes_no_message_of_another_business(desk: Desk, stranger: Stranger) -> None:
    await desk.send_text("For your eyes only")
    inbox = await patiently(lambda: _inbox(desk), lambda found: "For your eyes only" in json.dumps(found))
    wamid = next(one["wamid"] for one in inbox if "For your eyes only" in json.dumps(one))

    status = await stranger.post(f"{PHONE}/chats/{NUMBER}/text", {"text": "What was that?", "context_id": wamid})
    _, shown = await stranger.ask("GET", f"/phones?show={demo.DESTINATION}&chats={NUMBER}")

    assert status == 403
    assert "For your eyes only" not in shown


async def test_entry_of_another_partner_that_was_set_aside_is_nobody_elses_to_work_again(
    desk: Desk, stranger: Stranger
) -> None:
    """A real one: our own way to the operator is lost, and the fifth defect sets the message aside."""
    waypost: Any = desk.dev._sides.waypost  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
    account = await waypost.directory.operator_account("demo")
    await waypost.database.write(_forget_operator_accounts)
    waypost.directory.invalidate()
    message_id = await desk.send_text("Five times in vain")
    await desk.control.json("POST", "/control/clock/advance", {"ms": 180_000})
    [entry] = await patiently(lambda: _set_aside(desk), len)
    await provisioning.put_operator_account(waypost.admin_context, account)
    again = f"dead-letters/{entry['position']}/retry"

    by_their_app = await stranger.ask("POST", f"{APP}/{again}", data={})
    by_own_app = await stranger.ask("POST", f"/apps/{stranger.app_id}/{again}", data={})
    _, shown = await stranger.ask("GET", f"/apps/{stranger.app_id}")

    assert (by_their_app[0], by_own_app[0]) == (404, 404)
    assert "dead letter" not in shown
    assert await _set_aside(desk) == [entry]
    assert "became a dead letter after internal errors" in await desk.get(APP)
    assert again in await desk.get(APP)

    await desk.post(f"{APP}/{again}")

    await patiently(lambda: _inbox(desk), lambda found: "Five times in vain" in json.dumps(found))
    assert await _set_aside(desk) == []
    assert message_id in await desk.get(f"{APP}/messages/{message_id}")


async def _set_aside(desk: Desk) -> list[dict[str, Any]]:
    return (await desk.admin.json("GET", "/admin/dead-letters"))["dead_letters"]


def _forget_operator_accounts(connection: Connection) -> None:
    connection.execute(delete(operator_accounts))


async def test_callback_of_another_partner_that_was_given_up_is_nobody_elses_to_see_or_send(
    desk: Desk, stranger: Stranger
) -> None:
    """A real one: a receiver that answers nothing but errors for three days."""
    sink = CallbackSink()
    await sink.open()
    try:
        sink.answers = always(503)
        held = await _subscription(desk, url=sink.url)
        wish = {"to": demo.SOURCE, "text": "Is anybody there?"}
        await desk.control.json("POST", f"/control/phones/{demo.DESTINATION}/messages", wish)
        await patiently(lambda: _tries(sink), len)
        await desk.control.json("POST", "/control/clock/advance", {"ms": 3 * 86_400_000})
        given_up = await patiently(
            lambda: desk.get(f"{APP}/callbacks/deliveries?state=given+up"),
            lambda page: "callbacks/deliveries/0" in page,
        )
        [callback_id] = set(re.findall(r"callbacks/deliveries/([0-9a-f-]{36})", given_up))
        sink.answers, tried = always(200), len(sink.tries)

        answers: dict[str, int] = {}
        shown: list[str] = []
        for app in (APP, f"/apps/{stranger.app_id}"):
            one = f"{app}/callbacks/deliveries/{callback_id}"
            for method, path in (
                ("GET", one),
                ("POST", f"{one}/body"),
                ("POST", f"{one}/reveal"),
                ("GET", f"{one}/live"),
                ("POST", f"{one}/replay"),
            ):
                status, text = await stranger.ask(method, path)
                answers[f"{method} {path}"] = status
                shown.append(text)
        own = f"/apps/{stranger.app_id}/callbacks"
        lists = ("deliveries?state=given+up", f"deliveries?q={callback_id}", "replay?which=given_up")
        shown += [(await stranger.ask("GET", f"{own}/{path}"))[1] for path in lists]
        await stranger.post(f"{own}/replay", {"which": "given_up"})
        await stranger.post(f"{own}/replay", {"which": "given_up", "subscription": held})

        assert {path: status for path, status in answers.items() if status != 404} == {}
        assert not [text for text in shown if "Is anybody there?" in text or sink.url in text]
        await asyncio.sleep(0.3)
        assert len(sink.tries) == tried

        await desk.post(f"{APP}/callbacks/deliveries/{callback_id}/replay")

        await patiently(lambda: _tries(sink), lambda tries: len(tries) == tried + 1)
        assert sink.tries[-1].body == sink.tries[0].body
    finally:
        await sink.close()


async def _tries(sink: CallbackSink) -> list[Try]:
    return sink.tries


# fmt: off
ODD_FORMS: Final = (  # an act, a field of it, and what is sent in it
    (f"{PHONE}/script",               "script",   f'[{{"on":"message","do":"answer","text":"{HALF}"}}]'),
    (f"{PHONE}/script",               "script",   f"[{ENDLESS}]"),
    (f"{PHONE}/script",               "script",   "[" * 5000),
    (f"{PHONE}/items/1/answer",       "response", f'{{"a": "{HALF}"}}'),
    (f"{PHONE}/items/1/order",        "order",    f'{{"a": {ENDLESS}}}'),
    (f"{PHONE}/items/1/react",        "emoji",    "\u0660" * 100),
    (f"{CHAT}/location",              "latitude", "nan"),
    (f"{PHONE}/settings",             "deliver_after_s", "1e400"),
    ("/simulator/clock/run",          "factor",   "1e400"),
    ("/simulator/clock/advance",      "to",       "0001-01-01T00:00+23:59"),
    ("/simulator/faults/json",        "json",     f'{{"on": "call", "what": {{"error": {ENDLESS}}}}}'),
    (f"{APP}/callbacks/replay",       "to_ms",    "9" * 15),
    (f"{APP}/callbacks/replay",       "from",     "9999-12-31T23:59-23:59"),
    (f"{APP}/templates/new",          "content",  "{{" + ENDLESS + "}}"),
)
ODD_QUERIES: Final = (
    f"{APP}/callbacks/replay?which=both&to_ms=999999999999999",
    f"{APP}/callbacks/replay?which=both&from=0001-01-01T00:00%2B23:59",
    f"{APP}/callbacks/deliveries?to=9999-12-31T23:59-23:59",
    f"{APP}/callbacks/deliveries?before=1~{ENDLESS}~1~a",
    f"{APP}/callbacks/deliveries?q=" + "%25_" * 5000,
    f"{APP}/messages?from=0001-01-01T00:00%2B23:59&time=custom",
    f"{APP}/messages?before=999999999999999.~",
    f"{APP}/templates?page={ENDLESS}",
    f"{PHONE}/chats/{demo.SOURCE}/older?before={ENDLESS}",
    f"/phones?show={ENDLESS}&chats=%D9%A3",
)
# fmt: on


async def test_no_field_and_no_query_makes_a_defect(attacker: Browser) -> None:
    answers = {(path, name): await attacker.post(path, {name: value}) for path, name, value in ODD_FORMS}
    answers |= {(path, ""): (await attacker.ask("GET", path))[0] for path in ODD_QUERIES}

    assert {asked: status for asked, status in answers.items() if status >= 500} == {}


# fmt: off
ODD_PARTS: Final = (  # Content-Type beside the boundary, and the head of one part
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


async def test_no_part_of_a_form_makes_a_defect(attacker: Browser) -> None:
    answers: dict[tuple[str, bytes], int] = {}
    for path in (f"{CHAT}/file", f"{CHAT}/text", f"{APP}/templates/new"):
        for more, head in ODD_PARTS:
            body = b"--x\r\nContent-Disposition: " + head + b"\r\n\r\n1\r\n--x--\r\n"
            kind = {"Content-Type": f"multipart/form-data; boundary=x{more}"}
            asked = await attacker.ask("POST", path, data=body, headers=kind)
            answers[path, head[:60]] = asked[0]

    assert {asked: status for asked, status in answers.items() if status >= 500} == {}


async def test_file_name_with_half_a_character_is_refused_in_words(attacker: Browser) -> None:
    head = b'Content-Disposition: form-data; name="file"; filename="+2AA-.txt"'
    kind = {"Content-Type": "multipart/form-data; boundary=x; charset=utf-7"}

    status, text = await attacker.ask(
        "POST", f"{CHAT}/file", data=b"--x\r\n" + head + b"\r\n\r\n1\r\n--x--\r\n", headers=kind
    )

    assert status == 403
    assert "contains a character that cannot be stored" in text


# fmt: off
RANGES: Final = {  # of four bytes: 206 is a part of them, 416 says that they do not reach so far, 200 is the whole
    "bytes=0-1": 206, "bytes=1-": 206, "bytes=0-99999": 206, "bytes=9-": 416, "bytes=2-1": 200, "bytes=-2": 206,
    "bytes=0-0,2-3": 200, f"bytes={ENDLESS}-": 200, f"bytes=0-{ENDLESS}": 200, "junk": 200,
}
# fmt: on


async def test_part_of_a_file_is_what_was_asked_for_or_the_whole(desk: Desk, attacker: Browser) -> None:
    form = aiohttp.FormData()
    form.add_field("file", b"1234", filename="a.txt", content_type="text/plain")
    await attacker.ask("POST", f"{CHAT}/file", data=form)
    found = re.findall(r'"id": "(\d+)"', json.dumps((await _inbox(desk))[-1]))
    path = f"/phones/media/{found[0]}"

    answers = {asked: await attacker.ask("GET", path, headers={"Range": asked}) for asked in RANGES}

    assert {asked: status for asked, (status, _) in answers.items()} == RANGES
    assert answers["bytes=1-"][1] == "234"
    assert answers["bytes=-2"][1] == "34"
    assert answers["junk"][1] == "1234"


async def test_junk_in_cookies_is_nobodys(attacker: Browser) -> None:
    def notices(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode()

    half = '[{"text": "' + HALF + '"}]'
    async with aiohttp.ClientSession() as http:
        for cookie in (
            'waypost_session=\xe9\xff; waypost_app=<script>; waypost_theme="><x>',
            f"waypost_session={'a' * 5000}",
            f"{NOTICES_COOKIE}={notices(half)}",
            f"{NOTICES_COOKIE}={notices('[' * 2000)}",
            f"{NOTICES_COOKIE}=%%%",
        ):
            for path in ("/sign-in", APP):
                answer = await http.get(attacker.base_url + path, headers={"Cookie": cookie}, allow_redirects=False)
                assert answer.status in (200, 303), (cookie, path, await answer.text())


async def test_notice_fits_into_a_cookie_whatever_it_says() -> None:
    answer = redirect("/", notice="😀" * 600, hint="é" * 600)
    [value] = [text for name, text in answer.headers.items() if name == "set-cookie"]

    assert len(value) < 4096
    [notice] = read_notices({NOTICES_COOKIE: SimpleCookie(value)[NOTICES_COOKIE].value})
    assert notice["text"] == "😀" * 300
    assert notice["hint"] == "é" * 600


async def test_one_partner_cannot_take_the_streams_of_all(
    desk: Desk, attacker: Browser, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_STREAMS_PER_PARTNER", 2)
    opened = [await attacker.http.get(f"{desk.base_url}/simulator/faults/live") for _ in range(2)]
    for one in opened:
        await one.content.readany()

    third = await attacker.ask("GET", "/simulator/faults/live")
    async with stranger.http.get(f"{desk.base_url}/simulator/faults/live") as others:
        assert (third[0], others.status) == (503, 200)
    for one in opened:
        one.close()


async def test_open_stream_ends_soon_after_its_session(
    desk: Desk, attacker: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SESSION_CHECK_S", 0.2)
    async with attacker.http.get(f"{desk.base_url}/simulator/faults/live") as stream:
        await stream.content.readany()

        await attacker.post("/sign-out", {})
        async with asyncio.timeout(HANGS_AFTER_S):
            rest = await stream.content.read()

    assert b'event: go\ndata: {"to":"/sign-in"}' in rest


async def test_stream_of_what_is_gone_says_so_and_breaks_nothing(desk: Desk, attacker: Browser) -> None:
    known = await _subscription(desk)
    path = f"/apps/{desk.app_id}/callbacks/subscriptions/{known}"
    async with attacker.http.get(f"{desk.base_url}{path}/live") as stream:
        await stream.content.readany()

        assert await attacker.post(f"{path}/delete", {}) == 303
        await asyncio.sleep(0.1)
        assert (await attacker.ask("GET", path))[0] == 404
        assert (await attacker.ask("GET", f"{APP}/callbacks"))[0] == 200


async def test_streams_that_nobody_reads_hold_up_no_reset(
    capsys: pytest.CaptureFixture[str], desk: Desk, attacker: Browser
) -> None:
    opened = [
        await attacker.http.get(f"{desk.base_url}{path}")
        for path in (f"{APP}/live", f"/phones/live?show={demo.DESTINATION}") * 10
    ]
    loop = asyncio.get_running_loop()
    began_s = loop.time()

    await desk.control.json("POST", "/control/reset", {})

    assert loop.time() - began_s < 5
    for one in opened:
        async with asyncio.timeout(HANGS_AFTER_S):
            await one.content.read()  # it ends
    assert (await attacker.ask("GET", APP))[0] == 200
    assert "defect" not in capsys.readouterr().err


async def test_stream_whose_store_is_closed_under_a_look_just_ends() -> None:
    closing = asyncio.Event()

    async def look() -> list[streams.PageElement]:
        closing.set()
        raise RuntimeError("no calls are taken after the end")

    async def anything(*_: Any) -> Any:
        return True

    watch = streams.StreamRunner(nullcontext, asyncio.Event, anything, closing.is_set, anything)
    visit: Any = SimpleNamespace(partner=demo.PARTNER)

    sent = [one async for one in watch.events(visit, look, rest_s=0, at_least_s=0)]

    assert sent == [b"retry: 1000\n\n"]
    assert watch.open_count == 0
