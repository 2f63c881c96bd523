"""Operator ids that are too long for an index: events are called back, and no job becomes a dead letter."""

import random
from typing import Final

from tests.support.builders import ANN, is_event
from tests.support.operator_webhook import post_change, post_messages_change
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until

LONG: Final = f"{random.Random(7).getrandbits(40_000):x}"
"""Ten thousand characters that cannot be compressed."""


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


async def test_review_with_an_id_too_long_for_an_index_is_called_back(pipeline: PipelineHarness) -> None:
    await pipeline.close_operator()
    template = await pipeline.create_template()
    decision = {
        "event": "APPROVED",
        "message_template_id": LONG,
        "message_template_name": template["elementName"],
        "message_template_language": template["languageCode"],
        "reason": None,
    }

    await post_change(pipeline, "message_template_status_update", decision)

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
