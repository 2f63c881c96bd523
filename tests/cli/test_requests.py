"""`waypost requests`: the list of the request log with its filters, and why one request failed."""

import asyncio
import json
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from tests.support.builders import ANN, APP
from tests.support.pipeline import ADMIN_TOKEN, API_KEY, PipelineHarness
from tests.support.polling import poll_until
from waypost.cli.command_tree import app

REQUEST_ID: Final = "order-17/a"
ROUTE: Final = "/wa/api/v1/msg"
TEXT: Final = "words that stay with the sender"


async def run(pipeline: PipelineHarness, *arguments: str) -> Result:
    env = {"WAYPOST_ADMIN_URL": pipeline.service_url, "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN}
    return await asyncio.to_thread(CliRunner(env=env).invoke, app, ["requests", *arguments])


async def fail_to_send(pipeline: PipelineHarness) -> None:
    """Send a text to no number, and wait until the request log has it."""
    form = {
        "channel": "whatsapp", "source": APP.phone_number, "src.name": APP.name, "destination": "12",
        "message": json.dumps({"type": "text", "text": TEXT}),
    }  # fmt: skip
    sent = await pipeline.send_request("POST", ROUTE, form, {"apikey": API_KEY, "X-Request-Id": REQUEST_ID})
    assert sent.status == 400

    async def is_logged() -> bool:
        return (await run(pipeline, "show", REQUEST_ID)).exit_code == 0

    await poll_until(is_logged)


async def test_rejected_request_is_shown_with_what_would_be_accepted(pipeline: PipelineHarness) -> None:
    await fail_to_send(pipeline)

    shown = await run(pipeline, "show", REQUEST_ID)
    entry: dict[str, Any] = json.loads((await run(pipeline, "show", REQUEST_ID, "--json")).stdout)

    assert (entry["status"], entry["field"], entry["request_id"]) == (400, "destination", REQUEST_ID)
    assert "8 to 15 digits" in entry["accepted"]
    assert entry["request"]["body"]["destination"] == "12"
    assert entry["took_ms"] > 0
    for expected in ("destination", entry["id"], "8 to 15 digits", REQUEST_ID):
        assert expected in shown.stdout
    assert TEXT not in shown.stdout + json.dumps(entry)
    assert API_KEY not in shown.stdout + json.dumps(entry)


@pytest.mark.parametrize(
    ("filters", "is_listed"),
    [
        ((), True),
        (("--status", "4xx", "--route", "v1/msg", "--app", APP.id, "--request-id", REQUEST_ID), True),
        (("--partner", str(APP.partner_id)), True),
        (("--status", "5xx"), False),
        (("--status", "400"), True),
        (("--status", "404"), False),
        (("--route", "/template/msg"), False),
        (("--before", "0"), False),
    ],
    ids=str,
)
async def test_list_has_filters(pipeline: PipelineHarness, filters: tuple[str, ...], is_listed: bool) -> None:
    await fail_to_send(pipeline)

    as_text = await run(pipeline, *filters)
    as_json = json.loads((await run(pipeline, *filters, "--json")).stdout)

    assert as_text.exit_code == 0, as_text.output
    assert (REQUEST_ID in [entry["request_id"] for entry in as_json["requests"]]) is is_listed
    assert (f"POST {ROUTE}" in as_text.stdout) is is_listed
    assert is_listed or as_text.stdout == "no requests\n"


async def test_list_is_read_page_by_page(pipeline: PipelineHarness) -> None:
    for _ in range(3):
        await fail_to_send(pipeline)

    async def all_listed() -> list[Any]:
        return json.loads((await run(pipeline, "--status", "4xx", "--json")).stdout)["requests"]

    entries = await poll_until(all_listed, lambda found: len(found) == 3)
    first = json.loads((await run(pipeline, "--limit", "2", "--json")).stdout)
    second = json.loads((await run(pipeline, "--limit", "2", "--before", first["next"], "--json")).stdout)

    assert [*first["requests"], *second["requests"]] == entries
    assert second["next"] is None


async def test_unknown_request_and_unknown_filter_are_errors(pipeline: PipelineHarness) -> None:
    unknown = await run(pipeline, "show", "none")
    path, headers = "/admin/requests?user=ann", {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    response = await pipeline.send_request("GET", path, headers=headers)

    assert unknown.exit_code == 1
    assert "request" in unknown.stderr
    assert response.status == 400
    assert "user is not a filter of this list; accepted: status, route, app_id" in response.body["message"]
    assert ANN not in response.body["message"]


_TEXT: Final = {
    "channel": "whatsapp", "source": APP.phone_number, "src.name": APP.name, "destination": ANN,
    "message": '{"type":"text","text":"Hi"}',
}  # fmt: skip
_TEMPLATE: Final = {**_TEXT, "template": '{"id":"nosuch","params":[]}'}
_LOGIN: Final = "/partner/account/login"
# fmt: off
MISTAKES: Final[tuple[tuple[str, dict[str, str], dict[str, str], str, str, str], ...]] = (
    # path                       form                                       headers              field          explanation               accepted
    (ROUTE,                      _TEXT,                                     {"apikey": "wrong"}, "apikey",      "The header apikey must", "the API key of your account"),
    ("/wa/api/v1/template/msg",  _TEMPLATE,                                 {"apikey": API_KEY}, "template.id", "template.id must be",    "the id of one of this app's templates"),
    (ROUTE,                      {**_TEXT, "source": "1999"},               {"apikey": API_KEY}, "source",      "source must be",         "phone number"),
    (ROUTE,                      {**_TEXT, "message": "{"},                 {"apikey": API_KEY}, "message",     "message must be",        ""),
    (_LOGIN,                     {"email": "a@b.test", "password": "x"},    {},                  "email",       "No partner has",         "e-mail address"),
    ("/partner/app/nosuch/subscription", {},                               {"Authorization": "wrong"}, "Authorization", "The header Authorization or token must hold", "app token"),
)
# fmt: on


@pytest.mark.parametrize(
    ("path", "form", "headers", "field", "explanation", "accepted"),
    MISTAKES,
    ids=[f"{row[0]} {row[3]}" for row in MISTAKES],
)
async def test_common_mistake_is_explained_with_its_field(
    pipeline: PipelineHarness,
    path: str,
    form: dict[str, str],
    headers: dict[str, str],
    field: str,
    explanation: str,
    accepted: str,
) -> None:
    sent = await pipeline.send_request("POST", path, form, {**headers, "X-Request-Id": REQUEST_ID})
    assert sent.status >= 400

    async def read() -> Any:
        shown = await run(pipeline, "show", REQUEST_ID, "--json")
        return json.loads(shown.stdout) if shown.exit_code == 0 else None

    entry = await poll_until(read)

    assert entry["field"] == field
    assert entry["explanation"].startswith(explanation)
    assert entry["accepted"]
    assert accepted in entry["accepted"]
