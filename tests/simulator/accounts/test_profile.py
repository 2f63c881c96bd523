"""Number resources: profile, block list, ice breakers, status."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, WABA, Bench
from tests.support.manual_clock import ManualClock

PROFILE = f"{NUMBER_ID}/whatsapp_business_profile"
BLOCKS = f"{NUMBER_ID}/block_users"
AUTOMATION = f"{NUMBER_ID}/conversational_automation"
APP = "3000000000000003"
DAY_MS = 24 * 3600 * 1000


async def change_profile(bench: Bench, **fields: Any) -> int:
    response = await bench.graph("POST", PROFILE, json={"messaging_product": "whatsapp", **fields})
    return response.status


async def test_profile_is_stored_and_survives_a_restart(bench: Bench) -> None:
    profile = {
        "about": "Tea and more",
        "address": "1 Main St",
        "description": "A shop",
        "email": "shop@example.com",
        "vertical": "RETAIL",
        "websites": ["https://shop.example", "http://tea.example"],
    }
    before = await bench.graph("GET", PROFILE)

    await change_profile(bench, **profile)
    await change_profile(bench, about="Tea")
    await bench.restart()

    shown = await bench.graph("GET", PROFILE)
    chosen = await bench.graph("GET", f"{PROFILE}?fields=about,email")
    unknown = await bench.graph("GET", f"{PROFILE}?fields=nothing")
    assert before.body == {"data": [{"messaging_product": "whatsapp"}]}
    assert shown.body["data"] == [{**profile, "about": "Tea", "messaging_product": "whatsapp"}]
    assert chosen.body["data"] == [{"about": "Tea", "email": "shop@example.com", "messaging_product": "whatsapp"}]
    assert unknown.error["code"] == 100


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"about": ""}, 400),
        ({"about": "a" * 139}, 200),
        ({"about": "a" * 140}, 400),
        ({"address": "a" * 256}, 200),
        ({"address": "a" * 257}, 400),
        ({"description": "a" * 512}, 200),
        ({"description": "a" * 513}, 400),
        ({"description": 1}, 400),
        ({"email": "a" * 100 + "@" + "b" * 23 + ".com"}, 200),
        ({"email": "a" * 100 + "@" + "b" * 24 + ".com"}, 400),
        ({"email": "nobody"}, 400),
        ({"vertical": "NOT_A_BIZ"}, 200),
        ({"vertical": "TEA"}, 400),
        ({"websites": ["https://" + "a" * 248]}, 200),
        ({"websites": ["https://" + "a" * 249]}, 400),
        ({"websites": ["https://a"] * 3}, 400),
        ({"websites": ["a.example"]}, 400),
        ({"websites": "https://a"}, 400),
        ({"messaging_product": "x"}, 400),
        ({"profile_picture_handle": "4::unknown"}, 400),
    ],
)
async def test_profile_fields_are_limited(bench: Bench, fields: dict[str, Any], status: int) -> None:
    assert await change_profile(bench, **fields) == status


async def test_picture_comes_from_a_handle_and_can_be_fetched(slow: Bench, clock: ManualClock) -> None:
    content = b"\xff\xd8\xffpicture"
    query = {"file_length": str(len(content)), "file_type": "image/jpeg"}
    session = (await slow.graph("POST", f"{APP}/uploads", params=query)).body["id"]
    uploaded = await slow.graph("POST", session, data=content, headers={"file_offset": "0"})

    await change_profile(slow, profile_picture_handle=uploaded.body["h"])

    clock.advance(ms=40 * DAY_MS)
    await slow.restart()
    shown = await slow.graph("GET", f"{PROFILE}?fields=profile_picture_url")
    url = shown.body["data"][0]["profile_picture_url"]
    async with slow.http.get(url) as response:
        fetched = await response.read()
    async with slow.http.get(url.replace("hash=", "hash=0")) as forged:
        assert forged.status == 400
    assert (response.status, response.headers["Content-Type"]) == (200, "image/jpeg")
    assert fetched == content


async def test_empty_handle_removes_the_picture_and_its_file(bench: Bench) -> None:
    content = b"\xff\xd8\xffpicture"
    query = {"file_length": str(len(content)), "file_type": "image/jpeg"}
    session = (await bench.graph("POST", f"{APP}/uploads", params=query)).body["id"]
    uploaded = await bench.graph("POST", session, data=content, headers={"file_offset": "0"})
    await change_profile(bench, about="Tea", profile_picture_handle=uploaded.body["h"])
    shown = await bench.graph("GET", f"{PROFILE}?fields=profile_picture_url")
    url = shown.body["data"][0]["profile_picture_url"]

    async with bench.http.get(url) as before:
        pass
    statuses = [await change_profile(bench, profile_picture_handle="") for _ in range(2)]
    async with bench.http.get(url) as after:
        pass
    await bench.restart()

    remaining = await bench.graph("GET", PROFILE)
    assert (before.status, after.status, statuses) == (200, 400, [200, 200])
    assert remaining.body["data"] == [{"about": "Tea", "messaging_product": "whatsapp"}]


def block_body(*phones: str) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "block_users": [{"user": phone} for phone in phones]}


async def test_phone_with_an_open_window_can_be_blocked_and_unblocked(bench: Bench) -> None:
    await bench.send_from_phone()

    added = await bench.graph("POST", BLOCKS, json=block_body(f"+{ANN}"))
    listed = await bench.graph("GET", BLOCKS)
    await bench.restart()
    sent = await bench.send({"text": {"body": "Hello"}})
    removed = await bench.graph("DELETE", BLOCKS, json=block_body(ANN))

    assert added.body == {
        "messaging_product": "whatsapp",
        "block_users": {"added_users": [{"input": f"+{ANN}", "wa_id": ANN}]},
    }
    assert listed.body["data"] == [{"messaging_product": "whatsapp", "input": ANN, "wa_id": ANN}]
    assert sent.error["code"] == 130403
    assert removed.body["block_users"] == {"removed_users": [{"input": ANN, "wa_id": ANN}]}
    assert (await bench.graph("GET", BLOCKS)).body == {"data": []}
    assert (await bench.send({"text": {"body": "Hello"}})).status == 200


async def test_each_phone_that_cannot_be_blocked_is_returned_with_its_error(bench: Bench) -> None:
    await bench.send_from_phone()

    response = await bench.graph("POST", BLOCKS, json=block_body(ANN, "15559990000", BUSINESS, "x"))

    block_list = response.body["block_users"]
    assert response.status == 200
    assert [user["wa_id"] for user in block_list["added_users"]] == [ANN]
    codes = {user["input"]: user["errors"][0]["code"] for user in block_list["failed_users"]}
    assert codes == {"15559990000": 131047, BUSINESS: 139100, "x": 100}
    assert response.body["errors"]["code"] == 139100


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messaging_product": "whatsapp"},
        {"messaging_product": "whatsapp", "block_users": []},
        {"messaging_product": "whatsapp", "block_users": ["x"]},
        {"messaging_product": "whatsapp", "block_users": [{"user": str(n)} for n in range(1001)]},
    ],
)
async def test_invalid_block_list_is_rejected(bench: Bench, body: dict[str, Any]) -> None:
    for method in ("POST", "DELETE"):
        response = await bench.graph(method, BLOCKS, json=body)
        assert (response.status, response.error["code"]) == (400, 100)


async def test_ice_breakers_and_commands_are_stored_and_shown(bench: Bench) -> None:
    commands = [{"command_name": "help", "command_description": "Ask a person"}]
    body = {"prompts": ["Where is my order?"], "commands": commands}

    set_first = await bench.graph("POST", AUTOMATION, json=body)
    await bench.graph("POST", AUTOMATION, json={"enable_welcome_message": True})
    shown = await bench.graph("GET", AUTOMATION)
    as_field = await bench.graph("GET", f"{NUMBER_ID}?fields=conversational_automation")

    assert set_first.body == {"success": True}
    assert shown.body == as_field.body
    assert shown.body["conversational_automation"] == {**body, "enable_welcome_message": True, "id": NUMBER_ID}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"prompts": ["a" * 80] * 4}, 200),
        ({"prompts": ["a" * 81]}, 400),
        ({"prompts": [""]}, 400),
        ({"prompts": ["a"] * 5}, 400),
        ({"prompts": "a"}, 400),
        ({"commands": [{"command_name": "a" * 32, "command_description": "b" * 256}] * 30}, 200),
        ({"commands": [{"command_name": "a", "command_description": "b"}] * 31}, 400),
        ({"commands": [{"command_name": "a" * 33, "command_description": "b"}]}, 400),
        ({"commands": [{"command_name": "a", "command_description": "b" * 257}]}, 400),
        ({"commands": ["help"]}, 400),
    ],
)
async def test_ice_breakers_and_commands_are_limited(bench: Bench, body: dict[str, Any], status: int) -> None:
    response = await bench.graph("POST", AUTOMATION, json=body)

    assert response.status == status


async def test_number_shows_its_status_limits_and_webhook_url(bench: Bench) -> None:
    fields = (
        "quality_rating,whatsapp_business_manager_messaging_limit,name_status,status,platform_type,"
        "webhook_configuration,throughput,health_status"
    )
    default = await bench.graph("GET", f"{NUMBER_ID}?fields={fields}")
    changes = {"quality_rating": "RED", "messaging_limit": "TIER_2K", "status": "FLAGGED"}

    changed = await bench.control("PUT", f"numbers/{NUMBER_ID}/status", changes)
    wrong = await bench.control("PUT", f"numbers/{NUMBER_ID}/status", {"quality_rating": "BLUE"})
    unknown = await bench.control("PUT", "numbers/1/status", {})
    shown = await bench.graph("GET", f"{NUMBER_ID}?fields={fields}")

    assert (changed.status, wrong.status, unknown.status) == (200, 400, 404)
    assert default.body == {
        "id": NUMBER_ID,
        "quality_rating": "GREEN",
        "whatsapp_business_manager_messaging_limit": "TIER_UNLIMITED",
        "name_status": "APPROVED",
        "status": "CONNECTED",
        "platform_type": "CLOUD_API",
        "webhook_configuration": {"application": bench.receiver.uri},
        "throughput": {"level": "STANDARD"},
        "health_status": {
            "can_send_message": "AVAILABLE",
            "entities": [{"entity_type": "PHONE_NUMBER", "id": NUMBER_ID, "can_send_message": "AVAILABLE"}],
        },
    }
    assert shown.body["quality_rating"] == "RED"
    assert shown.body["whatsapp_business_manager_messaging_limit"] == "TIER_2K"
    assert shown.body["status"] == "FLAGGED"


async def test_account_shows_its_ownership_type(bench: Bench) -> None:
    shown = await bench.graph("GET", f"{WABA}?fields=ownership_type,country,currency,health_status")

    assert shown.body["ownership_type"] == "CLIENT_OWNED"
    assert shown.body["health_status"]["entities"][0]["entity_type"] == "WABA"
