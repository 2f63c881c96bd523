"""The operator's webhooks: split into items and read as events, whatever is missing or new."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import ANN, APP, OPERATOR
from waypost.domain.event import (
    AccountEvent,
    CategoryEvent,
    Event,
    InboundEvent,
    OtherStatusEvent,
    PaymentEvent,
    QualityEvent,
    ReviewEvent,
    StatusEvent,
    WebhookItem,
    unreadable_body,
)
from waypost.domain.message import MessageState
from waypost.operators.cloud import webhook
from waypost.operators.cloud.tolerant_json import parse_text
from waypost.operators.cloud.webhook_items import StatusTexts, read_status_texts

NUMBER = APP.phone_number_id
SENT = {"id": "wamid.1", "status": "sent", "timestamp": "1760000000", "recipient_id": ANN}
HELLO = {"id": "wamid.2", "from": ANN, "timestamp": "1760000001", "type": "text", "text": {"body": "Hello"}}


def body_of(*changes: dict[str, Any], account: str = "1000000000000001", **more: Any) -> bytes:
    entry = {"id": account, "time": 1760000000, "changes": list(changes)}
    content = {"object": "whatsapp_business_account", "entry": [entry], **more}
    return json.dumps(content).encode()


def change(field: str = "messages", **value: Any) -> dict[str, Any]:
    metadata = {"display_phone_number": APP.phone_number, "phone_number_id": NUMBER}
    content = {"messaging_product": "whatsapp", "metadata": metadata, **value}
    return {"field": field, "value": content}


def review(**more: Any) -> dict[str, Any]:
    value = {
        "event": "APPROVED",
        "message_template_id": 77,
        "message_template_name": "order_ready",
        "message_template_language": "en-US",
        "reason": "NONE",
    }
    return {"field": "message_template_status_update", "value": value | more}


def split(body: bytes) -> list[WebhookItem]:
    return list(webhook.split(OPERATOR, body))


def read(*changes: dict[str, Any]) -> list[Event]:
    return [webhook.read(item.payload) for item in split(body_of(*changes))]


def read_status(**more: Any) -> Event:
    [event] = read(change(statuses=[SENT | more]))
    return event


def read_message(**more: Any) -> Event:
    [event] = read(change(messages=[HELLO | more]))
    return event


def test_each_status_and_message_of_a_batch_is_an_item_in_its_order() -> None:
    items = split(body_of(change(statuses=[SENT, SENT | {"status": "delivered"}]), change(messages=[HELLO]), review()))

    assert [item.path for item in items] == ["0.0.statuses.0", "0.0.statuses.1", "0.1.messages.0", "0.2"]
    assert len({item.dedupe_key for item in items}) == 4


def test_items_about_one_recipient_share_an_ordering_key_whatever_their_type() -> None:
    items = split(body_of(change(statuses=[SENT]), change(messages=[HELLO])))

    assert {item.ordering_key for item in items} == {f"{NUMBER} {ANN}"}
    assert {item.concurrency_group for item in items} == {NUMBER}


def test_same_item_has_the_same_dedupe_key_in_any_body() -> None:
    alone = split(body_of(change(statuses=[SENT])))
    again = split(body_of(change(messages=[HELLO]), change(statuses=[SENT | {"timestamp": "9"}])))

    assert alone[0].dedupe_key == again[1].dedupe_key


def test_different_states_of_one_message_have_different_keys() -> None:
    [first, second] = split(body_of(change(statuses=[SENT, SENT | {"status": "read"}])))

    assert first.dedupe_key != second.dedupe_key


def test_entries_of_several_accounts_are_split() -> None:
    both = json.loads(body_of(change(statuses=[SENT])))
    both["entry"].append(both["entry"][0] | {"id": "1000000000000002"})

    assert len(split(json.dumps(both).encode())) == 2


def test_status_is_read_with_our_id_from_the_callback_data() -> None:
    more = {"biz_opaque_callback_data": "ours", "conversation": {"id": "c-1"}, "pricing": {"category": "utility"}}

    event = read_status(**more)

    assert event == StatusEvent(
        state=MessageState.SENT,
        operator_message_id="wamid.1",
        message_id="ours",
        recipient=ANN,
        at_s=1760000000,
        conversation={"id": "c-1"},
        pricing={"category": "utility"},
        raw=SENT | more,
        phone_number_id=APP.phone_number_id,
        contact={},
    )


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("sent", MessageState.SENT),
        ("delivered", MessageState.DELIVERED),
        ("read", MessageState.READ),
        ("played", MessageState.READ),
        ("deleted", MessageState.DELETED),
        ("failed", MessageState.FAILED),
        ("DELIVERED", MessageState.DELIVERED),
    ],
)
def test_status_is_mapped_to_its_state(status: str, state: MessageState) -> None:
    event = read_status(status=status)

    assert isinstance(event, StatusEvent)
    assert event.state is state


STATUS_MEMBERS = st.sampled_from([*StatusTexts.__struct_fields__, "conversation", "new"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(STATUS_MEMBERS, st.text(max_size=9) | ANY_JSON))
def test_texts_of_any_status_are_those_of_its_members(status: dict[str, Any]) -> None:
    texts = read_status_texts(status)

    assert texts == StatusTexts(**{name: parse_text(status.get(name)) for name in StatusTexts.__struct_fields__})


@pytest.mark.parametrize("name", ["warning", "Brand New", 7])
def test_unknown_status_is_passed_on_unchanged(name: object) -> None:
    event = read_status(status=name, biz_opaque_callback_data="ours", new={"member": [1]})

    status = SENT | {"status": name, "biz_opaque_callback_data": "ours", "new": {"member": [1]}}
    assert event == OtherStatusEvent(str(name), "wamid.1", "ours", status)


UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "status_empty":      ({"statuses": [SENT | {"status": ""}]},                    "status is missing"),
    "status_null":       ({"statuses": [SENT | {"status": None}]},                  "status is missing"),
    "status_no_id":      ({"statuses": [SENT | {"id": None}]},                      "id is missing"),
    "status_object_id":  ({"statuses": [SENT | {"id": {"_": 1}}]},                  "id is neither text nor number"),
    "status_recipient":  ({"statuses": [SENT | {"recipient_id": [ANN]}]},           "recipient_id is neither text nor number"),
    "status_number":     ({"statuses": [7]},                                        "it is not an object"),
    "statuses_object":   ({"statuses": SENT},                                       "it is not a list"),
    "message_text":      ({"messages": ["Hello"]},                                  "it is not an object"),
    "message_sender":    ({"messages": [HELLO | {"from": None}]},                   "it has no sender"),
    "message_from":      ({"messages": [HELLO | {"from": {"wa_id": ANN}}]},         "from is neither text nor number"),
    "message_type":      ({"messages": [HELLO | {"type": ["text"]}]},               "type is neither text nor number"),
    "messages_object":   ({"messages": HELLO},                                      "it is not a list"),
    "number_missing":    ({"messages": [HELLO], "metadata": {}},                    "metadata.phone_number_id is missing"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "defect"), UNREADABLE.values(), ids=UNREADABLE)
def test_item_that_cannot_be_told_to_anybody_stands_alone_with_its_reason(value: dict[str, Any], defect: str) -> None:
    good = change(statuses=[SENT], messages=[HELLO])
    bad = {**good, "value": {**change()["value"], **value}}

    [_, _, item] = split(body_of(good, bad))

    assert item.defect == defect
    body = unreadable_body(item.payload)
    assert body is not None
    [again] = split(body)
    assert (again.defect, again.payload) == (defect, item.payload)


REPAIRED: dict[str, tuple[bytes, str]] = {
    "half_a_pair":        (rb"cut \ud83d",                     "cut \ufffd"),
    "second_half":        (rb"\uDE00 cut",                     "\ufffd cut"),
    "whole_pair":         (rb"\ud83d\ude00 \ud83d",            "\U0001f600 \ufffd"),
    "escaped_backslash":  (rb"\\ud83d \ud83d",                "\\ud83d \ufffd"),
    "cut_escape":         (rb"cut \ud8",                       "cut \ufffd"),
    "unknown_escape":     (rb"a\qb",                           "a\ufffdb"),
    "not_utf_8":          (b"a\xffb",                          "a\ufffdb"),
    "cut_utf_8":          (b"a\xf0\x9f\x98",                   "a\ufffd"),
    "latin_1":            (b"na\xefve",                         "na\ufffdve"),
    "cesu_8":             (b"\xed\xa0\xbd\xed\xb8\x80!",       "\U0001f600!"),
    "half_of_cesu_8":     (b"a\xed\xa0\xbdb",                  "a\ufffdb"),
    "zero":               (b"a\x00b",                          "a\ufffdb"),
    "escaped_zero":       (rb"a\u0000b",                       "a\ufffdb"),
    "zero_of_java":       (b"a\xc0\x80b",                      "a\ufffdb"),
    "line_break":         (b"a\nb\tc",                         "a\nb\tc"),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "read_text"), REPAIRED.values(), ids=REPAIRED)
def test_text_with_a_damage_is_repaired_wherever_it_stands(sent: bytes, read_text: str) -> None:
    messages = [HELLO | {"text": {"body": "HERE"}}, HELLO | {"id": "wamid.3"}]
    contacts = [{"wa_id": ANN, "profile": {"name": "HERE"}}]
    body = body_of(change(messages=messages, contacts=contacts), review(reason="HERE", event="REJECTED"))

    items = split(body.replace(b"HERE", sent))

    [first, second, decision] = [webhook.read(item.payload) for item in items]
    assert isinstance(first, InboundEvent)
    assert isinstance(second, InboundEvent)
    assert isinstance(decision, ReviewEvent)
    assert (first.text("body"), first.sender_name, decision.reason) == (read_text, read_text, read_text)
    assert second.text("body") == "Hello"


NUMBERS: dict[str, tuple[bytes, object]] = {
    "nan":       (b"NaN",                      None),
    "infinity":  (b"-Infinity",                None),
    "too_great": (b"1e999",                    None),
    "beyond_64": (b"98765432109876543210987", 98765432109876543210987),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "read_number"), NUMBERS.values(), ids=NUMBERS)
def test_number_that_json_does_not_have_is_null(sent: bytes, read_number: object) -> None:
    body = body_of(change(messages=[HELLO | {"new": "HERE", "text": {"body": "NaN"}}])).replace(b'"HERE"', sent)

    [item] = split(body)

    event = webhook.read(item.payload)
    assert isinstance(event, InboundEvent)
    assert (event.raw["new"], event.text("body")) == (read_number, "NaN")


def test_byte_order_mark_before_a_body_is_ignored() -> None:
    assert split(b"\xef\xbb\xbf" + body_of(change(messages=[HELLO]))) == split(body_of(change(messages=[HELLO])))


BROKEN: dict[str, bytes] = {
    "too_deep": b'{"id":"wamid.9","deep":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "deeper_than_we_write": b'{"id":"wamid.9","deep":' + b"[" * 500 + b"]" * 500 + b"}",
    "no_colon": b'{"id" "wamid.9"}',
    "leading_zero": b'{"id":"wamid.9","at":007}',
    "bare_word": b'{"id":wamid}',
    "endless_number": b'{"id":"wamid.9","n":' + b"9" * 5_000 + b"}",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("kind", ["statuses", "messages", "template"])
def test_part_that_is_not_json_costs_no_other_item(kind: str, broken: bytes) -> None:
    after = change(statuses=[SENT | {"id": "wamid.5"}], messages=[HELLO | {"id": "wamid.6"}])
    if kind == "template":
        damaged = review(reason="HERE")
        paths = ["0.0", "0.1.statuses.0", "0.1.messages.0"]
    else:
        listed: dict[str, Any] = {kind: ["HERE", {"statuses": SENT, "messages": HELLO}[kind]]}
        damaged = change(**listed)
        paths = [f"0.0.{kind}.0", f"0.0.{kind}.1", "0.1.statuses.0", "0.1.messages.0"]

    items = split(body_of(damaged, after).replace(b'"HERE"', broken))

    assert [item.path for item in items] == paths
    assert [item.path for item in items if item.defect is not None] == paths[:1]
    assert broken in items[0].payload
    for item in items[1:]:
        webhook.read(item.payload)


@pytest.mark.parametrize(
    "body",
    [body_of(change(messages=[HELLO]))[:-30], b"", b"[]", b"7", b"not json", b"[" * 100_000, b'{"object":"x"}',
     b'{"entry":[],"entry":[7', b'{"entry":[{}]} {"entry":[]}'],
    ids=["cut", "empty", "list", "number", "text", "brackets", "no_entry", "open", "two"],
)  # fmt: skip
def test_body_that_cannot_be_read_is_one_item_with_its_bytes(body: bytes) -> None:
    [item] = split(body)

    assert (item.path, unreadable_body(item.payload)) == ("body", body)
    assert item.defect


FAILURES: list[tuple[object, int, str]] = [
    ([{"code": 131047, "title": "t", "message": "m", "error_data": {"details": "d"}}], 131047, "d"),
    ([{"code": 131047, "title": "t", "message": "m"}], 131047, "m"),
    ([{"code": "131047", "title": "t"}], 131047, "t"),
    ([{}], 131000, "failed"),
    ([], 131000, "failed"),
    ("odd", 131000, "failed"),
    (None, 131000, "failed"),
]


@pytest.mark.parametrize(
    ("errors", "code", "reason"), FAILURES, ids=["full", "no_details", "title", "empty", "none", "text", "null"]
)
def test_failure_is_read_with_the_details_that_it_has(errors: object, code: int, reason: str) -> None:
    event = read_status(status="failed", errors=errors)

    assert isinstance(event, StatusEvent)
    assert (event.code, event.reason) == (code, reason)


@pytest.mark.parametrize("missing", ["timestamp", "recipient_id"])
def test_status_without_one_of_its_members_is_read(missing: str) -> None:
    status = {name: value for name, value in SENT.items() if name != missing}

    [event] = read(change(statuses=[status]))

    assert isinstance(event, StatusEvent)
    assert event.state is MessageState.SENT


def test_status_of_a_recipient_without_a_number_is_read() -> None:
    status = {name: value for name, value in SENT.items() if name != "recipient_id"}

    [item] = split(body_of(change(statuses=[status | {"recipient_user_id": "US.7"}])))

    assert item.ordering_key == f"{NUMBER} US.7"
    event = webhook.read(item.payload)
    assert isinstance(event, StatusEvent)
    assert (event.recipient, event.recipient_user_id) == (None, "US.7")


@pytest.mark.parametrize("timestamp", ["1760000001", 1760000001, "1760000001500", 1760000001500])
def test_time_is_read_in_seconds_and_in_milliseconds(timestamp: object) -> None:
    status, message = read_status(timestamp=timestamp), read_message(timestamp=timestamp)

    assert isinstance(status, StatusEvent)
    assert isinstance(message, InboundEvent)
    assert (status.at_s, message.at_s) == (1760000001, 1760000001)


@pytest.mark.parametrize("timestamp", [None, "", "soon", -5, 1.5, [], True, "9" * 40])
def test_invalid_timestamp_is_read_as_0(timestamp: object) -> None:
    event = read_status(timestamp=timestamp)

    assert isinstance(event, StatusEvent)
    assert event.at_s == 0


def test_ids_that_are_numbers_are_read_as_texts() -> None:
    status = {"id": 7, "status": "sent", "timestamp": 1760000000, "recipient_id": int(ANN)}
    message = HELLO | {"id": 8, "from": int(ANN)}
    value = change(statuses=[status], messages=[message], contacts=[{"wa_id": int(ANN)}])
    value["value"]["metadata"]["phone_number_id"] = int(NUMBER)

    events = read(value)

    assert [item.ordering_key for item in split(body_of(value))] == [f"{NUMBER} {ANN}"] * 2
    [sent, hello] = events
    assert isinstance(sent, StatusEvent)
    assert isinstance(hello, InboundEvent)
    assert (sent.operator_message_id, sent.recipient) == ("7", ANN)
    assert (hello.operator_message_id, hello.sender, hello.phone_number_id) == ("8", ANN, NUMBER)


def test_contact_beside_a_status_has_the_recipients_scoped_id() -> None:
    contacts = [{"wa_id": "1"}, {"wa_id": ANN, "user_id": "US.7"}]

    [event] = read(change(statuses=[SENT], contacts=contacts))

    assert isinstance(event, StatusEvent)
    assert (event.recipient, event.recipient_user_id) == (ANN, "US.7")


def test_contact_beside_a_status_with_another_number_is_ignored() -> None:
    [event] = read(change(statuses=[SENT], contacts=[{"wa_id": "1", "user_id": "US.7"}]))

    assert isinstance(event, StatusEvent)
    assert event.recipient_user_id is None


def test_thousand_updates_in_one_body_are_split() -> None:
    statuses = [SENT | {"id": f"wamid.{number}"} for number in range(500)]
    messages = [HELLO | {"id": f"wamid.in.{number}"} for number in range(500)]

    items = split(body_of(change(statuses=statuses, messages=messages)))

    assert len({item.dedupe_key for item in items}) == 1000


def test_items_without_an_id_are_distinguished_by_their_content() -> None:
    ours = {"status": "sent", "biz_opaque_callback_data": "ours"}
    without_id = [ours | {"recipient_id": ANN}, ours | {"recipient_id": "1"}]
    messages_without_id = [{"from": ANN, "type": "text", "text": {"body": body}} for body in ("a", "b")]

    first = split(body_of(change(statuses=without_id, messages=messages_without_id)))
    again = split(body_of(change(statuses=without_id, messages=messages_without_id)))

    assert len({item.dedupe_key for item in first}) == 4
    assert [item.dedupe_key for item in first] == [item.dedupe_key for item in again]


def test_each_member_of_a_group_has_its_own_status() -> None:
    members = [SENT | {"recipient_participant_id": member} for member in ("1", "2")]

    items = split(body_of(change(statuses=members)))

    assert len({item.dedupe_key for item in items}) == 2


def test_status_is_the_same_item_in_any_letter_case() -> None:
    [first, second] = split(body_of(change(statuses=[SENT, SENT | {"status": "SENT"}])))

    assert first.dedupe_key == second.dedupe_key


ERRORS = [{"code": 131031, "title": "Business Account locked"}, {"code": 0}]


def test_errors_of_the_account_are_one_event() -> None:
    [event] = read(change(errors=ERRORS))

    assert isinstance(event, AccountEvent)
    assert (event.field, event.phone_number_id, event.members["errors"]) == ("messages", NUMBER, ERRORS)


def test_errors_beside_messages_are_an_additional_event() -> None:
    events = read(change(statuses=[SENT], messages=[HELLO], errors=ERRORS))

    assert [type(event) for event in events] == [StatusEvent, InboundEvent, AccountEvent]


def test_status_of_a_payment_is_not_a_status_of_the_message() -> None:
    status = SENT | {"type": "payment", "status": "captured", "biz_opaque_callback_data": "ours"}

    [message_item, payment_item] = split(body_of(change(statuses=[SENT, status])))

    assert message_item.dedupe_key != payment_item.dedupe_key
    assert webhook.read(payment_item.payload) == PaymentEvent("wamid.1", "ours", status)


def payment(status: str, **transaction: Any) -> dict[str, Any]:
    """Return the status of a payment."""
    payment = {"reference_id": "r-1", "transaction": transaction}
    return SENT | {"type": "payment", "status": status, "payment": payment}


def test_repeated_payment_status_is_the_same_item() -> None:
    [first, again] = split(body_of(change(statuses=[payment("captured", id="t-1")] * 2)))

    assert first.dedupe_key == again.dedupe_key


@pytest.mark.parametrize(
    "statuses",
    [
        [payment("failed", id="t-1"), payment("failed", id="t-2")],
        [payment("captured", id="t-1"), payment("captured", id="t-1", refunds=[{"id": "r-1"}])],
    ],
    ids=["second attempt", "refund"],
)
def test_payment_that_changed_under_the_same_status_is_a_new_item(statuses: list[dict[str, Any]]) -> None:
    [first, second] = split(body_of(change(statuses=statuses)))

    assert first.dedupe_key != second.dedupe_key


def test_two_warnings_about_one_message_are_two_items_and_a_redelivered_one_is_not() -> None:
    warnings = [SENT | {"status": "warning", "errors": [{"code": code}]} for code in (1, 2)]

    items = split(body_of(change(statuses=warnings)))
    again = split(body_of(change(statuses=warnings)))

    assert items[0].dedupe_key != items[1].dedupe_key
    assert [item.dedupe_key for item in items] == [item.dedupe_key for item in again]


@pytest.mark.parametrize(
    "changes",
    [
        [{"field": "phone_number_quality_update", "value": {"event": "FLAGGED", "current_limit": "TIER_1K"}}] * 2,
        [{"field": "account_update", "value": {"event": "ACCOUNT_VIOLATION"}}] * 2,
        [{"field": "user_preferences", "value": {"user_preferences": [{"wa_id": ANN, "value": "stop"}]}}] * 2,
        [{"field": "calls", "value": {"calls": [{"event": "connect"}]}}] * 2,
        [change(messages=[{"from": ANN, "type": "text", "text": {"body": "a"}}] * 2)],
        [change(statuses=[{"status": "sent", "recipient_id": ANN}] * 2)],
    ],
    ids=["number", "account", "preferences", "calls", "messages without an id", "statuses without an id"],
)
def test_equal_items_without_an_id_are_distinguished_by_their_position(changes: list[dict[str, Any]]) -> None:
    first = split(body_of(*changes))
    again = split(body_of(*changes))

    assert first[0].dedupe_key != first[1].dedupe_key
    assert [item.dedupe_key for item in first] == [item.dedupe_key for item in again]


def test_text_is_read_with_its_sender() -> None:
    contacts = [{"wa_id": ANN, "profile": {"name": "Ann"}, "user_id": "US.7"}]

    [event] = read(change(messages=[HELLO], contacts=contacts))

    assert event == InboundEvent(
        kind="text",
        operator_message_id="wamid.2",
        phone_number_id=NUMBER,
        sender=ANN,
        sender_user_id="US.7",
        sender_name="Ann",
        at_s=1760000001,
        content={"body": "Hello"},
        raw=HELLO,
        contact=contacts[0],
    )


def test_tap_is_read_with_its_payload_and_the_message_it_replies_to() -> None:
    event = read_message(
        type="button", button={"text": "Yes", "payload": "ok-1"}, context={"id": "wamid.1", "from": APP.phone_number}
    )

    assert isinstance(event, InboundEvent)
    assert event.is_tap
    assert (event.text("text"), event.text("payload"), event.reply_to) == ("Yes", "ok-1", "wamid.1")


@pytest.mark.parametrize("kind", ["button_reply", "list_reply", "nfm_reply", "brand_new"])
def test_interactive_message_has_its_inner_type(kind: str) -> None:
    inner = {"id": "one", "title": "One"}

    event = read_message(type="interactive", interactive={"type": kind, kind: inner})

    assert isinstance(event, InboundEvent)
    assert (event.kind, event.content) == (kind, inner)


def test_message_from_an_advertisement_is_read_with_its_referral() -> None:
    event = read_message(referral={"source_id": "7", "ctwa_clid": "c"})

    assert isinstance(event, InboundEvent)
    assert event.referral == {"source_id": "7", "ctwa_clid": "c"}


def test_message_of_a_sender_without_a_number_is_read() -> None:
    message = {name: value for name, value in HELLO.items() if name != "from"}
    contacts = [{"user_id": "US.7", "profile": {"name": "Ann"}}]

    [item] = split(body_of(change(messages=[message | {"from_user_id": "US.7"}], contacts=contacts)))

    event = webhook.read(item.payload)
    assert isinstance(event, InboundEvent)
    assert (event.sender, event.sender_user_id, event.sender_name) == (None, "US.7", "Ann")
    assert item.ordering_key == f"{NUMBER} US.7"


def test_each_message_of_a_batch_has_the_name_of_its_sender() -> None:
    contacts = [{"wa_id": "15550000002", "profile": {"name": "Ben"}}, {"wa_id": ANN, "profile": {"name": "Ann"}}]
    messages = [HELLO, HELLO | {"id": "wamid.3", "from": "15550000002"}]

    events = read(change(messages=messages, contacts=contacts))

    assert [e.sender_name for e in events if isinstance(e, InboundEvent)] == ["Ann", "Ben"]


@pytest.mark.parametrize("kind", ["image", "reaction", "order", "unsupported", "brand_new"])
def test_message_type_is_read_as_the_operator_named_it(kind: str) -> None:
    event = read_message(type=kind)

    assert isinstance(event, InboundEvent)
    assert event.kind == kind


def test_forwarded_message_is_marked_as_forwarded() -> None:
    event = read_message(context={"forwarded": True, "frequently_forwarded": True})

    assert isinstance(event, InboundEvent)
    assert (event.forwarded, event.frequently_forwarded, event.reply_to) == (True, True, None)


def test_review_is_read_as_a_review_event() -> None:
    [event] = read(review())

    assert event == ReviewEvent(
        business_account_id="1000000000000001",
        operator_template_id="77",
        element_name="order_ready",
        language_code="en_US",
        status="APPROVED",
        raw=review() | {"time": 1760000000},
        at_s=1760000000,
    )


def test_rejection_is_read_with_the_reviewers_reason_if_it_has_one() -> None:
    [plain, explained] = read(
        review(event="REJECTED", reason="INVALID_FORMAT"),
        review(
            event="REJECTED",
            reason="INVALID_FORMAT",
            rejection_info={"reason": "Too vague.", "recommendation": "Say more."},
        ),
    )

    assert isinstance(plain, ReviewEvent)
    assert isinstance(explained, ReviewEvent)
    assert (plain.reason, explained.reason) == ("INVALID_FORMAT", "Too vague.")


@pytest.mark.parametrize("status", ["paused", "Paused", "PAUSED"])
def test_review_status_is_read_in_any_letter_case(status: str) -> None:
    [event] = read(review(event=status))

    assert isinstance(event, ReviewEvent)
    assert event.status == "PAUSED"


def test_two_template_events_in_one_second_are_two_items() -> None:
    first = {"title": "FIRST_PAUSE", "description": "For 3 hours."}

    items = split(
        body_of(
            review(event="PAUSED", other_info=first),
            review(event="PAUSED", other_info=first | {"title": "SECOND_PAUSE"}),
            review(event="APPROVED"),
            review(event="APPROVED"),
        )
    )

    assert len({item.dedupe_key for item in items}) == 3


def test_pause_is_read_with_its_description() -> None:
    other = {"title": "FIRST_PAUSE", "description": "Paused for 3 hours."}

    [event] = read(review(event="PAUSED", other_info=other))

    assert isinstance(event, ReviewEvent)
    assert (event.status, event.description) == ("PAUSED", "Paused for 3 hours.")


NAMED = {"message_template_id": 77, "message_template_name": "order_ready", "message_template_language": "en-US"}
TEMPLATE_FIELDS: dict[str, Any] = {
    "business_account_id": "1000000000000001",
    "operator_template_id": "77",
    "element_name": "order_ready",
    "language_code": "en_US",
}


def test_quality_is_read_as_a_quality_event() -> None:
    update = {
        "field": "message_template_quality_update",
        "value": NAMED | {"previous_quality_score": "GREEN", "new_quality_score": "yellow"},
    }

    assert read(update) == [QualityEvent(**TEMPLATE_FIELDS, quality="YELLOW", raw=update | {"time": 1760000000})]


def test_category_is_read_as_the_present_and_the_next_category() -> None:
    field = "template_category_update"
    notice = NAMED | {"new_category": "UTILITY", "correct_category": "MARKETING"}
    done = NAMED | {"previous_category": "UTILITY", "new_category": "MARKETING"}

    events = read({"field": field, "value": notice}, {"field": field, "value": done})

    assert [(e.category, e.next_category, e.is_done) for e in events if isinstance(e, CategoryEvent)] == [
        ("UTILITY", "MARKETING", False),
        ("UTILITY", "MARKETING", True),
    ]


ACCOUNT_FIELDS = {
    "account_update": {"event": "VERIFIED_ACCOUNT", "phone_number": "+1 555-000-1111"},
    "phone_number_quality_update": {"display_phone_number": "15550001111", "event": "UPGRADE"},
    "user_preferences": {"metadata": {"phone_number_id": "2000000000000002"}},
    "account_alerts": {},
    "flows": {"event": "FLOW_STATUS_CHANGE"},
    "message_template_components_update": NAMED,
}


@pytest.mark.parametrize(("field", "value"), ACCOUNT_FIELDS.items(), ids=ACCOUNT_FIELDS)
def test_account_change_is_read_with_the_number_it_names(field: str, value: dict[str, Any]) -> None:
    [event] = read({"field": field, "value": value})

    assert isinstance(event, AccountEvent)
    assert (event.field, event.value) == (field, value)
    numbers = (event.phone_number, event.phone_number_id)
    assert numbers == {
        "account_update": ("15550001111", None),
        "phone_number_quality_update": ("15550001111", None),
        "user_preferences": (None, "2000000000000002"),
    }.get(field, (None, None))


@pytest.mark.parametrize("value", [{"anything": [1, 2]}, [1, 2], "x", None])
def test_unknown_field_is_one_item_with_its_value_unchanged(value: Any) -> None:
    [event] = read({"field": "brand_new", "value": value})

    assert isinstance(event, AccountEvent)
    assert (event.field, event.value, event.time) == ("brand_new", value, 1760000000)


def test_message_of_a_group_has_its_own_ordering_key() -> None:
    [private, group] = split(body_of(change(messages=[HELLO, HELLO | {"id": "wamid.3", "group_id": "GROUP=="}])))

    assert (private.ordering_key, group.ordering_key) == (f"{NUMBER} {ANN}", f"{NUMBER} group GROUP==")
    event = webhook.read(group.payload)
    assert isinstance(event, InboundEvent)
    assert event.group_id == "GROUP=="


def test_status_of_a_group_names_no_recipient() -> None:
    status = SENT | {"recipient_id": "GROUP==", "recipient_type": "group", "recipient_participant_id": ANN}

    [event] = read(change(statuses=[status]))

    assert isinstance(event, StatusEvent)
    assert (event.recipient, event.recipient_user_id, event.is_of_group) == (None, None, True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b"not json",
        b"\xff\xfe",
        b'{"entry":7}',
        b'{"entry":[7]}',
        b'{"entry":[{"changes":[7]}]}',
        b'{"entry":[{"changes":[{"value":{"statuses":[7]}}]}]}',
        b'{"entry":[{"changes":[{"value":{"messages":[null]}}]}]}',
        b'{"entry":[{"changes":[{"field":7,"value":"x"}]}]}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=range(14),
)
def test_invalid_body_is_split_into_items_that_can_be_read(body: bytes) -> None:
    items = split(body)

    assert items
    for item in items:
        assert item.dedupe_key
        if item.defect is None:
            webhook.read(item.payload)
        else:
            assert unreadable_body(item.payload) is not None


@pytest.mark.parametrize("text", [b'"', b'\\"', b'{"a":"\\"', b'[["', b"[]", b'{"entry":[', b"\\", b"NaN,"])
@pytest.mark.parametrize("begins", [b"", b'{"entry":["'])
def test_no_body_takes_longer_to_split_than_its_length_explains(begins: bytes, text: bytes) -> None:
    """A body that is scanned again from each of its bytes would take hours."""
    items = split(begins + text * (250_000 // len(text)))

    assert [item.path for item in items if item.defect is None] == []


def test_signature_is_valid_for_exactly_these_bytes() -> None:
    body = '{"text": "ä\\u00e4"}'.encode()
    digest = hmac.new(OPERATOR["app_secret"].encode(), body, hashlib.sha256).hexdigest()

    def is_signed(signature: str, of: bytes = body) -> bool:
        return webhook.is_signed(OPERATOR, {"x-hub-signature-256": signature}, of)

    assert is_signed(f"sha256={digest}")
    assert not is_signed(f"sha256={digest}", body + b"\n")
    assert not is_signed(digest)
    assert not is_signed(f"sha1={digest}")
    assert not is_signed(f"sha256={digest.upper()}")
    assert not is_signed("")
    assert not is_signed("ü")
    assert not webhook.is_signed(OPERATOR, {}, body)


def test_handshake_returns_the_challenge_if_everything_is_correct() -> None:
    right = {"hub.mode": "subscribe", "hub.verify_token": OPERATOR["verify_token"], "hub.challenge": "115"}

    def verify(**more: str) -> str | None:
        changed = right | {f"hub.{name}": value for name, value in more.items()}
        return webhook.verify_handshake(OPERATOR, changed)

    assert verify() == "115"
    assert verify(mode="unsubscribe") is None
    assert verify(verify_token="wrong") is None
    assert verify(verify_token="ü") is None
    assert webhook.verify_handshake(OPERATOR, {}) is None
