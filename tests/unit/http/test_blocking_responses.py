"""`waypost health` and the pytest plugin, which use the standard library's client, give up hostile responses too."""

import asyncio
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import typer

import pytest_waypost.client as plugin_responses
from benchmarks.hostile_responses import ACCEPTABLE_MB, HOSTILE_RESPONSES, respond
from pytest_waypost import receiver
from pytest_waypost.client import ApiResponseError, ApiUnreachable, BlockingApiClient
from tests.support.polling import HANGS_AFTER_S
from waypost.base.http import blocking_responses
from waypost.cli.health import request_probe

SHORT_S: Final = 0.2
"""The time limit for what is not sent to its end: any error is right, even that of a busy machine."""
MAX_BYTES: Final = 256 * 1024
LIMITS: Final = (
    "more than|timed out|no complete response|did not respond|got more than 100 headers|line too long|LineTooLong"
    "|status line|StatusLine"
)
"""Errors of what has no end; the standard library's client accepts more forms than ours does."""

Call = Callable[[int, float], str | None]
"""Makes one call to a port within a time in seconds; returns the text of its error, or None if it has a response."""


def probe(port: int, timeout_s: float) -> str | None:
    try:
        request_probe("127.0.0.1", port, "/readyz", timeout_s)
    except typer.Exit:
        return "exit"
    return None


def call_api(port: int, timeout_s: float) -> str | None:
    try:
        BlockingApiClient(f"http://127.0.0.1:{port}", {}, timeout_s=timeout_s).json("GET", "/x")
    except (ApiUnreachable, ApiResponseError) as error:
        return str(error)
    return None


def forward_callback(port: int, timeout_s: float) -> str | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(receiver, "_RESPONSE_TIMEOUT_S", timeout_s)
        status, body = receiver._forward(f"http://127.0.0.1:{port}", b"{}", {})  # pyright: ignore[reportPrivateUsage]
    return None if status else body.decode()


CLIENTS: Final[dict[str, Call]] = {
    "waypost health": probe,
    "client of the plugin": call_api,
    "receiver of the plugin": forward_callback,
}


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (blocking_responses, plugin_responses):
        monkeypatch.setattr(module, "MAX_BODY_BYTES", MAX_BYTES)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", HOSTILE_RESPONSES)
async def test_hostile_response_is_given_up(kind: str, client: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = HOSTILE_RESPONSES[kind]
    timeout_s = HANGS_AFTER_S if row.repeats and not row.drips else SHORT_S
    async with respond(kind) as responder:
        tracemalloc.start()
        try:
            error = await asyncio.to_thread(CLIENTS[client], responder.port, timeout_s)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        if error is None:
            assert row.may_succeed or b"\r\n\r\n" in row.begins
        elif row.repeats:
            assert re.search(LIMITS, capsys.readouterr().err if error == "exit" else error)
        assert responder.taken_bytes <= ACCEPTABLE_MB * 1024 * 1024
        assert peak_bytes <= ACCEPTABLE_MB * 1024 * 1024


def test_plugin_has_the_classes_of_the_service_under_other_names() -> None:
    own = Path(blocking_responses.__file__).read_text(encoding="utf-8")
    shared = own[own.index("MAX_INFORMATIONAL_RESPONSES: ") :].replace("Blocking", "Plugin")

    assert shared in Path(plugin_responses.__file__).read_text(encoding="utf-8")
