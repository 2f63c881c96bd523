"""What is deleted counts at once, although look-ups are remembered for seconds."""

import json

from tests.support.builders import ANN, APP
from tests.support.pipeline import API_KEY, Answer, PipelineHarness


async def test_deleted_template_is_refused_by_the_next_send(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    before = await send(pipeline, template_id)
    path = f"/partner/app/{APP.id}/template/greeting"

    deleted = await pipeline.ask("DELETE", path, headers={"Authorization": pipeline.app_token})

    after = await send(pipeline, template_id)
    assert (before.status, deleted.status, after.status) == (200, 200, 400)


async def send(pipeline: PipelineHarness, template_id: str) -> Answer:
    """Ask for a template message to be sent."""
    form = {
        "channel": "whatsapp",
        "source": APP.phone_number,
        "destination": ANN,
        "src.name": APP.name,
        "template": json.dumps({"id": template_id, "params": ["Ann"]}),
    }
    return await pipeline.ask("POST", "/wa/api/v1/template/msg", form, {"apikey": API_KEY})
