"""Every HTTP client of ours gives up a hostile response within limits of bytes, memory and time."""

import asyncio
import json
import re
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from benchmarks.hostile_responses import ACCEPTABLE_MB, HOSTILE_RESPONSES, HostileResponder, respond
from tests.support.loop_time import time_passes
from tests.support.polling import HANGS_AFTER_S
from waypost.base.clock import SystemClock
from waypost.base.error_texts import error_text
from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.post_client import PostClient
from waypost.client.responses import ApiUnreachable
from waypost.client.transports import HttpTransport
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain
from waypost.operators.cloud import media_calls
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.operators.contract import GraphFile, GraphRequest
from waypost.outbound.vetted_client import VettedClient
from waypost.simulator.apis import link_fetches as link_fetches
from waypost.simulator.apis.link_fetches import MediaLinkFetcher, OperatorMediaLink
from waypost.simulator.webhooks import webhooks as endpoint_verification
from waypost.simulator.webhooks.webhooks import EndpointVerificationFailed, verify_endpoint

TIMEOUT_S: Final = HANGS_AFTER_S
MAX_MEMORY_BYTES: Final = 12 * 1024 * 1024
MAX_FILE_BYTES: Final = 1024 * 1024
"""Of a body that is read in chunks: each caller has a limit of its own."""

Call = Callable[[HostileResponder], Awaitable[str | None]]
"""Makes one call to a responder; returns the text of its error, or None if it has a response."""


async def post_callback(responder: HostileResponder) -> str | None:
    async with outbound_client() as client:
        return (await client.post(url_of(responder), b"{}", {})).error


async def fetch_upload(responder: HostileResponder) -> str | None:
    size_bytes = 0

    async def receive(chunk: bytes) -> None:
        nonlocal size_bytes
        size_bytes += len(chunk)
        if size_bytes > MAX_FILE_BYTES:
            raise FileTooLarge

    async with outbound_client() as client:
        try:
            return (await client.get(url_of(responder), receive)).error
        except FileTooLarge as error:
            return str(error)


async def send_message(responder: HostileResponder) -> str | None:
    async with operator_client() as client:
        return outcome_text(await client.send(account_at(responder), "1/messages", {}, business="1"))


async def call_operator(responder: HostileResponder) -> str | None:
    async with operator_client() as client:
        return outcome_text(await client(account_at(responder), GraphRequest("GET", "1", query={"fields": "id"})))


async def post_form_to_operator(responder: HostileResponder) -> str | None:
    async with operator_client() as client:
        files = {"file": GraphFile("a.bin", "application/octet-stream", b"a" * 200_000)}
        return outcome_text(await client(account_at(responder), GraphRequest("POST", "1/media", files=files)))


async def fetch_media(responder: HostileResponder) -> str | None:
    body = json.dumps({"url": f"{url_of(responder)}/bytes"}).encode()
    responder.first_response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    size_bytes = 0
    async with operator_client() as client:
        async for part in media_calls.fetch_media(client, account_at(responder), "77", None):
            if not isinstance(part, bytes):
                return outcome_text(part)
            size_bytes += len(part)
            if size_bytes > MAX_FILE_BYTES:
                return str(FileTooLarge())
    return None


async def post_webhook(responder: HostileResponder) -> str | None:
    pools = ConnectionPools(max_per_address=1, idle_s=2, connect_s=TIMEOUT_S)
    client = PostClient(pools, max_body_bytes=64 * 1024)
    try:
        await client.post(url_of(responder), b"{}", {}, timeout_s=TIMEOUT_S)
    except OSError as error:
        return error_text(error)
    finally:
        await client.close()
    return None


async def verify_callback_url(responder: HostileResponder) -> str | None:
    try:
        await verify_endpoint(url_of(responder), "token", "1234567890")
    except EndpointVerificationFailed as error:
        return str(error)
    return None


async def check_media_link(responder: HostileResponder) -> str | None:
    fetcher = MediaLinkFetcher(["127.0.0.1/32"])
    try:
        problem = await fetcher.find_problem(OperatorMediaLink("image", url_of(responder)))
    finally:
        await fetcher.close()
    # that a response is no image is right too
    return problem if problem is not None and "weblink failed" in problem else None


async def call_own_api(responder: HostileResponder) -> str | None:
    try:
        await HttpTransport(url_of(responder), timeout_s=TIMEOUT_S)("POST", "/admin/x", {}, b"{}")
    except ApiUnreachable as error:
        return error_text(error.__cause__ or error)
    return None


async def read_own_stream(responder: HostileResponder) -> str | None:
    size_bytes = 0
    try:
        response = await HttpTransport(url_of(responder), timeout_s=TIMEOUT_S).open("GET", "/admin/x", {})
        try:
            async with asyncio.timeout(2 * TIMEOUT_S):
                async for chunk in response:
                    size_bytes += len(chunk)
                    if size_bytes > MAX_FILE_BYTES:
                        return str(FileTooLarge())
        except TimeoutError:
            return "no response in time"
        finally:
            await response.aclose()
    except ApiUnreachable as error:
        return error_text(error.__cause__ or error)
    return None


class FileTooLarge(Exception):
    """A reader's own limit."""

    def __str__(self) -> str:
        return "the body of the response has more than its reader takes"


@asynccontextmanager
async def outbound_client() -> AsyncGenerator[VettedClient]:
    client = VettedClient(allowed_networks=["127.0.0.1/32"], timeout_s=TIMEOUT_S)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def operator_client() -> AsyncGenerator[CloudHttpClient]:
    client = CloudHttpClient(SystemClock(), timeout_s=TIMEOUT_S)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


def url_of(responder: HostileResponder) -> str:
    return f"http://127.0.0.1:{responder.port}"


def account_at(responder: HostileResponder) -> OperatorAccount:
    return OperatorAccount("main", "cloud", url_of(responder), {"token": "t", "version": "v1", "app_id": "1"})


def outcome_text(outcome: object) -> str | None:
    match outcome:
        case OperatorUnavailable(text=text) | OutcomeUncertain(text=text) | OperatorRejected(text=text):
            return text
        case _:
            return None


CLIENTS: Final[dict[str, Call]] = {
    "callbacks": post_callback,
    "uploads by URL": fetch_upload,
    "messages to the operator": send_message,
    "other calls of the operator": call_operator,
    "forms to the operator": post_form_to_operator,
    "media of the operator": fetch_media,
    "webhooks of the simulator": post_webhook,
    "verification by the simulator": verify_callback_url,
    "media links of the simulator": check_media_link,
    "command line": call_own_api,
    "streams of the command line": read_own_stream,
}


@pytest.fixture(autouse=True)
def equal_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all clients one time limit, which passes for a slow response alone."""
    monkeypatch.setattr(media_calls, "TRANSFER_TIMEOUT_S", TIMEOUT_S)
    monkeypatch.setattr(link_fetches, "_TIMEOUT_S", TIMEOUT_S)
    monkeypatch.setattr(endpoint_verification, "HANDSHAKE_TIMEOUT_S", TIMEOUT_S)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", HOSTILE_RESPONSES)
async def test_hostile_response_is_given_up(kind: str, client: str) -> None:
    row = HOSTILE_RESPONSES[kind]
    call = CLIENTS[client]
    is_slow = "timed out" in row.error
    async with respond(kind) as responder:
        tracemalloc.start()
        try:
            with time_passes(TIMEOUT_S, when=lambda: is_slow and responder.taken_bytes):
                error = await call(responder)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        if error is None:
            assert row.may_succeed
        else:
            assert re.search(row.error, error), error
        assert responder.connections <= 2  # one in place of a kept one that is no longer usable
        assert responder.taken_bytes <= ACCEPTABLE_MB * 1024 * 1024
        assert peak_bytes <= MAX_MEMORY_BYTES
