"""Numbers that a partner verifies before a business claims one in the window."""

from typing import Any

import pytest

from tests.simulator.conftest import APP, BUSINESS, Bench, SimulatorResponse
from tests.simulator.onboarding.conftest import OTHER_APP, get_token, message_of, open_window, play, step
from tests.support.manual_clock import ManualClock
from waypost.base.clock import DAY_MS
from waypost.base.object_ids import kind_of_id
from waypost.simulator.state.accounts import partner_id

POOL = f"{partner_id(APP)}/preverified_numbers"
PHONE = "15550783881"
SECOND = "15550783882"
STATUS = "fields=code_verification_status,code_verification_time,verification_expiry_time"


@pytest.fixture
async def partner(slow: Bench) -> Bench:
    """A simulator whose first app is a solution partner's."""
    await slow.control("PUT", f"onboarding/partners/{APP}", {"has_credit_line": True})
    return slow


async def add(bench: Bench, phone_number: str) -> SimulatorResponse:
    return await bench.graph("POST", f"{partner_id(APP)}/add_phone_numbers", params={"phone_number": phone_number})


async def add_to_pool(bench: Bench, phone_number: str) -> str:
    added = await add(bench, phone_number)
    assert added.status == 200, added.body
    return added.body["id"]


async def request_code(bench: Bench, preverified_id: str) -> SimulatorResponse:
    return await bench.graph(
        "POST", f"{preverified_id}/request_code", params={"code_method": "SMS", "language": "en_US"}
    )


async def sent_code(bench: Bench, phone_number: str) -> str:
    return (await bench.control("GET", f"phones/{phone_number}/code")).body["sent"]["code"]


async def verify(bench: Bench, preverified_id: str, phone_number: str) -> SimulatorResponse:
    """Request a code, and enter it."""
    await request_code(bench, preverified_id)
    code = await sent_code(bench, phone_number)
    return await bench.graph("POST", f"{preverified_id}/verify_code", params={"code": code})


def offer(*ids: Any) -> dict[str, Any]:
    """Return the options of a page that offers numbers."""
    return {"extras": {"version": "v4", "setup": {"preVerifiedPhone": {"ids": list(ids)}}}}


async def test_verified_number_is_claimed_without_a_code_and_gets_a_new_id(partner: Bench) -> None:
    preverified_id = await add_to_pool(partner, f"+{PHONE}")
    verified = await verify(partner, preverified_id, PHONE)
    await partner.restart()
    stopped = await play(partner, **offer(preverified_id), stop_at="permissions", stop="leave")
    claimed = await step(partner, stopped, "permissions")
    pool_before = await partner.graph("GET", POOL)
    claimed = await step(partner, claimed, "finish")

    assert (verified.body, kind_of_id(preverified_id)) == ({"success": True}, "preverified number")
    assert (claimed["phone_number"], claimed["code_sent_ms"], claimed["event"]) == (PHONE, None, "FINISH")
    message = message_of(claimed)
    assert message is not None
    assert kind_of_id(message["data"]["phone_number_id"]) == "number"
    token, number_id = await get_token(partner, claimed), claimed["phone_number_id"]
    shown = await partner.graph("GET", f"{number_id}?fields=code_verification_status", token)
    registered = await partner.graph(
        "POST", f"{number_id}/register", token, json={"messaging_product": "whatsapp", "pin": "123456"}
    )
    assert (shown.body["code_verification_status"], registered.status) == ("VERIFIED", 200)
    assert [number["id"] for number in pool_before.body["data"]] == [preverified_id]
    assert (await partner.graph("GET", POOL)).body["data"] == []
    assert (await partner.graph("GET", preverified_id)).error["error_subcode"] == 33
    again = await play(partner, **offer(preverified_id))
    assert (again["event"], again["number"], again["phone_number"] == PHONE) == ("FINISH", "new", False)


async def test_number_that_was_not_verified_is_offered_with_the_code(partner: Bench) -> None:
    preverified_id = await add_to_pool(partner, PHONE)

    stopped = await play(partner, **offer(preverified_id), stop_at="code", stop="leave")
    await step(partner, stopped, "code/send")
    await step(partner, stopped, "code", code=await sent_code(partner, PHONE))
    await step(partner, stopped, "permissions")
    claimed = await step(partner, stopped, "finish")

    assert (claimed["event"], claimed["phone_number"]) == ("FINISH", PHONE)


async def test_verification_ends_after_90_days_and_is_renewable_45_days_before(
    partner: Bench, clock: ManualClock
) -> None:
    preverified_id = await add_to_pool(partner, PHONE)
    new = await partner.graph("GET", f"{preverified_id}?{STATUS}")
    await verify(partner, preverified_id, PHONE)
    clock.advance(ms=45 * DAY_MS - 1)
    early = await request_code(partner, preverified_id)
    clock.advance(ms=1)
    due = await request_code(partner, preverified_id)
    clock.advance(ms=45 * DAY_MS - 1)
    last = await partner.graph("GET", f"{preverified_id}?{STATUS}")
    clock.advance(ms=1)
    ended = await partner.graph("GET", f"{preverified_id}?{STATUS}")
    stopped = await play(partner, **offer(preverified_id), stop_at="code", stop="leave")
    await verify(partner, preverified_id, PHONE)
    renewed = await partner.graph("GET", f"{preverified_id}?{STATUS}")

    assert new.body == {"id": preverified_id, "code_verification_status": "NOT_VERIFIED"}
    assert ("45 days" in early.error["message"], due.status, stopped["phone_number"]) == (True, 200, PHONE)
    states = [shown.body["code_verification_status"] for shown in (last, ended, renewed)]
    assert states == ["VERIFIED", "EXPIRED", "VERIFIED"]
    assert ended.body["verification_expiry_time"] == renewed.body["code_verification_time"]


async def test_number_that_is_never_verified_leaves_the_pool_after_90_days(partner: Bench, clock: ManualClock) -> None:
    first = await add_to_pool(partner, PHONE)
    clock.advance(ms=90 * DAY_MS - 1)
    kept = await partner.graph("GET", POOL)
    clock.advance(ms=1)
    left = await partner.graph("GET", POOL)
    second = await add_to_pool(partner, PHONE)

    assert ([number["id"] for number in kept.body["data"]], left.body["data"]) == ([first], [])
    assert [(await partner.graph("GET", one)).status for one in (first, second)] == [400, 200]


async def test_pool_is_in_order_of_creation_and_selected_by_status(partner: Bench, clock: ManualClock) -> None:
    first = await add_to_pool(partner, SECOND)
    clock.advance(ms=1)
    second = await add_to_pool(partner, PHONE)
    await verify(partner, second, PHONE)

    whole = await partner.graph("GET", POOL)
    verified = await partner.graph("GET", f"{POOL}?code_verification_status=VERIFIED")
    wrong = await partner.graph("GET", f"{POOL}?code_verification_status=DONE")

    assert [number["id"] for number in whole.body["data"]] == [first, second]
    assert verified.body["data"] == [{"id": second, "phone_number": PHONE, "code_verification_status": "VERIFIED"}]
    assert "NOT_VERIFIED" in wrong.error["message"]


async def test_wrong_code_verifies_nothing(partner: Bench) -> None:
    preverified_id = await add_to_pool(partner, PHONE)
    await request_code(partner, preverified_id)
    right = await sent_code(partner, PHONE)
    wrong = "000000" if right != "000000" else "000001"

    refused = await partner.graph("POST", f"{preverified_id}/verify_code", params={"code": wrong})

    shown = await partner.graph("GET", preverified_id)
    assert (refused.error["code"], shown.body["code_verification_status"]) == (100, "NOT_VERIFIED")


async def test_number_in_use_or_in_a_pool_is_not_added(partner: Bench) -> None:
    await add_to_pool(partner, PHONE)
    await partner.control("PUT", f"onboarding/business-app-numbers/{SECOND}", {"name": "Hats"})

    refused = [await add(partner, number) for number in (BUSINESS, PHONE, "5", "")]

    assert [one.error["code"] for one in refused] == [100] * 4
    assert "registered" in refused[0].error["message"]
    assert "pool" in refused[1].error["message"]


async def test_only_a_solution_partner_has_a_pool(slow: Bench) -> None:
    refused = [await add(slow, PHONE), await slow.graph("GET", POOL)]

    assert [one.error["code"] for one in refused] == [200, 200]


async def test_page_offers_only_numbers_of_its_own_pool(partner: Bench) -> None:
    first = await add_to_pool(partner, PHONE)
    await partner.control("PUT", f"apps/{OTHER_APP}", {"app_secret": "of-other"})
    foreign = await play(partner, app_id=OTHER_APP, **offer(first), stop_at="code", stop="leave")
    window = await play(partner, **offer("1", 7, None, first), stop_at="number", stop="leave")
    session = await open_window(partner, **offer("1"))
    for name in ("sign-in", "terms", "business"):
        await step(partner, session, name)
    path = f"onboarding/sessions/{session['session_id']}/account"
    refused = await partner.control("POST", path, {"number": "preverified", "phone_number_id": first})

    assert (window["number"], window["phone_number"], foreign["number"]) == ("preverified", PHONE, "new")
    assert (refused.status, "is not offered by this window" in str(refused.body)) == (409, True)


async def test_two_windows_claim_a_number_once(partner: Bench) -> None:
    preverified_id = await add_to_pool(partner, PHONE)
    await verify(partner, preverified_id, PHONE)
    slower = await play(partner, **offer(preverified_id), stop_at="done", stop="leave")

    first = await play(partner, **offer(preverified_id))
    late = await step(partner, slower, "finish")

    assert (first["event"], first["phone_number"]) == ("FINISH", PHONE)
    assert (late["screen"], late["error"]["code"], late["event"]) == ("account", 3441030, "")
