"""Two processes behind a load balancer, one store: keys, rates and login limits hold across both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import Connection, func, select

from tests.support.builders import APP, INSTANCE_KEY, OPERATOR, PARTNER
from tests.support.partner_seeding import store_partner
from tests.support.store_locations import StoreLocation
from waypost.admin import provisioning
from waypost.api.limits.rate_limits import RATES
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.encryption import SecretBox, hash_secret
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.tables import messages

API_KEY = "two-processes"
TEXT = {
    "channel": "whatsapp",
    "source": APP.phone_number,
    "src.name": APP.name,
    "destination": "15551234567",
    "message": '{"type":"text","text":"Hello"}',
}


@dataclass
class ReceivedResponse:
    """A response of one of the processes."""

    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture
def engine() -> str:
    """The engine that several processes may share."""
    return "postgresql"


@pytest.fixture
async def processes(store_location: StoreLocation, tmp_path: Path) -> AsyncIterator[list[Waypost]]:
    """Two services on one database, with a partner and its app."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        running: list[Waypost] = []
        for name in ("one", "two"):
            settings = Settings(data=tmp_path / name, secret_key=INSTANCE_KEY, **store_location.settings)
            waypost = Waypost(settings, clock, RandomIds(clock))
            await waypost.open()
            stack.push_async_callback(waypost.close)
            running.append(waypost)
        context = running[0].admin_context
        await provisioning.put_operator_account(context, OPERATOR)
        await store_partner(context)
        key = hash_secret(API_KEY)
        await context.database.write(add_credential, CredentialKind.API_KEY, PARTNER.id, key, clock.now_ms())
        yield running


async def post(waypost: Waypost, path: str, form: dict[str, str], headers: dict[str, str]) -> ReceivedResponse:
    """Post a form to one of the processes."""
    sent: list[Any] = []
    all_headers = {"content-type": "application/x-www-form-urlencoded", **headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": urlencode(form).encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in all_headers.items()],
        "client": ("198.51.100.4", 4711),
    }
    await waypost.application(scope, receive, send)
    response_headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return ReceivedResponse(sent[0]["status"], response_headers, sent[1]["body"])


async def send_text(waypost: Waypost, key: str) -> ReceivedResponse:
    """Send a message under a key."""
    return await post(waypost, "/wa/api/v1/msg", TEXT, {"apikey": API_KEY, "idempotency-key": key})


def count_messages(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(messages)).scalar_one()


async def test_one_key_sent_to_both_at_once_creates_one_message(processes: list[Waypost]) -> None:
    responses = await asyncio.gather(*(send_text(waypost, "one") for _ in range(8) for waypost in processes))

    assert {response.status for response in responses} == {200}
    assert len({response.body for response in responses}) == 1
    assert sum("Idempotent-Replayed" in response.headers for response in responses) == 15
    assert await processes[1].database.read(count_messages) == 1


async def test_response_of_one_process_is_replayed_by_the_other(processes: list[Waypost]) -> None:
    first = await send_text(processes[0], "one")

    second = await send_text(processes[1], "one")

    assert second.body == first.body
    assert second.headers["Idempotent-Replayed"] == "true"


async def test_rate_per_minute_is_shared_by_both(processes: list[Waypost]) -> None:
    token = {"authorization": SecretBox(INSTANCE_KEY).app_token(APP.id, 1)}
    most = RATES["subscription"].at_most
    path = f"/partner/app/{APP.id}/subscription"

    def form(number: int) -> dict[str, str]:
        return {"modes": "SENT", "tag": f"t{number}", "url": "https://shop.example/", "version": "2", "doCheck": "false"}  # fmt: skip

    statuses = [(await post(processes[number % 2], path, form(number), token)).status for number in range(most + 2)]

    assert statuses == [200] * most + [429] * 2


async def test_logins_from_one_address_are_limited_by_both_together(processes: list[Waypost]) -> None:
    most = RATES["login_address"].at_most
    requests = [post(processes[number % 2], "/partner/account/login", {}, {}) for number in range(most)]
    statuses = {response.status for response in await asyncio.gather(*requests)}

    over = [await post(waypost, "/partner/account/login", {}, {}) for waypost in processes]

    assert statuses == {400}
    assert [response.status for response in over] == [429, 429]
    assert all(1 <= int(response.headers["Retry-After"]) <= 60 for response in over)
