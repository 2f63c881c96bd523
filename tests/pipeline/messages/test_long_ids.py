"""Ids of the operator's that no index takes: its news is told all the same, and nothing waits for a person."""

import random
from typing import Final

from tests.support.builders import ANN, is_event
from tests.support.operator_webhook import tell, tell_of_messages
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import patiently

LONG: Final = f"{random.Random(7).getrandbits(40_000):x}"
"""Ten thousand characters that cannot be packed."""


async def test_photo_whose_id_is_too_long_is_told(pipeline: PipelineHarness) -> None:
    message = {
        "from": ANN,
        "id": "wamid.photo",
        "timestamp": "1760000000",
        "type": "image",
        "image": {"id": LONG, "mime_type": "image/jpeg"},
    }

    await tell_of_messages(pipeline, messages=[message])

    await pipeline.wait_for_callback(is_event("message", id="wamid.photo"))
    await patiently(pipeline.queue_depths, lambda queues: not any(queues.values()))


async def test_review_under_an_id_that_is_too_long_is_told(pipeline: PipelineHarness) -> None:
    await pipeline.close_operator()
    template = await pipeline.create_template()
    decided = {
        "event": "APPROVED",
        "message_template_id": LONG,
        "message_template_name": template["elementName"],
        "message_template_language": template["languageCode"],
        "reason": None,
    }

    await tell(pipeline, "message_template_status_update", decided)

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
