"""The synchronisation of a business's own app: requests, contacts, phases, parts and files of its history."""

import base64
import io
import json
from collections import Counter
from typing import Any

import pytest

from tests.simulator.business_app.test_connection import APP, connect
from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, Bench, SimulatorResponse
from tests.support.manual_clock import ManualClock

DAY_MS = 24 * 3600 * 1000
BOB = "15551230002"
CONTACTS, HISTORY = "smb_app_state_sync", "history"


async def request(bench: Bench, sync_type: str = HISTORY) -> SimulatorResponse:
    body = {"messaging_product": "whatsapp", "sync_type": sync_type}
    return await bench.graph("POST", f"{NUMBER_ID}/smb_app_data", json=body)


async def give(bench: Bench, *messages: dict[str, Any]) -> None:
    response = await bench.control("PUT", f"{APP}/history", {"messages": list(messages)})
    assert response.status == 200, response.body


async def generate(bench: Bench, **plan: Any) -> dict[str, Any]:
    response = await bench.control("POST", f"{APP}/history/generate", plan)
    assert response.status == 200, response.body
    return response.body


async def receive_history(bench: Bench) -> list[dict[str, Any]]:
    await bench.wait_until_drained()
    return bench.receiver.changes(HISTORY)


def parts(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for value in values for part in value.get("history", [])]


def messages(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for part in parts(values) for thread in part["threads"] for item in thread["messages"]]


async def test_history_has_the_documented_shape(slow: Bench, clock: ManualClock) -> None:
    # Source: the operator's page "Onboard WhatsApp Business app users", History.
    await connect(slow)
    now_ms = clock.now_ms()
    await give(
        slow,
        {"phone": ANN, "at_ms": now_ms - 3000, "text": "Hi", "status": "READ"},
        {"phone": ANN, "at_ms": now_ms - 2000, "text": "Hello", "is_own": True, "status": "DELIVERED"},
        {"phone": ANN, "at_ms": now_ms - 1000, "type": "unsupported"},
    )

    response = await request(slow)

    [value] = await receive_history(slow)
    [part] = value["history"]
    [thread] = part["threads"]
    unsupported, own, received = thread["messages"]
    assert list(response.body) == ["messaging_product", "request_id"]
    assert value["metadata"] == {"display_phone_number": BUSINESS, "phone_number_id": NUMBER_ID}
    assert part["metadata"] == {"phase": 0, "chunk_order": 1, "progress": 100}
    assert thread["id"] == ANN
    assert received == {
        "from": ANN, "id": received["id"], "timestamp": str((now_ms - 3000) // 1000), "type": "text",
        "text": {"body": "Hi"}, "history_context": {"status": "READ"},
    }  # fmt: skip
    assert (own["from"], own["to"], own["history_context"]) == (BUSINESS, ANN, {"status": "DELIVERED"})
    assert (unsupported["type"], unsupported["errors"][0]["code"]) == ("errors", 131051)
    assert list(slow.receiver.posts[0].value["entry"][0]) == ["id", "changes"]


async def test_history_comes_as_in_the_samples_of_2026(slow: Bench, clock: ManualClock) -> None:
    # Source: the vendor's page "Coexistence Events".
    await connect(slow)
    await slow.control("PUT", APP, {"sync": {"lowercase_statuses": True, "marks_own": True}})
    await give(slow, {"phone": ANN, "at_ms": clock.now_ms(), "text": "Hello", "is_own": True})
    await request(slow)
    [own] = messages(await receive_history(slow))
    assert own["history_context"] == {"from_me": True, "status": "read"}
    assert "to" not in own


async def test_phases_are_by_age_and_older_messages_are_not_shared(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    now_ms = clock.now_ms()
    ages = {"0": 0, "1-": DAY_MS - 1, "1": DAY_MS, "90-": 90 * DAY_MS - 1, "90": 90 * DAY_MS, "180": 180 * DAY_MS}
    await give(slow, *({"phone": ANN, "at_ms": now_ms - age_ms, "text": name} for name, age_ms in ages.items()))
    clock.advance(ms=23 * 3600 * 1000)  # ages are counted back from onboarding, not from the request

    await request(slow)

    by_phase = {
        part["metadata"]["phase"]: [item["text"]["body"] for item in part["threads"][0]["messages"]]
        for part in parts(await receive_history(slow))
    }
    assert by_phase == {0: ["0", "1-"], 1: ["1", "90-"], 2: ["90"]}


async def test_phase_without_messages_has_no_webhook(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    await give(slow, {"phone": ANN, "at_ms": clock.now_ms() - 100 * DAY_MS, "text": "old"})
    await request(slow)
    [part] = parts(await receive_history(slow))
    assert part["metadata"] == {"phase": 2, "chunk_order": 1, "progress": 100}


async def test_app_without_messages_sends_none(bench: Bench) -> None:
    await connect(bench)
    assert (await request(bench)).status == 200
    assert await receive_history(bench) == []


async def test_files_of_the_last_14_days_follow_their_placeholders(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    now_ms = clock.now_ms()
    media = {"to": BUSINESS, "mime_type": "image/png", "content": base64.b64encode(b"\x89PNG own").decode()}
    media_id = (await slow.control("POST", "media", media)).body["media_id"]
    await give(
        slow,
        {"phone": ANN, "at_ms": now_ms - 14 * DAY_MS, "type": "image", "text": "Look", "media_id": media_id},
        {"phone": BOB, "at_ms": now_ms - 14 * DAY_MS - 1, "type": "image"},
        {"phone": BOB, "at_ms": now_ms - 1, "type": "document", "is_own": True},
    )

    await request(slow)

    values = await receive_history(slow)
    placeholders = {item["id"]: item for item in messages(values)}
    assert {item["type"] for item in placeholders.values()} == {"media_placeholder"}
    assert not any("image" in item for item in placeholders.values())
    assert [bool(value.get("history")) for value in values] == [True, True, False, False]
    files = [value["messages"][0] for value in values if "messages" in value]
    assert {item["id"] for item in files} < placeholders.keys()
    [picture] = [item for item in files if item["type"] == "image"]
    assert picture["image"] == {"caption": "Look", "mime_type": "image/png", "sha256": picture["image"]["sha256"],
                                "id": media_id}  # fmt: skip
    [document] = [item for item in files if item["type"] == "document"]
    assert document["from"] == BUSINESS
    assert (await slow.graph("GET", document["document"]["id"])).body["mime_type"] == "text/csv"


@pytest.mark.parametrize("is_bare", [False, True])
async def test_declined_history_is_one_error(bench: Bench, is_bare: bool) -> None:
    # Source: the operator's page "Onboard WhatsApp Business app users", chat history sharing declined.
    await connect(bench, shares_history=False)
    await bench.control("PUT", APP, {"sync": {"declines_without_envelope": is_bare}})
    await generate(bench, messages=10)

    response = await request(bench)

    await bench.wait_until_drained()
    [post] = bench.receiver.posts
    value = post.value if is_bare else post.value["entry"][0]["changes"][0]["value"]
    assert response.status == 200
    assert value["history"][0]["errors"][0]["code"] == 2593109
    assert list(value) == ["messaging_product", "metadata", "history"]
    assert bench.receiver.is_signed(post)


@pytest.mark.parametrize("sync_type", [CONTACTS, HISTORY])
async def test_data_is_requested_once_within_24_hours(slow: Bench, clock: ManualClock, sync_type: str) -> None:
    other = {CONTACTS: HISTORY, HISTORY: CONTACTS}[sync_type]
    not_shared = await request(slow, sync_type)
    await connect(slow)
    clock.advance(ms=DAY_MS - 1)
    first, again = await request(slow, sync_type), await request(slow, sync_type)
    clock.advance(ms=1)
    late = await request(slow, other)
    await slow.control("POST", f"{APP}/disconnect")
    disconnected = await request(slow, other)
    clock.advance(ms=15 * 60_000)
    await connect(slow)
    repeated = await request(slow, sync_type)

    assert [response.status for response in (first, repeated)] == [200, 200]
    rejected = (not_shared, again, late, disconnected)
    assert [(response.status, response.error["code"]) for response in rejected] == [(400, 100)] * 4
    texts = [response.error["message"] for response in rejected]
    assert ["not on the" in texts[0], "once" in texts[1], "24 hours" in texts[2], "not on the" in texts[3]] == [
        True
    ] * 4


async def test_offline_app_sends_its_data_when_it_is_online_again(bench: Bench) -> None:
    await connect(bench)
    await generate(bench, messages=50, threads=5)
    await bench.control("PUT", APP, {"is_offline": True})
    accepted = [await request(bench, CONTACTS), await request(bench)]
    await bench.wait_until_drained()
    before = len(bench.receiver.posts)

    app = await bench.control("PUT", APP, {"is_offline": False})

    values = await receive_history(bench)
    assert ([response.status for response in accepted], before) == ([200, 200], 0)
    assert (app.body["waiting_syncs"], len(messages(values))) == ([], 50)
    assert sum(len(value["state_sync"]) for value in bench.receiver.changes(CONTACTS)) == 5


async def test_contacts_come_in_sets(bench: Bench) -> None:
    await connect(bench)
    await generate(bench, messages=250, threads=250)
    assert (await request(bench, CONTACTS)).status == 200
    await bench.wait_until_drained()
    sets = [value["state_sync"] for value in bench.receiver.changes(CONTACTS)]
    assert [len(contacts) for contacts in sets] == [100, 100, 50]
    assert all(item["action"] == "add" and item["type"] == "contact" for contacts in sets for item in contacts)


async def test_generated_history_has_what_was_asked_for(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    plan = {"messages": 10_000, "threads": 300, "days": 170, "media_share": 0.12, "unsupported_share": 0.02}
    counts = await generate(slow, **plan)

    await request(slow)

    values = await receive_history(slow)
    received = messages(values)
    kinds = Counter(item["type"] for item in received)
    oldest = min(int(item["timestamp"]) for item in received)
    assert counts == {"messages": 10_000, "contacts": 300}
    assert (len(received), len({item["id"] for item in received})) == (10_000, 10_000)
    assert kinds == {"text": 8600, "media_placeholder": 1200, "errors": 200}
    assert len({thread["id"] for part in parts(values) for thread in part["threads"]}) == 300
    assert 169 * DAY_MS < clock.now_ms() - oldest * 1000 <= 170 * DAY_MS + 1000
    progress = [part["metadata"]["progress"] for part in parts(values)]
    assert progress == sorted(progress)
    assert progress[-1] == 100
    orders = [(part["metadata"]["phase"], part["metadata"]["chunk_order"]) for part in parts(values)]
    assert orders == sorted(set(orders))
    assert all(len(messages([{"history": [part]}])) <= 500 for part in parts(values))
    assert all(len(post.value["entry"]) == 1 for post in slow.receiver.posts)


async def test_shuffled_and_duplicated_history_has_every_message(slow: Bench) -> None:
    await connect(slow)
    await generate(slow, messages=2000, threads=50)
    await slow.control(
        "PUT", APP, {"sync": {"order": "shuffled", "duplicates": 0.25, "chunk_messages": 100, "seed": "7"}}
    )

    await request(slow)

    values = await receive_history(slow)
    received = Counter(item["id"] for item in messages(values))
    orders = [(part["metadata"]["phase"], part["metadata"]["chunk_order"]) for part in parts(values)]
    assert len(received) == 2000
    assert 0.24 < sum(count - 1 for count in received.values()) / 2000 < 0.26
    assert orders != sorted(orders)
    assert parts(values)[-1]["metadata"]["progress"] != 100


async def test_same_seed_generates_the_same_history(slow: Bench) -> None:
    await connect(slow)
    shown: list[Any] = []
    for seed in ("a", "a", "b"):
        await generate(slow, messages=100, threads=3, seed=seed)
        chat = await slow.control("GET", f"{APP}/chats/15557000001")
        shown.append([(item["at_ms"], item["text"], item["sender"]) for item in chat.body["messages"]])
    assert shown[0] == shown[1] != shown[2]


async def test_part_of_a_history_is_below_the_size_of_a_webhook(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    await slow.control("PUT", APP, {"sync": {"chunk_messages": 5000}})
    text, at_ms = "ж" * 4096, clock.now_ms()
    given = {"messages": [{"phone": ANN, "at_ms": at_ms, "text": text} for _ in range(150)]}
    body, headers = io.BytesIO(json.dumps(given).encode()), {"Content-Type": "application/json"}
    stored = await slow.request("PUT", f"/control/{APP}/history", data=body, headers=headers)
    assert stored.body == {"messages": 150}
    await request(slow)
    assert len(messages(await receive_history(slow))) == 150
    assert max(len(post.body) for post in slow.receiver.posts) < 3_000_000


async def test_webhooks_of_a_sync_outlive_a_restart(bench: Bench) -> None:
    await connect(bench)
    await generate(bench, messages=100)
    bench.receiver.response_statuses = [500]
    await request(bench)
    await bench.receiver.wait_until(lambda: bench.receiver.posts)
    bench.receiver.posts.clear()
    await bench.restart()
    assert len(messages(await receive_history(bench))) == 100


async def test_invalid_history_names_the_field(bench: Bench) -> None:
    await connect(bench)
    # fmt: off
    cases: list[tuple[str, str, Any, str]] = [
        ("PUT",  "history",          {"messages": [{"phone": ANN, "at_ms": 1}]},                        "messages[0].text"),
        ("PUT",  "history",          {"messages": [{"phone": "1", "at_ms": 1, "text": "a"}]},           "messages[0].phone"),
        ("PUT",  "history",          {"messages": [{"phone": ANN, "at_ms": -1, "text": "a"}]},          "messages[0].at_ms"),
        ("PUT",  "history",          {"messages": [{"phone": ANN, "at_ms": 1, "type": "order"}]},       "messages[0].type"),
        ("PUT",  "history",          {"messages": [{"phone": ANN, "at_ms": 1, "text": "a", "status": "read"}]},
                                                                                                        "messages[0].status"),
        ("PUT",  "history",          {},                                                                "messages"),
        ("POST", "history/generate", {"messages": 0},                                                   "messages"),
        ("POST", "history/generate", {"media_share": 1.5},                                              "media_share"),
        ("POST", "history/generate", {"days": "many"},                                                  "days"),
        ("POST", "history/generate", {"first_phone": "999999999999999", "threads": 2},                  "first_phone"),
    ]
    # fmt: on
    for method, path, body, field in cases:
        response = await bench.control(method, f"{APP}/{path}", body)
        assert (response.status, response.body["field"]) == (400, field), (body, json.dumps(response.body))


async def test_progress_counts_the_webhooks_of_each_step(slow: Bench, clock: ManualClock) -> None:
    await connect(slow)
    now_ms = clock.now_ms()
    ages_days = (0, 2, 3, 100)
    await give(slow, *({"phone": ANN, "at_ms": now_ms - 1 - days * DAY_MS, "type": "image"} for days in ages_days))
    await slow.control("PUT", f"{APP}/contacts/{ANN}", {"full_name": "Ann Ames"})
    slow.receiver.response_statuses = [503] * 20

    for sync_type in (CONTACTS, HISTORY):
        await request(slow, sync_type)

    def expected(*, waiting: bool) -> list[dict[str, Any]]:
        steps = [("contacts", 1, 1), ("phase 0", 1, 1), ("phase 1", 1, 2), ("phase 2", 1, 1), ("files", 3, 3)]
        return [
            {"name": name, "webhooks": webhooks, "count": count, "waiting": webhooks if waiting else 0}
            for name, webhooks, count in steps
        ]

    await slow.receiver.wait_until(lambda: slow.receiver.posts)
    assert (await slow.control("GET", APP)).body["sync_progress"] == expected(waiting=True)
    slow.receiver.response_statuses.clear()
    clock.advance(ms=DAY_MS)
    await slow.wait_until_drained()
    assert (await slow.control("GET", APP)).body["sync_progress"] == expected(waiting=False)


async def test_declined_history_is_a_step(bench: Bench) -> None:
    await connect(bench, shares_history=False)
    await request(bench)
    await bench.wait_until_drained()
    steps = (await bench.control("GET", APP)).body["sync_progress"]
    assert steps == [{"name": "declined", "webhooks": 1, "count": 0, "waiting": 0}]
