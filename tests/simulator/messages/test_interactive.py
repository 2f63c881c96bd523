"""Interactive messages and the responses of phones."""

import json
from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, WABA, Bench

JsonObject = dict[str, Any]
BODY = {"body": {"text": "Well?"}}


def reply_button(id_: str = "a", title: str = "Yes") -> JsonObject:
    return {"type": "reply", "reply": {"id": id_, "title": title}}


def list_row(id_: str = "a", title: str = "One", **more: Any) -> JsonObject:
    return {"id": id_, "title": title, **more}


def reply_buttons(*buttons: JsonObject, **more: Any) -> JsonObject:
    return {"type": "button", **BODY, "action": {"buttons": list(buttons)}, **more}


def list_message(*sections: JsonObject, label: str = "Menu", **more: Any) -> JsonObject:
    action = {"button": label, "sections": list(sections)}
    return {"type": "list", **BODY, "action": action, **more}


def link_message(**parameters: Any) -> JsonObject:
    fields = {"display_text": "Open", "url": "https://x.example", **parameters}
    action = {"name": "cta_url", "parameters": fields}
    return {"type": "cta_url", **BODY, "action": action}


def flow_message(**parameters: Any) -> JsonObject:
    fields = {"flow_message_version": "3", "flow_cta": "Go", **parameters}
    return {"type": "flow", **BODY, "action": {"name": "flow", "parameters": fields}}


def interactive_message(kind: str, name: str, **parameters: Any) -> JsonObject:
    action: JsonObject = {"name": name} | ({"parameters": parameters} if parameters else {})
    return {"type": kind, **BODY, "action": action}


ITEMS = [{"title": "Top", "product_items": [{"product_retailer_id": "sku"}]}]
GOODS = {"catalog_id": "1", "sections": ITEMS}
IMAGE = {"type": "image", "image": {"link": "https://x.example/a.png"}}

# fmt: off
GOOD: list[tuple[str, JsonObject, list[JsonObject]]] = [
    # what              interactive                                                        shown buttons
    ("replies",         reply_buttons(reply_button(), reply_button("b", "x" * 20)),        [{"type": "REPLY", "text": "Yes", "payload": "a"}, {"type": "REPLY", "text": "x" * 20, "payload": "b"}]),
    ("rows",            list_message({"title": "S", "rows": [list_row(description="d")]}), [{"type": "LIST_ROW", "text": "One", "payload": "a", "description": "d", "section": "S"}]),
    ("long list body",  list_message({"rows": [list_row()]}, body={"text": "x" * 4096}),   [{"type": "LIST_ROW", "text": "One", "payload": "a"}]),
    ("one title in two cases", reply_buttons(reply_button(), reply_button("b", "YES")),    [{"type": "REPLY", "text": "Yes", "payload": "a"}, {"type": "REPLY", "text": "YES", "payload": "b"}]),
    ("link",            link_message(),                                                    [{"type": "URL", "text": "Open", "url": "https://x.example"}]),
    ("product",         {"type": "product", "action": {"catalog_id": "1", "product_retailer_id": "sku"}}, [{"type": "PRODUCT", "text": "View", "catalog_id": "1", "product_retailer_id": "sku"}]),
    ("products",        {"type": "product_list", **BODY, "header": {"type": "text", "text": "H"}, "action": GOODS}, [{"type": "MPM", "text": "View items", **GOODS}]),
    ("catalog",         interactive_message("catalog_message", "catalog_message", thumbnail_product_retailer_id="sku"), [{"type": "CATALOG", "text": "View catalog", "thumbnail_product_retailer_id": "sku"}]),
    ("location request", interactive_message("location_request_message", "send_location"), [{"type": "LOCATION_REQUEST", "text": "Send location"}]),
    ("address request", interactive_message("address_message", "address_message", country="IN"), [{"type": "ADDRESS", "text": "Provide address", "country": "IN"}]),
    ("call permission", interactive_message("call_permission_request", "call_permission_request"), [{"type": "CALL_PERMISSION", "text": "Choose preference"}]),
]
BAD: list[tuple[str, JsonObject, int]] = [
    # what                interactive                                                      code
    ("unknown type",      {"type": "quiz", **BODY, "action": {}},                          131009),
    ("no body",           {"type": "button", "action": {"buttons": [reply_button()]}},     100),
    ("long body",         reply_buttons(reply_button(), body={"text": "x" * 1025}),        131009),
    ("long header",       reply_buttons(reply_button(), header={"type": "text", "text": "x" * 61}), 131009),
    ("odd header",        reply_buttons(reply_button(), header={"type": "song"}),          131009),
    ("unknown media",     reply_buttons(reply_button(), header={"type": "image", "image": {"id": "1"}}), 131053),
    ("long footer",       reply_buttons(reply_button(), footer={"text": "x" * 61}),        131009),
    ("no buttons",        reply_buttons(),                                                 100),
    ("title twice",       reply_buttons(reply_button(), reply_button("b")),                131009),
    ("space before id",   reply_buttons(reply_button(" a")),                               131009),
    ("space after id",    reply_buttons(reply_button("a ")),                               131009),
    ("blank title",       reply_buttons(reply_button(title="  ")),                         100),
    ("blank body",        reply_buttons(reply_button(), body={"text": " \n"}),             100),
    ("blank header",      reply_buttons(reply_button(), header={"type": "text", "text": " "}), 131009),
    ("four buttons",      reply_buttons(*[reply_button(str(n), str(n)) for n in range(4)]),        131009),
    ("id twice",          reply_buttons(reply_button(), reply_button(title="No")),                  131009),
    ("long id",           reply_buttons(reply_button("x" * 257)),                          131009),
    ("long title",        reply_buttons(reply_button("a", "x" * 21)),                      131009),
    ("blank label",       list_message({"rows": [list_row()]}, label=" "),                 100),
    ("row id twice",      list_message({"rows": [list_row(), list_row(title="Two")]}),     131009),
    ("row id in two parts", list_message({"title": "S", "rows": [list_row()]}, {"title": "T", "rows": [list_row()]}), 131009),
    ("blank part",        list_message({"title": " ", "rows": [list_row()]}, {"title": "T", "rows": [list_row("b")]}), 100),
    ("long list body",    list_message({"rows": [list_row()]}, body={"text": "x" * 4097}), 131009),
    ("no label",          list_message({"rows": [list_row()]}, label=""),                  100),
    ("picture on list",   list_message({"rows": [list_row()]}, header=IMAGE),              131009),
    ("no rows",           list_message({"rows": []}),                                      100),
    ("eleven rows",       list_message({"rows": [list_row(str(n)) for n in range(11)]}),   131009),
    ("eleven sections",   list_message(*[{"title": "S", "rows": [list_row(str(n))]} for n in range(11)]), 131009),
    ("untitled part",     list_message({"rows": [list_row()]}, {"rows": [list_row("b")]}), 100),
    ("long row",          list_message({"rows": [list_row(title="x" * 25)]}),              131009),
    ("long description",  list_message({"rows": [list_row(description="x" * 73)]}),        131009),
    ("no url",            link_message(url=""),                                            100),
    ("odd url",           link_message(url="tel:1"),                                       131009),
    ("url with a space",  link_message(url="https://x.example/a b"),                       131009),
    ("url without host",  link_message(url="https:///a"),                                  131009),
    ("url with a variable", link_message(url="https://x.example/{{1}}"),                   131009),
    ("emoji on a flow",   flow_message(flow_id="1", flow_cta="Go \N{ROCKET}"),              131009),
    ("no goods",          {"type": "product_list", **BODY, "action": GOODS},               100),
    ("flow that is none", flow_message(flow_id="1"),                                       131009),
    ("flow by unknown name", flow_message(flow_name="booking"),                            131009),
    ("flow named twice",  flow_message(flow_name="booking", flow_id="1"),                  131009),
    ("flow without id",   flow_message(),                                                  100),
    ("wrong name",        interactive_message("location_request_message", "send"),         131009),
]
# fmt: on


async def send(bench: Bench, interactive: JsonObject) -> Any:
    return await bench.send({"type": "interactive", "interactive": interactive})


@pytest.mark.parametrize(("interactive", "buttons"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
async def test_phone_shows_the_buttons(bench: Bench, interactive: JsonObject, buttons: list[JsonObject]) -> None:
    await bench.send_from_phone()

    response = await send(bench, interactive)

    assert response.status == 200, response.body
    message = (await bench.inbox())[-1]
    assert message["buttons"] == [{"index": n, **button} for n, button in enumerate(buttons)]
    assert message["interactive"] == interactive


@pytest.mark.parametrize(("interactive", "code"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_invalid_interactive_message_is_rejected_at_once(
    bench: Bench, interactive: JsonObject, code: int
) -> None:
    response = await send(bench, interactive)

    assert (response.status, response.error["code"]) == (400, code)


async def test_header_and_footer_are_shown(bench: Bench) -> None:
    await bench.send_from_phone()

    await send(bench, reply_buttons(reply_button(), header=IMAGE, footer={"text": "Bye"}))

    message = (await bench.inbox())[-1]
    assert message["header"] == {"format": "IMAGE", "image": IMAGE["image"]}
    assert (message["text"], message["footer"]) == ("Well?", "Bye")


async def test_flow_response_is_sent_to_the_business(bench: Bench) -> None:
    await bench.send_from_phone()
    created = await bench.graph("POST", f"{WABA}/flows", json={"name": "f", "categories": ["OTHER"]})
    flow_id = created.body["id"]
    as_published = await send(bench, flow_message(flow_id=flow_id))
    opened = await send(bench, flow_message(flow_id=flow_id, flow_token="t-1", mode="draft"))

    responded = await bench.control("POST", f"phones/{ANN}/respond", {"response": {"day": "ä"}})

    assert as_published.error["code"] == 131009
    assert responded.body["message_id"] == opened.body["messages"][0]["id"]
    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    message = bench.receiver.messages()[1]
    assert message["context"] == {"from": BUSINESS, "id": responded.body["message_id"]}
    assert message["interactive"]["type"] == "nfm_reply"
    nfm = message["interactive"]["nfm_reply"]
    assert (nfm["name"], nfm["body"]) == ("flow", "Sent")
    assert json.loads(nfm["response_json"]) == {"flow_token": "t-1", "day": "ä"}


async def test_numbers_of_a_flow_response_reach_the_business_as_they_were_written(bench: Bench) -> None:
    await bench.send_from_phone()
    flow_id = (await bench.graph("POST", f"{WABA}/flows", json={"name": "f", "categories": ["OTHER"]})).body["id"]
    await send(bench, flow_message(flow_id=flow_id, flow_token="t-1", mode="draft"))

    await bench.control_text("POST", f"phones/{ANN}/respond", '{"response":{"amount":7.50,"big":[1e3,0.0]}}')

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    nfm = bench.receiver.messages()[1]["interactive"]["nfm_reply"]
    assert nfm["response_json"] == '{"flow_token":"t-1","amount":7.50,"big":[1e3,0.0]}'


async def test_response_to_a_template_flow_is_sent_to_the_business(bench: Bench) -> None:
    await bench.seed_template(
        [
            {"type": "BODY", "text": "Book now"},
            {"type": "BUTTONS", "buttons": [{"type": "FLOW", "text": "Book", "flow_id": "1"}]},
        ],
        category="MARKETING",
    )
    await bench.send_template()

    await bench.control("POST", f"phones/{ANN}/respond", {"response": {"a": 1}})

    [message] = await bench.receiver.wait_until(bench.receiver.messages)
    nfm = message["interactive"]["nfm_reply"]
    assert json.loads(nfm["response_json"]) == {"flow_token": "unused", "a": 1}


async def test_message_without_a_form_accepts_no_response(bench: Bench) -> None:
    await bench.send_from_phone()
    wamid = await bench.send_text()

    response = await bench.control("POST", f"phones/{ANN}/respond", {"message_id": wamid})

    assert (response.status, response.body["field"]) == (409, "message_id")


async def test_reply_to_a_call_permission_request_is_sent(bench: Bench) -> None:
    await bench.send_from_phone()
    await send(bench, interactive_message("call_permission_request", "call_permission_request"))

    await bench.control("POST", f"phones/{ANN}/respond", {"response": {"response": "reject"}})

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    interactive = bench.receiver.messages()[1]["interactive"]
    assert interactive["type"] == "call_permission_reply"
    assert interactive["call_permission_reply"]["response"] == "reject"


@pytest.mark.parametrize("decision", [1, "maybe", None, ["accept"]])
async def test_reply_to_a_call_permission_request_is_a_decision(bench: Bench, decision: Any) -> None:
    await bench.send_from_phone()
    await send(bench, interactive_message("call_permission_request", "call_permission_request"))

    response = await bench.control("POST", f"phones/{ANN}/respond", {"response": {"response": decision}})

    assert (response.status, response.body["field"], response.body["accepted"]) == (
        400, "response.response", "accept, reject",
    )  # fmt: skip


async def test_phone_sees_that_the_business_is_typing(bench: Bench) -> None:
    wamid = await bench.send_from_phone()
    read = {"status": "read", "message_id": wamid, "typing_indicator": {"type": "text"}}

    await bench.send(read)
    typing = await bench.control("GET", f"phones/{ANN}")
    await bench.send_text()
    done = await bench.control("GET", f"phones/{ANN}")
    wrong = await bench.send({**read, "typing_indicator": {"type": "voice"}})

    assert len(typing.body["typing"]) == 1
    assert done.body["typing"] == []
    assert wrong.error["code"] == 100
