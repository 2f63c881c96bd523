"""Groups that approve who joins: requests of phones, decisions of the business, and the webhooks about them."""

import base64
from typing import Any

import pytest

from tests.simulator.accounts.test_groups import BOB, create_group, join, last_change
from tests.simulator.conftest import ANN, Bench, SimulatorResponse

FIELD = "group_participants_update"


async def create_approving_group(bench: Bench) -> dict[str, Any]:
    return await create_group(bench, join_approval_mode="approval_required")


async def requests_of(bench: Bench, group: dict[str, Any], query: str = "") -> list[dict[str, Any]]:
    response = await bench.graph("GET", f"{group['group_id']}/join_requests{query}")
    assert response.status == 200, response.body
    return response.body["data"]


async def decide(bench: Bench, method: str, group: dict[str, Any], ids: Any) -> SimulatorResponse:
    body = {"messaging_product": "whatsapp", "join_requests": ids}
    return await bench.graph(method, f"{group['group_id']}/join_requests", json=body)


async def participants_of(bench: Bench) -> list[str]:
    [group] = (await bench.control("GET", "groups")).body["groups"]
    return group["participants"]


async def test_request_to_join_is_listed_and_reported_also_after_a_restart(bench: Bench) -> None:
    group = await create_approving_group(bench)
    await join(bench, group, ANN, ANN, BOB)
    await last_change(bench, FIELD, 2)
    await bench.restart()

    first, second = await requests_of(bench, group)
    page = await bench.graph("GET", f"{group['group_id']}/join_requests?limit=1")
    shown = await bench.graph("GET", f"{group['group_id']}?fields=join_approval_mode,total_participant_count")

    assert group["join_approval_mode"] == "approval_required"
    reported, _ = [change["groups"][0] for change in bench.receiver.changes(FIELD)]
    assert reported["type"] == "group_join_request_created"
    assert reported["reason"] == "invite_link"
    members = ("join_request_id", "wa_id", "user_id")
    assert {name: reported[name] for name in members} == {name: first[name] for name in members}
    assert (first["wa_id"], second["wa_id"]) == (ANN, BOB)
    decoded = base64.urlsafe_b64decode(first["join_request_id"] + "==").decode()
    assert decoded.startswith(f"{ANN}:")
    assert page.body["data"] == [first]
    assert shown.body["join_approval_mode"] == "approval_required"
    assert (shown.body["total_participant_count"], await participants_of(bench)) == (0, [])


async def test_approved_requests_join_in_one_webhook(bench: Bench) -> None:
    group = await create_approving_group(bench)
    await join(bench, group, ANN, BOB)
    ids = [request["join_request_id"] for request in await requests_of(bench, group)]

    approved = await decide(bench, "POST", group, [*ids, ids[0]])
    added = await last_change(bench, FIELD, 3)

    assert approved.body.pop("request_id")
    assert approved.body == {"messaging_product": "whatsapp", "approved_join_requests": ids}
    assert (added["type"], added["reason"]) == ("group_participants_add", "invite_link")
    assert [(item["input"], item["wa_id"]) for item in added["added_participants"]] == [(ANN, ANN), (BOB, BOB)]
    assert await participants_of(bench) == [ANN, BOB]
    assert await requests_of(bench, group) == []


async def test_rejected_phone_can_request_again(bench: Bench) -> None:
    group = await create_approving_group(bench)
    await join(bench, group, ANN)
    [request] = await requests_of(bench, group)

    rejected = await decide(bench, "DELETE", group, [request["join_request_id"]])
    left = await requests_of(bench, group)
    await join(bench, group, ANN)

    assert rejected.body["rejected_join_requests"] == [request["join_request_id"]]
    assert (left, await participants_of(bench)) == ([], [])
    assert [again["wa_id"] for again in await requests_of(bench, group)] == [ANN]


async def test_cancelled_request_is_reported(bench: Bench) -> None:
    group = await create_approving_group(bench)
    await join(bench, group, ANN)
    [request] = await requests_of(bench, group)

    cancelled = await bench.control("DELETE", f"phones/{ANN}/groups/{group['group_id']}")
    revoked = await last_change(bench, FIELD, 2)

    assert cancelled.status == 200
    assert (revoked["type"], revoked["wa_id"]) == ("group_join_request_revoked", ANN)
    assert revoked["join_request_id"] == request["join_request_id"]
    assert await requests_of(bench, group) == []


@pytest.mark.parametrize(
    ("method", "member"), [("POST", "approved_join_requests"), ("DELETE", "rejected_join_requests")]
)
async def test_unknown_request_fails_beside_the_others(bench: Bench, method: str, member: str) -> None:
    group = await create_approving_group(bench)
    await join(bench, group, ANN)
    [request] = await requests_of(bench, group)

    decided = await decide(bench, method, group, ["unknown", request["join_request_id"]])

    assert decided.body[member] == [request["join_request_id"]]
    [failed] = decided.body["failed_join_requests"]
    assert (failed["join_request_id"], failed["errors"][0]["code"]) == ("unknown", 131213)
    assert decided.body["errors"][0]["code"] == 131201


async def test_ninth_request_finds_the_group_full_and_stays(bench: Bench) -> None:
    group = await create_approving_group(bench)
    await join(bench, group, *(f"1555000000{index}" for index in range(9)))
    ids = [request["join_request_id"] for request in await requests_of(bench, group)]

    approved = await decide(bench, "POST", group, ids)

    [failed] = approved.body["failed_join_requests"]
    assert len(approved.body["approved_join_requests"]) == 8
    assert failed["errors"][0]["code"] == 131204
    assert [left["join_request_id"] for left in await requests_of(bench, group)] == [failed["join_request_id"]]


@pytest.mark.parametrize("ids", [None, [], "x", [7], {}], ids=str)
async def test_decision_without_ids_is_code_100(bench: Bench, ids: Any) -> None:
    group = await create_approving_group(bench)

    for method in ("POST", "DELETE"):
        response = await decide(bench, method, group, ids)
        assert (response.status, response.error["code"]) == (400, 100)
