"""The doctor in rarer weather: clocks, usage, reviews, refusals and answers that are none."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.pipeline import PipelineHarness
from tests.support.second_operator import administer
from waypost.admin import provisioning
from waypost.admin.doctor.webhook import check_handshake
from waypost.assembly.dev.dev import DevOptions, DevServer
from waypost.cli.main import app as commands
from waypost.config import Settings

HOUR_MS: Final = 3_600_000
NUMBER: Final = f"main: number +{APP.phone_number} of {APP.name}"
TOKEN: Final = "main: token"


async def found(pipeline: PipelineHarness, about: str) -> list[dict[str, Any]]:
    """What the doctor says of one thing."""
    answer = await administer(pipeline, "GET", "/admin/doctor")
    assert answer.status == 200, answer
    return [one for one in answer.body["findings"] if one["about"] == about]


@dataclass(frozen=True)
class Newcomer:
    """A folder in which `waypost dev` runs, and what its doctor is asked there."""

    control_url: str
    env_file: Path

    async def control(self, path: str, body: Any) -> None:
        """One request to the control door."""
        async with aiohttp.ClientSession() as http, http.post(f"{self.control_url}/{path}", json=body) as answer:
            assert answer.status == 200, await answer.text()

    async def doctor(self) -> Result:
        """`waypost doctor --json`, which finds everything by the file in the folder."""
        return await asyncio.to_thread(CliRunner().invoke, commands, ["doctor", "--json"])


@pytest.fixture
async def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Newcomer]:
    for name in [name for name in os.environ if name.startswith("WAYPOST_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    dev = DevServer(DevOptions(Settings(port=0), simulator_port=0, memory=True))
    try:
        running = await dev.open()
        yield Newcomer(running.variables["CONTROL_URL"], tmp_path / "waypost-dev.env")
    finally:
        await dev.close()


@pytest.mark.parametrize(
    ("moved_ms", "texts"),
    [
        (0, ["its clock is frozen"]),
        (25 * HOUR_MS, ["its clock is 1 day, 1:00:00 ahead of this machine's", "its clock is frozen"]),
    ],
)
async def test_clock_of_the_demonstration_that_is_not_the_machines_is_told(
    newcomer: Newcomer, moved_ms: int, texts: list[str]
) -> None:
    fresh = await newcomer.doctor()
    await newcomer.control("clock/freeze", {})
    await newcomer.control("clock/advance", {"ms": moved_ms})

    told = await newcomer.doctor()

    assert [one["text"] for one in of_simulator(fresh)] == ["no faults armed, its clock equals this machine's"]
    said = of_simulator(told)
    assert [one["text"] for one in said] == texts
    assert {one["state"] for one in said} == {"warning"}
    assert "waypost clock run" in said[-1]["remedy"]
    assert (fresh.exit_code, told.exit_code) == (0, 0), told.output


async def test_demonstration_that_has_been_stopped_is_one_line_with_a_remedy(newcomer: Newcomer) -> None:
    newcomer.env_file.write_text("ADMIN_URL=http://127.0.0.1:9/admin\nADMIN_TOKEN=t\n")
    gone = await newcomer.doctor()
    newcomer.env_file.unlink()

    nowhere = await newcomer.doctor()

    assert (gone.exit_code, nowhere.exit_code) == (1, 1)
    assert gone.stderr.startswith("waypost: no response from http://127.0.0.1:9; start ")
    assert "set WAYPOST_ADMIN_TOKEN to reach a running service" in nowhere.stderr
    assert [told.stderr.count("\n") for told in (gone, nowhere)] == [1, 1]


def of_simulator(told: Result) -> list[dict[str, Any]]:
    """What was said of the simulator."""
    findings = json.loads(told.stdout)["findings"]
    return [one for one in findings if one["about"] == "demo: simulator"]


@pytest.mark.parametrize(
    ("calls_per_hour", "text", "remedy"), [(5, "near the limit: ", "fewer syncs"), (4, "used up: ", "wait ")]
)
async def test_usage_near_its_limit_is_told_before_calls_are_refused(
    pipeline: PipelineHarness, calls_per_hour: int, text: str, remedy: str
) -> None:
    await pipeline.control("PUT", "settings", {"calls_per_hour": calls_per_hour})

    said = await found(pipeline, "main: usage")

    of_account = next(one for one in said if ACCOUNT.id in one["text"])
    assert (of_account["state"], of_account["text"].startswith(text)) == ("warning", True), said
    assert remedy in of_account["remedy"]


async def test_public_address_that_is_not_https_is_wrong_for_an_operator_elsewhere(pipeline: PipelineHarness) -> None:
    elsewhere = replace(OPERATOR, base_url="https://graph.acme.example")

    [said] = await check_handshake(pipeline.waypost.admin_context, elsewhere)

    assert said.state == "wrong"
    assert "is not https" in said.text
    assert "WAYPOST_PUBLIC_URL" in said.remedy


@pytest.fixture
async def reviewing(pipeline: PipelineHarness) -> AsyncIterator[dict[str, Any]]:
    """A real server in the operator's place, which answers every question with this object."""
    told: dict[str, Any] = {"data": []}

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.json_response(told)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=url))
    yield told
    await runner.cleanup()


@pytest.mark.parametrize("review", ["PENDING", "REJECTED"])
async def test_review_of_the_business_account_that_is_not_over_is_told(
    pipeline: PipelineHarness, reviewing: dict[str, Any], review: str
) -> None:
    reviewing |= {
        "data": {"is_valid": True},
        "name": "Acme",
        "message_template_namespace": ACCOUNT.namespace,
        "account_review_status": review,
    }

    [said] = await found(pipeline, f"main: business account {ACCOUNT.id}")

    assert (said["state"], said["text"]) == ("warning", f"its review at the operator is {review}")


# fmt: off
REFUSED: Final = {
    # what                       why                                                     state      text                                   remedy
    "permission of the app":    ({"error": 10, "status": 403},                           "wrong",   "lacks a permission: (#10) ",          "waypost account token main"),
    "permission of the user":   ({"error": 200, "status": 403},                          "wrong",   "(200)",                               "waypost account token main"),
    "capability":               ({"error": 3, "status": 400},                            "wrong",   "lacks a permission",                  "waypost account token main"),
    "blocked":                  ({"error": 131031, "status": 403},                       "wrong",   "the operator has blocked the account", "notices"),
    "out of order":             ({"error": 2, "status": 500},                            "warning", "is not available",                    "wait"),
    "too many calls":           ({"error": 80008, "status": 400},                        "warning", "accepts no more calls",              "wait"),
    "unknown code":             ({"error": 999_999, "status": 400},                      "wrong",   "(999999)",                            "operator-codes.md"),
    "a page":                   ({"garbage": "html", "status": 200},                     "wrong",   "an unreadable answer with status 200", "--base-url"),
    "half an answer":           ({"garbage": "truncated", "status": 200},                "wrong",   "the operator's answer was lost",      "--base-url"),
    "broken line":              ({"reset": "before"},                                    "wrong",   "the operator's answer was lost",      "--base-url"),
}
# fmt: on


@pytest.mark.parametrize("case", REFUSED)
async def test_answer_that_is_none_is_told_once_for_each_question_in_its_own_words(
    pipeline: PipelineHarness, case: str
) -> None:
    what, state, text, remedy = REFUSED[case]
    await pipeline.control("POST", "faults", {"on": "call", "call": "numbers.list", "what": what})

    [said] = await found(pipeline, f"main: numbers of {ACCOUNT.id}")

    assert said["state"] == state
    assert text in said["text"]
    assert remedy in said["remedy"]
    assert "not reached" not in said["text"]  # it was


@pytest.mark.parametrize(
    ("lives_ms", "text"),
    [
        (30 * HOUR_MS, "expires in 1.2 days"),
        (5 * HOUR_MS, "expires in 5.0 hours"),
        (HOUR_MS // 2, "expires in less than an hour"),
    ],
)
async def test_token_that_ends_soon_says_when(pipeline: PipelineHarness, lives_ms: int, text: str) -> None:
    wish = {"waba_ids": [ACCOUNT.id], "expires_in_ms": lives_ms}
    token = (await pipeline.control("POST", "tokens", wish))["token"]
    account = replace(OPERATOR.replace_fields(token=token), base_url=pipeline.operator_url)
    await provisioning.put_operator_account(pipeline.waypost.admin_context, account)

    [said] = await found(pipeline, TOKEN)

    assert (said["state"], text in said["text"]) == ("warning", True), said


@pytest.mark.parametrize("end", ["expire", "revoke"])
async def test_token_that_has_ended_is_wrong_and_the_operator_says_how(pipeline: PipelineHarness, end: str) -> None:
    token = (await pipeline.control("POST", "tokens", {"waba_ids": [ACCOUNT.id]}))["token"]
    account = replace(OPERATOR.replace_fields(token=token), base_url=pipeline.operator_url)
    await provisioning.put_operator_account(pipeline.waypost.admin_context, account)
    await pipeline.control("POST", f"tokens/{end}", {"token": token})

    [said] = await found(pipeline, TOKEN)

    assert said["state"] == "wrong"
    assert end in said["text"]
    assert "waypost account token main" in said["remedy"]


@pytest.mark.parametrize(
    ("hindrance", "remedy"),
    [
        ("UNREGISTERED", "register or verify the number"),
        ("LOCKED", "request a review"),
        ("SPAM_LIMITED", "send fewer unwanted messages"),
        ("DELETED", "waypost app connect"),
    ],
)
async def test_number_that_is_hindered_has_the_remedy_of_its_status(
    pipeline: PipelineHarness, hindrance: str, remedy: str
) -> None:
    await pipeline.control("PUT", f"numbers/{APP.phone_number_id}/hindrance", {"name": hindrance})

    [said] = await found(pipeline, NUMBER)

    assert (said["state"], remedy in said["remedy"]) == ("wrong", True), said
