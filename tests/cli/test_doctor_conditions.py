"""The doctor under rarer conditions: clocks, usage, reviews, errors and unreadable responses."""

import asyncio
import io
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.pipeline import PipelineHarness
from tests.support.second_operator import send_admin_request
from waypost.admin import provisioning
from waypost.admin.doctor.account_checks import check_handshake
from waypost.assembly.dev.dev import DevOptions, DevServer
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.cli.command_tree import app as commands
from waypost.config import Settings

HOUR_MS: Final = 3_600_000
NUMBER: Final = f"main: number +{APP.phone_number} of {APP.name}"
TOKEN: Final = "main: token"


async def read_findings(pipeline: PipelineHarness, about: str) -> list[dict[str, Any]]:
    """Return the doctor's findings about one subject."""
    response = await send_admin_request(pipeline, "GET", "/admin/doctor")
    assert response.status == 200, response
    return [finding for finding in response.body["results"] if finding["subject"] == about]


@dataclass(frozen=True)
class Demonstration:
    """A folder in which `waypost dev` runs, with its control API and its doctor."""

    control_url: str
    env_file: Path

    async def control(self, path: str, body: Any) -> None:
        """Send a request to the simulator control API."""
        async with aiohttp.ClientSession() as http, http.post(f"{self.control_url}/{path}", json=body) as response:
            assert response.status == 200, await response.text()

    async def doctor(self) -> Result:
        """Run `waypost doctor --json`, which reads the environment file in the folder."""
        return await asyncio.to_thread(CliRunner().invoke, commands, ["doctor", "--json"])


@pytest.fixture
async def demonstration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Demonstration]:
    for name in [name for name in os.environ if name.startswith("WAYPOST_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    dev = DevServer(DevOptions(Settings(port=0), simulator_port=0, memory=True))
    try:
        running = await dev.open()
        yield Demonstration(running.variables["CONTROL_URL"], tmp_path / "waypost-dev.env")
    finally:
        await dev.close()


@pytest.mark.parametrize(
    ("moved_ms", "texts"),
    [
        (0, ["its clock is frozen"]),
        (25 * HOUR_MS, ["its clock is 1 day, … ahead of this machine's", "its clock is frozen"]),
    ],
)
async def test_clock_of_the_demonstration_that_differs_from_the_machines_is_reported(
    demonstration: Demonstration, moved_ms: int, texts: list[str]
) -> None:
    fresh = await demonstration.doctor()
    await demonstration.control("clock/freeze", {})
    await demonstration.control("clock/advance", {"ms": moved_ms})

    changed = await demonstration.doctor()

    assert [finding["text"] for finding in simulator_findings(fresh)] == [
        "no faults armed, its clock equals this machine's"
    ]
    findings = simulator_findings(changed)
    # A frozen clock falls behind while this is asked
    assert [re.sub(r"1:00:00|0:5\d:\d\d", "…", finding["text"]) for finding in findings] == texts
    assert {finding["state"] for finding in findings} == {"warning"}
    assert "waypost clock run" in findings[-1]["fix_hint"]
    assert (fresh.exit_code, changed.exit_code) == (0, 0), changed.output


async def test_demonstration_that_has_been_stopped_is_one_line_with_a_fix_hint(demonstration: Demonstration) -> None:
    demonstration.env_file.write_text("ADMIN_URL=http://127.0.0.1:9/admin\nADMIN_TOKEN=t\n")
    stopped = await demonstration.doctor()
    demonstration.env_file.unlink()

    without_file = await demonstration.doctor()

    assert (stopped.exit_code, without_file.exit_code) == (1, 1)
    assert stopped.stderr.startswith("waypost: no response from http://127.0.0.1:9; start ")
    assert "set WAYPOST_ADMIN_TOKEN to reach a running service" in without_file.stderr
    assert [result.stderr.count("\n") for result in (stopped, without_file)] == [1, 1]


def simulator_findings(result: Result) -> list[dict[str, Any]]:
    """Return the findings about the simulator."""
    findings = json.loads(result.stdout)["results"]
    return [finding for finding in findings if finding["subject"] == "demo: simulator"]


@pytest.mark.parametrize(
    ("calls_per_hour", "text", "fix_hint"), [(5, "near the limit: ", "fewer syncs"), (4, "used up: ", "wait ")]
)
async def test_usage_near_its_limit_is_reported_before_calls_are_rejected(
    pipeline: PipelineHarness, calls_per_hour: int, text: str, fix_hint: str
) -> None:
    await pipeline.control("PUT", "settings", {"calls_per_hour": calls_per_hour})

    findings = await read_findings(pipeline, "main: usage")

    account_usage = next(finding for finding in findings if ACCOUNT.id in finding["text"])
    assert (account_usage["state"], account_usage["text"].startswith(text)) == ("warning", True), findings
    assert fix_hint in account_usage["fix_hint"]


async def test_public_url_that_is_not_https_is_wrong_for_a_remote_operator(pipeline: PipelineHarness) -> None:
    remote = replace(OPERATOR, base_url="https://graph.acme.example")

    [finding] = await check_handshake(pipeline.waypost.admin_context, remote)

    assert finding.state == "wrong"
    assert "is not https" in finding.text
    assert "WAYPOST_PUBLIC_URL" in finding.fix_hint


async def test_own_check_of_the_webhook_url_causes_no_warning_and_a_strangers_does(
    pipeline: PipelineHarness, logs: Callable[[], None]
) -> None:
    stream = io.StringIO()
    set_up_logs(SystemClock(), as_json=True, level="warning", stream=stream)
    query = {"hub.mode": "subscribe", "hub.challenge": "115", "hub.verify_token": "115"}
    url = f"{pipeline.service_url}/operator/webhook/{OPERATOR.id}"

    [own] = await read_findings(pipeline, "main: our address")
    after_own = stream.getvalue()
    async with aiohttp.ClientSession() as http, http.get(url, params=query) as response:
        status = response.status
    logs()

    assert own["state"] == "ok"
    assert "handshake" not in after_own
    assert status == 403
    assert "a webhook handshake was rejected" in stream.getvalue()


@pytest.fixture
async def operator_response(pipeline: PipelineHarness) -> AsyncIterator[dict[str, Any]]:
    """Start a server in place of the operator that sends this object as every response."""
    content: dict[str, Any] = {"data": []}

    async def respond(_request: web.Request) -> web.StreamResponse:
        return web.json_response(content)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", respond)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=url))
    yield content
    await runner.cleanup()


@pytest.mark.parametrize("review", ["PENDING", "REJECTED"])
async def test_unfinished_review_of_the_business_account_is_reported(
    pipeline: PipelineHarness, operator_response: dict[str, Any], review: str
) -> None:
    operator_response |= {
        "data": {"is_valid": True},
        "name": "Acme",
        "message_template_namespace": ACCOUNT.namespace,
        "account_review_status": review,
    }

    [finding] = await read_findings(pipeline, f"main: business account {ACCOUNT.id}")

    assert (finding["state"], finding["text"]) == ("warning", f"its review at the operator is {review}")


# fmt: off
OPERATOR_ERRORS: Final = {
    # case                       fault                                                   state      text                                   fix hint
    "permission of the app":    ({"error": 10, "status": 403},                           "wrong",   "lacks a permission: (#10) ",          "waypost account token main"),
    "permission of the user":   ({"error": 200, "status": 403},                          "wrong",   "(200)",                               "waypost account token main"),
    "capability":               ({"error": 3, "status": 400},                            "wrong",   "lacks a permission",                  "waypost account token main"),
    "blocked":                  ({"error": 131031, "status": 403},                       "wrong",   "the operator has blocked the account", "notices"),
    "unavailable":              ({"error": 2, "status": 500},                            "warning", "is not available",                    "wait"),
    "too many calls":           ({"error": 80008, "status": 400},                        "warning", "accepts no more calls",              "wait"),
    "unknown code":             ({"error": 999_999, "status": 400},                      "wrong",   "(999999)",                            "operator-codes.md"),
    "a page":                   ({"garbage": "html", "status": 200},                     "wrong",   "an unreadable response with status 200", "--base-url"),
    "truncated response":       ({"garbage": "truncated", "status": 200},                "wrong",   "the operator's response was lost",      "--base-url"),
    "connection reset":         ({"reset": "before"},                                    "wrong",   "the operator's response was lost",      "--base-url"),
}
# fmt: on


@pytest.mark.parametrize("case", OPERATOR_ERRORS)
async def test_each_error_of_the_operator_has_its_own_finding(pipeline: PipelineHarness, case: str) -> None:
    what, state, text, fix_hint = OPERATOR_ERRORS[case]
    await pipeline.control("POST", "faults", {"on": "call", "call": "numbers.list", "what": what})

    [finding] = await read_findings(pipeline, f"main: numbers of {ACCOUNT.id}")

    assert finding["state"] == state
    assert text in finding["text"]
    assert fix_hint in finding["fix_hint"]
    assert "not reached" not in finding["text"]  # the operator was reached


@pytest.mark.parametrize(
    ("lifetime_ms", "text"),
    [
        (30 * HOUR_MS, "expires in 1.2 days"),
        (5 * HOUR_MS, "expires in 5.0 hours"),
        (HOUR_MS // 2, "expires in less than an hour"),
    ],
)
async def test_token_that_expires_soon_is_reported_with_its_remaining_time(
    pipeline: PipelineHarness, lifetime_ms: int, text: str
) -> None:
    request = {"waba_ids": [ACCOUNT.id], "expires_in_ms": lifetime_ms}
    token = (await pipeline.control("POST", "tokens", request))["token"]
    account = replace(OPERATOR.replace_fields(token=token), base_url=pipeline.operator_url)
    await provisioning.put_operator_account(pipeline.waypost.admin_context, account)

    [finding] = await read_findings(pipeline, TOKEN)

    assert (finding["state"], text in finding["text"]) == ("warning", True), finding


@pytest.mark.parametrize("end", ["expire", "revoke"])
async def test_expired_or_revoked_token_is_wrong_with_the_operators_reason(pipeline: PipelineHarness, end: str) -> None:
    token = (await pipeline.control("POST", "tokens", {"waba_ids": [ACCOUNT.id]}))["token"]
    account = replace(OPERATOR.replace_fields(token=token), base_url=pipeline.operator_url)
    await provisioning.put_operator_account(pipeline.waypost.admin_context, account)
    await pipeline.control("POST", f"tokens/{end}", {"token": token})

    [finding] = await read_findings(pipeline, TOKEN)

    assert finding["state"] == "wrong"
    assert end in finding["text"]
    assert "waypost account token main" in finding["fix_hint"]


@pytest.mark.parametrize(
    ("sending_restriction", "fix_hint"),
    [
        ("UNREGISTERED", "register or verify the number"),
        ("LOCKED", "request a review"),
        ("SPAM_LIMITED", "send fewer unwanted messages"),
        ("DELETED", "waypost app connect"),
    ],
)
async def test_number_with_a_problem_has_the_fix_hint_of_its_status(
    pipeline: PipelineHarness, sending_restriction: str, fix_hint: str
) -> None:
    await pipeline.control("PUT", f"numbers/{APP.phone_number_id}/sending-restriction", {"name": sending_restriction})

    *_, finding = await read_findings(pipeline, NUMBER)  # an unregistered number has no platform, either

    assert (finding["state"], fix_hint in finding["fix_hint"]) == ("wrong", True), finding
