"""One person keeps one order of callbacks, from a number alone to a user id alone, through changes of both."""

import json
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP, BEN
from tests.support.operator_webhook import post_change, post_messages_change
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.polling import poll_until
from tests.support.version_3_receiver import open_version_3_receiver, value_of
from waypost.base.clock import DAY_MS, VirtualClock

USER: Final = "IN.1648738043044942"
NEXT_USER: Final = "IN.2648738043044942"
PARENT: Final = "IN.ENT.1648738043044942"


class Person:
    """A person as the operator names it; each text is a further message of one conversation."""

    def __init__(self, pipeline: PipelineHarness) -> None:
        self.pipeline = pipeline
        self.count = 0

    async def write(self, **names: str) -> str:
        """Post a text of the person under the given names; return its id."""
        return await self._post("text", {"text": {"body": "Hello"}}, names)

    async def notify(self, content: dict[str, Any], **names: str) -> str:
        """Post a notice of a change."""
        return await self._post("system", {"system": content}, names)

    async def _post(self, type: str, content: dict[str, Any], names: dict[str, str]) -> str:
        self.count += 1
        wamid = f"wamid.in.{self.count}"
        message = {**names, "id": wamid, "timestamp": "1776944342", "type": type, **content}
        await post_messages_change(self.pipeline, messages=[message])
        return wamid


async def sequences(pipeline: PipelineHarness, count: int) -> list[tuple[str, int]]:
    """Return the id and the sequence number of each callback, once there are so many."""
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.accepted) >= count)
    return [(attempt.value["payload"].get("id", ""), attempt.sequence) for attempt in pipeline.sink.accepted]


async def test_person_keeps_one_order_while_the_number_is_hidden_revealed_and_changed(
    proxied_pipeline: PipelineHarness,
) -> None:
    pipeline, person = proxied_pipeline, Person(proxied_pipeline)
    texts = [
        await person.write(**{"from": ANN}),
        await person.write(**{"from": ANN, "from_user_id": USER}),
        await person.write(from_user_id=USER),
        await person.write(**{"from": ANN, "from_user_id": USER, "from_parent_user_id": PARENT}),
        await person.notify({"type": "user_changed_number", "wa_id": BEN, "body": "changed"}, **{"from": ANN}),
        await person.write(**{"from": BEN, "from_user_id": USER}),
        await person.notify({"type": "user_changed_user_id", "user_id": NEXT_USER, "body": f"User Ann changed from {USER} to {NEXT_USER}"}),
        await person.write(from_user_id=NEXT_USER),
        await person.write(from_user_id=USER),
        await person.write(**{"from": BEN, "from_user_id": NEXT_USER}),
    ]  # fmt: skip
    shown = [text for text in texts if text != texts[6]]  # a changed user id has no body in version 2

    assert await sequences(pipeline, len(shown)) == [(wamid, number) for number, wamid in enumerate(shown, 1)]


async def test_slow_receiver_gets_a_persons_callbacks_in_order_under_every_name(
    proxied_pipeline: PipelineHarness,
) -> None:
    pipeline, person = proxied_pipeline, Person(proxied_pipeline)
    pipeline.sink.choose_status = lambda _: 500
    texts = [await person.write(**{"from": ANN}), await person.write(from_user_id=USER)]
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.requests) >= 2)

    texts += [await person.write(**{"from": ANN, "from_user_id": USER}), await person.write(from_user_id=USER)]
    pipeline.sink.choose_status = lambda _: 200
    ordered = await sequences(pipeline, len(texts))

    later = [wamid for wamid, _ in ordered if wamid in texts[1:]]
    assert later == texts[1:]
    assert sorted(wamid for wamid, _ in ordered) == sorted(texts)


async def test_person_who_is_known_by_the_user_id_alone_is_sent_to_and_then_known_by_the_number(
    proxied_pipeline: PipelineHarness,
) -> None:
    pipeline = proxied_pipeline
    await pipeline.control("PUT", f"phones/{ANN}", {"user_id": USER, "username": "ann", "shows_number": False})
    inbound = await pipeline.reply(ANN, "Hello?")
    body = {"recipient": USER, "type": "text", "text": json.dumps({"body": "Yes?"})}
    response = await pipeline.send_request(
        "POST",
        f"/partner/app/{APP.id}/v3/message",
        {"messaging_product": "whatsapp", **body},
        {"Authorization": pipeline.app_token},
    )
    message_id = response.body["messages"][0]["id"]
    events = await pipeline.events_of(message_id, until="delivered")
    await pipeline.control("PUT", f"phones/{ANN}", {"shows_number": True})
    revealed = await pipeline.reply(ANN, "It is me.")
    reply = await pipeline.send_text("Welcome")
    await pipeline.events_of(reply, until="delivered")

    assert {event["destination"] for event in events} == {USER}
    ordered = await sequences(pipeline, 9)  # one of them says that the first message was read
    assert ordered[0][0] == inbound["payload"]["id"]
    assert revealed["payload"]["id"] in {wamid for wamid, _ in ordered[4:6]}
    assert [number for _, number in ordered] == list(range(1, 10))


async def test_simulated_person_keeps_one_order_while_the_number_is_known_hidden_and_the_id_changes(
    make_pipeline: Any,
) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=VirtualClock())
    shown = await pipeline.reply(ANN, "Hello?")
    await pipeline.control("PUT", f"phones/{ANN}", {"user_id": USER, "username": "ann", "shows_number": False})
    known = await pipeline.reply(ANN, "Still me")
    await pipeline.travel(ms=30 * DAY_MS)
    hidden = await pipeline.reply(ANN, "And I")
    await pipeline.control("POST", f"phones/{ANN}/user-id", {"to": NEXT_USER})
    changed = await pipeline.reply(ANN, "With another id")
    message_id = await pipeline.send_text("Welcome")
    await pipeline.events_of(message_id, until="enqueued")
    revealed = await pipeline.reply(ANN, "With my number again")

    callbacks = [shown, known, hidden, changed, revealed]
    assert [callback["payload"]["source"] for callback in callbacks] == [ANN, ANN, USER, NEXT_USER, ANN]
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.accepted) >= 7)
    accepted = [attempt.sequence for attempt in pipeline.sink.accepted]
    assert accepted == list(range(1, len(accepted) + 1))


async def test_status_teaches_the_user_id_of_a_number(proxied_pipeline: PipelineHarness) -> None:
    pipeline, person = proxied_pipeline, Person(proxied_pipeline)
    await pipeline.open_window()
    assert pipeline.operator_proxy is not None
    pipeline.operator_proxy.let_webhooks_pass = False
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "enqueued")
    [delivery] = await pipeline.deliveries(message_id)
    common = {"id": delivery["wamid"], "timestamp": "1776944126", "recipient_user_id": USER}

    await post_messages_change(pipeline, statuses=[{**common, "status": "sent", "recipient_id": ANN}])
    await post_messages_change(pipeline, statuses=[{**common, "status": "delivered"}])
    await person.write(from_user_id=USER)

    assert [number for _, number in await sequences(pipeline, 5)] == [1, 2, 3, 4, 5]


async def test_changed_user_id_is_called_back_in_the_order_of_its_person(proxied_pipeline: PipelineHarness) -> None:
    pipeline, person = proxied_pipeline, Person(proxied_pipeline)
    async with open_version_3_receiver(pipeline) as receiver_v3:
        await person.write(**{"from": ANN, "from_user_id": USER})
        change = {"wa_id": ANN, "detail": "User Ann changed", "user_id": {"previous": USER, "current": NEXT_USER}, "timestamp": "1776944126"}  # fmt: skip
        metadata = {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}
        value = {"messaging_product": "whatsapp", "metadata": metadata, "user_id_update": [change]}
        await post_change(pipeline, "user_id_update", value)
        await person.write(from_user_id=NEXT_USER)
        bodies = await receiver_v3.sink.wait_for(lambda _: True, count=3)

    assert value_of(bodies[1]) == value
    assert [attempt.sequence for attempt in receiver_v3.sink.accepted] == [1, 2, 3]


@pytest.mark.parametrize("name", [ANN, USER, NEXT_USER, PARENT])
async def test_personal_data_is_found_and_erased_by_every_name(proxied_pipeline: PipelineHarness, name: str) -> None:
    pipeline, person = proxied_pipeline, Person(proxied_pipeline)
    await person.write(**{"from": ANN})
    await person.write(from_user_id=USER, from_parent_user_id=PARENT)
    await person.write(**{"from": ANN, "from_user_id": USER})
    await person.notify({"type": "user_changed_user_id", "user_id": NEXT_USER}, from_user_id=USER)
    await person.write(from_user_id=NEXT_USER)
    await pipeline.reply(BEN, "Another person")
    await poll_until(pipeline.queue_depths, lambda queues: not any(queues.values()))

    exported = await personal_data(pipeline, "export", name)
    erased = await personal_data(pipeline, "erase", name)

    wamids = {record["operator_message_id"] for record in exported["records"] if record["record"] == "inbound_message"}
    assert wamids == {f"wamid.in.{number}" for number in (1, 2, 3, 4, 5)}
    assert erased["erased"]["inbound_messages"] == 5
    assert (await personal_data(pipeline, "export", name))["records"] == []


async def personal_data(pipeline: PipelineHarness, operation: str, name: str) -> dict[str, Any]:
    """Return the whole result of an export or an erasure."""
    headers, url = {"Authorization": f"Bearer {ADMIN_TOKEN}"}, f"{pipeline.service_url}/admin/recipients/{operation}"
    whole: dict[str, Any] = {"records": [], "erased": {}}
    position = None
    for _ in range(50):
        async with pipeline.http.post(url, json={"number": name, "position": position}, headers=headers) as response:
            page = await response.json()
            assert response.status == 200, page
        whole["records"] += page.get("records", [])
        for table, count in page.get("erased", {}).items():
            whole["erased"][table] = whole["erased"].get(table, 0) + count
        position = page["next"]
        if position is None:
            break
    return whole
