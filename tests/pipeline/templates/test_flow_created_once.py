"""A flow is made at the operator: whoever asks again under the same key is given the one that was made."""

import json
from typing import Any

from tests.support.builders import APP
from tests.support.pipeline import Answer, PipelineHarness

FLOWS = f"/partner/app/{APP.id}/flows"


async def test_flow_whose_answer_was_lost_is_given_to_the_same_request(pipeline: PipelineHarness) -> None:
    await lose_answers(pipeline, 1)
    lost = await make(pipeline, key="first")

    again = await make(pipeline, key="first")

    replayed = await make(pipeline, key="first")
    [made] = await listed(pipeline)
    assert (lost.status, again.status) == (503, 201)
    assert again.body == {"id": made["id"], "status": "success", "validation_errors": []}
    assert (replayed.status, replayed.raw) == (201, again.raw)
    assert replayed.headers["Idempotent-Replayed"] == "true"


async def test_flow_whose_answer_was_lost_twice_is_given_to_the_third_request(pipeline: PipelineHarness) -> None:
    await lose_answers(pipeline, 2)
    lost = [await make(pipeline, key="first") for _ in range(2)]

    again = await make(pipeline, key="first")

    assert [one.status for one in lost] == [503, 503]
    assert (again.status, again.body["id"]) == (201, (await listed(pipeline))[0]["id"])


async def test_flow_of_a_name_that_is_taken_is_no_other_requests(pipeline: PipelineHarness) -> None:
    await lose_answers(pipeline, 1)
    await make(pipeline, key="first")

    of_another_key = await make(pipeline, key="second")
    again = await make(pipeline, key="second")
    without_a_key = await make(pipeline)
    of_other_categories = await make(pipeline, key="first", categories=["SURVEY"])

    answers = (of_another_key, again, without_a_key, of_other_categories)
    assert [one.status for one in answers] == [400] * 4
    assert "unique" in of_another_key.body["message"]


async def lose_answers(pipeline: PipelineHarness, count: int) -> None:
    """Of the next calls that make a flow, the operator carries them out and nobody hears of it."""
    fault: dict[str, Any] = {"on": "call", "call": "flows.create", "what": {"reset": "after"}}
    await pipeline.control("POST", "faults", {"faults": [fault | {"when": {"next": count}}]})


async def make(pipeline: PipelineHarness, *, key: str | None = None, **more: Any) -> Answer:
    """Ask for a flow."""
    headers = {"Authorization": pipeline.app_token}
    if key is not None:
        headers["Idempotency-Key"] = key
    form = {"name": "Sign up", "categories": json.dumps(more.get("categories", ["SIGN_UP"]))}
    return await pipeline.ask("POST", FLOWS, form, headers)


async def listed(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """The flows that there are."""
    answer = await pipeline.ask("GET", FLOWS, headers={"Authorization": pipeline.app_token})
    assert answer.status == 200, answer
    return answer.body
