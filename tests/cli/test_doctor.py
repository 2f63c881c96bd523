"""The doctor: every problem between us and an operator has its finding and its fix hint."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, insert
from typer.testing import CliRunner

from tests.support.builders import ACCOUNT, APP, OPERATOR, is_event
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.second_operator import send_admin_request
from waypost.admin import provisioning
from waypost.admin.apps import AppConnection, connect_app
from waypost.cli.command_tree import app as commands
from waypost.store.queue.job_subjects import QueueName
from waypost.store.tables import queue_jobs

Arrange = Callable[[PipelineHarness], Awaitable[object]]
NUMBER: Final = f"numbers/{APP.phone_number_id}"


async def read_findings(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the doctor's findings about the pipeline."""
    response = await send_admin_request(pipeline, "GET", "/admin/doctor")
    assert response.status == 200, response
    return response.body["results"]


def problems(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [finding for finding in findings if finding["state"] != "ok"]


async def test_account_without_problems_has_only_findings_in_state_ok(pipeline: PipelineHarness) -> None:
    await pipeline.approved_template()
    await send_admin_request(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})

    findings = await read_findings(pipeline)

    assert problems(findings) == []
    about = [finding["subject"] for finding in findings]
    for expected in (
        "main: token",
        "main: our address",
        f"main: business account {ACCOUNT.id}",
        f"main: number +{APP.phone_number} of {APP.name}",
        "main: webhook fields",
        f"main: webhook of {ACCOUNT.id}",
        f"main: templates of {ACCOUNT.id}",
        "main: simulator",
    ):
        assert expected in about


def set_number_status(**changes: str) -> Arrange:
    return lambda pipeline: pipeline.control("PUT", f"{NUMBER}/status", changes)


def set_account(**changes: str) -> Arrange:
    async def change(pipeline: PipelineHarness) -> None:
        changed = replace(OPERATOR.replace_fields(**changes), base_url=pipeline.operator_url)
        await provisioning.put_operator_account(pipeline.waypost.admin_context, changed)

    return change


async def issue_expiring_token(pipeline: PipelineHarness) -> None:
    day_ms = 86_400_000
    token = await pipeline.control("POST", "tokens", {"waba_ids": [ACCOUNT.id], "expires_in_ms": 3 * day_ms})
    await set_account(token=token["token"])(pipeline)


async def issue_token_with_one_permission(pipeline: PipelineHarness) -> None:
    request = {"waba_ids": [ACCOUNT.id], "permissions": ["whatsapp_business_messaging"]}
    token = await pipeline.control("POST", "tokens", request)
    await set_account(token=token["token"])(pipeline)


async def subscribe_another_url(pipeline: PipelineHarness) -> None:
    """The path without an account id completes the handshake too, and is another URL."""
    body = {
        "override_callback_uri": f"{pipeline.service_url}/operator/webhook",
        "verify_token": OPERATOR["verify_token"],
    }
    await call_graph_api(pipeline, "POST", "subscribed_apps", body)


async def unsubscribe(pipeline: PipelineHarness) -> None:
    await call_graph_api(pipeline, "DELETE", "subscribed_apps")


def subscribe_fields(*fields: str) -> Arrange:
    async def subscribe(pipeline: PipelineHarness) -> None:
        webhook = {
            "callback_uri": f"{pipeline.service_url}/operator/webhook/{OPERATOR.id}",
            "verify_token": OPERATOR["verify_token"],
            "fields": fields,
        }
        await pipeline.control("PUT", f"apps/{OPERATOR['app_id']}/webhook", webhook)

    return subscribe


async def change_namespace(pipeline: PipelineHarness) -> None:
    settings = {
        "name": "Acme",
        "namespace": "another",
        "token": OPERATOR["token"],
        "app_id": OPERATOR["app_id"],
        "app_secret": OPERATOR["app_secret"],
    }
    await pipeline.control("PUT", f"accounts/{ACCOUNT.id}", settings)


async def call_graph_api(pipeline: PipelineHarness, method: str, edge: str, body: Any = None) -> None:
    """Call the Graph API about the business account."""
    async with pipeline.http.request(
        method,
        f"{pipeline.operator_url}/v25.0/{ACCOUNT.id}/{edge}",
        json=body,
        headers={"Authorization": f"Bearer {OPERATOR['token']}"},
    ) as response:
        assert response.status == 200, await response.text()


async def change_number(pipeline: PipelineHarness) -> None:
    number = {"waba_id": ACCOUNT.id, "phone_number": "15559990000", "name": "Other"}
    await pipeline.control("PUT", NUMBER, number)


async def connect_unknown_number(pipeline: PipelineHarness) -> None:
    await connect_app(pipeline.waypost.admin_context, AppConnection(APP.phone_number, "42", ACCOUNT.id), APP.id)


async def lose_template(pipeline: PipelineHarness) -> None:
    await pipeline.approved_template()
    await pipeline.control("POST", "reset", {})


async def arm_fault(pipeline: PipelineHarness) -> None:
    fault = {"on": "call", "call": "messages.send", "what": {"error": 131016}}
    await pipeline.control("POST", "faults", fault)


async def add_dead_letter(pipeline: PipelineHarness) -> None:
    row = {
        "queue": int(QueueName.CALLBACKS), "concurrency_group": "1", "ordering_key": "1 1", "ref": "1",
        "due_ms": 0, "state": 2, "defects": 5,
    }  # fmt: skip

    def put(connection: Connection) -> None:
        connection.execute(insert(queue_jobs), row)

    await pipeline.waypost.database.write(put)


# fmt: off
CASES: Final[dict[str, tuple[Arrange, str, str, str, str]]] = {
    # problem                arranged by                               about                                              state      text                                   fix hint
    "unknown token":        (set_account(token="no-such"),             "main: token",                                     "wrong",   "no longer valid",                     "waypost account token main"),
    "permission missing":   (issue_token_with_one_permission,          "main: token",                                     "wrong",   "whatsapp_business_management",        "waypost account token main"),
    "token expires soon":   (issue_expiring_token,                     "main: token",                                     "warning", "expires in 3.0 days",                 "waypost account token main"),
    "operator unreachable": (PipelineHarness.close_operator,           "main: token",                                     "wrong",   "was not reached",                     "--base-url"),
    "other namespace":      (change_namespace,                         f"main: business account {ACCOUNT.id}",            "warning", "another at the operator",             "waypost app operator"),
    "unknown number":       (connect_unknown_number,                   f"main: number +{APP.phone_number} of {APP.name}", "wrong",   f"it has {APP.phone_number_id}",       "waypost app connect"),
    "other digits":         (change_number,                            f"main: number +{APP.phone_number} of {APP.name}", "wrong",   "is +1 555-999-0000",                  "waypost app connect"),
    "not registered":       (set_number_status(status="DISCONNECTED"), f"main: number +{APP.phone_number} of {APP.name}", "wrong",   "status is DISCONNECTED",              "register"),
    "poor quality":         (set_number_status(quality_rating="RED"),  f"main: number +{APP.phone_number} of {APP.name}", "warning", "quality is RED",                      "unwanted"),
    "not subscribed":       (unsubscribe,                              f"main: webhook of {ACCOUNT.id}",                  "wrong",   "is not subscribed; subscribed: none", f"waypost account subscribe {ACCOUNT.id}"),
    "other webhook":        (subscribe_another_url,                    f"main: webhook of {ACCOUNT.id}",                  "wrong",   "/operator/webhook, and ours is",      f"waypost account subscribe {ACCOUNT.id}"),
    "no messages":          (subscribe_fields("account_update"),       "main: webhook fields",                            "wrong",   "messages (no statuses, no inbound",   "app's configuration"),
    "missing field":        (subscribe_fields("messages"),             "main: webhook fields",                            "warning", "user_preferences (no callbacks about", "app's configuration"),
    "missing template":     (lose_template,                            f"main: templates of {ACCOUNT.id}",                "warning", "does not have 1: greeting (en_US)",   "--submit-templates"),
    "fault armed":          (arm_fault,                                "main: simulator",                                 "warning", "1 fault is armed",                    "DELETE"),
    "dead letter":          (add_dead_letter,                          "queue",                                           "wrong",   "1 dead letter",                       "waypost dead-letter list"),
}
# fmt: on


@pytest.mark.parametrize("case", CASES)
async def test_doctor_reports_the_problem_with_a_fix_hint(pipeline: PipelineHarness, case: str) -> None:
    arrange, about, state, text, fix_hint = CASES[case]
    await arrange(pipeline)

    findings = await read_findings(pipeline)

    [finding] = [finding for finding in findings if finding["subject"] == about]
    assert finding["state"] == state
    assert text in finding["text"]
    assert fix_hint in finding["fix_hint"]
    secrets = (OPERATOR["token"], OPERATOR["app_secret"], OPERATOR["verify_token"], ADMIN_TOKEN)
    assert not [secret for secret in secrets if secret in json.dumps(findings)]


async def test_template_with_another_status_at_the_operator_is_reported(proxied_pipeline: PipelineHarness) -> None:
    """Its status webhook was lost."""
    await proxied_pipeline.approved_template()
    assert proxied_pipeline.operator_proxy is not None
    proxied_pipeline.operator_proxy.let_webhooks_pass = False
    [template] = (await proxied_pipeline.control("GET", "templates"))["templates"]
    await proxied_pipeline.control("POST", f"templates/{template['id']}/pause", {})

    findings = await read_findings(proxied_pipeline)

    [finding] = [finding for finding in findings if finding["subject"] == f"main: templates of {ACCOUNT.id}"]
    assert finding["text"] == "1 with another status: greeting (en_US) is APPROVED here and PAUSED there"
    assert f"waypost app operator {APP.id} main" in finding["fix_hint"]


async def test_throughput_above_the_operators_is_wrong(make_pipeline: Callable[..., Any]) -> None:
    pipeline = await make_pipeline(changes={"per_second": 500})

    findings = await read_findings(pipeline)

    assert [finding["text"] for finding in problems(findings)] == [
        "we send 500 messages a second, and the operator accepts 80"
    ]


async def test_public_url_that_does_not_respond_is_wrong(make_pipeline: Callable[..., Any]) -> None:
    pipeline = await make_pipeline(changes={"public_url": "http://127.0.0.1:9"})

    findings = await read_findings(pipeline)

    [finding] = [finding for finding in findings if finding["subject"] == "main: our address"]
    assert (finding["state"], "WAYPOST_PUBLIC_URL" in finding["fix_hint"]) == ("wrong", True)


async def test_subscribing_names_our_url_when_the_operator_cannot_reach_it(make_pipeline: Callable[..., Any]) -> None:
    pipeline = await make_pipeline(changes={"public_url": "http://127.0.0.1:9"})

    response = await send_admin_request(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})

    assert response.status == 400
    assert "http://127.0.0.1:9/operator/webhook/main" in response.body["message"]


async def test_command_prints_a_line_for_each_finding_and_exits_with_1_if_one_is_wrong(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYPOST_ADMIN_TOKEN", ADMIN_TOKEN)
    monkeypatch.setenv("WAYPOST_ADMIN_URL", f"{pipeline.service_url}/admin")
    healthy = await asyncio.to_thread(CliRunner().invoke, commands, ["doctor"])
    await set_number_status(status="BANNED")(pipeline)

    failing = await asyncio.to_thread(CliRunner().invoke, commands, ["doctor"])
    as_json = await asyncio.to_thread(CliRunner().invoke, commands, ["doctor", "--json"])

    assert (healthy.exit_code, failing.exit_code, as_json.exit_code) == (0, 1, 1)
    assert healthy.stdout.startswith("ok      service: it is running\n")
    assert "wrong   main: number +15550001111 of AcmeShop: its status is BANNED\n        -> " in failing.stdout
    states = {finding["state"] for finding in json.loads(as_json.stdout)["results"]}
    assert states == {"ok", "wrong"}


def test_without_a_running_service_the_store_is_checked(tmp_path: Path) -> None:
    env = {
        "WAYPOST_DATA": str(tmp_path),
        "WAYPOST_SECRET_KEY": "5ec70b1d" * 8,
        "WAYPOST_ADMIN_TOKEN": None,
        "WAYPOST_ADMIN_URL": None,
    }

    result = CliRunner(env=env).invoke(commands, ["doctor"])

    assert result.exit_code == 1
    assert "wrong   service: it is not running" in result.stdout
    assert "warning operator accounts: there are none" in result.stdout


async def test_subscribing_begins_with_a_plain_subscription_where_the_operator_needs_one(
    pipeline: PipelineHarness,
) -> None:
    # Source: operator's page "Override webhooks".
    await unsubscribe(pipeline)

    response = await send_admin_request(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})

    assert response.status == 200, response.body
    findings = {finding["subject"]: finding["state"] for finding in await read_findings(pipeline)}
    assert findings[f"main: webhook of {ACCOUNT.id}"] == "ok"


async def test_template_that_the_operator_rejected_at_creation_is_no_finding(pipeline: PipelineHarness) -> None:
    fault = {"on": "call", "call": "templates.create", "what": {"error": 100}, "when": {"next": 1}}
    await pipeline.control("POST", "faults", {"faults": [fault]})
    template = await pipeline.create_template()
    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="rejected"))

    findings = await read_findings(pipeline)

    [finding] = [finding for finding in findings if finding["subject"] == f"main: templates of {ACCOUNT.id}"]
    assert finding["state"] == "ok", finding
