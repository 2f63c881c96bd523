"""Webhooks posted to the service as the operator posts them, signed, with times chosen by the test."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.assembly.components import WEBHOOK_PATH


async def post_change(pipeline: PipelineHarness, field: str, value: Any, **entry: Any) -> None:
    """Post one change; return when the service has stored and applied it.

    Args:
        pipeline: its service receives the webhook.
        field: of the change.
        value: of the change.
        entry: further members of the entry, such as `time`.
    """
    await post_changes(pipeline, [(field, value)], **entry)


async def post_changes(pipeline: PipelineHarness, changes: Sequence[tuple[str, Any]], **entry: Any) -> None:
    """Post changes in one body, an entry for each; return when all of them have been applied."""
    content = {
        "object": "whatsapp_business_account",
        "entry": [
            {"id": ACCOUNT.id, **entry, "changes": [{"field": field, "value": value}]} for field, value in changes
        ],
    }
    await post_body(pipeline, json.dumps(content).encode())
    await poll_until(pipeline.queue_depths, lambda queues: not queues.get("webhooks"))


async def post_body(pipeline: PipelineHarness, body: bytes) -> None:
    """Post any bytes, signed; return when the service has stored them."""
    digest = hmac.new(OPERATOR["app_secret"].encode(), body, hashlib.sha256).hexdigest()
    async with pipeline.http.post(
        f"{pipeline.service_url}{WEBHOOK_PATH}/{OPERATOR.id}",
        data=body,
        headers={"X-Hub-Signature-256": f"sha256={digest}"},
    ) as response:
        assert response.status == 200


async def post_messages_change(pipeline: PipelineHarness, **value: Any) -> None:
    """Post `statuses`, `messages` or `errors` of the app's number."""
    metadata = {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}
    common = {"messaging_product": "whatsapp", "metadata": metadata}
    await post_change(pipeline, "messages", {**common, **value})
