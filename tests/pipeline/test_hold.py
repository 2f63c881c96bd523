"""`waypost serve --hold`: a store can be read, and nothing is sent or received."""

from typing import Any

from tests.conftest import MakePipeline
from tests.support.builders import APP, OPERATOR
from tests.support.pipeline import ANN, PipelineHarness
from tests.support.polling import poll_until
from tests.support.second_operator import send_admin_request


async def restart(pipeline: PipelineHarness, *, on: bool) -> None:
    """Restart the service on its store, held or not."""
    await pipeline.close_service()
    pipeline.changes["hold"] = on
    await pipeline.open_service()


async def read_readiness(pipeline: PipelineHarness) -> tuple[int, dict[str, Any]]:
    async with pipeline.http.get(f"{pipeline.service_url}/readyz") as response:
        return response.status, await response.json()


FORM = {
    "channel": "whatsapp", "source": APP.phone_number, "destination": ANN, "src.name": APP.name,
    "message": '{"type":"text","text":"Hello"}',
}  # fmt: skip


async def read_state(pipeline: PipelineHarness, message_id: str) -> str:
    response = await send_admin_request(pipeline, "GET", f"/admin/messages/{message_id}")
    assert response.status == 200, response
    return str(response.body["state"])


async def test_held_service_shows_its_store_and_sends_nothing(make_pipeline: MakePipeline) -> None:
    pipeline = await make_pipeline()
    await pipeline.close_operator()
    message_id = await pipeline.send_text("waits for the operator")
    attempts = len(pipeline.sink.requests)
    await restart(pipeline, on=True)
    await pipeline.open_operator()

    status, ready = await read_readiness(pipeline)
    assert status == 503
    assert "held" in ready["checks"]["held"]
    assert ready["checks"]["queues"] == ready["checks"]["leases"] == "ok"

    rejected = await pipeline.send_request("POST", "/wa/api/v1/msg", FORM, {"apikey": pipeline.app_token})
    assert rejected.status == 503
    assert rejected.body["status"] == "error"
    assert "held" in rejected.body["message"]
    assert rejected.headers["Retry-After"] == "60"
    path = f"/partner/app/{APP.id}"
    credential = {"Authorization": pipeline.app_token}
    profile = await pipeline.send_request("GET", f"{path}/business/profile", None, credential)
    assert profile.status == 503  # it would call the operator
    templates = await pipeline.send_request("GET", f"{path}/templates", None, credential)
    assert templates.status == 200

    listed = await send_admin_request(pipeline, "GET", f"/admin/apps/{APP.id}/messages")
    assert message_id in str(listed.body)
    url = f"{pipeline.service_url}/operator/webhook/{OPERATOR.id}"
    async with pipeline.http.post(url, data=b"{}") as response:
        assert response.status == 503
        assert response.headers["Retry-After"] == "60"
    doctor = await send_admin_request(pipeline, "GET", "/admin/doctor")
    assert doctor.status == 200
    assert "the service is held" in str(doctor.body)
    assert await pipeline.deliveries(message_id) == []
    assert len(pipeline.sink.requests) == attempts
    assert await read_state(pipeline, message_id) == "accepted"

    await restart(pipeline, on=False)

    async def current_state() -> str:
        return await read_state(pipeline, message_id)

    await poll_until(current_state, lambda state: state != "accepted")
    assert (await read_readiness(pipeline))[0] == 200
