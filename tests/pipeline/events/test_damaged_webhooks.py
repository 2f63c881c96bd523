"""Webhooks that are signed, and damaged: each item is told to the partner, or is a dead letter; none is lost."""

import itertools
import json
import random
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from sqlalchemy import Connection, select

from tests.support.builders import ACCOUNT, ANN, APP, OPERATOR, is_event
from tests.support.operator_webhook import post_body
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.polling import poll_until
from tests.support.version_3_receiver import Version3Receiver
from waypost.domain.event import InboundWebhook, unreadable_group, unreadable_item
from waypost.store.queue.inbound_webhooks import record_webhooks
from waypost.store.queue.job_subjects import JobState, QueueName, read_item
from waypost.store.queue.jobs import count_jobs_by_state
from waypost.store.tables import inbound_webhooks, queue_jobs, webhook_items

ADMIN: Final = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
DEEP: Final = "[" * 4_000 + "]" * 4_000


def text_message(wamid: str, text: str = "Hello") -> dict[str, Any]:
    """Return a text of a customer."""
    return {"from": ANN, "id": wamid, "timestamp": "1760000000", "type": "text", "text": {"body": text}}


def webhook_body(*messages: Any, name: str = "Ann") -> bytes:
    """Return a webhook with an entry for each message; `(HERE)` stands for a text that a test replaces."""
    metadata = {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}
    contacts = [{"wa_id": ANN, "profile": {"name": name}}]
    values = [{"messaging_product": "whatsapp", "metadata": metadata, "contacts": contacts, "messages": messages[:2]}]
    values += [values[0] | {"messages": [message]} for message in messages[2:]]
    entries = [{"id": ACCOUNT.id, "changes": [{"field": "messages", "value": value}]} for value in values]
    return json.dumps({"object": "whatsapp_business_account", "entry": entries}).encode()


async def list_dead_letters(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the dead letters."""
    return (await pipeline.send_request("GET", "/admin/dead-letters", headers=ADMIN)).body["dead_letters"]


async def retry(pipeline: PipelineHarness, dead_letter: dict[str, Any]) -> None:
    """Put a dead letter back into its queue."""
    url = f"{pipeline.service_url}/admin/dead-letters/{dead_letter['position']}/retry"
    async with pipeline.http.post(url, json={}, headers=ADMIN) as response:
        assert response.status == 200, await response.text()


DAMAGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "half_an_emoji": lambda body: body.replace(b"(HERE)", rb"cut \ud83d"),
    "not_utf_8": lambda body: body.replace(b"(HERE)", b"na\xefve"),
    "cesu_8": lambda body: body.replace(b"(HERE)", b"\xed\xa0\xbd\xed\xb8\x80"),
    "byte_order_mark": lambda body: b"\xef\xbb\xbf" + body,
    "not_a_number": lambda body: body.replace(b'"(HERE)"', b"NaN"),
    "zero": lambda body: body.replace(b"(HERE)", b"\0"),
}


async def test_repairable_webhook_loses_none_of_its_messages(pipeline: PipelineHarness) -> None:
    posted: list[str] = []
    for (damage_name, damage), place in itertools.product(DAMAGES.items(), ("text", "name", "another member")):
        wamids = [f"wamid.{name} {damage_name} {place}" for name in "ABC"]
        middle = text_message(wamids[1], "(HERE)" if place == "text" else "Hello")
        if place == "another member":
            middle["new"] = "(HERE)"
        name = "(HERE)" if place == "name" else "Ann"
        body = webhook_body(text_message(wamids[0]), middle, text_message(wamids[2]), name=name)
        await post_body(pipeline, damage(body))
        posted += wamids

    for wamid in posted:
        await pipeline.wait_for_callback(is_event("message", id=wamid))
    assert await list_dead_letters(pipeline) == []


async def test_message_that_cannot_be_read_becomes_a_dead_letter_and_its_neighbours_are_told(
    pipeline: PipelineHarness,
) -> None:
    body = webhook_body(text_message("wamid.A"), "(HERE)", text_message("wamid.C"))

    await post_body(pipeline, body.replace(b'"(HERE)"', b'{"from":"%s","deep":%s}' % (ANN.encode(), DEEP.encode())))

    for wamid in ("wamid.A", "wamid.C"):
        await pipeline.wait_for_callback(is_event("message", id=wamid))
    [dead_letter] = await list_dead_letters(pipeline)
    assert dead_letter["queue"] == "webhooks"
    assert dead_letter["note"] == "an unreadable part of a webhook (0.0.messages.1): it is not an object"
    [(_, payload)] = await pipeline.waypost.database.read(read_unreadable)
    assert DEEP.encode() in payload
    metrics = await read_metrics(pipeline)
    assert re.search(r"^waypost_unreadable_webhook_items_total\S* 1", metrics, re.MULTILINE)
    assert re.search(r"^waypost_queue_depth\{.*queue=.webhooks.,state=.dead_letter.\} 1", metrics, re.MULTILINE)


async def test_dead_letter_that_still_cannot_be_read_is_one_again_at_once_and_can_be_deleted(
    pipeline: PipelineHarness,
) -> None:
    await post_body(pipeline, b'{"object": "whatsapp_business_account", "entry": [{"id"')
    [first] = await list_dead_letters(pipeline)

    await retry(pipeline, first)
    [again] = await poll_until(lambda: list_dead_letters(pipeline))
    deleted = await pipeline.send_request("DELETE", f"/admin/dead-letters/{again['position']}", headers=ADMIN)

    assert (first["ref"], again["defects"]) == (again["ref"], 1)
    assert again["position"] > first["position"]
    assert "still cannot be read" in again["note"]
    assert deleted.status == 200
    assert await list_dead_letters(pipeline) == []
    assert (await pipeline.waypost.database.read(read_bodies))[
        -1
    ] == b'{"object": "whatsapp_business_account", "entry": [{"id"'


async def test_dead_letter_of_an_earlier_version_is_applied_when_it_is_retried(pipeline: PipelineHarness) -> None:
    """The earlier version could not read what this one can."""
    body = webhook_body(text_message("wamid.A"), text_message("wamid.B", "cut (HERE)")).replace(b"(HERE)", rb"\ud83d")
    item = unreadable_item(unreadable_group(OPERATOR.id), "body", body, "it is not JSON")
    webhook = InboundWebhook("01-earlier", OPERATOR.id, pipeline.clock.now_ms(), body, (item,))
    await pipeline.waypost.database.join(record_webhooks, webhook)
    [dead_letter] = await list_dead_letters(pipeline)

    await retry(pipeline, dead_letter)

    for wamid in ("wamid.A", "wamid.B"):
        await pipeline.wait_for_callback(is_event("message", id=wamid))
    await poll_until(pipeline.queue_depths, lambda queues: not queues.get("webhooks"))
    assert await pipeline.waypost.database.read(read_unreadable) == []


async def test_repeated_unreadable_webhook_is_one_dead_letter(pipeline: PipelineHarness) -> None:
    for _ in range(2):
        await post_body(pipeline, b"not json")

    assert len(await list_dead_letters(pipeline)) == 1


async def test_whole_message_after_its_unreadable_repetition_is_told(pipeline: PipelineHarness) -> None:
    message = text_message("wamid.A")
    await post_body(pipeline, webhook_body(message | {"from": None}))

    await post_body(pipeline, webhook_body(message))

    await pipeline.wait_for_callback(is_event("message", id="wamid.A"))


@pytest.mark.both_engines
@pytest.mark.parametrize("seed", range(3))
async def test_no_message_of_a_randomly_damaged_webhook_is_lost(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, seed: int
) -> None:
    """A message whose text was posted intact is told, or is in a dead letter, or is counted as of nobody."""
    chance = random.Random(seed)
    database = pipeline.waypost.database
    posted: dict[str, list[str]] = {}
    for round_number in range(40):
        texts = [f"text-{seed}-{round_number}-{index}." for index in range(5)]
        wamids = [f"wamid.{seed}.{round_number}.{index}" for index in range(5)]
        body = webhook_body(*map(text_message, wamids, texts))
        for _ in range(chance.choice((1, 1, 2, 3))):
            body = chance.choice(MUTATIONS)(body, chance)
        ignored_before = await count_ignored(pipeline)
        await post_body(pipeline, body)
        ignored = await count_ignored(pipeline) - ignored_before
        posted[f"{round_number} {ignored}"] = [text for text in texts if text.encode() in body]

    await poll_until(lambda: database.read(count_open_jobs), lambda jobs: jobs == 0)
    told = json.dumps(receiver_v3.sink.callbacks)
    dead = b"".join(payload for _, payload in await database.read(read_unreadable)).decode("utf-8", "replace")
    lost = {
        name: missing
        for name, texts in posted.items()
        if (missing := [text for text in texts if text not in told and text not in dead])
        and not int(name.partition(" ")[2])
    }
    assert lost == {}
    assert dead
    assert len(receiver_v3.sink.callbacks) > 100


async def read_metrics(pipeline: PipelineHarness) -> str:
    """Return the metrics."""
    async with pipeline.http.get(f"{pipeline.service_url}/metrics", headers=ADMIN) as response:
        return await response.text()


async def count_ignored(pipeline: PipelineHarness) -> int:
    """Return the number of events that concern nobody here, as the metrics have it."""
    counts = re.findall(r"waypost_events_ignored_total\{.*\} (\d+)", await read_metrics(pipeline))
    return sum(map(int, counts))


def _cut(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body))
    return body[:at] + body[at + chance.randrange(1, 9) :]


def _insert(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body))
    return body[:at] + chance.choice(INSERTED) + body[at:]


def _replace_byte(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body))
    return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]


def _replace_value(body: bytes, chance: random.Random) -> bytes:
    old = chance.choice((b'"Ann"', b'"text"', b'"1760000000"', f'"{ANN}"'.encode(), b'{"body"', b'"whatsapp"'))
    return body.replace(old, chance.choice(INSERTED), chance.choice((1, 2)))


INSERTED: Final = (
    rb"\ud83d", rb"\u0000", rb"\u12", b"\xff", b"\xed\xa0\xbd", b"\0", b"\n", b'"', b"\\", b"NaN", b"-Infinity", b"null",
    b"7", b"1e999", b"9" * 30, b"[]", b"{}", b'"x"', b"[" * 2_000 + b"]" * 2_000, b"[", b"}", b",", b":", b"true", b'{"a":1}',
)  # fmt: skip
MUTATIONS: Final = (_cut, _insert, _insert, _replace_byte, _replace_value, _replace_value)


def read_unreadable(connection: Connection) -> list[tuple[int, bytes]]:
    """Return the dead letters of the queue of webhooks, each with the payload of its item."""
    rows = connection.execute(select(queue_jobs.c.position, queue_jobs.c.ref).where(is_dead_letter())).all()
    items = {row.id: row.item for row in connection.execute(select(webhook_items.c.id, webhook_items.c.item))}
    return [(row.position, items[int(read_item(row.ref).id)]) for row in rows]


def is_dead_letter() -> Any:
    """Return the condition of a dead letter of the queue of webhooks."""
    return (queue_jobs.c.queue == int(QueueName.WEBHOOKS)) & (queue_jobs.c.state == int(JobState.DEAD_LETTER))


def read_bodies(connection: Connection) -> list[bytes]:
    """Return the bodies of webhooks as they are stored."""
    return list(connection.execute(select(inbound_webhooks.c.body).order_by(inbound_webhooks.c.id)).scalars())


def count_open_jobs(connection: Connection) -> int:
    """Return the number of items and callbacks that a worker still has to do."""
    return sum(
        count
        for queue_name in (QueueName.WEBHOOKS, QueueName.CALLBACKS)
        for state, count in count_jobs_by_state(connection, queue_name).items()
        if state < JobState.DEAD_LETTER
    )
