"""What the operator says in characters, numbers and lengths that a database may not take: told all the same."""

import json
import secrets
from typing import Any, Final

import pytest
from aiohttp import web
from sqlalchemy import Connection, func, select

from tests.support.builders import ANN
from tests.support.operator_proxy import Between
from tests.support.operator_webhook import tell_of_messages
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import patiently
from waypost.store.queue.jobs import QueueName
from waypost.store.tables import queue_jobs

ZERO: Final = "a\0b"
LONG: Final = secrets.token_urlsafe(9_000)
"""Of no pattern, so that nothing can press it together."""

# fmt: off
MESSAGES: Final[tuple[dict[str, Any], ...]] = (
    {"profile": {"name": ZERO}},
    {"id": f"wamid.{ZERO}"},
    {"from_user_id": f"US.{ZERO}", "from": "15550000001"},
    {"type": ZERO},
    {"id": f"wamid.{LONG}"},
    {"id": f"wamid.{LONG}2"},
    {"from_user_id": f"US.{LONG}", "from": "15550000002"},
    {"type": LONG},
    {"timestamp": "999999999999999999"},
)
STATUSES: Final = (  # each of a message of its own
    ({"status": "failed", "errors": [{"code": 131026, "title": ZERO}]},              "failed"),
    ({"status": "failed", "errors": [{"code": 2**63, "title": "x"}]},                "failed"),
    ({"status": "sent", "recipient_user_id": ZERO},                                  "sent"),
    ({"status": "sent", "recipient_user_id": LONG},                                  "sent"),
    ({"status": "sent", "recipient_participant_id": LONG},                           "sent"),
    ({"status": "sent", "pricing": {"category": ZERO, "billable": True}},            "sent"),
    ({"status": ZERO},                                                               "enqueued"),
    ({"status": LONG},                                                               "enqueued"),
)
ANSWERS: Final = (
    (400, {"error": {"code": 131026, "message": ZERO}},                              "failed"),
    (400, {"error": {"code": 2**63, "message": "x"}},                                "failed"),
    (400, {"error": {"code": 10**30, "message": "x"}},                               "failed"),
    (200, {"messages": [{"id": ZERO}], "contacts": [{"wa_id": ANN}]},                "enqueued"),
    (200, {"messages": [{"id": "wamid.1"}], "contacts": [{"wa_id": ZERO}]},          "enqueued"),
    (200, {"messages": [{"id": LONG}], "contacts": [{"wa_id": ANN}]},                "enqueued"),
    (200, {"messages": [{"id": "wamid.2"}], "contacts": [{"wa_id": LONG}]},          "enqueued"),
    (503, {"error": {"code": 131016, "message": ZERO}},                              "accepted"),
)
# fmt: on


class Answering(Between):
    """Answers sends itself while it has something to say, and holds back what the operator tells."""

    def __init__(self) -> None:
        super().__init__()
        self.next: list[tuple[int, Any]] = []

    async def _pass_on(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if self.next and request.path.endswith("/messages"):
            status, answer = self.next.pop(0)
            return status, {"Content-Type": "application/json"}, json.dumps(answer).encode()
        return await super()._pass_on(request, base_url)


@pytest.fixture
async def between() -> Answering:
    """What stands in the operator's place."""
    return Answering()


@pytest.fixture
async def pipeline(make_pipeline: Any, between: Answering) -> PipelineHarness:
    """A pipeline on which a test answers sends, and which hears nothing from the simulator."""
    pipeline = await make_pipeline(between=between)
    await pipeline.open_window()
    between.let_webhooks_pass = False
    return pipeline


async def test_strange_messages_are_told(pipeline: PipelineHarness) -> None:
    told_before = len(pipeline.callbacks)
    for number, given in enumerate(MESSAGES):
        kind = given.get("type", "text")
        message = {"from": ANN, "id": f"wamid.{number}", "timestamp": "1760000000", "type": kind}
        contact = {"wa_id": given.get("from", ANN), "profile": given.get("profile", {"name": "Ann"})}
        message |= {kind: {"body": f"number {number}"}, **given}
        await tell_of_messages(pipeline, messages=[message], contacts=[contact])
    assert await failed_in_our_code(pipeline) == 0
    await patiently(pipeline.queue_depths, lambda queues: not queues.get("callbacks"))
    told = [given for given in MESSAGES if "type" not in given]  # version 2 has no words for others
    assert len(pipeline.callbacks) - told_before == len(told)


async def test_strange_statuses_are_applied(pipeline: PipelineHarness) -> None:
    for status, state in STATUSES:
        message_id = await pipeline.send_text()
        await pipeline.wait_for_state(message_id, "enqueued")
        about = {"id": f"wamid.{message_id}", "recipient_id": ANN, "timestamp": "1760000000"}
        whole = {**about, "biz_opaque_callback_data": message_id, **status}
        await tell_of_messages(pipeline, statuses=[whole])
        assert (await pipeline.trace(message_id))["state"] == state
    assert await failed_in_our_code(pipeline) == 0


async def test_strange_answers_to_sends_are_understood(pipeline: PipelineHarness, between: Answering) -> None:
    for status, answer, state in ANSWERS:
        between.next.append((status, answer))
        message_id = await pipeline.send_text()
        if state == "accepted":
            await patiently(pipeline.submission_attempts)
        else:
            await pipeline.wait_for_state(message_id, state)
    assert await failed_in_our_code(pipeline) == 0


async def failed_in_our_code(pipeline: PipelineHarness) -> int:
    """How many entries have met a defect."""
    return await pipeline.waypost.database.read(_defects)


def _defects(connection: Connection) -> int:
    found = select(func.count()).where(queue_jobs.c.defects > 0, queue_jobs.c.queue != int(QueueName.MEDIA))
    return connection.execute(found).scalar_one()
