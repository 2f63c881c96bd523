"""Login limits by address: behind a trusted proxy each client has its own, and no header gives it another."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import INSTANCE_KEY
from tests.support.manual_clock import ManualClock
from waypost.api.limits import RATES
from waypost.assembly.service import Waypost
from waypost.base.ids import RandomIds
from waypost.config import Settings

MOST = RATES["login_address"].at_most


@pytest.fixture
async def waypost(tmp_path: Path) -> AsyncIterator[Waypost]:
    """A service behind a proxy."""
    clock = ManualClock()
    settings = Settings(data=tmp_path, secret_key=INSTANCE_KEY, trusted_proxies=("10.0.0.0/8", "192.168.1.7"))
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    yield waypost
    await waypost.close()


async def log_in(waypost: Waypost, peer: str, forwarded: str | None = None) -> int:
    """Try to log in without an e-mail, which needs no hashing; return the status."""
    headers = [] if forwarded is None else [(b"x-forwarded-for", forwarded.encode())]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/partner/account/login",
        "query_string": b"",
        "headers": headers,
        "client": (peer, 4711),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await waypost.application(scope, receive, send)
    return sent[0]["status"]


async def test_each_client_behind_a_trusted_proxy_has_a_window_of_its_own(waypost: Waypost) -> None:
    statuses = [await log_in(waypost, "10.0.0.1", "198.51.100.4") for _ in range(MOST + 1)]

    assert statuses == [400] * MOST + [429]
    assert await log_in(waypost, "10.0.0.1", "198.51.100.5") == 400
    assert await log_in(waypost, "192.168.1.7", "198.51.100.4") == 429  # through another proxy


async def test_client_cannot_get_another_window_by_its_own_header(waypost: Waypost) -> None:
    for number in range(MOST):
        await log_in(waypost, "10.0.0.1", f"6.6.6.{number}, 198.51.100.4")

    assert await log_in(waypost, "10.0.0.1", "6.6.6.200, 198.51.100.4") == 429


async def test_client_with_an_ipv6_network_has_one_window(waypost: Waypost) -> None:
    for number in range(MOST):
        await log_in(waypost, "10.0.0.1", f"2001:db8:1:2::{number:x}")

    assert await log_in(waypost, "10.0.0.1", "2001:db8:1:2:aaaa:bbbb:cccc:dddd") == 429
    assert await log_in(waypost, "10.0.0.1", "2001:db8:1:3::1") == 400


async def test_ipv4_client_has_one_window_however_its_address_is_written(waypost: Waypost) -> None:
    for number in range(MOST):
        await log_in(waypost, "::ffff:203.0.113.9" if number % 2 else "203.0.113.9")

    assert await log_in(waypost, "203.0.113.9") == 429


async def test_client_that_bypasses_the_proxy_is_counted_by_its_own_address(waypost: Waypost) -> None:
    for number in range(MOST):
        await log_in(waypost, "203.0.113.9", f"6.6.6.{number}")

    assert await log_in(waypost, "203.0.113.9", "6.6.6.200") == 429
    assert await log_in(waypost, "10.0.0.1", "6.6.6.1") == 400  # counts for no other client
