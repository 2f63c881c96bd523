"""Interactive messages, and what is answered to them."""

import json
from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, WABA, Bench

Part = dict[str, Any]
BODY = {"body": {"text": "Well?"}}


def reply(id_: str = "a", title: str = "Yes") -> Part:
    return {"type": "reply", "reply": {"id": id_, "title": title}}


def row(id_: str = "a", title: str = "One", **more: Any) -> Part:
    return {"id": id_, "title": title, **more}


def one_of(*buttons: Part, **more: Any) -> Part:
    return {"type": "button", **BODY, "action": {"buttons": list(buttons)}, **more}


def listed(*sections: Part, label: str = "Menu", **more: Any) -> Part:
    action = {"button": label, "sections": list(sections)}
    return {"type": "list", **BODY, "action": action, **more}


def link(**parameters: Any) -> Part:
    wished = {"display_text": "Open", "url": "https://x.example", **parameters}
    action = {"name": "cta_url", "parameters": wished}
    return {"type": "cta_url", **BODY, "action": action}


def flow(**parameters: Any) -> Part:
    wished = {"flow_message_version": "3", "flow_cta": "Go", **parameters}
    return {"type": "flow", **BODY, "action": {"name": "flow", "parameters": wished}}


def named(kind: str, name: str, **parameters: Any) -> Part:
    action: Part = {"name": name} | ({"parameters": parameters} if parameters else {})
    return {"type": kind, **BODY, "action": action}


ITEMS = [{"title": "Top", "product_items": [{"product_retailer_id": "sku"}]}]
GOODS = {"catalog_id": "1", "sections": ITEMS}
IMAGE = {"type": "image", "image": {"link": "https://x.example/a.png"}}

# fmt: off
GOOD: list[tuple[str, Part, list[Part]]] = [
    # what              interactive                                                shown buttons
    ("replies",         one_of(reply(), reply("b", "x" * 20)),                     [{"type": "REPLY", "text": "Yes", "payload": "a"}, {"type": "REPLY", "text": "x" * 20, "payload": "b"}]),
    ("rows",            listed({"title": "S", "rows": [row(description="d")]}),    [{"type": "LIST_ROW", "text": "One", "payload": "a", "description": "d", "section": "S"}]),
    ("link",            link(),                                                    [{"type": "URL", "text": "Open", "url": "https://x.example"}]),
    ("product",         {"type": "product", "action": {"catalog_id": "1", "product_retailer_id": "sku"}}, [{"type": "PRODUCT", "text": "View", "catalog_id": "1", "product_retailer_id": "sku"}]),
    ("products",        {"type": "product_list", **BODY, "header": {"type": "text", "text": "H"}, "action": GOODS}, [{"type": "MPM", "text": "View items", **GOODS}]),
    ("catalog",         named("catalog_message", "catalog_message", thumbnail_product_retailer_id="sku"), [{"type": "CATALOG", "text": "View catalog", "thumbnail_product_retailer_id": "sku"}]),
    ("place wanted",    named("location_request_message", "send_location"),        [{"type": "LOCATION_REQUEST", "text": "Send location"}]),
    ("address wanted",  named("address_message", "address_message", country="IN"), [{"type": "ADDRESS", "text": "Provide address", "country": "IN"}]),
    ("may we call",     named("call_permission_request", "call_permission_request"), [{"type": "CALL_PERMISSION", "text": "Choose preference"}]),
]
BAD: list[tuple[str, Part, int]] = [
    # what              interactive                                                code
    ("unknown type",    {"type": "quiz", **BODY, "action": {}},                    131009),
    ("no body",         {"type": "button", "action": {"buttons": [reply()]}},      100),
    ("long body",       one_of(reply(), body={"text": "x" * 1025}),                131009),
    ("long header",     one_of(reply(), header={"type": "text", "text": "x" * 61}), 131009),
    ("odd header",      one_of(reply(), header={"type": "song"}),                  131009),
    ("unknown media",   one_of(reply(), header={"type": "image", "image": {"id": "1"}}), 131053),
    ("long footer",     one_of(reply(), footer={"text": "x" * 61}),                131009),
    ("no buttons",      one_of(),                                                  100),
    ("four buttons",    one_of(*[reply(str(n)) for n in range(4)]),                131009),
    ("id twice",        one_of(reply(), reply()),                                  131009),
    ("long id",         one_of(reply("x" * 257)),                                  131009),
    ("long title",      one_of(reply("a", "x" * 21)),                              131009),
    ("no label",        listed({"rows": [row()]}, label=""),                       100),
    ("picture on list", listed({"rows": [row()]}, header=IMAGE),                   131009),
    ("no rows",         listed({"rows": []}),                                      100),
    ("eleven rows",     listed({"rows": [row(str(n)) for n in range(11)]}),        131009),
    ("eleven sections", listed(*[{"title": "S", "rows": [row(str(n))]} for n in range(11)]), 131009),
    ("untitled part",   listed({"rows": [row()]}, {"rows": [row("b")]}),           100),
    ("long row",        listed({"rows": [row(title="x" * 25)]}),                   131009),
    ("long description", listed({"rows": [row(description="x" * 73)]}),            131009),
    ("no url",          link(url=""),                                              100),
    ("odd url",         link(url="tel:1"),                                         131009),
    ("no goods",        {"type": "product_list", **BODY, "action": GOODS},         100),
    ("flow that is none", flow(flow_id="1"),                                       131009),
    ("flow without id", flow(),                                                    100),
    ("wrong name",      named("location_request_message", "send"),                 131009),
]
# fmt: on


async def send(bench: Bench, interactive: Part) -> Any:
    return await bench.send({"type": "interactive", "interactive": interactive})


@pytest.mark.parametrize(("interactive", "buttons"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
async def test_phone_shows_what_can_be_tapped(bench: Bench, interactive: Part, buttons: list[Part]) -> None:
    await bench.let_write()

    answer = await send(bench, interactive)

    assert answer.status == 200, answer.body
    message = (await bench.inbox())[-1]
    assert message["buttons"] == [{"index": n, **button} for n, button in enumerate(buttons)]
    assert message["interactive"] == interactive


@pytest.mark.parametrize(("interactive", "code"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_wrong_interactive_message_is_refused_at_once(bench: Bench, interactive: Part, code: int) -> None:
    answer = await send(bench, interactive)

    assert (answer.status, answer.error["code"]) == (400, code)


async def test_header_and_footer_are_shown(bench: Bench) -> None:
    await bench.let_write()

    await send(bench, one_of(reply(), header=IMAGE, footer={"text": "Bye"}))

    message = (await bench.inbox())[-1]
    assert message["header"] == {"format": "IMAGE", "image": IMAGE["image"]}
    assert (message["text"], message["footer"]) == ("Well?", "Bye")


async def test_flow_is_opened_and_sent_back(bench: Bench) -> None:
    await bench.let_write()
    made = await bench.graph("POST", f"{WABA}/flows", json={"name": "f", "categories": ["OTHER"]})
    flow_id = made.body["id"]
    as_published = await send(bench, flow(flow_id=flow_id))
    opened = await send(bench, flow(flow_id=flow_id, flow_token="t-1", mode="draft"))

    answered = await bench.control("POST", f"phones/{ANN}/answer", {"response": {"day": "ä"}})

    assert as_published.error["code"] == 131009
    assert answered.body["message_id"] == opened.body["messages"][0]["id"]
    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 2)
    message = bench.receiver.messages()[1]
    assert message["context"] == {"from": BUSINESS, "id": answered.body["message_id"]}
    assert message["interactive"]["type"] == "nfm_reply"
    nfm = message["interactive"]["nfm_reply"]
    assert (nfm["name"], nfm["body"]) == ("flow", "Sent")
    assert json.loads(nfm["response_json"]) == {"flow_token": "t-1", "day": "ä"}


async def test_flow_of_a_template_is_sent_back(bench: Bench) -> None:
    await bench.seed_template(
        [
            {"type": "BODY", "text": "Book now"},
            {"type": "BUTTONS", "buttons": [{"type": "FLOW", "text": "Book", "flow_id": "1"}]},
        ],
        category="MARKETING",
    )
    await bench.send_template()

    await bench.control("POST", f"phones/{ANN}/answer", {"response": {"a": 1}})

    [message] = await bench.receiver.until(bench.receiver.messages)
    nfm = message["interactive"]["nfm_reply"]
    assert json.loads(nfm["response_json"]) == {"flow_token": "unused", "a": 1}


async def test_message_without_a_form_cannot_be_answered(bench: Bench) -> None:
    await bench.let_write()
    wamid = await bench.send_text()

    answer = await bench.control("POST", f"phones/{ANN}/answer", {"message_id": wamid})

    assert (answer.status, answer.body["field"]) == (409, "message_id")


async def test_permission_to_call_is_given(bench: Bench) -> None:
    await bench.let_write()
    await send(bench, named("call_permission_request", "call_permission_request"))

    await bench.control("POST", f"phones/{ANN}/answer", {"response": {"response": "reject"}})

    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 2)
    interactive = bench.receiver.messages()[1]["interactive"]
    assert interactive["type"] == "call_permission_reply"
    assert interactive["call_permission_reply"]["response"] == "reject"


async def test_phone_sees_that_the_business_is_typing(bench: Bench) -> None:
    wamid = await bench.let_write()
    read = {"status": "read", "message_id": wamid, "typing_indicator": {"type": "text"}}

    await bench.send(read)
    typing = await bench.control("GET", f"phones/{ANN}")
    await bench.send_text()
    done = await bench.control("GET", f"phones/{ANN}")
    wrong = await bench.send({**read, "typing_indicator": {"type": "voice"}})

    assert len(typing.body["typing"]) == 1
    assert done.body["typing"] == []
    assert wrong.error["code"] == 100
