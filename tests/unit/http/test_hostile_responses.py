"""Every HTTP client of ours gives up a hostile response within limits of bytes, memory and time."""

import re
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from benchmarks.hostile_responses import ACCEPTABLE_MB, HOSTILE_RESPONSES, respond
from waypost.base.clock import SystemClock
from waypost.base.error_texts import error_text
from waypost.base.http.post_client import PostClient
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.outbound.vetted_client import VettedClient

TIMEOUT_S: Final = 1
MAX_MEMORY_BYTES: Final = 8 * 1024 * 1024

Call = Callable[[str], Awaitable[str | None]]
"""Makes one call to a URL; returns the text of its error, or None if it has a response."""


async def post_callback(url: str) -> str | None:
    client = VettedClient(allowed_networks=["127.0.0.1/32"], timeout_s=TIMEOUT_S)
    await client.open()
    try:
        return (await client.post(url, b"{}", {})).error
    finally:
        await client.close()


async def send_message(url: str) -> str | None:
    client = CloudHttpClient(SystemClock(), timeout_s=TIMEOUT_S)
    await client.open()
    try:
        return outcome_text(await client.send(account_at(url), "1/messages", {}, business="1"))
    finally:
        await client.close()


async def post_webhook(url: str) -> str | None:
    client = PostClient(max_per_address=1, idle_s=2, connect_s=TIMEOUT_S, max_body_bytes=64 * 1024)
    try:
        await client.post(url, b"{}", {}, timeout_s=TIMEOUT_S)
    except OSError as error:
        return error_text(error)
    finally:
        await client.close()
    return None


def account_at(url: str) -> OperatorAccount:
    return OperatorAccount("main", "cloud", url, {"token": "t", "version": "v1", "app_id": "1"})


def outcome_text(outcome: object) -> str | None:
    match outcome:
        case OperatorUnavailable(text=text) | OutcomeUncertain(text=text) | OperatorRejected(text=text):
            return text
        case _:
            return None


CLIENTS: Final[dict[str, Call]] = {
    "callbacks": post_callback,
    "messages to the operator": send_message,
    "webhooks of the simulator": post_webhook,
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", HOSTILE_RESPONSES)
async def test_hostile_response_is_given_up(kind: str, client: str) -> None:
    row = HOSTILE_RESPONSES[kind]
    call = CLIENTS[client]
    async with respond(kind) as responder:
        await call("http://127.0.0.1:9")  # nothing listens: what is loaded once is loaded now
        tracemalloc.start()
        try:
            error = await call(f"http://127.0.0.1:{responder.port}")
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        if error is None:
            assert row.may_succeed
        else:
            assert re.search(row.error, error), error
        assert responder.connections == 1
        assert responder.taken_bytes <= ACCEPTABLE_MB * 1024 * 1024
        assert peak_bytes <= MAX_MEMORY_BYTES
