"""`waypost trace`: the trace of one message, from a running service and from a store without one."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from tests.support.builders import ANN, APP, INSTANCE_KEY
from tests.support.callback_sink import respond_always
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.polling import poll_until
from waypost.cli.command_tree import app
from waypost.wire.redaction import mask_request

TEXT: Final = "Meet me behind the old windmill"


async def run(*arguments: str, **settings: str | None) -> Result:
    """Run a command in a thread, with these settings and no others."""
    env: dict[str, str | None] = {
        "WAYPOST_DATA": None, "WAYPOST_SECRET_KEY": None, "WAYPOST_ADMIN_TOKEN": None, "WAYPOST_ADMIN_URL": None,
    }  # fmt: skip
    env |= {f"WAYPOST_{name.upper()}": value for name, value in settings.items()}
    return await asyncio.to_thread(CliRunner(env=env).invoke, app, list(arguments))


async def run_trace(pipeline: PipelineHarness, *arguments: str) -> Result:
    """Run `waypost trace` against the running service."""
    return await run("trace", *arguments, admin_url=pipeline.service_url, admin_token=ADMIN_TOKEN)


async def test_trace_shows_every_step_of_a_message_and_not_its_content(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text(TEXT)
    await pipeline.events_of(message_id, until="delivered")
    wamid = (await pipeline.wait_for_state(message_id, "delivered"))["operator_message_id"]

    result = await run_trace(pipeline, message_id)

    printed = result.stdout
    assert result.exit_code == 0, result.output
    assert printed.splitlines()[0] == f"message {message_id}: delivered"
    for expected in (APP.id, ANN, wamid, "accepted", "enqueued", "callback delivered", "status 200 after"):
        assert expected in printed
    assert f"({len(TEXT)} characters)" in printed
    assert TEXT not in printed


async def test_operators_id_finds_the_same_message(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    wamid = (await pipeline.wait_for_state(message_id, "delivered"))["operator_message_id"]

    ours, theirs = [await run_trace(pipeline, either_id, "--json") for either_id in (message_id, wamid)]

    assert json.loads(theirs.stdout)["id"] == message_id
    assert json.loads(ours.stdout).keys() == json.loads(theirs.stdout).keys()


async def test_waiting_message_shows_its_job_and_the_reason_without_a_running_service(
    make_pipeline: Any, tmp_path: Path
) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await poll_until(pipeline.submission_attempts)
    await pipeline.close_service()

    result = await run("trace", message_id, data=str(tmp_path), secret_key=INSTANCE_KEY)

    assert result.exit_code == 0, result.output
    assert f"message {message_id}: accepted" in result.stdout
    [waiting] = [line for line in result.stdout.splitlines() if line.startswith("waits")]
    assert waiting.startswith("waits in queue outbound at ")
    assert "tried" in waiting
    assert "the operator was not reached" in waiting


async def test_uncertain_message_shows_its_unconfirmed_job(proxied_pipeline: PipelineHarness) -> None:
    await proxied_pipeline.open_window()
    assert proxied_pipeline.operator_proxy is not None
    proxied_pipeline.operator_proxy.let_webhooks_pass = False
    proxied_pipeline.operator_proxy.lose_responses = 1
    message_id = await proxied_pipeline.send_text()
    await proxied_pipeline.wait_for_state(message_id, "uncertain")

    trace = json.loads((await run_trace(proxied_pipeline, message_id, "--json")).stdout)

    assert trace["state"] == "uncertain"
    assert trace["waiting"]["queue"] == "unconfirmed"


async def test_callback_that_fails_shows_each_attempt_and_its_waiting_job(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    pipeline.sink.choose_status = respond_always(500)
    message_id = await pipeline.send_text()
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.requests) > 1)
    await pipeline.wait_for_state(message_id, "delivered")

    printed = (await run_trace(pipeline, message_id)).stdout

    assert "attempt 1, initial: status 500 after" in printed
    assert "waits in queue callbacks at " in printed
    assert "to retry it now: waypost callbacks retry 1" in printed


@pytest.mark.parametrize("arguments", [(), ("--json",)], ids=["text", "json"])
async def test_unknown_message_is_reported_in_one_line_with_exit_code_1(
    pipeline: PipelineHarness, arguments: tuple[str, ...]
) -> None:
    result = await run_trace(pipeline, "wamid.HBgL/+=", *arguments)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "There is no message " in result.stderr


# fmt: off
REQUESTS: Final[tuple[tuple[str, Any], ...]] = (  # a request, and its masked form
    ('channel=whatsapp&source=1555&message=%7B%22type%22%3A%22text%22%2C%22text%22%3A%22Hi+Ann%22%7D',
     {"channel": "whatsapp", "source": "1555", "message": {"type": "text", "text": "(6 characters)"}}),
    ('template=%7B%22id%22%3A%22a-b%22%2C%22params%22%3A%5B%22Ann%22%2C7%5D%7D',
     {"template": {"id": "a-b", "params": ["(3 characters)", "(number)"]}}),
    ('{"to":"1555","text":{"body":"Hi","preview_url":true}}',
     {"to": "1555", "text": {"body": "(2 characters)", "preview_url": True}}),
    ('message={broken', {"message": "(7 characters)"}),
    ('{"broken', "(8 characters)"),
    ('--boundary\r\nno form at all', "(26 characters)"),
    ('message=' + '[' * 20_000, {"message": "(20000 characters)"}),
    ("", {}),
)
# fmt: on


@pytest.mark.parametrize(("request_text", "shown"), REQUESTS)
def test_masked_request_keeps_its_structure_and_not_its_texts(request_text: str, shown: Any) -> None:
    assert mask_request(request_text) == shown
