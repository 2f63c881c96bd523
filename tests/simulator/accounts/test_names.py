"""Display names, official accounts and usernames of a number: requests, and the decisions of the control API."""

from typing import Any

import pytest

from tests.simulator.conftest import NUMBER_ID, WABA, Bench

NAMES = f"numbers/{NUMBER_ID}/names"
OFFICIAL = {"business_website_url": "https://shop.example", "primary_country_of_operation": "US"}
FIELDS = "verified_name,name_status,new_display_name,new_name_status,official_business_account"


async def number_fields(bench: Bench) -> dict[str, Any]:
    response = await bench.graph("GET", f"{NUMBER_ID}?fields={FIELDS}")
    return response.body


async def test_approved_display_name_replaces_the_current_one(bench: Bench) -> None:
    await bench.graph("POST", NUMBER_ID, json={"new_display_name": "Shop Number One"})
    requested = await number_fields(bench)
    await bench.control("PUT", NAMES, {"display_name": "APPROVED"})

    decided = await number_fields(bench)

    assert (requested["verified_name"], requested["new_display_name"]) == ("Shop One", "Shop Number One")
    assert requested["new_name_status"] == "PENDING_REVIEW"
    assert (decided["verified_name"], decided["name_status"]) == ("Shop Number One", "APPROVED")


async def test_rejected_display_name_changes_nothing_and_is_declined(bench: Bench) -> None:
    await bench.graph("POST", NUMBER_ID, json={"new_display_name": "Shop!"})
    await bench.control("PUT", NAMES, {"display_name": "REJECTED", "rejection_reason": "INVALID_FORMAT"})

    decided = await number_fields(bench)

    assert (decided["verified_name"], decided["new_name_status"]) == ("Shop One", "DECLINED")


@pytest.mark.parametrize("body", [{"display_name": "APPROVED"}, {"username": "approved"}])
async def test_what_was_not_requested_cannot_be_decided(bench: Bench, body: dict[str, str]) -> None:
    response = await bench.control("PUT", NAMES, body)

    assert response.status == 409
    assert (await number_fields(bench))["verified_name"] == "Shop One"


async def test_official_account_is_requested_once_and_decided(bench: Bench) -> None:
    edge = f"{NUMBER_ID}/official_business_account"
    before = await number_fields(bench)
    incomplete = await bench.graph("POST", edge, json={"business_website_url": "https://shop.example"})
    requested = await bench.graph("POST", edge, json=OFFICIAL)
    again = await bench.graph("POST", edge, json=OFFICIAL)
    await bench.control("PUT", NAMES, {"official_account": "REJECTED"})
    after_rejection = await bench.graph("POST", edge, json=OFFICIAL)

    assert before["official_business_account"] == {"oba_status": "NOT_STARTED"}
    assert [incomplete.status, requested.status, again.status, after_rejection.status] == [400, 200, 400, 200]
    assert (await number_fields(bench))["official_business_account"] == {"oba_status": "PENDING"}


@pytest.mark.parametrize(
    "username", ["ab", "a" * 36, "1234", "www.shop", ".shop", "shop.", "sh..op", "shop.com", "sh op", 7, None]
)
async def test_username_that_breaks_a_rule_is_rejected(bench: Bench, username: object) -> None:
    response = await bench.graph("POST", f"{NUMBER_ID}/username", json={"username": username})

    assert (response.status, response.body["error"]["code"]) == (400, 100)


@pytest.mark.parametrize("username", ["abc", "a" * 35, "s1.2_3"])
async def test_username_is_reserved_until_it_is_approved(bench: Bench, username: str) -> None:
    reserved = await bench.graph("POST", f"{NUMBER_ID}/username", json={"username": username})
    await bench.control("PUT", NAMES, {"username": "approved"})

    shown = await bench.graph("GET", f"{NUMBER_ID}/username")

    assert reserved.body == {"status": "reserved"}
    assert shown.body == {"username": username, "status": "approved"}


async def test_username_moves_to_another_number_of_the_account_only_by_force(bench: Bench) -> None:
    second = "1000000000000077"
    body = {"waba_id": WABA, "phone_number": "15550007777", "name": "Two"}
    assert (await bench.control("PUT", f"numbers/{second}", body)).status == 200
    await bench.graph("POST", f"{NUMBER_ID}/username", json={"username": "hats"})

    refused = await bench.graph("POST", f"{second}/username", json={"username": "HATS"})
    moved = await bench.graph(
        "POST", f"{second}/username", json={"username": "HATS", "transfer_action": "force_transfer"}
    )

    assert (refused.status, refused.body["error"]["code"]) == (400, 147005)
    assert moved.body == {"status": "reserved"}
    assert (await bench.graph("GET", f"{NUMBER_ID}/username")).body == {}
