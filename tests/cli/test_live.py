"""The commands that send, trigger, follow and forward, with both ends of the pipeline."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, cast

import pytest
from typer.testing import CliRunner, Result

from tests.support.builders import ANN, APP, is_event
from tests.support.callback_sink import CallbackSink, respond_always
from tests.support.closed_port import closed_port
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.polling import HANGS_AFTER_S, poll_until
from tests.support.version_3_receiver import open_version_3_receiver
from waypost.cli.command_tree import app as commands
from waypost.cli.commands.listener import (
    ListenerSubscription,
    ListeningReceiver,
    ListenOptions,
    delete_abandoned_subscriptions,
    event_names,
)
from waypost.cli.commands.trigger import cause_event
from waypost.cli.commands.trigger_events import EVENTS
from waypost.cli.connections import admin_client
from waypost.client.api_client import ApiResponseError
from waypost.domain.callbacks import MAX_SUBSCRIPTIONS_PER_APP
from waypost.wire.callbacks.kinds import CHANGE_KINDS, INBOUND_KINDS, STATUS_KINDS, event_name

CALLBACK: Final = {"type": "message-event", "payload": {"type": "delivered", "gsId": "m-1", "destination": ANN}}


async def run(*arguments: str, **env: str) -> Result:
    return await asyncio.to_thread(CliRunner(env=env).invoke, commands, list(arguments))


def words_of(body: Any) -> Iterator[str]:
    """Yield every name and text in a callback."""
    match body:
        case dict():
            for name, value in cast("dict[str, Any]", body).items():
                yield name
                yield from words_of(value)
        case list():
            for value in cast("list[Any]", body):
                yield from words_of(value)
        case _:
            yield str(body)


def test_every_kind_that_the_operator_causes_can_be_triggered() -> None:
    names_v2 = {kind.inner_type for kind in (*STATUS_KINDS.values(), *INBOUND_KINDS.values()) if kind.type == "message"}

    assert set(EVENTS) >= {*CHANGE_KINDS, *STATUS_KINDS, *names_v2}


@pytest.mark.timeout(120)
async def test_every_event_causes_its_callback(pipeline: PipelineHarness, variables: dict[str, str]) -> None:
    """And the list of callbacks has it under the same name."""
    missing: list[str] = []

    async def stored() -> list[dict[str, Any]]:
        return (await admin_client(variables).json("GET", f"/admin/apps/{APP.id}/callbacks"))["callbacks"]

    async with open_version_3_receiver(pipeline, "ALL") as receiver_v3:
        for name, event in EVENTS.items():
            seen = len(pipeline.callbacks), len(receiver_v3.sink.callbacks)
            known = {row["id"] for row in await stored()}
            await cause_event(variables, event, {})

            async def is_called_back(seen: tuple[int, int] = seen, name: str = name) -> bool:
                new_v2 = pipeline.callbacks[seen[0] :]
                new_v3 = receiver_v3.sink.callbacks[seen[1] :]
                return any(name in event_names(body) for body in new_v2) or any(
                    name in words_of(body) for body in new_v3
                )

            async def is_listed(known: set[str] = known, name: str = name) -> bool:
                return event_name(name) in {row["event"] for row in await stored() if row["id"] not in known}

            try:
                await poll_until(is_called_back, within_s=10)
                await poll_until(is_listed, within_s=10)
            except TimeoutError:
                missing.append(name)

    assert missing == []


async def test_override_changes_the_call(pipeline: PipelineHarness, env_file: Path) -> None:
    result = await run("trigger", "text", "--set", "text=Good morning", "--env-file", str(env_file), "--json")

    assert result.exit_code == 0, result.output
    callback = await pipeline.wait_for_callback(is_event("message", id=json.loads(result.stdout)["wamid"]))
    assert callback["payload"]["payload"] == {"text": "Good morning"}


async def test_text_and_template_are_sent(pipeline: PipelineHarness, env_file: Path) -> None:
    await pipeline.open_window()
    more = ("--env-file", str(env_file), "--json")

    text = await run("send", "Hello Ann", *more)
    template = await run("send", "--template", read_variable(env_file, "TEMPLATE_ID"), "--param", "Ann", *more)

    for result in (text, template):
        assert result.exit_code == 0, result.output
        await pipeline.events_of(json.loads(result.stdout)["message_id"], until="delivered")


def read_variable(env_file: Path, name: str) -> str:
    return dict(line.split("=", 1) for line in env_file.read_text().splitlines())[name]


async def test_tail_shows_messages_and_their_callbacks(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    env = {"WAYPOST_ADMIN_URL": pipeline.service_url, "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN}

    as_text = (await run("tail", "--no-follow", "-n", "100", **env)).stdout.splitlines()
    as_json = [json.loads(line) for line in (await run("tail", "--no-follow", "--json", **env)).stdout.splitlines()]

    assert any(f"message   {message_id}  delivered" in line for line in as_text)
    assert any(f"delivered  of {message_id} to subscription " in line for line in as_text), as_text
    assert {row["kind"] for row in as_json} == {"message", "callback"}


async def receive(options: ListenOptions, callback: Any) -> tuple[int, list[str]]:
    """Let a listener receive one callback; return the status of its response, and the lines it prints."""
    lines: list[str] = []
    sent: list[dict[str, Any]] = []

    async def next_part() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(callback).encode(), "more_body": False}

    async def send(part: dict[str, Any]) -> None:
        sent.append(part)

    headers = [(b"content-type", b"application/json"), (b"x-waypost-test", b"1"), (b"host", b"x")]
    await ListeningReceiver(options, lines.append)({"headers": headers}, next_part, send)
    return sent[0]["status"], lines


async def test_listener_forwards_a_callback_and_responds_with_the_applications_status() -> None:
    application = CallbackSink()
    application.choose_status = respond_always(503)
    await application.open()

    status, lines = await receive(ListenOptions("ALL", forward_to=application.url, pretty=True), CALLBACK)
    await application.close()

    assert status == 503
    assert len(application.requests) == 1
    [line] = lines
    assert f"delivered             m-1  {ANN}  -> {application.url}  503 in " in line


async def test_application_that_is_away_is_a_failed_delivery() -> None:
    status, [_, line] = await receive(ListenOptions("ALL", forward_to="http://127.0.0.1:9/hook"), CALLBACK)

    assert status == 502
    assert "no response in " in line


async def test_listener_stops_when_another_service_has_the_address(
    pipeline: PipelineHarness, variables: dict[str, str]
) -> None:
    """Its calls with a wrong token would count against every command of this machine."""
    fields = {"modes": "MESSAGE", "tag": "listen-1", "url": pipeline.sink.url, "version": "2"}
    lines: list[str] = []
    known, stranger = (ListenerSubscription(variables | {"ADMIN_TOKEN": token}, fields) for token in (ADMIN_TOKEN, "x"))
    await known.create()

    ended = await asyncio.wait_for(stranger.keep(asyncio.Event(), lines.append), HANGS_AFTER_S)

    assert ended is False
    assert lines == ["The listener stops: another service has this address now, and does not know its token"]
    is_set = asyncio.Event()
    is_set.set()
    assert await known.keep(is_set, lines.append) is True


async def test_subscriptions_of_listeners_that_were_killed_are_deleted_by_the_next_one(
    pipeline: PipelineHarness, variables: dict[str, str]
) -> None:
    """Else five of them stop every listener for ever."""
    other_place = ListenerSubscription(variables, {"modes": "MESSAGE", "tag": "listen-1", "url": pipeline.sink.url})
    await other_place.create()
    async with AsyncExitStack() as stack:
        listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        await stack.enter_async_context(listening)
        alive = listening.sockets[0].getsockname()[1]

        async def subscribe(prefix: str, port: int) -> None:
            fields = {"modes": "MESSAGE", "tag": f"{prefix}-{port}", "url": f"http://127.0.0.1:{port}/callbacks"}
            await ListenerSubscription(variables, fields | {"doCheck": "false"}).create()

        await subscribe("listen", alive)
        rows = len(await other_place.rows())
        await subscribe("orders", stack.enter_context(closed_port()))
        for number in range(MAX_SUBSCRIPTIONS_PER_APP - rows - 1):
            await subscribe("mcp" if number % 2 else "listen", stack.enter_context(closed_port()))
        with pytest.raises(ApiResponseError):
            await subscribe("listen", stack.enter_context(closed_port()))

        await delete_abandoned_subscriptions(variables | {"PARTNER_URL": "http://192.0.2.1"})
        assert len(await other_place.rows()) == MAX_SUBSCRIPTIONS_PER_APP
        await delete_abandoned_subscriptions(variables)

        tags = [row["tag"] for row in await other_place.rows()]
        assert len(tags) == rows + 1
        assert {"listen-1", f"listen-{alive}"} < set(tags)


@pytest.mark.parametrize(("events", "count"), [("delivered", 1), ("message-event", 1), ("read", 0)])
async def test_listener_passes_over_other_events(events: str, count: int) -> None:
    status, lines = await receive(ListenOptions("ALL", events=frozenset({events})), CALLBACK)

    assert (status, len(lines)) == (200, count)


# fmt: off
WRONG: Final = (
    # command                                    text
    (("trigger", "delivred"),                    "Did you mean delivered?"),
    (("trigger", "text", "--set", "x"),          "--set must be NAME=VALUE"),
    (("send",),                                  "give one of a text, --template and --message"),
    (("send", "a", "--param", "b"),              "--param needs --template"),
    (("listen", "--forward-to", "localhost"),    "--forward-to must be a URL"),
)
# fmt: on


@pytest.mark.parametrize(("command", "text"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
async def test_wrong_use_is_an_error_in_one_line(command: tuple[str, ...], text: str) -> None:
    result = await run(*command)

    assert result.exit_code == 2
    assert text in result.stderr
    assert result.stderr.count("\n") == 1
