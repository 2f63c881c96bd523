"""Two processes behind a load balancer, one store: keys, rates and login limits hold across both."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import Connection, func, select

from tests.support.builders import ACCOUNT, APP, INSTANCE_KEY, OPERATOR, PARTNER
from tests.support.partner_seeding import store_partner
from tests.support.polling import poll_until
from tests.support.store_locations import StoreLocation
from waypost.admin import provisioning
from waypost.admin.partners import NewQuotas, change_quotas
from waypost.admin.secret_key import KeyReplacement, replace_key
from waypost.api.backlog_quotas import QUOTA_RETRY_S
from waypost.api.limits import RATES
from waypost.assembly.components import WEBHOOK_PATH
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.encryption import InstanceKey, SecretBox, hash_secret
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.domain.errors import ApiError
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


async def post(waypost: Waypost, path: str, form: dict[str, str] | bytes, headers: dict[str, str]) -> ReceivedResponse:
    """Post a form, or other bytes, to one of the processes."""
    body = form if isinstance(form, bytes) else urlencode(form).encode()
    sent: list[Any] = []
    all_headers = {"content-type": "application/x-www-form-urlencoded", **headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

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


async def test_pace_that_a_webhook_changes_holds_in_the_other_process(processes: list[Waypost]) -> None:
    receiver, other = processes

    async def read_pace() -> int | None:
        route = await other.directory.app_route(APP.id)
        return route.app.throughput if route is not None else None

    before = await read_pace()
    value: dict[str, Any] = {"metadata": {"phone_number_id": APP.phone_number_id}, "message_echoes": []}
    entry: dict[str, Any] = {"id": ACCOUNT.id, "changes": [{"field": "smb_message_echoes", "value": value}]}
    body = json.dumps({"object": "whatsapp_business_account", "entry": [entry]}).encode()
    signature = hmac.new(OPERATOR["app_secret"].encode(), body, hashlib.sha256).hexdigest()
    received = await post(
        receiver, f"{WEBHOOK_PATH}/{OPERATOR.id}", body, {"x-hub-signature-256": f"sha256={signature}"}
    )

    assert (before, received.status) == (None, 200)
    await poll_until(read_pace, lambda pace: pace == 20)


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


async def test_quota_that_one_process_changes_applies_in_the_other(processes: list[Waypost]) -> None:
    context = processes[0].admin_context
    await change_quotas(context, NewQuotas(message_quota=0), PARTNER.id)
    first = [await send_text(waypost, name) for waypost, name in zip(processes, ("one", "two"), strict=True)]
    keys = (str(number) for number in count(3))

    await change_quotas(context, NewQuotas(message_quota=2), PARTNER.id)
    rejected = await poll_until(lambda: send_text(processes[1], next(keys)), lambda response: response.status != 200)

    assert [response.status for response in first] == [200, 200]
    assert (rejected.status, rejected.headers["Retry-After"]) == (429, str(QUOTA_RETRY_S))


async def test_quota_is_exceeded_by_at_most_what_the_other_process_may_accept(processes: list[Waypost]) -> None:
    """Both have counted before the messages of the other; the next count is the same for both."""
    quota = 5
    await change_quotas(processes[0].admin_context, NewQuotas(message_quota=quota), PARTNER.id)

    requests = [send_text(waypost, f"{name} {nth}") for nth in range(8) for name, waypost in enumerate(processes)]
    statuses = [response.status for response in await asyncio.gather(*requests)]
    stored = await processes[0].database.read(count_messages)
    later = [await send_text(waypost, f"later {name}") for name, waypost in enumerate(processes)]

    assert statuses.count(200) == stored
    assert quota <= stored <= 2 * quota
    assert [response.status for response in later] == [429, 429]


async def test_logins_from_one_address_are_limited_by_both_together(processes: list[Waypost]) -> None:
    most = RATES["login_address"].at_most
    requests = [post(processes[number % 2], "/partner/account/login", {}, {}) for number in range(most)]
    statuses = {response.status for response in await asyncio.gather(*requests)}

    over = [await post(waypost, "/partner/account/login", {}, {}) for waypost in processes]

    assert statuses == {400}
    assert [response.status for response in over] == [429, 429]
    assert all(1 <= int(response.headers["Retry-After"]) <= 60 for response in over)


async def test_rotation_is_rejected_while_a_process_does_not_have_the_new_key(
    store_location: StoreLocation, tmp_path: Path
) -> None:
    new_key = "5ec70b1d" * 8
    keys = [{"secret_key": INSTANCE_KEY}, {"secret_key": new_key, "old_secret_key": INSTANCE_KEY}]
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        running: list[Waypost] = []
        for name, secrets in zip(("one", "two"), keys, strict=True):
            settings = Settings(data=tmp_path / name, **secrets, **store_location.settings)
            waypost = Waypost(settings, clock, RandomIds(clock))
            await waypost.open()
            stack.push_async_callback(waypost.close)
            waypost.start()
            stack.push_async_callback(waypost.drain)
            running.append(waypost)
        context = running[1].admin_context
        await poll_until(context.instance_keys.other_processes, lambda found: len(found) == 2)

        with pytest.raises(ApiError) as rejected:
            await replace_key(context, KeyReplacement())
        await running[0].drain()
        await running[0].queue.close()
        rotated = await replace_key(context, KeyReplacement())

    assert "1 of 2 running processes do not have the new one" in rejected.value.explanation
    assert rotated.changed is True


async def test_every_process_uses_the_new_key_after_a_rotation(store_location: StoreLocation, tmp_path: Path) -> None:
    new_key = "5ec70b1d" * 8
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        running: list[Waypost] = []
        for secrets in ({"secret_key": INSTANCE_KEY}, *[{"secret_key": new_key, "old_secret_key": INSTANCE_KEY}] * 2):
            settings = Settings(data=tmp_path / str(len(running)), **secrets, **store_location.settings)
            waypost = Waypost(settings, clock, RandomIds(clock))
            await waypost.open()
            stack.push_async_callback(waypost.close)
            running.append(waypost)
        await provisioning.put_operator_account(running[0].admin_context, OPERATOR)
        for waypost in running[1:]:
            waypost.start()
            stack.push_async_callback(waypost.drain)
        context = running[1].admin_context
        await poll_until(context.instance_keys.other_processes, lambda found: len(found) == 2)

        rotated = await replace_key(context, KeyReplacement())

        in_use = [waypost.admin_context.secret_box.in_use.fingerprint for waypost in running[1:]]
        assert in_use == [InstanceKey(new_key).fingerprint] * 2
        assert rotated.secrets_encrypted_again == 1
        account = await running[2].directory.operator_account(OPERATOR.id)
    assert account == OPERATOR
