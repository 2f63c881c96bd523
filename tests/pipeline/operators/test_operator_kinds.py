"""A service with a second kind of operator: its accounts have other fields, and everything else is the same."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.operators.conformance.conftest import serving_application
from tests.operators.example.adapter import ExampleOperator
from tests.operators.example.server import KEY, ExampleServer
from tests.support.builders import ACCOUNT, ANN, APP, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.second_operator import send_admin_request, switch_operator
from waypost.assembly.components import ADAPTERS

FIELDS = {"kind": "example", "key": KEY}


@pytest.fixture
async def example_server(pipeline: PipelineHarness) -> AsyncIterator[ExampleServer]:
    """Start the example operator beside the simulator, with an account of ours."""
    await pipeline.close_service()
    pipeline.adapters = {**ADAPTERS, "example": lambda _settings, _clock: ExampleOperator(timeout_s=30)}
    await pipeline.open_service()
    async with AsyncExitStack() as stack:
        example_server = ExampleServer("line-1", APP.phone_number, "a space")
        url = await serving_application(stack, example_server.application())
        created = await send_admin_request(
            pipeline, "PUT", "/admin/operator-accounts/other", {**FIELDS, "base_url": url}
        )
        assert created.status == 200, created.body
        assert set(created.body) == {"id", "webhook_path", "callback_url", "seal"}
        yield example_server


async def test_app_sends_and_receives_through_an_operator_of_another_kind(
    pipeline: PipelineHarness, example_server: ExampleServer
) -> None:
    switched = await switch_operator(pipeline, "other")
    subscribed = await send_admin_request(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})
    assert (switched.status, subscribed.status) == (200, 200), (switched.body, subscribed.body)
    assert switched.body["apps"][0]["phone_number_id"] == "line-1"

    await example_server.write(ANN, "Question")
    callback = await pipeline.wait_for_callback(is_event("message", type="text"))
    message_id = await pipeline.send_text("Reply")

    await pipeline.wait_for_state(message_id, "delivered")
    assert callback["payload"]["payload"] == {"text": "Question"}
    assert [(sent_message["ref"], sent_message["content"]["body"]) for sent_message in example_server.sent] == [
        (message_id, "Reply")
    ]


GRAPH_OPERATIONS = {  # of each subject that only passes on what an operator with the Graph API says
    "names": ("GET", "profile/displayName"), "usernames": ("GET", "username"), "groups": ("GET", "group"),
    "payments": ("GET", "payment/configurations"),
}  # fmt: skip


@pytest.mark.parametrize("subject", GRAPH_OPERATIONS)
async def test_operator_without_the_graph_api_causes_one_clear_error(
    pipeline: PipelineHarness, example_server: ExampleServer, subject: str
) -> None:
    method, path = GRAPH_OPERATIONS[subject]
    await switch_operator(pipeline, "other")

    response = await pipeline.send_request(
        method, f"/partner/app/{APP.id}/{path}", headers={"Authorization": pipeline.app_token}
    )

    assert response.status == 400
    assert response.body["message"] == "This operator does not offer this operation."


async def test_doctor_finds_no_problem_at_an_operator_of_another_kind(
    pipeline: PipelineHarness, example_server: ExampleServer
) -> None:
    await switch_operator(pipeline, "other")
    await send_admin_request(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})

    findings = (await send_admin_request(pipeline, "GET", "/admin/doctor")).body["results"]

    other_findings = [finding for finding in findings if finding["subject"].startswith("other")]
    assert {finding["state"] for finding in other_findings} == {"ok"}
    assert f"other: webhook of {ACCOUNT.id}" in [finding["subject"] for finding in other_findings]


# fmt: off
INVALID_ACCOUNTS = {  # fields that are rejected, and the error
    "another kind of operator":     ({**FIELDS, "kind": "owl", "base_url": "http://x"},  "kind must be one of cloud, example."),
    "another kind of this account": ({"kind": "cloud"},                                  "kind must be example"),
    "a field of another kind":      ({"app_secret": "x"},                                "app_secret is not one of "),
    "a broken field":               ({"key": "with a space"},                            "key must be visible ASCII"),
}
# fmt: on


@pytest.mark.parametrize("name", INVALID_ACCOUNTS)
async def test_account_has_the_fields_of_its_kind(
    pipeline: PipelineHarness, example_server: ExampleServer, name: str
) -> None:
    body, error = INVALID_ACCOUNTS[name]

    response = await send_admin_request(pipeline, "PUT", "/admin/operator-accounts/other", body)

    assert response.status == 400
    assert error in str(response.body)


async def test_list_of_accounts_shows_the_kind_and_no_secret(
    pipeline: PipelineHarness, example_server: ExampleServer
) -> None:
    listed = (await send_admin_request(pipeline, "GET", "/admin/operator-accounts")).body["operator_accounts"]

    assert {account["id"]: account["kind"] for account in listed} == {"main": "cloud", "other": "example"}
    assert KEY not in str(listed)
