"""`waypost trace`: one message's whole way, from a service that runs and from a store at rest."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from tests.support.builders import ANN, APP, INSTANCE_KEY
from tests.support.callback_sink import always
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.waiting import patiently
from waypost.cli.main import app
from waypost.wire.redaction import mask_request

TEXT: Final = "Meet me behind the old windmill"


async def run(*words: str, **settings: str | None) -> Result:
    """A command, off this loop, with these settings and no others."""
    env: dict[str, str | None] = {
        "WAYPOST_DATA": None, "WAYPOST_SECRET_KEY": None, "WAYPOST_ADMIN_TOKEN": None, "WAYPOST_ADMIN_URL": None,
    }  # fmt: skip
    env |= {f"WAYPOST_{name.upper()}": value for name, value in settings.items()}
    return await asyncio.to_thread(CliRunner(env=env).invoke, app, list(words))


async def traced(pipeline: PipelineHarness, *words: str) -> Result:
    """`waypost trace` of the service that runs."""
    return await run("trace", *words, admin_url=pipeline.service_url, admin_token=ADMIN_TOKEN)


async def test_trace_of_a_message_tells_its_whole_way_and_not_its_words(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text(TEXT)
    await pipeline.events_of(message_id, until="delivered")
    wamid = (await pipeline.wait_for_state(message_id, "delivered"))["operator_message_id"]

    result = await traced(pipeline, message_id)

    printed = result.stdout
    assert result.exit_code == 0, result.output
    assert printed.splitlines()[0] == f"message {message_id}: delivered"
    for told in (APP.id, ANN, wamid, "accepted", "enqueued", "callback delivered", "status 200 after"):
        assert told in printed
    assert f"({len(TEXT)} characters)" in printed
    assert TEXT not in printed


async def test_operators_id_leads_to_the_same_message(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    wamid = (await pipeline.wait_for_state(message_id, "delivered"))["operator_message_id"]

    ours, theirs = [await traced(pipeline, one, "--json") for one in (message_id, wamid)]

    assert json.loads(theirs.stdout)["id"] == message_id
    assert json.loads(ours.stdout).keys() == json.loads(theirs.stdout).keys()


async def test_message_that_waits_shows_its_entry_and_why_from_a_store_at_rest(
    make_pipeline: Any, tmp_path: Path
) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await patiently(pipeline.submission_attempts)
    await pipeline.close_service()

    result = await run("trace", message_id, data=str(tmp_path), secret_key=INSTANCE_KEY)

    assert result.exit_code == 0, result.output
    assert f"message {message_id}: accepted" in result.stdout
    [waits] = [line for line in result.stdout.splitlines() if line.startswith("waits")]
    assert waits.startswith("waits in queue outbound at ")
    assert "tried" in waits
    assert "the operator was not reached" in waits


async def test_uncertain_message_shows_for_how_long_it_is_doubted(cut_pipeline: PipelineHarness) -> None:
    await cut_pipeline.open_window()
    assert cut_pipeline.between is not None
    cut_pipeline.between.let_webhooks_pass = False
    cut_pipeline.between.lose_answers = 1
    message_id = await cut_pipeline.send_text()
    await cut_pipeline.wait_for_state(message_id, "uncertain")

    found = json.loads((await traced(cut_pipeline, message_id, "--json")).stdout)

    assert found["state"] == "uncertain"
    assert found["waiting"]["queue"] == "unconfirmed"


async def test_callback_that_is_refused_shows_each_attempt_and_when_the_next_is_due(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    pipeline.sink.answers = always(500)
    message_id = await pipeline.send_text()
    await pipeline.sink.wait_until(lambda: len(pipeline.sink.tries) > 1)
    await pipeline.wait_for_state(message_id, "delivered")

    printed = (await traced(pipeline, message_id)).stdout

    assert "attempt 1, initial: status 500 after" in printed
    assert "waits in queue callbacks at " in printed


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
async def test_unknown_message_is_one_line_and_exit_code_1(pipeline: PipelineHarness, words: tuple[str, ...]) -> None:
    result = await traced(pipeline, "wamid.HBgL/+=", *words)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "There is no message of this id" in result.stderr


# fmt: off
REQUESTS: Final[tuple[tuple[str, Any], ...]] = (  # a request as it came, and what of it is shown
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
def test_request_keeps_its_shape_and_loses_its_words(request_text: str, shown: Any) -> None:
    assert mask_request(request_text) == shown
