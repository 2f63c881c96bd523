"""What the operator says, posted to the service as it would be: signed, and with a time of the test's own."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import patiently
from waypost.assembly.service import WEBHOOK_PATH


async def tell(pipeline: PipelineHarness, field: str, value: Any, **job: Any) -> None:
    """Post one change; return when the service has kept it and applied it.

    Args:
        pipeline: where.
        field: of the change.
        value: of the change.
        job: further members of the entry, such as `time`.
    """
    await tell_all(pipeline, [(field, value)], **job)


async def tell_all(pipeline: PipelineHarness, news: Sequence[tuple[str, Any]], **job: Any) -> None:
    """Post changes in one body, an entry for each; return when all of them have been applied."""
    whole = {
        "object": "whatsapp_business_account",
        "entry": [{"id": ACCOUNT.id, **job, "changes": [{"field": field, "value": value}]} for field, value in news],
    }
    body = json.dumps(whole).encode()
    digest = hmac.new(OPERATOR["app_secret"].encode(), body, hashlib.sha256).hexdigest()
    async with pipeline.http.post(
        f"{pipeline.service_url}{WEBHOOK_PATH}/{OPERATOR.id}",
        data=body,
        headers={"X-Hub-Signature-256": f"sha256={digest}"},
    ) as answer:
        assert answer.status == 200
    await patiently(pipeline.queue_depths, lambda queues: not queues.get("webhooks"))


async def tell_of_messages(pipeline: PipelineHarness, **value: Any) -> None:
    """Post `statuses`, `messages` or `errors` of the street's number."""
    metadata = {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}
    about = {"messaging_product": "whatsapp", "metadata": metadata}
    await tell(pipeline, "messages", {**about, **value})
