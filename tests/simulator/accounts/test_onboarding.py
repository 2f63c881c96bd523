"""Numbers added by the Graph API, the accounts of a business, and in-app signups."""

import asyncio
from typing import Any

import pytest

from tests.simulator.conftest import APP, BUSINESS, TOKEN, WABA, Bench, SimulatorResponse
from waypost.simulator import AccountSeed, NumberSeed
from waypost.simulator.state.accounts import partner_id

PIN = {"messaging_product": "whatsapp", "pin": "123456"}
OTHER_WABA = "1000000000000009"
OTHER_TOKEN = "other-token"
NEW: dict[str, Any] = {"country_code": "1", "phone_number": "5550004444", "verified_name": "Second"}
SIGNUP: dict[str, Any] = {
    "signup_message": "Hats for less",
    "confirmation_message": "Thank you",
    "privacy_policy_url": "https://hats.example/privacy",
    "policy": {"tos": "https://hats.example/terms", "accepted": True},
}


async def add_number(bench: Bench, **changes: Any) -> SimulatorResponse:
    return await bench.graph("POST", f"{WABA}/phone_numbers", json={**NEW, **changes})


async def seed_other_account(bench: Bench, app_id: str = APP) -> None:
    account = AccountSeed(OTHER_WABA, "Two", "", OTHER_TOKEN, app_id, "secret", "v", "")
    await bench.simulator.seed(account, [NumberSeed("2000000000000099", OTHER_WABA, "15550009900", "Two")])


async def test_added_number_must_be_verified_and_registered_also_after_a_restart(slow: Bench) -> None:
    added = await add_number(slow)
    number_id = added.body["id"]
    await slow.restart()

    early = await slow.graph("POST", f"{number_id}/register", json=PIN)
    unverified = await slow.graph("GET", f"{number_id}?fields=code_verification_status,status,platform_type")
    await slow.graph("POST", f"{number_id}/request_code", json={"code_method": "SMS", "language": "en"})
    shown = await slow.control("GET", f"numbers/{number_id}/registration")
    await slow.graph("POST", f"{number_id}/verify_code", json={"code": shown.body["code"]})
    registered = await slow.graph("POST", f"{number_id}/register", json=PIN)
    verified = await slow.graph("GET", f"{number_id}?fields=code_verification_status,status,platform_type")

    assert added.body == {"id": number_id}
    assert (early.error["code"], registered.status) == (133006, 200)
    assert unverified.body == {
        "id": number_id,
        "code_verification_status": "NOT_VERIFIED",
        "status": "PENDING",
        "platform_type": "NOT_APPLICABLE",
    }
    assert verified.body == {
        "id": number_id,
        "code_verification_status": "VERIFIED",
        "status": "CONNECTED",
        "platform_type": "CLOUD_API",
    }


@pytest.mark.parametrize(
    ("code", "phone", "digits"),
    [
        ("1", "5550004444", "15550004444"),
        ("+1", "(555) 000-4444", "15550004444"),
        ("1", "15550004444", "15550004444"),
        ("1", "+1 555 000 4444", "15550004444"),
        (91, 9198765432, "919198765432"),
        ("91", "919198765432", "919198765432"),
        ("49", "4915112345678", "4915112345678"),
        ("49", "15112345678", "4915112345678"),
    ],
)
async def test_number_may_have_its_country_code(slow: Bench, code: object, phone: object, digits: str) -> None:
    added = await add_number(slow, country_code=code, phone_number=phone)

    accounts = await slow.control("GET", "state")
    numbers = [number for account in accounts.body["accounts"] for number in account["numbers"]]
    assert digits in [number["phone_number"] for number in numbers if number["phone_number_id"] == added.body["id"]]


async def test_country_code_has_an_older_name(slow: Bench) -> None:
    body = {"cc": "1", "phone_number": "5550004444", "verified_name": "Second"}

    added = await slow.graph("POST", f"{WABA}/phone_numbers", json=body)

    assert added.status == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"country_code": None},
        {"country_code": "999"},
        {"country_code": "x"},
        {"phone_number": None},
        {"phone_number": "12"},
        {"phone_number": "+44 20 7946 0000"},
        {"phone_number": "5550004444", "verified_name": ""},
        {"verified_name": None},
        {"verified_name": "x" * 513},
        {"country_code": "", "phone_number": BUSINESS},
        {"country_code": "1", "phone_number": BUSINESS},
    ],
    ids=str,
)
async def test_invalid_or_known_number_is_not_added(slow: Bench, changes: dict[str, Any]) -> None:
    rejected = await add_number(slow, **changes)

    assert (rejected.status, rejected.error["code"]) == (400, 100)


async def test_number_is_added_once_by_simultaneous_requests(slow: Bench) -> None:
    responses = await asyncio.gather(*(add_number(slow) for _ in range(5)))

    assert sorted(response.status for response in responses) == [200, 400, 400, 400, 400]


async def test_businesses_list_the_accounts_that_the_token_is_for(slow: Bench) -> None:
    await seed_other_account(slow)
    shown = await slow.graph("GET", f"{WABA}?fields=owner_business_info")
    owner = shown.body["owner_business_info"]["id"]
    shared_path = f"{partner_id(APP)}/client_whatsapp_business_accounts"

    shared = await slow.graph("GET", f"{shared_path}?fields=id,currency")
    owned = await slow.graph("GET", f"{owner}/owned_whatsapp_business_accounts")
    both = await slow.control("POST", "tokens", {"waba_ids": [WABA, OTHER_WABA]})
    token = both.body["token"]
    first = await slow.graph("GET", f"{shared_path}?limit=1", token)
    after = first.body["paging"]["cursors"]["after"]
    second = await slow.graph("GET", f"{shared_path}?limit=1&after={after}", token)

    assert owner not in (APP, WABA)
    assert shared.body["data"] == [{"id": WABA, "currency": "USD"}]
    assert [account["name"] for account in owned.body["data"]] == ["One"]
    pages = [account["id"] for response in (first, second) for account in response.body["data"]]
    assert pages == sorted([WABA, OTHER_WABA])
    assert "next" in first.body["paging"]
    assert "next" not in second.body["paging"]


async def test_business_owns_nothing_that_is_only_shared_with_it(slow: Bench) -> None:
    shown = await slow.graph("GET", f"{WABA}?fields=owner_business_info")
    owner = shown.body["owner_business_info"]["id"]

    owned = await slow.graph("GET", f"{partner_id(APP)}/owned_whatsapp_business_accounts")
    shared = await slow.graph("GET", f"{owner}/client_whatsapp_business_accounts")

    assert (owned.body["data"], shared.body["data"]) == ([], [])


@pytest.mark.parametrize("query", ["fields=nothing", "limit=0", "filtering=[]", "sort=creation_time_ascending"])
async def test_list_of_accounts_refuses_what_it_cannot_do(slow: Bench, query: str) -> None:
    rejected = await slow.graph("GET", f"{partner_id(APP)}/client_whatsapp_business_accounts?{query}")

    assert rejected.error["code"] == 100


async def test_business_and_signup_of_others_look_unknown(slow: Bench) -> None:
    await seed_other_account(slow, app_id="3000000000000009")
    signup = await slow.graph("POST", f"{WABA}/signups", json=SIGNUP)
    paths = (
        f"{partner_id(APP)}/client_whatsapp_business_accounts",
        f"{partner_id('9')}/client_whatsapp_business_accounts",
        f"signups/{signup.body['id']}",
        "signups/8000000000000000",
        "signups",
        f"{WABA}/signups",
    )

    responses = [await slow.graph("GET", path, OTHER_TOKEN) for path in paths]
    without_prefix = await slow.graph("GET", signup.body["id"])

    assert [response.error["error_subcode"] for response in (*responses, without_prefix)] == [33] * 7


async def test_calls_need_the_management_permission(slow: Bench) -> None:
    signup = await slow.graph("POST", f"{WABA}/signups", json=SIGNUP)
    weak = await slow.control("POST", "tokens", {"waba_ids": [WABA], "permissions": ["whatsapp_business_messaging"]})
    calls = (
        ("POST", f"{WABA}/phone_numbers"),
        ("GET", f"{WABA}/signups"),
        ("POST", f"{WABA}/signups"),
        ("GET", f"signups/{signup.body['id']}"),
        ("POST", f"signups/{signup.body['id']}"),
        ("GET", f"{partner_id(APP)}/client_whatsapp_business_accounts"),
        ("GET", f"{partner_id(APP)}/owned_whatsapp_business_accounts"),
    )

    responses = [await slow.graph(method, path, weak.body["token"]) for method, path in calls]

    assert [response.error["code"] for response in responses] == [200] * 7


async def test_signup_is_stored_changed_and_listed(slow: Bench) -> None:
    created = await slow.graph("POST", f"{WABA}/signups", json=SIGNUP)
    signup_id = created.body["id"]
    changed = await slow.graph(
        "POST", f"signups/{signup_id}", json={"status": "DISABLED", "website_url": "https://hats.example"}
    )
    await slow.restart()

    shown = await slow.graph("GET", f"signups/{signup_id}")
    listed = await slow.graph("GET", f"{WABA}/signups?limit=1")

    assert (created.body, changed.body) == ({"id": signup_id}, {"id": signup_id, "success": True})
    assert shown.body == {
        "id": signup_id,
        "waba_id": WABA,
        "status": "DISABLED",
        "signup_message": "Hats for less",
        "confirmation_message": "Thank you",
        "privacy_policy_url": "https://hats.example/privacy",
        "website_url": "https://hats.example",
    }
    assert listed.body["data"] == [shown.body]


INVALID: list[dict[str, Any]] = [
    {"signup_message": ""},
    {"signup_message": "x" * 301},
    {"signup_message": 7},
    {"confirmation_message": "x" * 301},
    {"confirmation_message": "{{promo_code}}"},
    {"website_url": "http://hats.example"},
    {"website_url": "https://"},
    {"promo_code": "HATS 10"},
    {"promo_code": "x" * 51},
    {"promo_code": "é"},
    {"display_name": "x" * 257},
]


@pytest.mark.parametrize(
    "changes",
    [
        *INVALID,
        {"signup_message": None},
        {"confirmation_message": None},
        {"privacy_policy_url": None},
        {"privacy_policy_url": "ftp://hats.example"},
        {"privacy_policy_url": "hats.example"},
        {"policy": None},
        {"policy": {"tos": "https://hats.example/terms", "accepted": False}},
        {"policy": {"accepted": True}},
        {"policy": "yes"},
    ],
    ids=str,
)
async def test_invalid_signup_is_not_created(slow: Bench, changes: dict[str, Any]) -> None:
    rejected = await slow.graph("POST", f"{WABA}/signups", json={**SIGNUP, **changes})
    listed = await slow.graph("GET", f"{WABA}/signups")

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert next(iter(changes)) in rejected.error["message"]
    assert listed.body["data"] == []


@pytest.mark.parametrize(
    "changes", [*INVALID, {}, {"status": "PAUSED"}, {"privacy_policy_url": "https://hats.example/new"}], ids=str
)
async def test_invalid_change_leaves_a_signup_as_it_was(slow: Bench, changes: dict[str, Any]) -> None:
    created = await slow.graph("POST", f"{WABA}/signups", json=SIGNUP)
    path = f"signups/{created.body['id']}"
    before = await slow.graph("GET", path)

    rejected = await slow.graph("POST", path, json=changes)

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert (await slow.graph("GET", path)).body == before.body


async def test_terms_are_accepted_with_the_first_signup_only(slow: Bench) -> None:
    await slow.graph("POST", f"{WABA}/signups", json=SIGNUP)

    second = await slow.graph(
        "POST", f"{WABA}/signups", json={name: value for name, value in SIGNUP.items() if name != "policy"}
    )

    assert second.status == 200


async def test_simultaneous_changes_of_a_signup_are_all_kept(slow: Bench) -> None:
    created = await slow.graph("POST", f"{WABA}/signups", json=SIGNUP)
    path = f"signups/{created.body['id']}"
    changes = {"status": "DISABLED", "promo_code": "HATS", "display_name": "Hats", "signup_message": "New"}

    await asyncio.gather(*(slow.graph("POST", path, json={name: value}) for name, value in changes.items()))

    shown = await slow.graph("GET", path)
    assert changes.items() <= shown.body.items()


async def test_control_api_shows_the_businesses_of_an_account(slow: Bench) -> None:
    state = await slow.control("GET", "state")
    shown = await slow.graph("GET", f"{WABA}?fields=owner_business_info", TOKEN)

    [account] = state.body["accounts"]
    assert account["partner_business_id"] == partner_id(APP)
    assert account["owner_business_id"] == shown.body["owner_business_info"]["id"]
