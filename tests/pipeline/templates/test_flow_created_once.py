"""A flow is created once at the operator: a repeated request with the same key returns the first flow."""

import json
from typing import Any

from tests.support.builders import APP
from tests.support.pipeline import HttpResponse, PipelineHarness

FLOWS = f"/partner/app/{APP.id}/flows"


async def test_flow_with_a_lost_response_is_returned_to_the_same_request(pipeline: PipelineHarness) -> None:
    await lose_responses(pipeline, 1)
    lost = await create_flow(pipeline, key="first")

    again = await create_flow(pipeline, key="first")

    replayed = await create_flow(pipeline, key="first")
    [created] = await list_flows(pipeline)
    assert (lost.status, again.status) == (503, 200)
    assert again.body == {"id": created["id"], "status": "success", "validation_errors": []}
    assert (replayed.status, replayed.raw) == (200, again.raw)
    assert replayed.headers["Idempotent-Replayed"] == "true"


async def test_flow_with_two_lost_responses_is_returned_to_the_third_request(pipeline: PipelineHarness) -> None:
    await lose_responses(pipeline, 2)
    lost = [await create_flow(pipeline, key="first") for _ in range(2)]

    again = await create_flow(pipeline, key="first")

    assert [response.status for response in lost] == [503, 503]
    assert (again.status, again.body["id"]) == (200, (await list_flows(pipeline))[0]["id"])


async def test_flow_is_not_returned_to_another_request_for_the_same_name(pipeline: PipelineHarness) -> None:
    await lose_responses(pipeline, 1)
    await create_flow(pipeline, key="first")

    with_another_key = await create_flow(pipeline, key="second")
    again = await create_flow(pipeline, key="second")
    without_a_key = await create_flow(pipeline)
    with_other_categories = await create_flow(pipeline, key="first", categories=["SURVEY"])

    responses = (with_another_key, again, without_a_key, with_other_categories)
    assert [response.status for response in responses] == [400] * 4
    assert "unique" in with_another_key.body["message"]


async def lose_responses(pipeline: PipelineHarness, count: int) -> None:
    """Make the operator create the next flows without a response."""
    fault: dict[str, Any] = {"on": "call", "call": "flows.create", "what": {"reset": "after"}}
    await pipeline.control("POST", "faults", {"faults": [fault | {"when": {"next": count}}]})


async def create_flow(pipeline: PipelineHarness, *, key: str | None = None, **more: Any) -> HttpResponse:
    """Send a request to create a flow."""
    headers = {"Authorization": pipeline.app_token}
    if key is not None:
        headers["Idempotency-Key"] = key
    form = {"name": "Sign up", "categories": json.dumps(more.get("categories", ["SIGN_UP"]))}
    return await pipeline.send_request("POST", FLOWS, form, headers)


async def list_flows(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return all flows."""
    response = await pipeline.send_request("GET", FLOWS, headers={"Authorization": pipeline.app_token})
    assert response.status == 200, response
    return response.body
