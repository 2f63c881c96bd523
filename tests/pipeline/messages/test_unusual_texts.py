"""Characters, numbers and lengths from the operator that a database may not accept are still called back."""

import json
import secrets
from typing import Any, Final

import pytest
from aiohttp import web
from sqlalchemy import Connection, func, select

from tests.support.builders import ANN
from tests.support.operator_proxy import OperatorProxy
from tests.support.operator_webhook import post_messages_change
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.store.queue.job_subjects import QueueName
from waypost.store.tables import queue_jobs

WITH_NUL: Final = "a\0b"
LONG: Final = secrets.token_urlsafe(9_000)
"""Random, so that it cannot be compressed."""

# fmt: off
MESSAGES: Final[tuple[dict[str, Any], ...]] = (
    {"profile": {"name": WITH_NUL}},
    {"id": f"wamid.{WITH_NUL}"},
    {"from_user_id": f"US.{WITH_NUL}", "from": "15550000001"},
    {"type": WITH_NUL},
    {"id": f"wamid.{LONG}"},
    {"id": f"wamid.{LONG}2"},
    {"from_user_id": f"US.{LONG}", "from": "15550000002"},
    {"type": LONG},
    {"timestamp": "999999999999999999"},
)
STATUSES: Final = (  # each for its own message
    ({"status": "failed", "errors": [{"code": 131026, "title": WITH_NUL}]},              "failed"),
    ({"status": "failed", "errors": [{"code": 2**63, "title": "x"}]},                "failed"),
    ({"status": "sent", "recipient_user_id": WITH_NUL},                                  "sent"),
    ({"status": "sent", "recipient_user_id": LONG},                                  "sent"),
    ({"status": "sent", "recipient_participant_id": LONG},                           "sent"),
    ({"status": "sent", "pricing": {"category": WITH_NUL, "billable": True}},            "sent"),
    ({"status": WITH_NUL},                                                               "enqueued"),
    ({"status": LONG},                                                               "enqueued"),
)
RESPONSES: Final = (
    (400, {"error": {"code": 131026, "message": WITH_NUL}},                              "failed"),
    (400, {"error": {"code": 2**63, "message": "x"}},                                "failed"),
    (400, {"error": {"code": 10**30, "message": "x"}},                               "failed"),
    (200, {"messages": [{"id": WITH_NUL}], "contacts": [{"wa_id": ANN}]},                "enqueued"),
    (200, {"messages": [{"id": "wamid.1"}], "contacts": [{"wa_id": WITH_NUL}]},          "enqueued"),
    (200, {"messages": [{"id": LONG}], "contacts": [{"wa_id": ANN}]},                "enqueued"),
    (200, {"messages": [{"id": "wamid.2"}], "contacts": [{"wa_id": LONG}]},          "enqueued"),
    (503, {"error": {"code": 131016, "message": WITH_NUL}},                              "accepted"),
)
# fmt: on


class RespondingProxy(OperatorProxy):
    """Respond to sends itself while it has prepared responses; otherwise pass them on."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared: list[tuple[int, Any]] = []

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if self.prepared and request.path.endswith("/messages"):
            status, response = self.prepared.pop(0)
            return status, {"Content-Type": "application/json"}, json.dumps(response).encode()
        return await super()._forward(request, base_url)


@pytest.fixture
async def responding_proxy() -> RespondingProxy:
    """Make the proxy that responds instead of the operator."""
    return RespondingProxy()


@pytest.fixture
async def pipeline(make_pipeline: Any, responding_proxy: RespondingProxy) -> PipelineHarness:
    """A pipeline whose sends a test can respond to, and which gets no webhooks from the simulator."""
    pipeline = await make_pipeline(operator_proxy=responding_proxy)
    await pipeline.open_window()
    responding_proxy.let_webhooks_pass = False
    return pipeline


async def test_messages_with_unusual_values_are_called_back(pipeline: PipelineHarness) -> None:
    count_before = len(pipeline.callbacks)
    for number, members in enumerate(MESSAGES):
        kind = members.get("type", "text")
        message = {"from": ANN, "id": f"wamid.{number}", "timestamp": "1760000000", "type": kind}
        contact = {"wa_id": members.get("from", ANN), "profile": members.get("profile", {"name": "Ann"})}
        message |= {kind: {"body": f"number {number}"}, **members}
        await post_messages_change(pipeline, messages=[message], contacts=[contact])
    assert await count_defects(pipeline) == 0
    await poll_until(pipeline.queue_depths, lambda queues: not queues.get("callbacks"))
    with_body = [members for members in MESSAGES if "type" not in members]  # version 2 has no body for others
    assert len(pipeline.callbacks) - count_before == len(with_body)


async def test_statuses_with_unusual_values_are_applied(pipeline: PipelineHarness) -> None:
    for status, state in STATUSES:
        message_id = await pipeline.send_text()
        await pipeline.wait_for_state(message_id, "enqueued")
        base = {"id": f"wamid.{message_id}", "recipient_id": ANN, "timestamp": "1760000000"}
        full_status = {**base, "biz_opaque_callback_data": message_id, **status}
        await post_messages_change(pipeline, statuses=[full_status])
        assert (await pipeline.trace(message_id))["state"] == state
    assert await count_defects(pipeline) == 0


async def test_responses_with_unusual_values_are_applied(
    pipeline: PipelineHarness, responding_proxy: RespondingProxy
) -> None:
    for status, response, state in RESPONSES:
        responding_proxy.prepared.append((status, response))
        message_id = await pipeline.send_text()
        if state == "accepted":
            await poll_until(pipeline.submission_attempts)
        else:
            await pipeline.wait_for_state(message_id, state)
    assert await count_defects(pipeline) == 0


async def count_defects(pipeline: PipelineHarness) -> int:
    """Return how many jobs have met a defect."""
    return await pipeline.waypost.database.read(_read_defect_count)


def _read_defect_count(connection: Connection) -> int:
    query = select(func.count()).where(queue_jobs.c.defects > 0, queue_jobs.c.queue != int(QueueName.MEDIA))
    return connection.execute(query).scalar_one()
