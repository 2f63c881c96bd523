"""The doctor: each thing that can be wrong between us and an operator, its line, and its remedy."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, insert
from typer.testing import CliRunner

from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.second_operator import administer
from waypost.admin import provisioning
from waypost.admin.apps import AppConnection, connect_app
from waypost.cli.main import app as commands
from waypost.store.queue.jobs import QueueName
from waypost.store.tables import queue_jobs

Arrange = Callable[[PipelineHarness], Awaitable[object]]
NUMBER: Final = f"numbers/{APP.phone_number_id}"


async def findings_of(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """What the doctor says of the pipeline."""
    answer = await administer(pipeline, "GET", "/admin/doctor")
    assert answer.status == 200, answer
    return answer.body["findings"]


def bad(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in findings if one["state"] != "ok"]


async def test_account_where_everything_is_in_place_has_nothing_but_ok(pipeline: PipelineHarness) -> None:
    await pipeline.approved_template()
    await administer(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})

    findings = await findings_of(pipeline)

    assert bad(findings) == []
    about = [one["about"] for one in findings]
    for expected in (
        "main: token",
        "main: our address",
        f"main: business account {ACCOUNT.id}",
        f"main: number +{APP.phone_number} of {APP.name}",
        f"main: webhook of {ACCOUNT.id}",
        f"main: templates of {ACCOUNT.id}",
        "main: simulator",
    ):
        assert expected in about


def stands(**standing: str) -> Arrange:
    return lambda pipeline: pipeline.control("PUT", f"{NUMBER}/standing", standing)


def account(**changes: str) -> Arrange:
    async def change(pipeline: PipelineHarness) -> None:
        wish = replace(OPERATOR.replace_fields(**changes), base_url=pipeline.operator_url)
        await provisioning.put_operator_account(pipeline.waypost.admin_context, wish)

    return change


async def token_runs_out(pipeline: PipelineHarness) -> None:
    day_ms = 86_400_000
    told = await pipeline.control("POST", "tokens", {"waba_ids": [ACCOUNT.id], "expires_in_ms": 3 * day_ms})
    await account(token=told["token"])(pipeline)


async def token_of_one_permission(pipeline: PipelineHarness) -> None:
    wish = {"waba_ids": [ACCOUNT.id], "permissions": ["whatsapp_business_messaging"]}
    told = await pipeline.control("POST", "tokens", wish)
    await account(token=told["token"])(pipeline)


async def other_webhook(pipeline: PipelineHarness) -> None:
    """The plain path answers the handshake too, and is another address."""
    body = {
        "override_callback_uri": f"{pipeline.service_url}/operator/webhook",
        "verify_token": OPERATOR["verify_token"],
    }
    await graph(pipeline, "POST", "subscribed_apps", body)


async def nobody_subscribed(pipeline: PipelineHarness) -> None:
    await graph(pipeline, "DELETE", "subscribed_apps")


async def other_namespace(pipeline: PipelineHarness) -> None:
    wish = {
        "name": "Acme",
        "namespace": "another",
        "token": OPERATOR["token"],
        "app_id": OPERATOR["app_id"],
        "app_secret": OPERATOR["app_secret"],
    }
    await pipeline.control("PUT", f"accounts/{ACCOUNT.id}", wish)


async def graph(pipeline: PipelineHarness, method: str, edge: str, body: Any = None) -> None:
    """One call of the operator's interface about the business account."""
    async with pipeline.http.request(
        method,
        f"{pipeline.operator_url}/v25.0/{ACCOUNT.id}/{edge}",
        json=body,
        headers={"Authorization": f"Bearer {OPERATOR['token']}"},
    ) as answer:
        assert answer.status == 200, await answer.text()


async def other_number(pipeline: PipelineHarness) -> None:
    wish = {"waba_id": ACCOUNT.id, "phone_number": "15559990000", "name": "Other"}
    await pipeline.control("PUT", NUMBER, wish)


async def app_of_an_unknown_number(pipeline: PipelineHarness) -> None:
    await connect_app(pipeline.waypost.admin_context, AppConnection(APP.phone_number, "42", ACCOUNT.id), APP.id)


async def template_gone(pipeline: PipelineHarness) -> None:
    await pipeline.approved_template()
    await pipeline.control("POST", "reset", {})


async def fault_armed(pipeline: PipelineHarness) -> None:
    wish = {"on": "call", "call": "messages.send", "what": {"error": 131016}}
    await pipeline.control("POST", "faults", wish)


async def entry_set_aside(pipeline: PipelineHarness) -> None:
    row = {
        "queue": int(QueueName.CALLBACKS), "concurrency_group": "1", "ordering_key": "1 1", "ref": "1",
        "due_ms": 0, "state": 2, "defects": 5,
    }  # fmt: skip

    def put(connection: Connection) -> None:
        connection.execute(insert(queue_jobs), row)

    await pipeline.waypost.database.write(put)


# fmt: off
CASES: Final[dict[str, tuple[Arrange, str, str, str, str]]] = {
    # what is wrong           arranged by                    about                             state      text                          remedy
    "unknown token":         (account(token="no-such"),      "main: token",                    "wrong",   "no longer valid",                  "waypost account token main"),
    "permission missing":    (token_of_one_permission,       "main: token",                    "wrong",   "whatsapp_business_management", "waypost account token main"),
    "token soon over":       (token_runs_out,                "main: token",                    "warning", "expires in 3.0 days",        "waypost account token main"),
    "operator away":         (PipelineHarness.close_operator,         "main: token",                    "wrong",   "was not reached",            "--base-url"),
    "other namespace":       (other_namespace,               f"main: business account {ACCOUNT.id}", "warning", "another at the operator", "waypost app operator"),
    "number not there":      (app_of_an_unknown_number,      f"main: number +{APP.phone_number} of {APP.name}", "wrong", f"it has {APP.phone_number_id}", "waypost app connect"),
    "other digits":          (other_number,                  f"main: number +{APP.phone_number} of {APP.name}", "wrong", "is +1 555-999-0000", "waypost app connect"),
    "not registered":        (stands(status="DISCONNECTED"), f"main: number +{APP.phone_number} of {APP.name}", "wrong", "status is DISCONNECTED", "register"),
    "poor quality":          (stands(quality_rating="RED"),  f"main: number +{APP.phone_number} of {APP.name}", "warning", "quality is RED", "unwanted"),
    "nobody subscribed":     (nobody_subscribed,             f"main: webhook of {ACCOUNT.id}", "wrong",   "is not subscribed; subscribed: none", f"waypost account subscribe {ACCOUNT.id}"),
    "other address":         (other_webhook,                 f"main: webhook of {ACCOUNT.id}", "wrong",   "/operator/webhook, and ours is", f"waypost account subscribe {ACCOUNT.id}"),
    "template not there":    (template_gone,                 f"main: templates of {ACCOUNT.id}", "warning", "does not have 1: greeting (en_US)", "--submit-templates"),
    "fault armed":           (fault_armed,                   "main: simulator",                "warning", "1 fault is armed",           "DELETE"),
    "dead letter":           (entry_set_aside,               "queue",                             "wrong",   "1 dead letter",              "waypost dead-letter list"),
}
# fmt: on


@pytest.mark.parametrize("case", CASES)
async def test_doctor_tells_what_is_wrong_and_what_to_do(pipeline: PipelineHarness, case: str) -> None:
    arrange, about, state, text, remedy = CASES[case]
    await arrange(pipeline)

    findings = await findings_of(pipeline)

    [found] = [one for one in findings if one["about"] == about]
    assert found["state"] == state
    assert text in found["text"]
    assert remedy in found["remedy"]
    secrets = (OPERATOR["token"], OPERATOR["app_secret"], OPERATOR["verify_token"], ADMIN_TOKEN)
    assert not [secret for secret in secrets if secret in json.dumps(findings)]


async def test_template_that_stands_otherwise_at_the_operator_is_told(cut_pipeline: PipelineHarness) -> None:
    """Its webhook was lost."""
    await cut_pipeline.approved_template()
    assert cut_pipeline.between is not None
    cut_pipeline.between.let_webhooks_pass = False
    [template] = (await cut_pipeline.control("GET", "templates"))["templates"]
    await cut_pipeline.control("POST", f"templates/{template['id']}/pause", {})

    findings = await findings_of(cut_pipeline)

    [found] = [one for one in findings if one["about"] == f"main: templates of {ACCOUNT.id}"]
    assert found["text"] == "1 with another status: greeting (en_US) is APPROVED here and PAUSED there"
    assert f"waypost app operator {APP.id} main" in found["remedy"]


async def test_pace_above_the_operators_is_wrong(make_pipeline: Callable[..., Any]) -> None:
    pipeline = await make_pipeline(changes={"per_second": 500})

    findings = await findings_of(pipeline)

    assert [one["text"] for one in bad(findings)] == ["we send 500 messages a second, and the operator accepts 80"]


async def test_address_where_nobody_answers_is_wrong(make_pipeline: Callable[..., Any]) -> None:
    pipeline = await make_pipeline(changes={"public_url": "http://127.0.0.1:9"})

    findings = await findings_of(pipeline)

    [found] = [one for one in findings if one["about"] == "main: our address"]
    assert (found["state"], "WAYPOST_PUBLIC_URL" in found["remedy"]) == ("wrong", True)


async def test_subscribing_says_what_to_check_when_the_operator_cannot_reach_us(
    make_pipeline: Callable[..., Any],
) -> None:
    pipeline = await make_pipeline(changes={"public_url": "http://127.0.0.1:9"})

    answer = await administer(pipeline, "POST", f"/admin/business-accounts/{ACCOUNT.id}/subscribe", {})

    assert answer.status == 400
    assert "http://127.0.0.1:9/operator/webhook/main" in answer.body["message"]


async def test_command_prints_a_line_for_each_finding_and_ends_with_1_when_one_is_wrong(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYPOST_ADMIN_TOKEN", ADMIN_TOKEN)
    monkeypatch.setenv("WAYPOST_ADMIN_URL", f"{pipeline.service_url}/admin")
    fine = await asyncio.to_thread(CliRunner().invoke, commands, ["doctor"])
    await stands(status="BANNED")(pipeline)

    sick = await asyncio.to_thread(CliRunner().invoke, commands, ["doctor"])
    told = await asyncio.to_thread(CliRunner().invoke, commands, ["doctor", "--json"])

    assert (fine.exit_code, sick.exit_code, told.exit_code) == (0, 1, 1)
    assert fine.stdout.startswith("ok      service: it is running\n")
    assert "wrong   main: number +15550001111 of AcmeShop: its status is BANNED\n        -> " in (sick.stdout)
    states = {one["state"] for one in json.loads(told.stdout)["findings"]}
    assert states == {"ok", "wrong"}


def test_without_a_running_service_its_store_is_looked_at(tmp_path: Path) -> None:
    env = {
        "WAYPOST_DATA": str(tmp_path),
        "WAYPOST_SECRET_KEY": "5ec7" * 16,
        "WAYPOST_ADMIN_TOKEN": None,
        "WAYPOST_ADMIN_URL": None,
    }

    result = CliRunner(env=env).invoke(commands, ["doctor"])

    assert result.exit_code == 1
    assert "wrong   service: it is not running" in result.stdout
    assert "warning operator accounts: there are none" in result.stdout
