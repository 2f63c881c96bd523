"""Failed logins are limited under all settings, and clients at other addresses are not locked out."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from sqlalchemy import Connection, update

from tests.support.builders import INSTANCE_KEY
from tests.support.fast_passwords import hash_with_low_cost
from tests.support.manual_clock import ManualClock
from waypost.api.limits import RATES, Limiter, LoginLimits
from waypost.assembly.service import Waypost
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, InProcessTransport
from waypost.config import Settings
from waypost.domain.errors import ApiError
from waypost.store.tables import partners

EMAIL, PASSWORD = "ann@acme.test", "Right-horse-1"
HERE, ELSEWHERE = "198.51.100.4", "203.0.113.9"
MOST = RATES["login_failures"].at_most


@pytest.fixture(params=[False, True], ids=["rates off", "rates on"])
async def waypost(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Waypost]:
    """A service with one partner who has a client secret."""
    clock = ManualClock()
    settings = Settings(
        data=tmp_path,
        secret_key=INSTANCE_KEY,
        admin_token="admin-token-of-a-test-with-32-characters",
        rates=request.param,
    )
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    yield waypost
    await waypost.close()


@pytest.fixture
async def secret(waypost: Waypost) -> str:
    """A client secret of the partner, whose id is 1."""
    client = ApiClient(
        InProcessTransport(waypost.application), {"Authorization": "Bearer admin-token-of-a-test-with-32-characters"}
    )
    partner = await client.json("POST", "/admin/partners", {"email": EMAIL, "name": "Acme", "password": PASSWORD})
    await waypost.database.write(_hash_cheaply)
    created = await client.json("POST", f"/admin/partners/{partner['id']}/client-secrets", {})
    return created["client_secret"]


def _hash_cheaply(connection: Connection) -> None:
    connection.execute(update(partners).values(password_hash=hash_with_low_cost(PASSWORD)))


async def log_in(waypost: Waypost, password: str, *, peer: str = HERE, email: str = EMAIL) -> tuple[int, Any]:
    body = urlencode({"email": email, "password": password}).encode()
    headers = [(b"content-type", b"application/x-www-form-urlencoded")]
    scope: dict[str, Any] = {
        "type": "http", "method": "POST", "path": "/partner/account/login", "query_string": b"",
        "headers": headers, "client": (peer, 4711),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await waypost.application(scope, receive, send)
    return sent[0]["status"], msgspec.json.decode(sent[1]["body"])


async def test_after_ten_failures_the_next_gets_429_with_rates_on_or_off(waypost: Waypost, secret: str) -> None:
    logins = [log_in(waypost, f"wrong{number}") for number in range(MOST + 5)]  # all at once
    statuses = sorted([status for status, _ in await asyncio.gather(*logins)])

    assert statuses == [403] * MOST + [429] * 5
    assert (await log_in(waypost, secret))[0] == 429


async def test_guesses_from_one_address_do_not_lock_out_another(waypost: Waypost, secret: str) -> None:
    for number in range(MOST + 1):
        await log_in(waypost, f"wrong{number}")

    assert (await log_in(waypost, secret, peer=ELSEWHERE))[0] == 200


async def test_successful_logins_never_count_as_failures(tmp_path: Path) -> None:
    clock = ManualClock()
    limits = LoginLimits(Limiter(clock))

    for _ in range(500):
        await (await limits.spend(EMAIL, HERE)).refund()

    await limits.spend(EMAIL, HERE)


async def test_failures_for_an_email_from_everywhere_have_a_wide_limit() -> None:
    clock = ManualClock()
    limits = LoginLimits(Limiter(clock))
    wide = RATES["login_failures_email"].at_most

    for number in range(wide):
        await limits.spend(EMAIL, f"198.51.100.{number // MOST}")
    with pytest.raises(ApiError, match=f"At most {wide} failed logins in 60 s per e-mail;"):
        await limits.spend(EMAIL, ELSEWHERE)
    await limits.spend("bob@acme.test", ELSEWHERE)
    clock.advance(ms=60_000)
    await limits.spend(EMAIL, ELSEWHERE)


async def test_one_address_cannot_fill_the_window_of_an_email() -> None:
    limits = LoginLimits(Limiter(ManualClock()))
    rejected = 0
    for _ in range(1000):
        try:
            await limits.spend(EMAIL, HERE)
        except ApiError:
            rejected += 1

    assert rejected == 1000 - MOST
    await limits.spend(EMAIL, ELSEWHERE)


async def test_failures_of_one_address_have_a_limit_over_all_emails() -> None:
    limits = LoginLimits(Limiter(ManualClock()))
    most = RATES["login_failures_address"].at_most
    for number in range(most):
        await limits.spend(f"somebody{number}@acme.test", HERE)

    with pytest.raises(ApiError, match="per address"):
        await limits.spend("another@acme.test", HERE)
    await limits.spend("another@acme.test", ELSEWHERE)
