"""Hidden numbers: who knows them and for how long, parent ids, and changes of user ids."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, Bench
from tests.support.manual_clock import ManualClock

DAY_MS = 24 * 3600 * 1000
USER, NEXT_USER, PARENT = "US.1349", "US.1350", "US.ENT.7"


async def write(bench: Bench, text: str = "Hi") -> dict[str, Any]:
    """Send a text from Ann's phone, and return its message as the business gets it."""
    wamid = await bench.send_from_phone(text)
    await bench.receiver.wait_until(lambda: any(message["id"] == wamid for message in bench.receiver.messages()))
    [message] = [message for message in bench.receiver.messages() if message["id"] == wamid]
    return message


async def hide(bench: Bench, **more: Any) -> None:
    response = await bench.control("PUT", f"phones/{ANN}", {"user_id": USER, "shows_number": False, **more})
    assert response.status == 200, response.body


async def test_number_without_contact_is_hidden_at_once(bench: Bench) -> None:
    await hide(bench)

    message = await write(bench)

    assert "from" not in message
    assert message["from_user_id"] == USER


async def test_business_knows_a_hidden_number_for_30_days_after_contact_by_it(slow: Bench, clock: ManualClock) -> None:
    """Source: facts 7.5."""
    assert (await write(slow))["from"] == ANN
    await hide(slow)

    clock.advance(ms=30 * DAY_MS - 1000)
    last_day = await write(slow)
    clock.advance(ms=1000)
    later = await write(slow)

    assert (last_day["from"], last_day["from_user_id"]) == (ANN, USER)
    assert "from" not in later


async def test_send_to_a_hidden_number_makes_it_known_for_30_days_more(slow: Bench, clock: ManualClock) -> None:
    await hide(slow)
    assert "from" not in await write(slow)

    to_number = await slow.send({"to": ANN, "text": {"body": "Hello"}})
    known = await write(slow)
    to_user = await slow.send({"to": "", "recipient": USER, "text": {"body": "Hello"}})
    clock.advance(ms=30 * DAY_MS)
    later = await write(slow)
    to_user_later = await slow.send({"to": "", "recipient": USER, "text": {"body": "Hello"}})

    assert to_number.body["contacts"] == [{"input": ANN, "wa_id": ANN, "user_id": USER}]
    assert known["from"] == ANN
    assert to_user.body["contacts"] == [{"input": USER, "wa_id": ANN, "user_id": USER}]
    assert "from" not in later
    assert to_user_later.body["contacts"] == [{"input": USER, "user_id": USER}]


async def test_contact_book_keeps_a_number_for_ever(slow: Bench, clock: ManualClock) -> None:
    await slow.control("PUT", "settings", {"contact_book": True})
    await write(slow)
    await hide(slow)

    clock.advance(ms=400 * DAY_MS)

    assert (await write(slow))["from"] == ANN


async def test_number_that_is_shown_again_is_known_to_everybody(bench: Bench) -> None:
    await hide(bench)
    await bench.control("PUT", f"phones/{ANN}", {"shows_number": True})

    assert (await write(bench))["from"] == ANN


async def test_parent_id_is_in_messages_contacts_and_statuses(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"user_id": USER, "parent_user_id": PARENT, "username": "ann"})

    message = await write(bench)
    wamid = await bench.send_text()
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)

    assert message["from_parent_user_id"] == PARENT
    assert {status["recipient_parent_user_id"] for status in bench.receiver.statuses(wamid)} == {PARENT}
    contacts = [contact for value in bench.receiver.changes() for contact in value["contacts"]]
    profile = {"name": "Phone 4567", "username": "ann"}
    assert contacts[0] == {"profile": profile, "wa_id": ANN, "user_id": USER, "parent_user_id": PARENT}


@pytest.mark.parametrize("is_hidden", [False, True])
async def test_businesses_with_a_chat_are_notified_of_another_user_id(bench: Bench, is_hidden: bool) -> None:
    """Source: the operator's page "Business-scoped user IDs"."""
    await bench.control("PUT", f"phones/{ANN}", {"user_id": USER, "shows_number": not is_hidden, "username": "ann"})
    await write(bench)

    response = await bench.control("POST", f"phones/{ANN}/user-id", {"to": NEXT_USER})
    await bench.receiver.wait_until(lambda: bench.receiver.changes("user_id_update"))
    after = await write(bench)

    text = f"User ann changed from {USER} to {NEXT_USER}"
    number = {} if is_hidden else {"wa_id": ANN}
    [wamid] = response.body["wamids"]
    [notice] = [message for message in bench.receiver.messages() if message["id"] == wamid]
    assert notice["system"] == {"body": text, "user_id": NEXT_USER, "type": "user_changed_user_id", **number}
    [update] = bench.receiver.changes("user_id_update")
    assert update["metadata"] == {"display_phone_number": BUSINESS, "phone_number_id": NUMBER_ID}
    [change] = update["user_id_update"]
    assert change == {
        **number,
        "detail": text,
        "user_id": {"previous": USER, "current": NEXT_USER},
        "timestamp": change["timestamp"],
    }
    assert after["from_user_id"] == NEXT_USER


async def test_user_id_of_another_phone_cannot_be_taken(bench: Bench) -> None:
    await bench.control("PUT", "phones/15550000001", {"user_id": NEXT_USER})

    response = await bench.control("POST", f"phones/{ANN}/user-id", {"to": NEXT_USER})

    assert (response.status, response.body["field"]) == (409, "to")
