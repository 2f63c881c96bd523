"""Partners for tests in any language, through the control API of a real `waypost dev`."""

import asyncio
import json
import re
from typing import Any, Final

from tests.dev.conftest import DevStarter, RunningDev
from tests.support.callback_sink import CallbackSink, respond_in_turn
from tests.support.polling import HANGS_AFTER_S

LONG_MS = min(60_000, int(HANGS_AFTER_S * 1000))


class ApplicationUnderTest:
    """An application with the variables of its partner only."""

    def __init__(self, dev: RunningDev, view: dict[str, Any]) -> None:
        self._http = dev.http
        self.id: str = view["id"]
        self.env: dict[str, str] = view["env"]

    async def submit_template(self, name: str, content: str, buttons: list[str]) -> str:
        form = {
            "elementName": name,
            "languageCode": "en_US",
            "category": "UTILITY",
            "templateType": "TEXT",
            "vertical": "Orders",
            "content": content,
            "example": content.replace("{{1}}", "[1]"),
            "buttons": json.dumps([{"type": "QUICK_REPLY", "text": text} for text in buttons]),
        }
        url = f"{self.env['PARTNER_URL']}/partner/app/{self.env['APP_ID']}/templates"
        return (await self._post(url, form, {"Authorization": self.env["APP_TOKEN"]}))["template"]["id"]

    async def send_template(self, template_id: str, to: str, params: list[str], postback_texts: list[str]) -> str:
        texts = [{"index": index, "text": text} for index, text in enumerate(postback_texts)]
        fields = {"template": json.dumps({"id": template_id, "params": params}), "postbackTexts": json.dumps(texts)}
        return await self._send("template/msg", to, fields)

    async def send_text(self, to: str, text: str) -> str:
        return await self._send("msg", to, {"message": json.dumps({"type": "text", "text": text})})

    async def _send(self, path: str, to: str, fields: dict[str, str]) -> str:
        form = {
            "channel": "whatsapp",
            "source": self.env["SOURCE"],
            "src.name": self.env["SRC_NAME"],
            "destination": to,
            **fields,
        }
        url = f"{self.env['API_URL']}/wa/api/v1/{path}"
        return (await self._post(url, form, {"apikey": self.env["API_KEY"]}))["messageId"]

    async def _post(self, url: str, form: dict[str, str], headers: dict[str, str]) -> Any:
        async with self._http.post(url, data=form, headers=headers) as response:
            content = await response.json()
            assert response.status < 300, content
            return content


async def create(dev: RunningDev, name: str = "") -> ApplicationUnderTest:
    return ApplicationUnderTest(dev, await dev.control("POST", "partners", {"name": name}))


async def open_chat(dev: RunningDev, app: ApplicationUnderTest, name: str = "Ann") -> str:
    """Give a person a phone that has written to the partner; return its digits."""
    phone = (await dev.control("POST", f"partners/{app.id}/phones", {"name": name}))["phone"]
    await dev.control("POST", f"phones/{phone}/messages", {"to": app.env["SOURCE"], "text": "Hi"})
    await wait_for_callback(dev, app, kind="text", phone=phone)
    return phone


async def wait_for_callback(dev: RunningDev, app: ApplicationUnderTest, **wanted: str) -> dict[str, Any]:
    body = {**wanted, "timeout_ms": LONG_MS}
    return (await dev.control("POST", f"partners/{app.id}/wait-for-callback", body))["callback"]


async def wait_for_message(dev: RunningDev, app: ApplicationUnderTest, phone: str, **wanted: str) -> dict[str, Any]:
    body = {"phone": phone, **wanted, "timeout_ms": LONG_MS}
    return (await dev.control("POST", f"partners/{app.id}/wait-for-message", body))["message"]


async def list_templates(dev: RunningDev, app: ApplicationUnderTest) -> int:
    """Return the status of a list of the templates of a partner."""
    url = f"{app.env['PARTNER_URL']}/partner/app/{app.env['APP_ID']}/templates"
    async with dev.http.get(url, headers={"Authorization": app.env["APP_TOKEN"]}) as response:
        return response.status


def without_ids(app: ApplicationUnderTest, text: str, **phones: str) -> list[str]:
    """Return the lines of an explanation; times and ids as T and ID, phone numbers as names."""
    for name, digits in phones.items():
        text = text.replace(digits, f"<{name}>")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]+", "ID", text)
    return re.sub(r"\d\d:\d\d:\d\d\.\d{3}", "T", text).splitlines()


async def test_partner_has_all_that_an_order_and_a_tap_need(start: DevStarter) -> None:
    dev = await start()
    app = await create(dev, "order and tap")
    phone = (await dev.control("POST", f"partners/{app.id}/phones", {"name": "Ann"}))["phone"]
    template_id = await app.submit_template("order", "Your order {{1}} is in.", ["Keep", "Cancel"])
    approved = await dev.control("POST", f"partners/{app.id}/templates/order/approve", {"timeout_ms": LONG_MS})
    assert approved["template"]["status"] == "APPROVED"
    assert (await wait_for_callback(dev, app, kind="status-update"))["body"]["payload"]["elementName"] == "order"

    message_id = await app.send_template(template_id, phone, ["4711"], ["keep 4711", "cancel 4711"])
    message = await wait_for_message(dev, app, "Ann", text="4711", button="Cancel")
    await dev.control("POST", f"phones/{phone}/tap", {"message_id": message["wamid"], "text": "Cancel"})

    tap = await wait_for_callback(dev, app, kind="quick_reply", postback_text="cancel 4711")
    assert (message["callback_data"], tap["message_id"], tap["phone"]) == (message_id, message_id, phone)


async def test_partner_has_rates_of_its_own_until_they_are_reset(start: DevStarter) -> None:
    dev = await start(settings={"rates": True})
    app, other = await create(dev, "limited"), await create(dev, "not limited")
    rates = {"templates": "2/1h", "upload": "7/s"}

    changed = await dev.control("PUT", f"partners/{app.id}/rates", {"rates": rates})
    statuses = [await list_templates(dev, app) for _ in range(3)]
    status_of_other = [await list_templates(dev, other) for _ in range(3)]
    await dev.control("PUT", f"partners/{app.id}/rates", {"rates": {"templates": None}})
    one_removed = await list_templates(dev, app)
    reset = await dev.control("PUT", f"partners/{app.id}/rates", {"reset": True})

    own = {row["rate"]: row["app"] for row in changed["rates"] if row["source"] == "app"}
    assert own == {"templates": "2/3600s", "upload": "7/1s"}
    assert changed["limits_requests"]
    assert (statuses, status_of_other, one_removed) == ([200, 200, 429], [200, 200, 200], 200)
    assert {row["source"] for row in reset["rates"]} == {"documented"}


async def test_invalid_rate_of_a_partner_names_the_rule(start: DevStarter) -> None:
    dev = await start()
    app = await create(dev)

    path = f"partners/{app.id}/rates"
    unknown = await dev.control("PUT", path, {"rates": {"template": "2/1h"}}, status=400)
    no_text = await dev.control("PUT", path, {"rates": {"templates": 2}}, status=400)
    await dev.control("PUT", "partners/999/rates", {"rates": {}}, status=404)

    assert "did you mean templates?" in unknown["error"]
    assert no_text["accepted"] == "null or requests and a period, such as 20/60s"


async def test_partners_see_nothing_of_each_other(start: DevStarter) -> None:
    dev = await start()
    one, other = await create(dev, "the same name"), await create(dev, "the same name")
    phone = await open_chat(dev, one)

    message_id = await one.send_text(phone, "For one")
    await wait_for_callback(dev, one, kind="delivered", message_id=message_id)

    assert set(one.env) == set(other.env)
    own = ("APP_ID", "APP_TOKEN", "API_KEY", "SOURCE", "WABA_ID", "PHONE_NUMBER_ID", "GRAPH_TOKEN", "EMAIL")
    assert [name for name in own if one.env[name] == other.env[name]] == []
    assert (await dev.control("GET", f"partners/{other.id}/callbacks"))["callbacks"] == []
    await dev.control("POST", f"partners/{other.id}/wait-for-message", {"phone": phone, "timeout_ms": 0}, status=422)


async def test_same_name_gets_the_same_numbers_at_a_new_server(start: DevStarter) -> None:
    first = await start("first")
    second = await start("second")

    envs = [(await create(dev, "checkout > confirms")).env for dev in (first, second)]

    assert [envs[0][name] == envs[1][name] for name in ("SOURCE", "WABA_ID", "EMAIL")] == [True, True, True]


async def test_callback_is_returned_once_and_others_after_it(start: DevStarter) -> None:
    dev = await start()
    app = await create(dev)
    phone = await open_chat(dev, app)
    sent = [await app.send_text(phone, text) for text in ("One", "Two")]

    received = [(await wait_for_callback(dev, app, kind="delivered"))["message_id"] for _ in sent]

    assert sorted(received) == sorted(sent)
    body = {"kind": "delivered", "timeout_ms": 0}
    await dev.control("POST", f"partners/{app.id}/wait-for-callback", body, status=422)


async def test_missed_callback_is_explained(start: DevStarter) -> None:
    dev = await start()
    app = await create(dev)
    phone = await open_chat(dev, app)
    await app.submit_template("offer", "An offer for {{1}}.", ["Yes"])
    message_id = await app.send_text(phone, "Hello")
    await wait_for_callback(dev, app, kind="delivered", message_id=message_id)
    await dev.control("POST", "clock/freeze", {})
    fault = {"on": "call", "call": "messages.send", "waba_id": app.env["WABA_ID"], "what": {"error": 131016}}
    await dev.control("POST", "faults", fault)

    body = {"kind": "read", "message_id": message_id, "timeout_ms": 50}
    failure = await dev.control("POST", f"partners/{app.id}/wait-for-callback", body, status=422)

    assert failure["error"] == f"no callback `read` about {message_id} came within 0.05 s"
    assert without_ids(app, failure["explanation"], Ann=phone) == [
        "no callback `read` about ID came within 0.05 s",
        "callbacks, newest last:",
        '  text, phone <Ann>, "Hi"; response 200',
        "  enqueued, of message ID, phone <Ann>; response 200",
        "  sent, of message ID, phone <Ann>; response 200",
        "  delivered, of message ID, phone <Ann>; response 200",
        "the message it is about, newest last:",
        "  ID to <Ann>: delivered (accepted T → enqueued T → sent T → delivered T)",
        "templates that are not approved, newest last:",
        "  offer (en_US) is PENDING",
        "armed faults, newest last:",
        "  call messages.send: error 131016; always; applied never",
        "the clock is frozen: nothing becomes due by itself",
    ]


async def test_missed_message_is_explained(start: DevStarter) -> None:
    dev = await start()
    app = await create(dev)
    ann, ben = await open_chat(dev, app, "Ann"), await open_chat(dev, app, "Ben")
    await wait_for_callback(dev, app, kind="delivered", message_id=await app.send_text(ben, "For Ben"))

    body = {"phone": "Ann", "text": "For", "timeout_ms": 50}
    failure = await dev.control("POST", f"partners/{app.id}/wait-for-message", body, status=422)

    assert without_ids(app, failure["explanation"], Ann=ann, Ben=ben) == [
        'no message with "For" came to Ann (<Ann>) within 0.05 s',
        "on Ann's phone, newest last:",
        '  T wrote text "Hi"',
        "sent to other phones: <Ben>",
    ]


async def test_unwanted_callback_ends_the_wait_at_once_and_is_explained(start: DevStarter) -> None:
    dev = await start()
    app = await create(dev)
    phone = await open_chat(dev, app)
    await dev.control("POST", f"partners/{app.id}/no-callback-within", {"kind": "text", "ms": 0})
    body = {"kind": "text", "ms": 60_000}

    waiting = asyncio.create_task(dev.control("POST", f"partners/{app.id}/no-callback-within", body, status=422))
    await dev.control("POST", f"phones/{phone}/messages", {"to": app.env["SOURCE"], "text": "Once more"})
    async with asyncio.timeout(HANGS_AFTER_S):
        failure = await waiting

    assert without_ids(app, failure["explanation"], Ann=phone)[:2] == [
        "a callback `text` came, and none was expected within 60 s",
        '  text, phone <Ann>, "Once more"; response 200',
    ]


async def test_forwarded_callback_counts_once_the_application_has_responded(
    start: DevStarter, sink: CallbackSink
) -> None:
    """A failed callback is retried on the service's schedule, and the attempts are kept."""
    dev = await start()
    app = await create(dev)
    sink.choose_status = respond_in_turn(503, 200)
    change = {"forward_to": sink.url, "headers": {"X-Shop": "one"}, "modes": ["MESSAGE"]}
    view = await dev.control("PUT", f"partners/{app.id}/callbacks", change)
    assert (view["callbacks"]["forward_to"], view["callbacks"]["headers"]) == (sink.url, {"X-Shop": "one"})

    phone = (await dev.control("POST", f"partners/{app.id}/phones", {"name": "Ann"}))["phone"]
    await dev.control("POST", f"phones/{phone}/messages", {"to": app.env["SOURCE"], "text": "Hi"})
    await sink.wait_until(lambda: len(sink.requests) == 1)
    await dev.travel(3600_000)
    callback = await wait_for_callback(dev, app, kind="text")

    attempts = (await dev.control("GET", f"partners/{app.id}/callbacks"))["callbacks"]
    assert [(attempt["status"], attempt["id"] == callback["id"]) for attempt in attempts] == [(503, True), (200, True)]
    assert [request.headers["X-Shop"] for request in sink.requests] == ["one", "one"]
    assert [request.callback_id for request in sink.requests] == [callback["id"]] * 2


async def test_deleted_partner_is_unknown_and_its_waits_end(start: DevStarter) -> None:
    dev = await start()
    app, neighbour = await create(dev), await create(dev)
    faults = [
        {"on": "call", "call": "*", "waba_id": one.env["WABA_ID"], "what": {"error": 131016}}
        for one in (app, neighbour)
    ]
    for fault in faults:
        await dev.control("POST", "faults", fault)
    body = {"kind": "read", "timeout_ms": 60_000}
    waiting = asyncio.create_task(dev.control("POST", f"partners/{app.id}/wait-for-callback", body, status=404))

    await dev.control("DELETE", f"partners/{app.id}")

    async with asyncio.timeout(HANGS_AFTER_S):
        await waiting
    await dev.control("GET", f"partners/{app.id}", status=404)
    partners = (await dev.control("GET", "partners"))["partners"]
    assert [partner["id"] for partner in partners] == [neighbour.id]
    armed = (await dev.control("GET", "faults"))["faults"]
    assert [fault["waba_id"] for fault in armed] == [neighbour.env["WABA_ID"]]


async def test_reset_ends_partners_and_a_snapshot_keeps_its_own(start: DevStarter) -> None:
    dev = await start()
    kept = await create(dev)
    phone = await open_chat(dev, kept)
    await dev.control("POST", "snapshots", {"name": "one-partner"})
    dropped = await create(dev)

    await dev.control("POST", "snapshots/one-partner/load", {})
    message_id = await kept.send_text(phone, "Still here")
    await wait_for_callback(dev, kept, kind="delivered", message_id=message_id)
    await dev.control("GET", f"partners/{dropped.id}", status=404)

    await dev.control("POST", "reset", {})
    assert (await dev.control("GET", "partners"))["partners"] == []


# fmt: off
INVALID: Final[tuple[tuple[str, str, dict[str, Any] | None, str, str], ...]] = (
    # method  path                      body                                     field          accepted values contain
    ("POST", "partners",                {"name": 7},                              "name",        "at most 4096 characters"),
    ("POST", "partners",                {"api_url": "waypost:8080"},              "api_url",     "http://waypost:8080"),
    ("PUT",  "partners/{id}/callbacks", {"forward_to": "localhost:3000"},         "forward_to",  "an http or https URL"),
    ("PUT",  "partners/{id}/callbacks", {"status": 42},                           "status",      "200 to 599"),
    ("PUT",  "partners/{id}/callbacks", {"modes": ["BILLING"]},                   "modes[0]",    "ENQUEUED"),
    ("POST", "partners/{id}/phones",    {"name": "Ann", "number": "12"},          "number",      "8 to 15 digits"),
    ("POST", "partners/{id}/wait-for-message", {"text": "Hi"},                    "phone",       "phone"),
    ("POST", "partners/{id}/wait-for-message", {"phone": "Zoe"},                  "phone",       "none yet"),
    ("POST", "partners/{id}/wait-for-callback", {"timeout_ms": 60_001},           "timeout_ms",  "0 to 60000"),
    ("POST", "partners/{id}/no-callback-within", {"kind": "read"},                "ms",          "0 to 60000"),
    ("POST", "partners/{id}/templates/order/bless", {},                           "action",      "approve, reject, pause, disable"),
    ("POST", "partners/999999/wait-for-callback", {},                             "partner_id",  "GET /control/partners"),
    ("GET",  "partners/abc",            None,                                     "partner_id",  "1 to 32 digits"),
)
# fmt: on


async def test_invalid_requests_name_the_field_and_what_is_accepted(start: DevStarter) -> None:
    dev = await start()
    app = await create(dev)
    seen: list[tuple[str, str]] = []

    for method, path, body, _, accepted in INVALID:
        url = f"{dev.running.variables['CONTROL_URL']}/{path.format(id=app.id)}"
        async with dev.http.request(method, url, json=body) as response:
            content = await response.json()
        assert response.status in (400, 404), (path, content)
        seen.append((content["field"], accepted if accepted in content["accepted"] else content["accepted"]))

    assert seen == [(field, accepted) for _, _, _, field, accepted in INVALID]


# fmt: off
EXAMPLES: Final[dict[str, dict[str, Any]]] = {  # a valid body of each call that has one; waits are short
    "partners":                           {"name": "x", "api_url": "http://localhost:1", "graph_url": "http://localhost:1"},
    "partners/{id}/phones":               {"name": "Ann", "number": "15551234567"},
    "partners/{id}/callbacks":            {"forward_to": "", "status": 200, "version": 2, "modes": ["SENT"], "headers": {"X-A": "b"}},
    "partners/{id}/wait-for-message":     {"phone": "Ann", "text": "x", "type": "text", "message_id": "x", "button": "x", "timeout_ms": 1},
    "partners/{id}/wait-for-callback":    {"kind": "sent", "message_id": "x", "phone": "x", "text": "x", "postback_text": "x", "timeout_ms": 1},
    "partners/{id}/no-callback-within":   {"kind": "sent", "message_id": "x", "phone": "x", "text": "x", "postback_text": "x", "ms": 1},
    "partners/{id}/templates/{name}/reject": {"reason": "SCAM", "explanation": "x", "timeout_ms": 1},
}
# fmt: on
JUNK: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    2**63,
    1e300,
    "",
    "\x00",
    "\u0663",
    "a" * 5000,
    [],
    {},
    [None],
    {"x": [1]},
    "http://[",
    "15551234567",
)  # fmt: skip


async def test_junk_in_any_member_never_returns_5xx(start: DevStarter) -> None:
    dev = await start()
    app = await create(dev)
    control = dev.running.variables["CONTROL_URL"]
    statuses: dict[str, int] = {}

    for path, example in EXAMPLES.items():
        bodies = [*JUNK, *({**example, member: junk} for member in example for junk in JUNK)]
        url = f"{control}/{path.format(id=app.id, name='x')}"
        for body in bodies:
            method = "PUT" if path.endswith("callbacks") else "POST"
            async with dev.http.request(method, url, json=body) as response:
                statuses[f"{path} {str(body)[:80]}"] = response.status

    assert {text: status for text, status in statuses.items() if status >= 500} == {}
    assert {200, 400} <= set(statuses.values())
