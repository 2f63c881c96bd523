"""What an app does after a signup, and what it is told: webhooks, credit, users, migration, the end of its access."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.simulator.conftest import ANN, APP, SECRET, WABA, Bench, Receiver, make_bench
from tests.simulator.onboarding.conftest import OTHER_APP, exchange, get_token, play
from tests.support.manual_clock import ManualClock
from waypost.simulator.state.accounts import partner_id
from waypost.simulator.state.embedded_signup import SCREENS

PIN = {"messaging_product": "whatsapp", "pin": "123456"}
SOLUTION = "6200000000000001"
JOINT: dict[str, Any] = {"extras": {"version": "v4", "setup": {"solutionID": SOLUTION}}}


def updates(bench: Bench) -> list[tuple[str, dict[str, Any]]]:
    """Return the id of the entry and the value of each `account_update`."""
    return [
        (entry["id"], change["value"])
        for post in bench.receiver.posts
        for entry in post.value["entry"]
        for change in entry["changes"]
        if change["field"] == "account_update"
    ]


async def test_app_is_told_of_a_signup_before_it_subscribes_to_the_account(slow: Bench) -> None:
    session = await play(slow, **JOINT)
    await slow.receiver.wait_until(lambda: len(updates(slow)) == 2)
    info = {"waba_id": session["waba_id"], "owner_business_id": session["business_id"]}
    again = await play(slow, **JOINT, person_id=session["person_id"], business_id=session["business_id"],
                       waba_id=session["waba_id"], phone_number_id=session["phone_number_id"])  # fmt: skip
    await slow.receiver.wait_until(lambda: len(updates(slow)) == 3)

    own = partner_id(APP)
    joint = {"solution_id": SOLUTION, "solution_partner_business_ids": [own]}
    installed = (own, {"event": "PARTNER_APP_INSTALLED", "waba_info": {**info, "partner_app_id": APP}})
    assert updates(slow) == [(own, {"event": "PARTNER_ADDED", "waba_info": {**info, **joint}}), installed, installed]
    assert again["waba_id"] == session["waba_id"]


async def test_webhooks_about_the_business_continue_after_a_restart(slow: Bench) -> None:
    await play(slow)
    await slow.receiver.wait_until(lambda: len(updates(slow)) == 2)
    await slow.restart()

    await play(slow)

    await slow.receiver.wait_until(lambda: len(updates(slow)) == 4)


async def test_app_without_the_field_is_not_told(slow: Bench) -> None:
    fields = {"callback_uri": slow.receiver.uri, "verify_token": slow.receiver.verify_token, "fields": ["messages"]}
    await slow.control("PUT", f"apps/{APP}/webhook", fields)

    await play(slow)
    await slow.wait_until_drained()

    assert updates(slow) == []


async def test_terms_of_marketing_messages_are_told(slow: Bench) -> None:
    await slow.control("PUT", "onboarding/configurations/7", {"app_id": APP, "products": ["marketing_messages"]})
    await play(slow, config_id="7")

    await slow.receiver.wait_until(lambda: len(updates(slow)) == 3)

    assert [value["event"] for _, value in updates(slow)] == [
        "PARTNER_ADDED", "PARTNER_APP_INSTALLED", "MM_LITE_TERMS_SIGNED",
    ]  # fmt: skip


async def test_messages_reach_the_app_only_after_it_subscribes_to_the_account(slow: Bench) -> None:
    session = await play(slow, phone_number="12025550147")
    token = await get_token(slow, session)
    path = f"{session['waba_id']}/subscribed_apps"
    override = {"override_callback_uri": slow.receiver.uri, "verify_token": slow.receiver.verify_token}

    unsubscribed = await slow.graph("GET", path, token)
    early = await slow.graph("POST", path, token, json=override)
    await slow.simulator.send_phone_text(phone=ANN, to="12025550147", text="lost")
    await slow.graph("POST", path, token)
    overridden = await slow.graph("POST", path, token, json=override)
    await slow.simulator.send_phone_text(phone=ANN, to="12025550147", text="seen")
    await slow.receiver.wait_until(slow.receiver.messages)

    assert unsubscribed.body == {"data": []}
    assert (early.status, early.error["code"]) == (400, 100)
    assert "your app must be subscribed to receive messages" in early.error["message"]
    assert overridden.status == 200
    assert [message["text"]["body"] for message in slow.receiver.messages()] == ["seen"]


async def test_business_that_removes_its_partner_ends_tokens_and_webhooks(slow: Bench) -> None:
    first = await play(slow)
    second = await play(slow, person_id=first["person_id"], business_id=first["business_id"])
    token, both = await get_token(slow, first), await get_token(slow, second)
    await slow.graph("POST", f"{first['waba_id']}/subscribed_apps", token)

    ended = await slow.control("DELETE", f"onboarding/accounts/{first['waba_id']}/apps/{APP}")
    again = await slow.control("DELETE", f"onboarding/accounts/{first['waba_id']}/apps/{APP}")
    revoked = await slow.graph("GET", first["waba_id"], token)
    lost, kept = [await slow.graph("GET", session["waba_id"], both) for session in (first, second)]
    await slow.receiver.wait_until(lambda: len(updates(slow)) == 6)

    assert (ended.body["apps"], again.status) == ([], 409)
    assert (revoked.error["code"], lost.error["error_subcode"], kept.status) == (190, 33, 200)
    info = {"waba_id": first["waba_id"], "owner_business_id": first["business_id"]}
    assert [value for _, value in updates(slow)[-2:]] == [
        {"event": "PARTNER_APP_UNINSTALLED", "waba_info": {**info, "partner_app_id": APP}},
        {"event": "PARTNER_REMOVED", "waba_info": info},
    ]


async def test_lists_have_the_accounts_of_owner_and_partner(slow: Bench) -> None:
    session = await play(slow)
    token = await get_token(slow, session)

    owned = await slow.graph("GET", f"{session['business_id']}/owned_whatsapp_business_accounts", token)
    shared = await slow.graph("GET", f"{partner_id(APP)}/client_whatsapp_business_accounts", token)
    shown = await slow.graph(
        "GET", f"{session['waba_id']}?fields=owner_business_info,business_verification_status", token
    )

    lists = [[account["id"] for account in response.body["data"]] for response in (owned, shared)]
    assert lists == [[session["waba_id"]]] * 2
    assert shown.body["owner_business_info"] == {"id": session["business_id"], "name": "Example Business"}
    assert shown.body["business_verification_status"] == "not_verified"


async def test_reset_keeps_the_owner_of_an_account_and_deletes_sessions_and_codes(slow: Bench) -> None:
    session = await play(slow)

    await slow.control("POST", "reset")
    businesses = (await slow.control("GET", "onboarding/businesses")).body["businesses"]
    again = await play(
        slow, person_id=session["person_id"], business_id=session["business_id"], waba_id=session["waba_id"]
    )

    assert [business["business_id"] for business in businesses] == [session["business_id"]]
    assert len((await slow.control("GET", "onboarding/codes")).body["codes"]) == 1
    assert (again["event"], again["waba_id"]) == ("FINISH", session["waba_id"])


async def test_credit_line_is_shared_with_an_account_once(slow: Bench) -> None:
    session = await play(slow)
    token, waba_id = await get_token(slow, session), session["waba_id"]
    none = await slow.graph("GET", f"{partner_id(APP)}/extendedcredits", token)
    partner = (await slow.control("PUT", f"onboarding/partners/{APP}", {"has_credit_line": True})).body
    line_id = partner["credit_line_id"]
    path = f"{line_id}/whatsapp_credit_sharing_and_attach"

    lines = await slow.graph("GET", f"{partner_id(APP)}/extendedcredits", token)
    foreign = await slow.graph("POST", path, token, params={"waba_id": WABA, "waba_currency": "USD"})
    mistaken = await slow.graph("POST", path, token, params={"waba_id": line_id, "waba_currency": "USD"})
    currency = await slow.graph("POST", path, token, params={"waba_id": waba_id, "waba_currency": "CHF"})
    before = await slow.graph("GET", f"{waba_id}?fields=primary_funding_id", token)
    shared = await slow.graph("POST", path, token, params={"waba_id": waba_id, "waba_currency": "USD"})
    again = await slow.graph("POST", path, token, params={"waba_id": waba_id, "waba_currency": "USD"})
    allocation_id = shared.body["allocation_config_id"]
    allocation = await slow.graph("GET", f"{allocation_id}?fields=receiving_credential{{id}}", token)
    funded = await slow.graph("GET", f"{waba_id}?fields=primary_funding_id", token)
    await slow.graph("DELETE", allocation_id, token)
    unfunded = await slow.graph("GET", f"{waba_id}?fields=primary_funding_id", token)

    assert (none.body["data"], [line["id"] for line in lines.body["data"]]) == ([], [line_id])
    assert [refused.error["code"] for refused in (foreign, mistaken, currency, again)] == [100] * 4
    assert "it is the id of a credit line, not of an account" in mistaken.error["message"]
    assert shared.body == {"allocation_config_id": allocation_id, "waba_id": waba_id}
    assert allocation.body["receiving_credential"]["id"] == funded.body["primary_funding_id"]
    assert [shown.body for shown in (before, unfunded)] == [{"id": waba_id}] * 2


async def test_users_are_assigned_to_an_account(slow: Bench) -> None:
    session = await play(slow)
    token, path = await get_token(slow, session), f"{session['waba_id']}/assigned_users"
    user = {"user": session["person_id"], "tasks": ["MANAGE", "DEVELOP"]}

    assigned = await slow.graph("POST", path, token, json=user)
    by_query = await slow.graph("POST", path, token, params={"user": session["person_id"], "tasks": "['MANAGE']"})
    wrong_task = await slow.graph("POST", path, token, json={**user, "tasks": ["FLY"]})
    wrong_user = await slow.graph("POST", path, token, json={**user, "user": session["business_id"]})
    listed = await slow.graph("GET", f"{path}?business={session['business_id']}", token)
    without = await slow.graph("GET", path, token)
    await slow.graph("DELETE", f"{path}?user={session['person_id']}", token)
    removed = await slow.graph("GET", f"{path}?business={session['business_id']}", token)

    assert (assigned.body, removed.body["data"]) == ({"success": True}, [])
    assert listed.body["data"] == [{"id": session["person_id"], "name": "Ann Example", "tasks": ["MANAGE", "DEVELOP"]}]
    assert [refused.error["code"] for refused in (by_query, wrong_task, wrong_user, without)] == [100] * 4
    assert "it is the id of a business" in wrong_user.error["message"]


async def test_partners_own_token_opens_the_accounts_of_its_joint_solutions(slow: Bench) -> None:
    alone, joint = await play(slow), await play(slow, **JOINT)

    others = await slow.graph("GET", alone["waba_id"])
    opened = await slow.graph("GET", f"{joint['waba_id']}/phone_numbers")
    await slow.restart()
    after = await slow.graph("GET", joint["waba_id"])
    await slow.control("DELETE", f"onboarding/accounts/{joint['waba_id']}/apps/{APP}")
    removed = await slow.graph("GET", joint["waba_id"])

    assert [number["id"] for number in opened.body["data"]] == [joint["phone_number_id"]]
    assert (after.status, others.error["error_subcode"], removed.error["error_subcode"]) == (200, 33, 33)


async def test_account_leaves_a_solution_for_the_app_that_it_signs_up_with(slow: Bench) -> None:
    await slow.control("PUT", f"apps/{OTHER_APP}", {"app_secret": "of-other"})
    alone, joint = await play(slow), await play(slow, **JOINT)
    token = await get_token(slow, joint)
    path = f"{joint['waba_id']}/set_solution_migration_intent"

    not_joint = await slow.graph(
        "POST",
        f"{alone['waba_id']}/set_solution_migration_intent",
        await get_token(slow, alone),
        json={"app_id": OTHER_APP},
    )
    no_app = await slow.graph("POST", path, token, json={"app_id": joint["waba_id"]})
    neither = await slow.graph("POST", path, token, json={})
    intent = await slow.graph("POST", path, token, json={"app_id": OTHER_APP})
    same = await slow.graph("POST", path, token, json={"app_id": OTHER_APP})
    await play(slow, app_id=OTHER_APP, person_id=joint["person_id"], business_id=joint["business_id"],
               waba_id=joint["waba_id"], phone_number_id=joint["phone_number_id"])  # fmt: skip
    shown = await slow.control("GET", f"onboarding/accounts/{joint['waba_id']}")
    await slow.receiver.wait_until(lambda: [v for _, v in updates(slow) if v["event"] == "PARTNER_REMOVED"])

    assert [refused.error["code"] for refused in (not_joint, no_app, neither)] == [100] * 3
    assert "it is the id of an account, not of an app" in no_app.error["message"]
    assert intent.body == same.body
    assert [access["app_id"] for access in shown.body["apps"]] == [OTHER_APP]
    assert (await slow.graph("GET", joint["waba_id"], token)).error["code"] == 190


# What breaks a signup


@pytest.mark.parametrize(("name", "subcode"), [("code_expired", 36007), ("code_used", 36009)])
async def test_broken_code_is_refused(slow: Bench, name: str, subcode: int) -> None:
    session = await play(slow, breaks=[name])

    assert (await exchange(slow, session["code"])).error["error_subcode"] == subcode


async def test_rotated_secret_is_refused_until_it_is_known(slow: Bench) -> None:
    session = await play(slow, breaks=["secret_rotated"])

    refused = await exchange(slow, session["code"])
    await slow.control("PUT", f"apps/{APP}", {"app_secret": SECRET})
    accepted = await exchange(slow, session["code"])

    assert (refused.error["code"], accepted.status) == (1, 200)


async def test_forgotten_pin_is_replaced_by_a_new_one(slow: Bench) -> None:
    session = await play(slow, breaks=["pin_forgotten"])
    token, number_id = await get_token(slow, session), session["phone_number_id"]

    refused = await slow.graph("POST", f"{number_id}/register", token, json=PIN)
    await slow.graph("POST", number_id, token, json={"pin": "123456"})
    registered = await slow.graph("POST", f"{number_id}/register", token, json=PIN)

    assert (refused.error["code"], registered.status) == (133005, 200)


async def test_declined_name_unverified_business_and_registered_number_are_shown(slow: Bench) -> None:
    declined = await play(slow, breaks=["name_declined"])
    unverified = await play(slow, breaks=["business_unverified"])
    registered = await play(slow, breaks=["number_registered"])

    token = await get_token(slow, declined)
    shown = await slow.graph("GET", f"{declined['phone_number_id']}?fields=name_status", token)
    assert shown.body["name_status"] == "DECLINED"
    assert [session["error"]["code"] for session in (unverified, registered)] == [2388098, 3441030]


async def test_lost_field_stops_the_messages(slow: Bench) -> None:
    await play(slow, breaks=["field_not_subscribed"])

    subscriptions = await slow.graph("GET", f"{APP}/subscriptions", f"{APP}|{SECRET}")

    [subscription] = subscriptions.body["data"]
    names = [field["name"] for field in subscription["fields"]]
    assert ("messages" in names, "account_update" in names) == (False, True)


@pytest.mark.parametrize("code", [133005, 133006, 133008, 133009, 133010, 133015, 133016])
async def test_each_error_of_a_registration_is_armed_by_one_call(slow: Bench, code: int) -> None:
    session = await play(slow)
    token = await get_token(slow, session)
    fault = {"on": "call", "call": "numbers.register", "what": {"error": code}, "when": {"next": 1}}
    await slow.control("POST", "faults", fault)

    refused = await slow.graph("POST", f"{session['phone_number_id']}/register", token, json=PIN)
    registered = await slow.graph("POST", f"{session['phone_number_id']}/register", token, json=PIN)

    assert (refused.error["code"], registered.status) == (code, 200)


async def test_codes_are_requested_ten_times_and_registrations_counted_both_ways(slow: Bench) -> None:
    session = await play(slow)
    token, number_id = await get_token(slow, session), session["phone_number_id"]
    request = {"code_method": "SMS", "language": "en"}

    codes = [await slow.graph("POST", f"{number_id}/request_code", token, json=request) for _ in range(11)]
    other = await play(slow)
    token, number_id = await get_token(slow, other), other["phone_number_id"]
    statuses = [
        (await slow.graph("POST", f"{number_id}/{edge}", token, json=PIN)).status
        for _ in range(5)
        for edge in ("register", "deregister")
    ]
    over = await slow.graph("POST", f"{number_id}/register", token, json=PIN)

    assert [response.status for response in codes] == [200] * 10 + [400]
    assert (codes[10].error["code"], statuses, over.error["code"]) == (136024, [200] * 10, 133016)


@pytest.mark.timeout(180)
async def test_thousand_signups_leave_no_orphan_and_give_no_number_twice(
    tmp_path: Path, clock: ManualClock, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    """A quarter is cancelled, on each screen in turn; some end with an error, or are finished by closing."""
    bench = make_bench(tmp_path, clock, receiver, http, limits=False)
    await bench.start()
    screens = [screen for screen in SCREENS if screen != "profile"]
    stops: dict[int, dict[str, Any]] = {1: {"stop": "close"}, 2: {"stop": "end", "error_code": 1675030}}
    finished: list[dict[str, Any]] = []

    async def sign_up(index: int) -> None:
        screen = screens[index // 4 % len(screens)]
        stop = stops.get(index % 8) if screen != "done" or index % 8 == 1 else None
        session = await play(bench, **({"stop_at": screen, **stop} if stop else {}))
        if session["code"]:
            finished.append(session)
            if index % 3:
                await get_token(bench, session)

    for first in range(0, 1000, 20):  # 20 at once
        await asyncio.gather(*(sign_up(index) for index in range(first, first + 20)))
    state = (await bench.control("GET", "state")).body
    codes = (await bench.control("GET", "onboarding/codes?limit=2000")).body["codes"]
    await bench.stop()

    numbers = {account["waba_id"]: account["numbers"] for account in state["accounts"]}
    all_digits = [number["phone_number"] for owned in numbers.values() for number in owned]
    assert 750 <= len(finished) < 1000
    assert len(numbers) == len(finished) + 1  # and the first
    assert [waba_id for waba_id, owned in numbers.items() if len(owned) != 1] == []
    assert len(set(all_digits)) == len(all_digits) == len(finished) + 1
    assert sorted(code["waba_ids"] for code in codes) == sorted([session["waba_id"]] for session in finished)
    assert all(waba_id in numbers for code in codes for waba_id in code["waba_ids"])
