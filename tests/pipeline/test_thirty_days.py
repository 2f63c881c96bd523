"""Thirty days in a few seconds: everything that expires does so at its own time."""

import base64
from dataclasses import replace
from typing import Any, Final

from tests.support.builders import ACCOUNT, ANN, APP, OPERATOR, PARTNER, is_event
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness
from waypost.admin import provisioning
from waypost.base.clock import VirtualClock
from waypost.base.encryption import hash_secret
from waypost.store.accounts.credentials import CredentialKind, add_credential

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
SECRET: Final = "a client secret for thirty days"
NEW_TOKEN: Final = "operator-token-of-the-next-month"


async def test_everything_expires_on_time_within_thirty_days(make_pipeline: Any) -> None:
    clock = VirtualClock()
    clock.run(factor=0)
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    started_ms = clock.now_ms()

    await check_first_day(pipeline)
    await check_operator_token(pipeline)
    await check_pauses(pipeline)
    await check_seventh_day(pipeline)
    await check_locked_name(pipeline, started_ms)

    assert clock.now_ms() - started_ms >= 30 * DAY_MS
    assert all(not any(counts.values()) for counts in (await pipeline.queue_depths()).values())
    assert_events_are_ordered(pipeline)


async def check_first_day(pipeline: PipelineHarness) -> None:
    """The partner's token and the window both end after 24 hours, to the minute."""
    database = pipeline.waypost.database
    await database.write(
        add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, hash_secret(SECRET), pipeline.clock.now_ms()
    )
    token = await log_in(pipeline)
    await pipeline.open_window()
    await pipeline.travel(ms=DAY_MS - MINUTE_MS)
    assert await status_of_call(pipeline, token) == 200
    await pipeline.events_of(await pipeline.send_text("in time"), until="delivered")

    await pipeline.travel(ms=MINUTE_MS)

    assert await status_of_call(pipeline, token) == 401
    assert await status_of_call(pipeline, await log_in(pipeline)) == 200
    [*_, failed] = await pipeline.events_of(await pipeline.send_text("too late"), until="failed")
    assert failed["payload"]["code"] == 131047


async def check_operator_token(pipeline: PipelineHarness) -> None:
    """While the operator accepts no token of ours, nothing is lost; with a new token sending resumes."""
    await pipeline.open_window()
    token = {"waba_ids": [ACCOUNT.id], "token": OPERATOR["token"], "expires_in_ms": HOUR_MS}
    await pipeline.control("POST", "tokens", token)
    await pipeline.control("POST", "tokens", {"waba_ids": [ACCOUNT.id], "token": NEW_TOKEN})
    await pipeline.travel(ms=2 * HOUR_MS)
    message_id = await pipeline.send_text("waits for a token")
    await pipeline.travel(ms=HOUR_MS)
    assert (await pipeline.trace(message_id))["state"] == "accepted"

    account = replace(OPERATOR.replace_fields(token=NEW_TOKEN), base_url=pipeline.operator_url)
    await provisioning.put_operator_account(pipeline.waypost.admin_context, account)
    await pipeline.travel(ms=HOUR_MS)

    await pipeline.events_of(message_id, until="delivered")
    assert len(await pipeline.deliveries(message_id)) == 1


async def check_pauses(pipeline: PipelineHarness) -> None:
    """A template is paused for three hours, then for six, then permanently."""
    template_id = await pipeline.approved_template()
    [operator_template] = (await pipeline.control("GET", "templates"))["templates"]
    path = f"templates/{operator_template['id']}/pause"
    for hours in (3, 6):
        await pipeline.control("POST", path, {})
        await pipeline.travel(ms=hours * HOUR_MS - MINUTE_MS)
        [*_, failed] = await pipeline.events_of(await pipeline.send(template_id), until="failed")
        assert failed["payload"]["code"] == 132015

        await pipeline.travel(ms=MINUTE_MS)

        await pipeline.events_of(await pipeline.send(template_id), until="delivered")

    await pipeline.control("POST", path, {})
    await pipeline.travel(ms=2 * DAY_MS)

    [*_, failed] = await pipeline.events_of(await pipeline.send(template_id), until="failed")
    assert failed["payload"]["code"] == 132016


async def check_seventh_day(pipeline: PipelineHarness) -> None:
    """Media from a recipient can be fetched for seven days."""
    content = {"content": base64.b64encode(sample("png")).decode(), "mime_type": "image/png"}
    inbound = await pipeline.control(
        "POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "type": "image", "media": content}
    )
    callback = await pipeline.wait_for_callback(is_event("message", id=inbound["wamid"]))
    url = callback["payload"]["payload"]["url"]
    await pipeline.travel(ms=7 * DAY_MS - MINUTE_MS)
    assert await status_of(pipeline, url) == 200

    await pipeline.travel(ms=MINUTE_MS)

    assert await status_of(pipeline, url) == 404


async def check_locked_name(pipeline: PipelineHarness, started_ms: int) -> None:
    """A deleted name is free again after thirty days, and an upload of ours has expired."""
    media_id = await pipeline.upload(sample("png"), "image/png")
    first = await pipeline.approved_template(elementName="spring")
    await pipeline.send_request(
        "DELETE", f"/partner/app/{APP.id}/template/spring", headers={"Authorization": pipeline.app_token}
    )
    await pipeline.wait_for_callback(is_event("template-event", id=first, status="deleted"))
    too_soon = await pipeline.create_template(elementName="spring")
    rejected = await pipeline.wait_for_callback(is_event("template-event", id=too_soon["id"], status="rejected"))
    assert "deleted" in rejected["payload"]["rejectedReason"]

    await pipeline.travel(ms=30 * DAY_MS)

    await pipeline.send_request(
        "PUT",
        f"/partner/app/{APP.id}/templates/{too_soon['id']}",
        {"content": "Hi {{1}}, spring is here.", "example": "Hi Ann, spring is here."},
        {"Authorization": pipeline.app_token},
    )
    await pipeline.wait_for_callback(is_event("template-event", id=too_soon["id"], status="approved"))
    await pipeline.open_window()
    message_id = await pipeline.send_session({"type": "image", "id": media_id})
    await pipeline.travel(ms=MINUTE_MS)
    await pipeline.events_of(message_id, until="failed")
    assert pipeline.clock.now_ms() - started_ms >= 30 * DAY_MS


async def log_in(pipeline: PipelineHarness) -> str:
    form = {"email": PARTNER.email, "password": SECRET}
    response = await pipeline.send_request("POST", "/partner/account/login", form)
    assert response.status == 200, response
    return response.body["token"]


async def status_of_call(pipeline: PipelineHarness, token: str) -> int:
    """Return the status of a call of the partner with this token."""
    headers = {"token": token}
    return (await pipeline.send_request("GET", "/partner/account/api/partnerApps", headers=headers)).status


async def status_of(pipeline: PipelineHarness, url: str) -> int:
    async with pipeline.http.get(url) as response:
        await response.read()
        return response.status


def assert_events_are_ordered(pipeline: PipelineHarness) -> None:
    """Check that each message's events were called back once, in the order in which they happened."""
    order = ("enqueued", "sent", "delivered", "read", "failed")
    events: dict[str, list[str]] = {}
    for callback in pipeline.callbacks:
        if callback["type"] == "message-event":
            payload = callback["payload"]
            events.setdefault(payload.get("gsId", payload["id"]), []).append(payload["type"])
    for types in events.values():
        positions = [order.index(event) for event in types]
        assert positions == sorted(set(positions)), events
