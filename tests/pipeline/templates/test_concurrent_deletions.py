"""A deletion is effective at once, although reads are cached for seconds."""

import json

from tests.support.builders import ANN, APP
from tests.support.pipeline import API_KEY, HttpResponse, PipelineHarness


async def test_next_send_of_a_deleted_template_gets_an_error(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    before = await send(pipeline, template_id)
    path = f"/partner/app/{APP.id}/template/greeting"

    deleted = await pipeline.send_request("DELETE", path, headers={"Authorization": pipeline.app_token})

    after = await send(pipeline, template_id)
    assert (before.status, deleted.status, after.status) == (200, 200, 400)


async def send(pipeline: PipelineHarness, template_id: str) -> HttpResponse:
    """Send a template message; return the response."""
    form = {
        "channel": "whatsapp",
        "source": APP.phone_number,
        "destination": ANN,
        "src.name": APP.name,
        "template": json.dumps({"id": template_id, "params": ["Ann"]}),
    }
    return await pipeline.send_request("POST", "/wa/api/v1/template/msg", form, {"apikey": API_KEY})
