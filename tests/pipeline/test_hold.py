"""`waypost serve --hold`: a store is looked at, and nothing leaves it or comes to it."""

from typing import Any

from tests.conftest import MakePipeline
from tests.support.builders import APP, OPERATOR
from tests.support.pipeline import ANN, PipelineHarness
from tests.support.second_operator import administer
from tests.support.waiting import patiently


async def hold(pipeline: PipelineHarness, *, on: bool) -> None:
    """Start the service again on its store."""
    await pipeline.close_service()
    pipeline.changes["hold"] = on
    await pipeline.open_service()


async def readiness(pipeline: PipelineHarness) -> tuple[int, dict[str, Any]]:
    async with pipeline.http.get(f"{pipeline.service_url}/readyz") as response:
        return response.status, await response.json()


FORM = {
    "channel": "whatsapp", "source": APP.phone_number, "destination": ANN, "src.name": APP.name,
    "message": '{"type":"text","text":"Hello"}',
}  # fmt: skip


async def state_of(pipeline: PipelineHarness, message_id: str) -> str:
    shown = await administer(pipeline, "GET", f"/admin/messages/{message_id}")
    assert shown.status == 200, shown
    return str(shown.body["state"])


async def test_a_held_service_shows_its_store_and_sends_nothing(make_pipeline: MakePipeline) -> None:
    pipeline = await make_pipeline()
    await pipeline.close_operator()
    message_id = await pipeline.send_text("waits for the operator")
    callbacks = len(pipeline.sink.tries)
    await hold(pipeline, on=True)
    await pipeline.open_operator()

    status, told = await readiness(pipeline)
    assert status == 503
    assert "held" in told["checks"]["held"]
    assert told["checks"]["queues"] == told["checks"]["leases"] == "ok"

    refused = await pipeline.ask("POST", "/wa/api/v1/msg", FORM, {"apikey": pipeline.app_token})
    assert refused.status == 503
    assert refused.body["status"] == "error"
    assert "held" in refused.body["message"]
    assert refused.headers["Retry-After"] == "60"
    path = f"/partner/app/{APP.id}"
    credential = {"Authorization": pipeline.app_token}
    profile = await pipeline.ask("GET", f"{path}/business/profile", None, credential)
    assert profile.status == 503  # it would ask the operator
    templates = await pipeline.ask("GET", f"{path}/templates", None, credential)
    assert templates.status == 200

    listed = await administer(pipeline, "GET", f"/admin/apps/{APP.id}/messages")
    assert message_id in str(listed.body)
    url = f"{pipeline.service_url}/operator/webhook/{OPERATOR.id}"
    async with pipeline.http.post(url, data=b"{}") as response:
        assert response.status == 503
        assert response.headers["Retry-After"] == "60"
    doctor = await administer(pipeline, "GET", "/admin/doctor")
    assert doctor.status == 200
    assert "the service is held" in str(doctor.body)
    assert await pipeline.deliveries(message_id) == []
    assert len(pipeline.sink.tries) == callbacks
    assert await state_of(pipeline, message_id) == "accepted"

    await hold(pipeline, on=False)

    async def state() -> str:
        return await state_of(pipeline, message_id)

    await patiently(state, lambda found: found != "accepted")
    assert (await readiness(pipeline))[0] == 200
