"""User ids in webhooks and sends, and contacts in status webhooks."""

import pytest

from tests.simulator.conftest import ANN, ANN_USER_ID, BUSINESS, Bench
from waypost.simulator.state.phone import decode_user_id, encode_user_id


@pytest.mark.parametrize("phone", [ANN, "01234567", "972501234567", "999999999999999"])
def test_user_id_decodes_to_its_phone(phone: str) -> None:
    """Source: facts 7.5, the pattern."""
    user_id = encode_user_id(phone)

    assert decode_user_id(user_id) == phone


def test_user_id_begins_with_the_country_code_of_the_number() -> None:
    countries = {encode_user_id(phone)[:2] for phone in (ANN, "12025550123")}

    assert countries == {"US"}
    assert encode_user_id("972501234567").startswith("IL.")
    assert encode_user_id("37060000000").startswith("ZZ.")


@pytest.mark.parametrize(
    "text", ["", "US.", "US.1", "US.000000000000000000", f"GB.{ANN_USER_ID[3:]}", "US." + "٣" * 18]
)
def test_invalid_user_id_decodes_to_none(text: str) -> None:
    phone = decode_user_id(text)

    assert phone is None


async def test_status_webhooks_have_contacts_and_user_ids(bench: Bench) -> None:
    """Source: facts 7.5."""
    await bench.send_from_phone()
    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)

    values = [value for value in bench.receiver.changes() if "statuses" in value]
    contact = {"profile": {"name": "Phone 4567"}, "wa_id": ANN, "user_id": ANN_USER_ID}
    assert [value["contacts"] for value in values] == [[contact]] * len(values)
    assert {status["recipient_user_id"] for status in bench.receiver.statuses(wamid)} == {ANN_USER_ID}


async def test_webhook_lists_each_recipient_once(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"gather_ms": 50})
    await bench.send_from_phone()
    others = ["15550000001", "15550000002"]
    for phone in others:
        await bench.send_from_phone(phone=phone)
    wamids = [
        (await bench.send({"to": phone, "text": {"body": "x"}})).body["messages"][0]["id"]
        for phone in (*others, *others)
    ]

    await bench.receiver.wait_until(lambda: all(len(bench.receiver.statuses(wamid)) == 2 for wamid in wamids))

    for value in bench.receiver.changes():
        named = [contact["wa_id"] for contact in value.get("contacts", [])]
        assert len(named) == len(set(named))
        if "statuses" in value:
            assert set(named) == {status["recipient_id"] for status in value["statuses"]}


async def test_failed_status_has_a_contact_without_user_id(bench: Bench) -> None:
    """A phone without a WhatsApp account has no user id. Source: facts 7.3."""
    wamid = await bench.send_text()

    [failed] = await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))

    assert failed["status"] == "failed"
    assert "recipient_user_id" not in failed
    [value] = [value for value in bench.receiver.changes() if "statuses" in value]
    assert value["contacts"] == [{"profile": {"name": "Phone 4567"}, "wa_id": ANN}]


async def test_user_ids_and_contacts_can_be_switched_off(bench: Bench) -> None:
    """Source: facts 7.2, 7.3."""
    await bench.control("PUT", "settings", {"user_ids": False, "statuses_contacts": False})
    await bench.send_from_phone()
    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)

    assert all("user_id" not in post.body.decode() for post in bench.receiver.posts)
    assert all("contacts" not in v for v in bench.receiver.changes() if "statuses" in v)


async def test_message_to_a_user_id_reaches_its_phone(bench: Bench) -> None:
    """Source: facts 7.5."""
    await bench.send_from_phone()

    response = await bench.send({"to": None, "recipient": ANN_USER_ID, "text": {"body": "Hello"}})

    assert response.body["contacts"] == [{"input": ANN_USER_ID, "wa_id": ANN, "user_id": ANN_USER_ID}]
    shown = (await bench.control("GET", f"phones/{ANN}?wait_ms=5000")).body["messages"][-1]
    assert shown["text"] == "Hello"


async def test_moved_phone_has_the_user_id_of_its_new_number(bench: Bench) -> None:
    after = "15550000003"
    await bench.send_from_phone()
    moved = await bench.control("POST", f"phones/{ANN}/number", {"to": after})
    assert moved.status == 200, moved.body

    await bench.simulator.send_phone_text(phone=after, to=BUSINESS, text="Me again")

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 3)
    assert bench.receiver.messages()[-1]["from_user_id"] == encode_user_id(after)
