"""Groups of a number: settings, invite links, participants, and the webhooks about them."""

import base64
from typing import Any

import aiohttp
import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, Bench

BOB = "15557654321"
SUBJECT = {"messaging_product": "whatsapp", "subject": " Tea lovers "}


async def create_group(bench: Bench, **more: Any) -> dict[str, Any]:
    """Create a group and return the webhook about it."""
    before = len(bench.receiver.changes("group_lifecycle_update"))
    response = await bench.graph("POST", f"{NUMBER_ID}/groups", json=SUBJECT | more)
    assert response.status == 200, response.body
    await bench.receiver.wait_until(lambda: len(bench.receiver.changes("group_lifecycle_update")) > before)
    [group] = bench.receiver.changes("group_lifecycle_update")[-1]["groups"]
    assert group["request_id"] == response.body["request_id"]
    return group


async def join(bench: Bench, group: dict[str, Any], *phones: str) -> None:
    for phone in phones:
        joined = await bench.control("POST", f"phones/{phone}/groups", {"invite_link": group["invite_link"]})
        assert joined.status == 200, joined.body


async def last_change(bench: Bench, field: str, count: int) -> dict[str, Any]:
    """Return the group of the last webhook of a field, once there are so many."""
    changes = await bench.receiver.wait_until(
        lambda: found if len(found := bench.receiver.changes(field)) >= count else None
    )
    [group] = changes[-1]["groups"]
    return group


async def test_created_group_is_reported_with_its_invite_link(bench: Bench) -> None:
    group = await create_group(bench, description="All about tea")

    assert base64.urlsafe_b64decode(group["group_id"] + "==").startswith(f"capi_group:{BUSINESS}:".encode())
    assert group.pop("invite_link").startswith("https://chat.whatsapp.com/")
    assert type(group.pop("timestamp")) is int
    assert {name: value for name, value in group.items() if not name.endswith("_id")} == {
        "type": "group_create",
        "subject": "Tea lovers",
        "description": "All about tea",
        "join_approval_mode": "auto_approve",
    }
    value = bench.receiver.changes("group_lifecycle_update")[0]
    assert value["metadata"] == {"display_phone_number": BUSINESS, "phone_number_id": NUMBER_ID}


async def test_phones_join_by_link_and_leave(bench: Bench) -> None:
    group = await create_group(bench)
    path = f"phones/{ANN}/groups/{group['group_id']}"

    await join(bench, group, ANN, ANN)
    added = await last_change(bench, "group_participants_update", 1)
    shown = await bench.graph("GET", f"{group['group_id']}?fields=participants,total_participant_count")
    left = await bench.control("DELETE", path)
    removed = await last_change(bench, "group_participants_update", 2)
    again = await bench.control("DELETE", path)

    assert (added["type"], added["reason"]) == ("group_participants_add", "invite_link")
    assert [participant["wa_id"] for participant in added["added_participants"]] == [ANN]
    assert shown.body["total_participant_count"] == 1
    assert [participant["wa_id"] for participant in shown.body["participants"]] == [ANN]
    assert left.status == 200
    assert (removed["type"], removed["initiated_by"]) == ("group_participants_remove", "participant")
    assert again.status == 404


async def test_new_invite_link_invalidates_the_old_one(bench: Bench) -> None:
    group = await create_group(bench)
    reset = await bench.graph("POST", f"{group['group_id']}/invite_link", json={"messaging_product": "whatsapp"})

    old = await bench.control("POST", f"phones/{ANN}/groups", {"invite_link": group["invite_link"]})
    shown = await bench.graph("GET", f"{group['group_id']}/invite_link")
    await join(bench, reset.body, ANN)

    assert old.status == 404
    assert shown.body == reset.body
    groups = (await bench.control("GET", f"phones/{ANN}/groups")).body["groups"]
    assert [(listed["group_id"], listed["participants"]) for listed in groups] == [(group["group_id"], [ANN])]


async def test_ninth_phone_finds_the_group_full(bench: Bench) -> None:
    group = await create_group(bench)
    await join(bench, group, *(f"1555000000{index}" for index in range(8)))

    ninth = await bench.control("POST", f"phones/{ANN}/groups", {"invite_link": group["invite_link"]})

    assert ninth.status == 409


async def test_removed_participants_are_reported(bench: Bench) -> None:
    group = await create_group(bench)
    await join(bench, group, ANN, BOB)

    response = await bench.graph(
        "DELETE",
        f"{group['group_id']}/participants",
        json={"messaging_product": "whatsapp", "participants": [{"user": f"+{BOB}"}]},
    )
    removed = await last_change(bench, "group_participants_update", 3)

    assert removed["request_id"] == response.body["request_id"]
    assert removed["initiated_by"] == "business"
    [participant] = removed["removed_participants"]
    assert (participant["input"], participant["wa_id"]) == (BOB, BOB)
    groups = (await bench.control("GET", "groups")).body["groups"]
    assert [listed["participants"] for listed in groups] == [[ANN]]


@pytest.mark.parametrize(("users", "code"), [([BOB], 131212), ([ANN, ANN], 131202), ([], 100), (["x"], 100)])
async def test_invalid_removal_has_the_operators_error_code(bench: Bench, users: list[str], code: int) -> None:
    group = await create_group(bench)
    await join(bench, group, ANN)

    body = {"messaging_product": "whatsapp", "participants": [{"user": user} for user in users]}
    response = await bench.graph("DELETE", f"{group['group_id']}/participants", json=body)

    assert (response.status, response.body["error"]["code"]) == (400, code)


async def test_changed_settings_are_reported(bench: Bench) -> None:
    group = await create_group(bench)
    form = aiohttp.FormData({"messaging_product": "whatsapp", "subject": "Coffee", "description": "Black"})
    form.add_field("profile_picture_file", b"\xff\xd8\xff", content_type="image/jpeg", filename="a.jpg")

    response = await bench.graph("POST", group["group_id"], data=form)
    changed = await last_change(bench, "group_settings_update", 1)
    shown = await bench.graph("GET", f"{group['group_id']}?fields=subject,description")

    assert changed["request_id"] == response.body["request_id"]
    assert changed["group_subject"] == {"text": "Coffee", "update_successful": True}
    assert changed["group_description"] == {"text": "Black", "update_successful": True}
    assert changed["profile_picture"]["mime_type"] == "image/jpeg"
    assert (shown.body["subject"], shown.body["description"]) == ("Coffee", "Black")


@pytest.mark.parametrize(
    "body",
    [
        {"subject": "Tea"},
        {"messaging_product": "whatsapp"},
        {"messaging_product": "whatsapp", "subject": " "},
        {"messaging_product": "whatsapp", "subject": 7},
        {"messaging_product": "whatsapp", "subject": "x" * 129},
        {"messaging_product": "whatsapp", "subject": "Tea", "description": "x" * 2049},
        {"messaging_product": "whatsapp", "subject": "Tea", "description": []},
        {"messaging_product": "whatsapp", "subject": "Tea", "join_approval_mode": "sometimes"},
    ],
    ids=str,
)
async def test_invalid_group_is_rejected(bench: Bench, body: dict[str, Any]) -> None:
    response = await bench.graph("POST", f"{NUMBER_ID}/groups", json=body)

    assert (response.status, response.body["error"]["code"]) == (400, 100)
    assert (await bench.control("GET", "groups")).body["groups"] == []


async def test_groups_survive_a_restart(bench: Bench) -> None:
    group = await create_group(bench)
    await join(bench, group, ANN)

    await bench.restart()

    [listed] = (await bench.control("GET", "groups")).body["groups"]
    assert (listed["group_id"], listed["participants"]) == (group["group_id"], [ANN])
    assert (await bench.graph("DELETE", group["group_id"])).status == 200
    deleted = await last_change(bench, "group_lifecycle_update", 2)
    assert deleted["type"] == "group_delete"
    assert (await bench.control("GET", "groups")).body["groups"] == []
    assert (await bench.graph("GET", group["group_id"])).status == 400


async def test_groups_of_another_number_are_not_listed(bench: Bench) -> None:
    group = await create_group(bench)
    await bench.control(
        "PUT", "numbers/2000000000000009", {"waba_id": "1000000000000001", "phone_number": "15550001119", "name": "Two"}
    )

    own = await bench.graph("GET", f"{NUMBER_ID}/groups")
    other = await bench.graph("GET", "2000000000000009/groups")

    assert [listed["id"] for listed in own.body["data"]] == [group["group_id"]]
    assert other.body["data"] == []
