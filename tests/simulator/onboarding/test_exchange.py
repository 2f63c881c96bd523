"""Codes and tokens: the exchange with all its errors, what the token permits, and where its ids come from."""

import asyncio
import hashlib
import hmac
from typing import Any

import pytest

from tests.simulator.conftest import APP, SECRET, WABA, Bench
from tests.simulator.onboarding.conftest import OTHER_APP, debug, exchange, get_token, message_of, play
from tests.support.manual_clock import ManualClock
from waypost.base.object_ids import kind_of_id

DAY_MS = 24 * 3_600_000
URI = "https://page.example/done"


async def test_code_is_exchanged_for_a_token_of_the_account(slow: Bench) -> None:
    session = await play(slow)

    exchanged = await exchange(slow, session["code"])
    token = exchanged.body["access_token"]
    shown = await debug(slow, token)
    numbers = await slow.graph("GET", f"{session['waba_id']}/phone_numbers?fields=id,last_onboarded_time", token)
    other = await slow.graph("GET", f"{WABA}/phone_numbers", token)

    assert exchanged.body == {"access_token": token, "token_type": "bearer"}
    scopes = ["whatsapp_business_management", "whatsapp_business_messaging"]
    assert (shown["app_id"], shown["scopes"], shown["expires_at"], shown["is_valid"]) == (APP, scopes, 0, True)
    assert shown["granular_scopes"] == [{"scope": scope, "target_ids": [session["waba_id"]]} for scope in scopes]
    assert kind_of_id(shown["user_id"]) == "system user"
    [number] = numbers.body["data"]
    assert number["id"] == session["phone_number_id"]
    assert number["last_onboarded_time"].endswith("+0000")
    assert other.error["error_subcode"] == 33


@pytest.mark.parametrize("form", ["query", "form", "json", "multipart"])
async def test_code_is_exchanged_by_post_in_each_format(slow: Bench, form: str) -> None:
    session = await play(slow)
    members = {
        "client_id": APP, "client_secret": SECRET, "code": session["code"], "grant_type": "authorization_code",
    }  # fmt: skip
    import aiohttp

    more: dict[str, Any] = {
        "query": {"params": members},
        "form": {"data": members},
        "json": {"json": members},
        "multipart": {"data": aiohttp.FormData(members, default_to_multipart=True)},
    }[form]

    exchanged = await slow.request("POST", "/v25.0/oauth/access_token", **more)

    assert (exchanged.status, exchanged.body["token_type"]) == (200, "bearer")


async def test_code_is_exchanged_once_and_within_thirty_seconds(slow: Bench, clock: ManualClock) -> None:
    first, second = await play(slow), await play(slow)
    clock.advance(ms=29_999)
    in_time = await exchange(slow, first["code"])
    again = await exchange(slow, first["code"])
    clock.advance(ms=1)
    late = await exchange(slow, second["code"])
    await slow.restart()
    after_restart = await exchange(slow, first["code"])

    assert in_time.status == 200
    assert (again.status, again.error["type"], again.error["code"]) == (400, "OAuthException", 100)
    assert [error.error["error_subcode"] for error in (again, late, after_restart)] == [36009, 36007, 36009]


async def test_code_is_exchanged_once_by_simultaneous_requests(slow: Bench) -> None:
    session = await play(slow)

    responses = await asyncio.gather(*(exchange(slow, session["code"]) for _ in range(5)))

    assert sorted(response.status for response in responses) == [200, 400, 400, 400, 400]


async def test_exchange_repeats_the_address_of_the_dialog(slow: Bench) -> None:
    session = await play(slow, redirect_uri=URI, state="s 1")
    by_script = await play(slow)

    [redirect] = [event["redirect_url"] for event in session["events"] if event["kind"] == "callback"]
    without = await exchange(slow, session["code"])
    other = await exchange(slow, session["code"], redirect_uri=f"{URI}/")
    same = await exchange(slow, session["code"], redirect_uri=URI)
    unasked = await exchange(slow, by_script["code"], redirect_uri=URI)

    assert redirect == f"{URI}?code={session['code']}&state=s+1"
    assert [error.error["error_subcode"] for error in (without, other, unasked)] == [36008] * 3
    assert same.status == 200


@pytest.mark.parametrize(
    ("changes", "code", "subcode"),
    [
        ({"client_id": "1"}, 101, None),
        ({"client_id": ""}, 101, None),
        ({"client_secret": "wrong"}, 1, None),
        ({"client_secret": ""}, 101, None),
        ({"code": "AQunknown"}, 100, 36009),
        ({"code": ""}, 1, None),
        ({"grant_type": "password"}, 100, None),
        ({"client_id": OTHER_APP, "client_secret": "of-other"}, 100, 36009),
    ],
    ids=str,
)
async def test_refused_exchange_leaves_the_code_usable(
    slow: Bench, changes: dict[str, str], code: int, subcode: int | None
) -> None:
    await slow.control("PUT", f"apps/{OTHER_APP}", {"app_secret": "of-other"})
    session = await play(slow)
    query = {"client_id": APP, "client_secret": SECRET, "code": session["code"], **changes}

    refused = await slow.request("GET", "/v25.0/oauth/access_token", params=query)
    accepted = await exchange(slow, session["code"])

    assert (refused.status, refused.error["code"], refused.error.get("error_subcode")) == (400, code, subcode)
    assert accepted.status == 200


async def test_token_of_a_configuration_with_an_end_expires_after_sixty_days(slow: Bench, clock: ManualClock) -> None:
    await slow.control("PUT", "onboarding/configurations/7", {"app_id": APP, "token_days": 60})
    session = await play(slow, config_id="7")
    exchanged = await exchange(slow, session["code"])
    token = exchanged.body["access_token"]

    clock.advance(ms=60 * DAY_MS - 1)
    valid = await slow.graph("GET", session["waba_id"], token)
    clock.advance(ms=1)
    expired = await slow.graph("GET", session["waba_id"], token)

    assert exchanged.body["expires_in"] == 60 * 24 * 3600
    assert valid.status == 200
    assert (expired.status, expired.error["code"], expired.error["error_subcode"]) == (401, 190, 463)


async def test_token_names_all_accounts_that_the_business_has_shared_the_new_one_last(slow: Bench) -> None:
    first = await play(slow)
    second = await play(slow, business_id=first["business_id"], person_id=first["person_id"])

    shown = await debug(slow, await get_token(slow, second))

    targets = [scope["target_ids"] for scope in shown["granular_scopes"]]
    assert targets == [[first["waba_id"], second["waba_id"]]] * 2


@pytest.mark.parametrize(
    ("breaks", "products", "scopes"),
    [
        ([], ["cloud_api"], ["whatsapp_business_management", "whatsapp_business_messaging"]),
        (["scopes_since_june_2026"], ["cloud_api"], ["whatsapp_business_manage_events", "whatsapp_business_messaging"]),
        (["scopes_before_june_2026"], ["conversions_api"], ["whatsapp_business_management", "whatsapp_business_messaging"]),
        ([], ["conversions_api"], [
            "whatsapp_business_management", "whatsapp_business_messaging", "whatsapp_business_manage_events",
        ]),
    ],
)  # fmt: skip
async def test_scopes_are_those_of_the_products_before_and_after_june_2026(
    slow: Bench, breaks: list[str], products: list[str], scopes: list[str]
) -> None:
    await slow.control("PUT", "onboarding/configurations/7", {"app_id": APP, "products": products})
    session = await play(slow, config_id="7", breaks=breaks)

    token = await get_token(slow, session)
    numbers = await slow.graph("GET", f"{session['waba_id']}/phone_numbers", token)

    assert (await debug(slow, token))["scopes"] == scopes
    assert numbers.status == 200  # what a client asks that was mended


async def test_several_accounts_are_shared_at_once_and_named(slow: Bench) -> None:
    first = await play(slow)
    own = {"person_id": first["person_id"], "business_id": first["business_id"]}
    second = await play(slow, **own)
    other = await play(slow, person_name="Bo")
    chosen = {**own, "waba_id": second["waba_id"], "further_waba_ids": [first["waba_id"], first["waba_id"]]}

    both = await play(slow, **chosen, number="existing", phone_number_id=second["phone_number_id"])
    foreign = await play(slow, **{**chosen, "further_waba_ids": [other["waba_id"]]})
    old = await slow.control("POST", "onboarding/play", {"app_id": APP, **chosen, "extras": {"version": "v3"}})

    message = message_of(both)
    assert message is not None
    assert message["data"]["waba_id"] == second["waba_id"]
    assert message["data"]["waba_ids"] == [second["waba_id"], first["waba_id"]]
    assert foreign["error"]["code"] == 2593072
    assert (old.status, old.body["field"]) == (409, "further_waba_ids")
    single = message_of(first)
    assert single is not None
    assert "waba_ids" not in single["data"]


async def test_scopes_are_granted_for_the_shared_objects(slow: Bench) -> None:
    products = ["click_to_whatsapp", "conversions_api"]
    await slow.control("PUT", "onboarding/configurations/7", {"app_id": APP, "products": products})
    assets = {"page_ids": ["2800000000000011"], "ad_account_ids": ["12", "13"], "catalog_ids": ["14"]}

    session = await play(slow, config_id="7", extras={"setup": {}}, assets=assets)
    mistaken = await slow.control(
        "POST", "onboarding/play", {"app_id": APP, "config_id": "7", "assets": {"page_ids": [session["waba_id"]]}}
    )

    granted = (await debug(slow, await get_token(slow, session)))["granular_scopes"]
    targets = {each["scope"]: each.get("target_ids") for each in granted}
    assert targets["ads_management"] == targets["ads_read"] == ["12", "13"]
    assert targets["pages_show_list"] == ["2800000000000011"]
    assert targets["whatsapp_business_manage_events"] == [session["waba_id"]]
    assert (mistaken.status, mistaken.body["field"]) == (409, "assets.page_ids")
    assert "it is the id of an account, not of a page" in mistaken.body["rule"]


async def test_lost_token_is_fetched_with_the_proof_of_the_secret(slow: Bench) -> None:
    session = await play(slow)
    token = await get_token(slow, session)
    user_id = (await debug(slow, token))["user_id"]
    own = f"{APP}|{SECRET}"
    proof = hmac.new(SECRET.encode(), own.encode(), hashlib.sha256).hexdigest()
    path = f"{session['business_id']}/system_user_access_tokens"
    query = {"fetch_only": "true", "system_user_id": user_id, "appsecret_proof": proof}

    fetched = await slow.graph("POST", path, own, params=query)
    unproved = await slow.graph("POST", path, own, params={**query, "appsecret_proof": "0" * 64})
    other = await slow.graph("POST", path, own, params={**query, "system_user_id": session["person_id"]})
    new = await slow.graph("POST", path, own, params={**query, "fetch_only": "false"})

    assert fetched.body == {"access_token": token}
    assert "appsecret_proof" in unproved.error["message"]
    assert "it is the id of a person, not of a system user" in other.error["message"]
    assert (new.status, new.body["access_token"] != token) == (200, True)


async def test_mistaken_id_fails_at_once_and_says_what_it_is(slow: Bench) -> None:
    session = await play(slow)
    token = await get_token(slow, session)
    business_id = session["business_id"]

    read = await slow.graph("GET", f"{business_id}/phone_numbers", token)
    sent = await slow.graph("POST", f"{session['waba_id']}/messages", token, json={"messaging_product": "whatsapp"})
    control = await slow.control("GET", f"onboarding/accounts/{business_id}")

    assert read.error["error_data"]["details"] == f"'{business_id}': it is the id of a business, not of an account."
    assert "it is the id of an account, not of a number" in sent.error["error_data"]["details"]
    assert control.body["rule"] == "is no account: it is the id of a business, not of an account"
