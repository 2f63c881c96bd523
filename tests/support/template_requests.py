"""Requests about one template, and what a test waits for afterwards."""

from typing import Any

from tests.support.builders import APP
from tests.support.pipeline import PipelineHarness

NEW_TEXT = {"content": "Hi {{1}}, may we come tomorrow?", "example": "Hi Ann, may we come tomorrow?"}


async def edit_template(pipeline: PipelineHarness, template_id: str, **fields: str) -> None:
    """Edit a template; the edit is submitted to the operator later."""
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    response = await pipeline.send_request("PUT", path, fields or NEW_TEXT, {"Authorization": pipeline.app_token})
    assert response.status == 200, response


async def read_template(pipeline: PipelineHarness, template_id: str) -> dict[str, Any]:
    """Return the record of a template."""
    path = f"/partner/app/{APP.id}/templates/{template_id}"
    response = await pipeline.send_request("GET", path, headers={"Authorization": pipeline.app_token})
    return response.body["template"]


async def is_idle(pipeline: PipelineHarness) -> bool:
    """Return True if nothing is left to be sent or applied."""
    depths = await pipeline.queue_depths()
    return not (depths.get("outbound") or depths.get("webhooks"))
