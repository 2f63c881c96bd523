"""Operator ids that are too long for an index: events are called back, and no job becomes a dead letter."""

import json
import random
from typing import Any, Final

from aiohttp import web

from tests.support.builders import ANN, is_event
from tests.support.operator_proxy import OperatorProxy
from tests.support.operator_webhook import post_change, post_messages_change
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.template_requests import read_template

LONG: Final = f"{random.Random(7).getrandbits(40_000):x}"
"""Ten thousand characters that cannot be compressed."""


class LongIdProxy(OperatorProxy):
    """Give each new template an id that is too long."""

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        status, headers, body = await super()._forward(request, base_url)
        if request.method == "POST" and request.path.endswith("/message_templates"):
            body = json.dumps(json.loads(body) | {"id": LONG}).encode()
        return status, headers, body


async def test_photo_with_an_id_too_long_for_an_index_is_called_back(pipeline: PipelineHarness) -> None:
    message = {
        "from": ANN,
        "id": "wamid.photo",
        "timestamp": "1760000000",
        "type": "image",
        "image": {"id": LONG, "mime_type": "image/jpeg"},
    }

    await post_messages_change(pipeline, messages=[message])

    await pipeline.wait_for_callback(is_event("message", id="wamid.photo"))
    await poll_until(pipeline.queue_depths, lambda queues: not any(queues.values()))


async def test_review_with_an_id_too_long_for_an_index_is_called_back(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(operator_proxy=LongIdProxy())
    await pipeline.control("PUT", "settings", {"review_delay_ms": None})
    template = await pipeline.create_template()
    await poll_until(lambda: read_template(pipeline, template["id"]), lambda record: "externalId" in record)
    decision = {
        "event": "APPROVED",
        "message_template_id": LONG,
        "message_template_name": template["elementName"],
        "message_template_language": template["languageCode"],
        "reason": None,
    }

    await post_change(pipeline, "message_template_status_update", decision)

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
    await poll_until(pipeline.queue_depths, lambda queues: not any(queues.values()))
