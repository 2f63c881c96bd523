"""Sent messages: validation, statuses, limits and delivery."""

import base64
from typing import Any

import pytest

from tests.simulator.conftest import ANN, ANN_USER_ID, BUSINESS, NUMBER_ID, WABA, Bench
from tests.support.manual_clock import ManualClock
from waypost.base.clock import DAY_MS


async def test_text_inside_the_window_is_sent_and_delivered(bench: Bench) -> None:
    await bench.send_from_phone()

    wamid = await bench.send_text("Hello", biz_opaque_callback_data="mine-1")

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    sent, delivered = bench.receiver.statuses(wamid)
    assert [sent["status"], delivered["status"]] == ["sent", "delivered"]
    assert sent["recipient_id"] == ANN
    assert sent["biz_opaque_callback_data"] == delivered["biz_opaque_callback_data"] == "mine-1"
    assert sent["pricing"] == {
        "billable": False,
        "pricing_model": "PMP",
        "type": "free_customer_service",
        "category": "service",
    }
    assert "conversation" not in sent
    assert sent["timestamp"].isdigit()
    metadata = bench.receiver.changes()[-1]["metadata"]
    assert metadata == {"display_phone_number": BUSINESS, "phone_number_id": NUMBER_ID}


async def test_send_response_has_the_documented_shape(bench: Bench) -> None:
    await bench.send_from_phone()

    response = await bench.send({"type": "text", "text": {"body": "Hello"}})

    assert response.status == 200
    assert response.body["messaging_product"] == "whatsapp"
    assert response.body["contacts"] == [{"input": f"+{ANN}", "wa_id": ANN, "user_id": ANN_USER_ID}]
    [message] = response.body["messages"]
    assert list(message) == ["id"]
    raw = base64.b64decode(message["id"].removeprefix("wamid."))
    assert raw.startswith(b"\x1c\x18\x0b" + ANN.encode() + b"\x15\x02\x00\x11\x18\x12")
    assert response.headers["facebook-api-version"] == "v25.0"


async def test_free_form_outside_the_window_fails_in_a_status(bench: Bench) -> None:
    wamid = await bench.send_text(biz_opaque_callback_data="late")

    [status] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert status["status"] == "failed"
    assert status["biz_opaque_callback_data"] == "late"
    [error] = status["errors"]
    assert error["code"] == 131047
    assert error["title"] == error["message"] == "Re-engagement message"
    assert "24 hours" in error["error_data"]["details"]


async def test_window_closes_after_24_hours(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    clock.advance(ms=24 * 3600 * 1000 - 1)
    inside = await slow.send_text("inside")
    clock.advance(ms=1)
    outside = await slow.send_text("outside")
    clock.advance(ms=1000)

    await slow.receiver.wait_until(lambda: slow.receiver.statuses(outside))
    assert [status["status"] for status in slow.receiver.statuses(inside)] == ["sent", "delivered"]
    assert [status["status"] for status in slow.receiver.statuses(outside)] == ["failed"]


async def test_phone_that_reads_by_itself_sends_read(slow: Bench, clock: ManualClock) -> None:
    await slow.control("PUT", f"phones/{ANN}", {"read_after_ms": 2000, "deliver_after_ms": 500})
    await slow.send_from_phone()
    wamid = await slow.send_text()

    clock.advance(ms=500)
    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses(wamid)) == 2)
    clock.advance(ms=2000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses(wamid)) == 3)

    times = {status["status"]: int(status["timestamp"]) for status in slow.receiver.statuses(wamid)}
    assert list(times) == ["sent", "delivered", "read"]
    assert times["read"] - times["delivered"] == 2


async def test_message_to_a_business_number_is_undeliverable(bench: Bench) -> None:
    other = {"waba_id": WABA, "phone_number": "15550009999", "name": "Two"}
    await bench.control("PUT", "numbers/2000000000000009", other)

    wamid = await bench.send_text(to="15550009999")

    [status] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert status["errors"][0]["code"] == 131026


async def test_old_statuses_carry_a_conversation(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"statuses_version": "v23"})
    await bench.send_from_phone()

    wamid = await bench.send_text()

    [sent, *_] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert sent["conversation"]["origin"] == {"type": "service"}
    assert sent["conversation"]["expiration_timestamp"].isdigit()


# fmt: off
BAD_MESSAGES: list[tuple[str, dict[str, Any], int, int]] = [
    # what                    message                                              status code
    ("no product",            {"messaging_product": None},                            400, 100),
    ("no recipient",          {"to": ""},                                             400, 100),
    ("short recipient",       {"to": "123"},                                          400, 131009),
    ("recipient is a list",   {"to": [ANN]},                                          400, 131009),
    ("group",                 {"recipient_type": "group"},                            400, 100),
    ("no text",               {},                                                     400, 100),
    ("text is no object",     {"text": "Hello"},                                      400, 100),
    ("long text",             {"text": {"body": "x" * 4097}},                         400, 100),
    ("blank text",            {"text": {"body": " \n"}},                                400, 100),
    ("link without scheme",   {"type": "image", "image": {"link": "x.example/a.png"}}, 400, 100),
    ("link of data",          {"type": "image", "image": {"link": "data:image/png;base64,iVBORw0KGgo="}}, 400, 100),
    ("link with a space",     {"type": "document", "document": {"link": "https://x.example/a b.pdf"}}, 400, 100),
    ("link with a line break", {"type": "video", "video": {"link": "https://x.example/a\n.mp4"}}, 400, 100),
    ("link without host",     {"type": "audio", "audio": {"link": "https:///a.ogg"}},   400, 100),
    ("link of a file",        {"type": "sticker", "sticker": {"link": "file:///a.webp"}}, 400, 100),
    ("link with a variable",  {"type": "image", "image": {"link": "https://x.example/{{1}}.png"}}, 400, 100),
    ("reaction with a word",  {"type": "reaction", "reaction": {"message_id": "wamid.x", "emoji": "ok"}}, 400, 131009),
    ("reaction with two",     {"type": "reaction", "reaction": {"message_id": "wamid.x", "emoji": "\U0001f44d\U0001f44d"}}, 400, 131009),
    ("unknown type",          {"type": "fax"},                                        400, 131051),
    ("type is a number",      {"type": 7},                                            400, 131051),
    ("to the sender",         {"to": BUSINESS, "text": {"body": "x"}},                400, 131021),
    ("long callback data",    {"biz_opaque_callback_data": "x" * 513},                400, 100),
    ("image without source",  {"type": "image", "image": {"caption": "x"}},           400, 100),
    ("image with two",        {"type": "image", "image": {"id": "1", "link": "x"}},   400, 100),
    ("location without",      {"type": "location", "location": {"latitude": "x"}},    400, 100),
    ("latitude true",         {"type": "location", "location": {"latitude": True, "longitude": 1}}, 400, 100),
    ("latitude not ASCII",    {"type": "location", "location": {"latitude": "\u0661", "longitude": 1}}, 400, 100),
    ("latitude not finite",   {"type": "location", "location": {"latitude": "nan", "longitude": 1}}, 400, 100),
    ("location name number",  {"type": "location", "location": {"latitude": 1, "longitude": 1, "name": 7}}, 400, 100),
    ("location address list", {"type": "location", "location": {"latitude": 1, "longitude": 1, "address": ["A"]}}, 400, 100),
    ("no contacts",           {"type": "contacts", "contacts": []},                   400, 100),
    ("reaction to nothing",   {"type": "reaction", "reaction": {"emoji": "x"}},       400, 100),
    ("interactive",           {"type": "interactive", "interactive": {"type": "button"}}, 400, 100),
    ("no template",           {"type": "template"},                                   400, 100),
    ("no language",           {"type": "template", "template": {"name": "x"}},        400, 100),
    ("unknown template",      {"type": "template", "template": {"name": "x", "language": {"code": "en"}}}, 404, 132001),
    ("unknown status",        {"status": "typing"},                                   400, 100),
    ("read of nothing",       {"status": "read", "message_id": "wamid.x"},            400, 131009),
]
# fmt: on


@pytest.mark.parametrize(
    ("message", "status", "code"), [row[1:] for row in BAD_MESSAGES], ids=[row[0] for row in BAD_MESSAGES]
)
async def test_invalid_message_is_rejected_at_once(
    bench: Bench, message: dict[str, Any], status: int, code: int
) -> None:
    response = await bench.send(message)

    assert (response.status, response.error["code"]) == (status, code)
    assert response.error["fbtrace_id"].startswith("A")


GOOD_MESSAGES: list[dict[str, Any]] = [
    {"text": {"body": "no type"}},
    {"type": "image", "image": {"link": "https://x.example/a.png", "caption": "Look"}},
    {"type": "document", "document": {"link": "https://x.example/a.pdf", "filename": "a.pdf"}},
    {"type": "location", "location": {"latitude": "37.4", "longitude": -122.1, "name": "Shop"}},
    {"type": "contacts", "contacts": [{"name": {"formatted_name": "Bo"}}]},
    {"type": "reaction", "reaction": {"message_id": "FROM PHONE", "emoji": "\U0001f44d"}},
]


@pytest.mark.parametrize("message", GOOD_MESSAGES, ids=lambda message: message.get("type", "text"))
async def test_every_message_type_arrives_in_the_inbox(bench: Bench, message: dict[str, Any]) -> None:
    received = await bench.send_from_phone()
    if message.get("type") == "reaction":
        message = {"type": "reaction", "reaction": {**message["reaction"], "message_id": received}}

    response = await bench.send(message)

    assert response.status == 200
    inbox = await bench.control("GET", f"phones/{ANN}")
    assert inbox.body["messages"][-1]["type"] == message.get("type", "text")
    assert inbox.body["messages"][-1]["wamid"] == response.body["messages"][0]["id"]


NAMED: dict[str, Any] = {"name": {"formatted_name": "Bo"}}
FULL_CONTACT: dict[str, Any] = {
    "name": {"formatted_name": "Bo", "first_name": "Bo", "suffix": "Jr."},
    "phones": [{"phone": "+15550000001", "type": "WORK", "wa_id": "15550000001"}],
    "emails": [{"email": "bo@shop.example", "type": "WORK"}],
    "urls": [{"url": "https://shop.example", "type": "WORK"}],
    "addresses": [{"street": "1 Hill Rd", "city": "Bay", "zip": "94025", "country_code": "us", "type": "HOME"}],
    "org": {"company": "Shop", "department": "Sales", "title": "Clerk"},
    "birthday": "1999-01-23",
}
# fmt: off
BAD_CONTACTS: list[tuple[str, list[Any], str]] = [  # Source: the operator's page "Contacts messages"
    ("not an object",        [NAMED, "Bo"],                                       "formatted_name"),
    ("258 contacts",         [NAMED] * 258,                                       "at most 257"),
    ("phones not a list",    [{**NAMED, "phones": {"phone": "1"}}],               "contacts[0]['phones'] must be an array"),
    ("phone a number",       [NAMED, {**NAMED, "phones": [{"phone": 1555}]}],     "contacts[1]['phones'][0]['phone']"),
    ("email not an object",  [{**NAMED, "emails": ["bo@shop.example"]}],          "contacts[0]['emails'][0] must be an object"),
    ("url a list",           [{**NAMED, "urls": [{"url": ["https://a.example"]}]}], "contacts[0]['urls'][0]['url']"),
    ("zip a number",         [{**NAMED, "addresses": [{"zip": 94025}]}],          "contacts[0]['addresses'][0]['zip']"),
    ("org a text",           [{**NAMED, "org": "Shop"}],                          "contacts[0]['org'] must be an object"),
    ("title a number",       [{**NAMED, "org": {"title": 1}}],                    "contacts[0]['org']['title']"),
    ("first name a number",  [{"name": {"formatted_name": "Bo", "first_name": 1}}], "contacts[0]['name']['first_name']"),
    ("birthday day first",   [{**NAMED, "birthday": "23-01-1999"}],               "YYYY-MM-DD"),
    ("birthday month 13",    [{**NAMED, "birthday": "1999-13-01"}],               "YYYY-MM-DD"),
    ("birthday a number",    [{**NAMED, "birthday": 19990123}],                   "YYYY-MM-DD"),
]
# fmt: on


@pytest.mark.parametrize(("contacts", "part"), [row[1:] for row in BAD_CONTACTS], ids=[row[0] for row in BAD_CONTACTS])
async def test_member_of_a_contact_has_its_documented_type(bench: Bench, contacts: list[Any], part: str) -> None:
    rejected = await bench.send({"type": "contacts", "contacts": contacts})

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert part in rejected.error["message"]


async def test_contact_with_every_member_and_257_contacts_are_accepted(bench: Bench) -> None:
    await bench.send_from_phone()

    for contacts in ([FULL_CONTACT], [NAMED] * 257):
        assert (await bench.send({"type": "contacts", "contacts": contacts})).status == 200


async def test_business_can_mark_a_message_as_read(bench: Bench) -> None:
    wamid = await bench.send_from_phone()

    response = await bench.send({"status": "read", "message_id": wamid})

    assert response.body == {"success": True}
    inbox = await bench.control("GET", f"phones/{ANN}")
    assert inbox.body["messages"][-1]["state"] == "read"


async def test_recipient_may_omit_the_plus_or_contain_spaces(bench: Bench) -> None:
    for spelling in (ANN, "+1 (555) 123-4567"):
        response = await bench.send({"to": spelling, "text": {"body": "x"}})
        assert response.body["contacts"] == [{"input": spelling, "wa_id": ANN, "user_id": ANN_USER_ID}]


async def test_pair_limit_allows_a_burst_and_then_one_message_in_six_seconds(slow: Bench, clock: ManualClock) -> None:
    for _ in range(45):
        await slow.send_text()
    rejected = await slow.send({"text": {"body": "x"}})
    elsewhere = await slow.send({"text": {"body": "x"}, "to": "15557654321"})
    clock.advance(ms=6000)
    later = await slow.send({"text": {"body": "x"}})

    assert (rejected.status, rejected.error["code"]) == (429, 131056)
    assert elsewhere.status == later.status == 200


async def test_number_sends_no_more_than_its_throughput(slow: Bench, clock: ManualClock) -> None:
    shape = {"waba_id": WABA, "phone_number": BUSINESS, "name": "Shop", "throughput": 2}
    await slow.control("PUT", f"numbers/{NUMBER_ID}", shape)

    codes = [(await slow.send({"to": f"1555000222{n}", "text": {"body": "x"}})).status for n in range(3)]
    clock.advance(ms=1000)
    later = await slow.send({"to": "15550002225", "text": {"body": "x"}})

    assert codes == [200, 200, 429]
    assert later.status == 200


async def test_limits_can_be_switched_off(slow: Bench) -> None:
    await slow.control("PUT", "settings", {"limits": False})

    for _ in range(50):
        await slow.send_text()


async def test_every_accepted_message_is_listed_in_pages(bench: Bench) -> None:
    wamids = [await bench.send_text(biz_opaque_callback_data=f"n-{n}") for n in range(5)]

    first = await bench.control("GET", "deliveries?limit=3")
    second = await bench.control("GET", f"deliveries?limit=3&after={first.body['next']}")
    filtered = await bench.control("GET", "deliveries?callback_data=n-4")

    listed = first.body["deliveries"] + second.body["deliveries"]
    assert [row["wamid"] for row in listed] == wamids
    assert second.body["next"] is None
    assert [row["wamid"] for row in filtered.body["deliveries"]] == wamids[4:]
    assert filtered.body["deliveries"][0]["state"] == "failed"


async def test_read_message_may_skip_delivered(slow: Bench, clock: ManualClock) -> None:
    # Source: facts 7.3: read implies delivered, and then carries the price.
    await slow.control("PUT", "settings", {"skips_delivered": True, "read_after_ms": 1000})
    await slow.send_from_phone()
    wamid = await slow.send_text()

    clock.advance(ms=2000)

    sent, read = await slow.receiver.wait_until(
        lambda: statuses if len(statuses := slow.receiver.statuses(wamid)) == 2 else None
    )
    assert (sent["status"], read["status"]) == ("sent", "read")
    assert read["pricing"]["category"] == "service"


THUMB = "\N{THUMBS UP SIGN}"


def reaction(message_id: str, emoji: str = THUMB) -> dict[str, Any]:
    return {"type": "reaction", "reaction": {"message_id": message_id, "emoji": emoji}}


async def failure_code(bench: Bench, wamid: str) -> int:
    [failed] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert failed["status"] == "failed"
    code: int = failed["errors"][0]["code"]
    return code


@pytest.mark.parametrize("offline", [False, True])
async def test_reaction_has_no_status_after_sent(bench: Bench, offline: bool) -> None:
    received = await bench.send_from_phone()
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": offline, "read_after_ms": 0})

    response = await bench.send(reaction(received))
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": False})
    await bench.control("POST", f"phones/{ANN}/read", {"to": BUSINESS})
    later = await bench.send_text()

    await bench.receiver.wait_until(lambda: "read" in [item["status"] for item in bench.receiver.statuses(later)])
    statuses = bench.receiver.statuses(response.body["messages"][0]["id"])
    assert [status["status"] for status in statuses] == ["sent"]
    assert (await bench.inbox())[-2]["reaction"]["emoji"] == THUMB


async def test_reaction_is_removed_by_an_empty_emoji(bench: Bench) -> None:
    received = await bench.send_from_phone()

    response = await bench.send(reaction(received, ""))

    assert response.status == 200
    assert (await bench.inbox())[-1]["reaction"] == {"message_id": received, "emoji": ""}


async def test_reaction_to_no_message_of_the_chat_fails_later(bench: Bench) -> None:
    await bench.send_from_phone()
    of_another_chat = await bench.send_from_phone(phone="15557654321")
    reacted = (await bench.send(reaction(await bench.send_from_phone()))).body["messages"][0]["id"]

    for target in ("wamid.x", of_another_chat, reacted):
        response = await bench.send(reaction(target))

        assert response.status == 200
        assert await failure_code(bench, response.body["messages"][0]["id"]) == 131009


async def test_reaction_to_a_message_of_30_days_ago_fails_later(slow: Bench, clock: ManualClock) -> None:
    old = await slow.send_from_phone()
    clock.advance(ms=30 * DAY_MS + 1)
    await slow.send_from_phone()

    response = await slow.send(reaction(old))
    clock.advance(ms=1000)

    assert await failure_code(slow, response.body["messages"][0]["id"]) == 131009


async def test_unchecked_references_let_a_reaction_pass(bench: Bench) -> None:
    await bench.send_from_phone()
    await bench.control("PUT", "settings", {"check_references": False})

    response = await bench.send(reaction("wamid.x"))

    assert (await bench.inbox())[-1]["wamid"] == response.body["messages"][0]["id"]


async def test_reply_to_no_message_of_the_chat_is_shown_without_the_bubble(slow: Bench, clock: ManualClock) -> None:
    """Source: the operator's page "Contextual replies"."""
    old = await slow.send_from_phone("Long ago")
    clock.advance(ms=30 * DAY_MS + 1)
    recent = await slow.send_from_phone("Just now")
    of_another_chat = await slow.send_from_phone(phone="15557654321")

    for quoted in (recent, old, of_another_chat, "wamid.x"):
        await slow.send_text(context={"message_id": quoted})
    clock.advance(ms=1000)

    assert [message["context_id"] for message in (await slow.inbox())[-4:]] == [recent, None, None, None]


@pytest.mark.parametrize("number", ["0015550002001", "015550002001", "000000000000", "+0 155-5000-2001"])
async def test_message_to_a_number_of_no_country_fails_later_and_creates_no_phone(bench: Bench, number: str) -> None:
    response = await bench.send({"to": number, "text": {"body": "Hi"}})

    assert response.status == 200, response.body
    assert await failure_code(bench, response.body["messages"][0]["id"]) == 131026
    phones = (await bench.control("GET", "phones")).body["phones"]
    assert [phone for phone in phones if phone["phone"].startswith("0")] == []


async def test_control_api_knows_no_phone_of_a_number_of_no_country(bench: Bench) -> None:
    shown = await bench.control("GET", "phones/015550002001")
    named = await bench.control("PUT", "phones/015550002001", {"name": "Ann"})
    moved = await bench.control("POST", f"phones/{ANN}/number", {"to": "015550002001"})

    assert [response.status for response in (shown, named, moved)] == [400, 400, 400]


async def test_reaction_of_a_customer_to_a_message_of_30_days_ago_has_no_webhook(
    slow: Bench, clock: ManualClock
) -> None:
    # Source: the operator's page "Reaction messages".
    await slow.send_from_phone("Long ago")
    old = await slow.send_text()
    clock.advance(ms=30 * DAY_MS + 1)
    recent = await slow.send_from_phone("Just now")

    for target in (old, recent):
        body = {"to": BUSINESS, "type": "reaction", "reaction": {"message_id": target, "emoji": THUMB}}
        assert (await slow.control("POST", f"phones/{ANN}/messages", body)).status == 200

    await slow.receiver.wait_until(lambda: len(slow.receiver.messages()) == 3)
    await slow.wait_until_drained()
    reactions = [message["reaction"] for message in slow.receiver.messages() if message["type"] == "reaction"]
    assert [reaction["message_id"] for reaction in reactions] == [recent]
