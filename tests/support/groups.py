"""Groups of the pipeline's number, created through the partner API and joined by simulated phones."""

from typing import Any

from tests.support.builders import APP
from tests.support.pipeline import PipelineHarness

GROUPS_PATH = f"/partner/app/{APP.id}/group"


async def call_group_api(pipeline: PipelineHarness, method: str, path: str = "", **body: Any) -> dict[str, Any]:
    """Make a call about groups with a JSON body, and return the response, which must be a success."""
    content = {"messaging_product": "whatsapp", **body} if method != "GET" else None
    async with pipeline.http.request(
        method, pipeline.service_url + GROUPS_PATH + path, headers={"Authorization": pipeline.app_token}, json=content
    ) as response:
        received: dict[str, Any] = await response.json()
        assert response.status == 200, received
        return received


async def open_group(pipeline: PipelineHarness, *phones: str) -> str:
    """Create a group, let these phones join it, and return its id."""
    await call_group_api(pipeline, "POST", subject="Tea", description="All about tea")
    group = (await pipeline.control("GET", "groups"))["groups"][-1]
    for phone in phones:
        await pipeline.control("POST", f"phones/{phone}/groups", {"invite_link": group["invite_link"]})
    return group["group_id"]
