"""Requests that end in an error spend a budget of their own, by partner, or by address without a credential."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.support.builders import INSTANCE_KEY
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until
from waypost.api import asgi
from waypost.api.limits import BUDGET_BYTES, MAX_OWNERS, MIN_REQUEST_BYTES, RejectionBudgets
from waypost.api.requests import FREE_BODY_BYTES, MAX_HELD_BYTES
from waypost.assembly.service import Waypost
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, InProcessTransport
from waypost.config import Settings
from waypost.domain.errors import ApiError

TOKEN: Final = "admin-token-of-a-test-0123456789abcdef"
SEND: Final = "/wa/api/v1/msg"
LOGIN: Final = "/partner/account/login"
LARGE: Final = b"a=1&" * 225_000
"""A form with too many fields, of 900 kB: 23 of them spend the budget."""
HERE, ELSEWHERE = "198.51.100.4", "203.0.113.9"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=[False, True], ids=["rates off", "rates on"])
async def waypost(
    tmp_path: Path, clock: ManualClock, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Waypost]:
    """A service whose responses about a spent budget do not wait."""
    monkeypatch.setattr(asgi, "SPENT_DELAY_S", 0)
    settings = Settings(data=tmp_path, secret_key=INSTANCE_KEY, admin_token=TOKEN, rates=request.param)
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    yield waypost
    await waypost.close()


async def new_key(waypost: Waypost, email: str) -> str:
    """Return the API key of a new partner."""
    client = ApiClient(InProcessTransport(waypost.application), {"Authorization": f"Bearer {TOKEN}"})
    partner = await client.json("POST", "/admin/partners", {"email": email, "name": "Acme"})
    created = await client.json("POST", f"/admin/partners/{partner['id']}/api-keys", {})
    return created["api_key"]


async def post(
    waypost: Waypost, path: str, body: bytes, *, key: str = "", peer: str = HERE
) -> tuple[int, Any, dict[str, str]]:
    """Return status, body and headers of the response."""
    headers = [(b"content-type", b"application/x-www-form-urlencoded"), (b"apikey", key.encode())]
    scope: dict[str, Any] = {
        "type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers, "client": (peer, 4711),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await waypost.application(scope, receive, send)
    received = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], msgspec.json.decode(sent[1]["body"]), received


async def test_partner_whose_large_requests_end_in_errors_gets_429_and_another_does_not(waypost: Waypost) -> None:
    key, other = await new_key(waypost, "ann@acme.test"), await new_key(waypost, "ben@acme.test")
    number = BUDGET_BYTES // len(LARGE) + 1

    statuses = [(await post(waypost, SEND, LARGE, key=key))[0] for _ in range(number)]
    status, body, headers = await post(waypost, SEND, b"channel=whatsapp", key=key, peer=ELSEWHERE)

    assert set(statuses) == {400}
    assert (status, body["message"]["message"] if isinstance(body["message"], dict) else body["message"]) == (
        429,
        "Too Many Requests",
    )
    assert "20 MB" in headers["Waypost-Reason"]
    assert int(headers["Retry-After"]) >= 1
    assert (await post(waypost, SEND, LARGE, key=other))[0] == 400


async def test_budget_is_refilled_with_time(waypost: Waypost, clock: ManualClock) -> None:
    key = await new_key(waypost, "ann@acme.test")
    while (response := await post(waypost, SEND, LARGE, key=key))[0] == 400:
        pass

    clock.advance(ms=int(response[2]["Retry-After"]) * 1000)

    assert (await post(waypost, SEND, LARGE, key=key))[0] == 400


async def test_address_without_a_credential_has_a_budget_too_and_takes_nothing_from_a_partner(waypost: Waypost) -> None:
    key = await new_key(waypost, "ann@acme.test")
    while (await post(waypost, LOGIN, LARGE))[0] != 429:
        pass

    assert (await post(waypost, LOGIN, b"email=a"))[0] == 429
    assert (await post(waypost, LOGIN, b"email=a", peer=ELSEWHERE))[0] == 400
    assert (await post(waypost, SEND, b"channel=whatsapp", key=key))[0] == 400


def test_small_requests_have_twenty_thousand_mistakes_and_owners_are_limited() -> None:
    budgets = RejectionBudgets(ManualClock())
    for _ in range(BUDGET_BYTES // MIN_REQUEST_BYTES - 1):
        budgets.spend(1, 10)
    budgets.check(1)
    budgets.spend(1, 10)

    with pytest.raises(ApiError):
        budgets.check(1)
    for nth in range(MAX_OWNERS):
        budgets.spend(f"address {nth}", 10)
    budgets.check(1)  # forgotten


async def test_slow_bodies_of_many_clients_share_a_limit_and_give_it_back(waypost: Waypost) -> None:
    """Each client sends the first 900 kB of its body and waits: they are rejected once 32 MB have arrived."""
    headers = [(b"content-type", b"application/x-www-form-urlencoded")]
    may_end = asyncio.Event()
    statuses: list[int] = []
    held = MAX_HELD_BYTES // (len(LARGE) - FREE_BODY_BYTES)

    async def post_slowly() -> None:
        scope: dict[str, Any] = {
            "type": "http", "method": "POST", "path": SEND, "query_string": b"", "headers": headers,
            "client": (HERE, 4711),
        }  # fmt: skip
        messages = [{"type": "http.request", "body": LARGE, "more_body": True}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await may_end.wait()
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if "status" in message:
                statuses.append(message["status"])

        await waypost.application(scope, receive, send)

    clients = [asyncio.create_task(post_slowly()) for _ in range(held + 5)]

    async def rejected() -> int:
        return len(statuses)

    await poll_until(rejected, lambda count: count >= 5)
    assert statuses == [429] * 5
    may_end.set()
    await asyncio.gather(*clients)
    assert statuses[5:] == [401] * held
    await post_slowly()
    assert statuses[-1] == 401
