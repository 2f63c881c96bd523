"""Quotas of what a partner has waiting: beyond them, new messages get 429 and nothing of them is stored."""

import asyncio
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, func, select

from benchmarks.statements import Statements
from tests.support.builders import ACCOUNT, ANN, APP, PARTNER
from tests.support.callback_sink import respond_always
from tests.support.partner_seeding import store_partner
from tests.support.pipeline import ADMIN_TOKEN, API_KEY, HttpResponse, PipelineHarness
from tests.support.polling import poll_until
from tests.support.store_locations import StoreLocation
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.store.tables import idempotency_keys, messages

TOO_MANY = {"status": "error", "message": "Too Many Requests"}
"""The text of the specification."""
MESSAGING = {"channel": "whatsapp", "source": APP.phone_number, "src.name": APP.name, "destination": ANN}
TEXT = json.dumps({"type": "text", "text": "Hello"})
OTHER_PARTNER = replace(PARTNER, id=8, email="bob@other.test", name="Other")
OTHER_ACCOUNT = replace(ACCOUNT, id="1000000000000009", partner_id=8)
OTHER_APP = replace(
    APP, id="01990000-0000-7000-8000-00000000000b", partner_id=8, name="OtherShop",
    phone_number="15550002222", phone_number_id="2000000000000009", business_account_id=OTHER_ACCOUNT.id,
)  # fmt: skip
TEMPLATE = "template"
PARTNER_API = f"/partner/app/{APP.id}"

# fmt: off
SENDS: Mapping[str, dict[str, str]] = {
    # route                        form; its template is the id of one
    "/wa/api/v1/msg":              MESSAGING | {"message": TEXT},
    "/wa/api/v1/template/msg":     MESSAGING | {"template": TEMPLATE},
    f"{PARTNER_API}/msg":          {"source": APP.phone_number, "destination": ANN, "message": TEXT},
    f"{PARTNER_API}/template/msg": {"source": APP.phone_number, "destination": ANN, "template": TEMPLATE},
    f"{PARTNER_API}/v3/message":   {"to": ANN, "type": "text", "text": '{"body":"Hello"}'},
}
# fmt: on


class StoredRows(NamedTuple):
    """Numbers of rows."""

    messages: int
    keys: int


def count_rows(connection: Connection) -> StoredRows:
    counts = [connection.execute(select(func.count()).select_from(table)) for table in (messages, idempotency_keys)]
    return StoredRows(*(count.scalar_one() for count in counts))


def credential_of(pipeline: PipelineHarness, route: str) -> dict[str, str]:
    return {"apikey": API_KEY} if route.startswith("/wa/") else {"Authorization": pipeline.app_token}


async def post_text(pipeline: PipelineHarness, **headers: str) -> HttpResponse:
    route = "/wa/api/v1/msg"
    return await pipeline.send_request("POST", route, SENDS[route], {"apikey": API_KEY, **headers})


async def call_admin(pipeline: PipelineHarness, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    url = f"{pipeline.service_url}/admin/partners/{path}"
    async with pipeline.http.request(method, url, json=body, headers=headers) as response:
        return response.status, await response.json()


async def metric(pipeline: PipelineHarness, name: str) -> float:
    """Return the value of a metric of the quota of messages."""
    response = await pipeline.send_request("GET", "/metrics", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
    lines = response.raw.decode().splitlines()
    [value] = [line.split()[-1] for line in lines if line.startswith(f"waypost_{name}{{") and '"messages"' in line]
    return float(value)


async def test_messages_beyond_the_quota_get_429_until_the_queue_has_drained(make_pipeline: Any) -> None:
    """Of requests that are sent at once, exactly as many are accepted as the quota allows."""
    pipeline: PipelineHarness = await make_pipeline(changes={"message_quota": 3})
    template = await pipeline.approved_template(buttons=())
    await pipeline.close_operator()
    other_token = await store_partner(pipeline.waypost.admin_context, OTHER_PARTNER, OTHER_ACCOUNT, OTHER_APP)
    first = await post_text(pipeline, **{"Idempotency-Key": "accepted"})
    statuses = [response.status for response in await asyncio.gather(*(post_text(pipeline) for _ in range(9)))]
    rejected: list[HttpResponse] = []
    for route, form in SENDS.items():
        filled = form | ({"template": json.dumps({"id": template, "params": ["Ann"]})} if TEMPLATE in form else {})
        for key in ({}, {"Idempotency-Key": "rejected"}):
            headers = credential_of(pipeline, route) | key
            rejected.append(await pipeline.send_request("POST", route, filled, headers))
    repeated = await post_text(pipeline, **{"Idempotency-Key": "accepted"})
    other = await pipeline.send_request(
        "POST",
        f"/partner/app/{OTHER_APP.id}/msg",
        {"source": OTHER_APP.phone_number, "destination": ANN, "message": TEXT},
        {"Authorization": other_token},
    )
    rejections = await metric(pipeline, "quota_rejections_total")
    partners = await metric(pipeline, "partners_at_quota")
    await pipeline.close_service()
    await pipeline.open_service()
    restarted = await post_text(pipeline)
    rows = await pipeline.waypost.database.read(count_rows)
    await pipeline.open_operator()
    await poll_until(lambda: post_text(pipeline), lambda response: response.status == 200)

    assert sorted([first.status, *statuses]) == [200] * 3 + [429] * 7
    assert len(rejected) == 2 * len(SENDS)
    for response in (*rejected, restarted):
        assert (response.status, response.body, response.headers["Retry-After"]) == (429, TOO_MANY, "5")
    assert (repeated.status, repeated.body) == (200, first.body)
    assert other.status == 200
    assert rows == StoredRows(messages=4, keys=1)
    assert rejections == 7 + 2 * len(SENDS) + 1  # the repeated request is among them: its response is looked up late
    assert partners == 1


async def test_callbacks_beyond_the_quota_stop_new_messages_but_no_inbound_event(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"callback_quota": 2})
    pipeline.sink.choose_status = respond_always(503)

    async def receive_text(count: int) -> None:
        body = {"to": APP.phone_number, "text": "Hello?", "context_id": None}
        await pipeline.control("POST", f"phones/{ANN}/messages", body)
        await poll_until(pipeline.queue_depths, lambda depths: sum(depths["callbacks"].values()) == count)

    await receive_text(1)
    await receive_text(2)
    rejected = await post_text(pipeline)
    await receive_text(3)
    rows = await pipeline.waypost.database.read(count_rows)
    _, shown = await call_admin(pipeline, "GET", f"{PARTNER.id}/quotas")
    pipeline.sink.choose_status = respond_always(200)
    await poll_until(lambda: post_text(pipeline), lambda response: response.status == 200)
    await pipeline.sink.wait_until(lambda: sum(callback["type"] == "message" for callback in pipeline.callbacks) == 3)

    assert (rejected.status, rejected.body) == (429, TOO_MANY)
    assert rows.messages == 0
    assert shown["callbacks"] == {"waiting": 3, "quota": 2, "own_quota": None, "service_quota": 2}


# fmt: off
CHANGES: tuple[tuple[dict[str, int | None], int, int], ...] = (
    # body                     messages that wait then, and the quota that is shown
    ({},                       2, 2),
    ({"message_quota": 5},     5, 5),
    ({"message_quota": 0},     9, 0),  # no limit: everything is accepted
    ({"message_quota": 1},     9, 1),
    ({"message_quota": None},  9, 2),
    ({"message_quota": 11},   11, 11),
)
# fmt: on


async def test_quota_of_a_partner_replaces_the_setting_at_once(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"message_quota": 2})
    await pipeline.close_operator()
    path = f"{PARTNER.id}/quotas"
    seen: list[tuple[dict[str, int | None], int, int]] = []

    for body, waiting, _ in CHANGES:
        status, _ = await call_admin(pipeline, "PUT", path, body)
        assert status == 200
        missing = waiting - (seen[-1][1] if seen else 0)
        for _ in range(max(missing, 1)):
            await post_text(pipeline)
        if body != {"message_quota": 0}:
            assert (await post_text(pipeline)).status == 429
        _, shown = await call_admin(pipeline, "GET", path)
        seen.append((body, shown["messages"]["waiting"], shown["messages"]["quota"]))

    assert seen == list(CHANGES)


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        (f"{PARTNER.id}/quotas", {"message_quota": -1}, 400, "message_quota must be a number of 0 to 1000000000"),
        (f"{PARTNER.id}/quotas", {"callback_quota": 10**9 + 1}, 400, "callback_quota must be a number of 0 to"),
        (f"{PARTNER.id}/quotas", {"message_quota": "many"}, 400, "message_quota"),
        (f"{PARTNER.id}/quotas", {"quota": 1}, 400, "quota"),
        ("999/quotas", {"message_quota": 1}, 404, "partner"),
    ],
)
@pytest.mark.content_only
async def test_invalid_quota_is_rejected(
    pipeline: PipelineHarness, path: str, body: Any, status: int, text: str
) -> None:
    response = await call_admin(pipeline, "PUT", path, body)

    assert response[0] == status
    assert text in response[1]["message"]


async def test_accepting_messages_counts_the_backlog_rarely(
    pipeline: PipelineHarness, store_location: StoreLocation
) -> None:
    await pipeline.close_operator()
    statements = Statements(store_location.name)
    for _ in range(20):
        responses = await asyncio.gather(*(post_text(pipeline) for _ in range(10)))
        assert {response.status for response in responses} == {200}
    statements.end()

    counts = [statement.times for statement in statements.all() if "message_quota" in statement.text]

    assert 1 <= sum(counts) <= 20  # one, and one each 5 s on a busy machine


@pytest.mark.content_only
async def test_partner_at_its_quota_is_logged_once_a_minute(make_pipeline: Any, logs: Callable[[], None]) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"message_quota": 1})
    await pipeline.close_operator()
    stream = io.StringIO()
    set_up_logs(SystemClock(), as_json=True, level="warning", stream=stream)

    statuses = [(await post_text(pipeline)).status for _ in range(5)]
    logs()

    assert statuses == [200, 429, 429, 429, 429]
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    [record] = [record for record in records if record["event"] == "a partner is at its quota"]
    assert (record["partner_id"], record["waiting"], record["quota"]) == (PARTNER.id, "messages", 1)
