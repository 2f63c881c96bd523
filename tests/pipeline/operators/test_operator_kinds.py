"""A service with a second kind of operator: its accounts have other fields, and everything else is the same."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.operators.conformance.conftest import serving_application
from tests.operators.example.adapter import ExampleOperator
from tests.operators.example.server import KEY, ExampleServer
from tests.support.builders import ACCOUNT, ANN, APP, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.second_operator import administer, switch
from waypost.assembly.operators import ADAPTERS

FIELDS = {"kind": "example", "key": KEY}


@pytest.fixture
async def post(pipeline: PipelineHarness) -> AsyncIterator[ExampleServer]:
    """The example operator beside the street's own operator, with our account at it."""
    await pipeline.close_service()
    pipeline.adapters = {**ADAPTERS, "example": lambda _settings, _clock: ExampleOperator(timeout_s=30)}
    await pipeline.open_service()
    async with AsyncExitStack() as stack:
        post = ExampleServer("line-1", APP.phone_number, "a space")
        url = await serving_application(stack, post.application())
        made = await administer(pipeline, "PUT", "/admin/operator-accounts/other", {**FIELDS, "base_url": url})
        assert made.status == 200, made.body
        assert set(made.body) == {"id", "webhook_path", "callback_url", "seal"}
        yield post


async def test_app_is_carried_by_an_operator_of_another_kind(pipeline: PipelineHarness, post: ExampleServer) -> None:
    switched = await switch(pipeline, "other")
    subscribed = await administer(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})
    assert (switched.status, subscribed.status) == (200, 200), (switched.body, subscribed.body)
    assert switched.body["apps"][0]["phone_number_id"] == "line-1"

    await post.write(ANN, "Question")
    heard = await pipeline.wait_for_callback(is_event("message", type="text"))
    message_id = await pipeline.send_text("Answer")

    await pipeline.wait_for_state(message_id, "delivered")
    assert heard["payload"]["payload"] == {"text": "Question"}
    assert [(one["ref"], one["content"]["body"]) for one in post.sent] == [(message_id, "Answer")]


async def test_doctor_finds_nothing_wrong_at_an_operator_of_another_kind(
    pipeline: PipelineHarness, post: ExampleServer
) -> None:
    await switch(pipeline, "other")
    await administer(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})

    findings = (await administer(pipeline, "GET", "/admin/doctor")).body["findings"]

    of_other = [one for one in findings if one["about"].startswith("other")]
    assert {one["state"] for one in of_other} == {"ok"}
    assert f"other: webhook of {ACCOUNT.id}" in [one["about"] for one in of_other]


# fmt: off
REFUSED = {  # what cannot be set, and what is said
    "another kind of operator":     ({**FIELDS, "kind": "owl", "base_url": "http://x"},  "kind must be one of cloud, example."),
    "another kind of this account": ({"kind": "cloud"},                                  "kind must be example"),
    "a field of another kind":      ({"app_secret": "x"},                                "unknown field `app_secret`"),
    "a broken field":               ({"key": "with a space"},                            "key must be visible ASCII"),
}
# fmt: on


@pytest.mark.parametrize("name", REFUSED)
async def test_account_has_the_fields_of_its_kind(pipeline: PipelineHarness, post: ExampleServer, name: str) -> None:
    body, said = REFUSED[name]

    refused = await administer(pipeline, "PUT", "/admin/operator-accounts/other", body)

    assert refused.status == 400
    assert said in str(refused.body)


async def test_list_of_accounts_shows_the_kind_and_no_secret(pipeline: PipelineHarness, post: ExampleServer) -> None:
    listed = (await administer(pipeline, "GET", "/admin/operator-accounts")).body["operator_accounts"]

    assert {one["id"]: one["kind"] for one in listed} == {"main": "cloud", "other": "example"}
    assert KEY not in str(listed)
