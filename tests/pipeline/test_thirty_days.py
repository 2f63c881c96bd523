"""Thirty days in a few seconds: everything that has an end comes to it at its own time."""

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


async def test_in_thirty_days_everything_ends_when_it_should(make_pipeline: Any) -> None:
    clock = VirtualClock()
    clock.run(factor=0)
    pipeline: PipelineHarness = await make_pipeline(clock=clock)
    began_ms = clock.now_ms()

    await the_first_day(pipeline)
    await the_operators_token(pipeline)
    await the_pauses(pipeline)
    await the_seventh_day(pipeline)
    await the_locked_name(pipeline, began_ms)

    assert clock.now_ms() - began_ms >= 30 * DAY_MS
    assert all(not any(counts.values()) for counts in (await pipeline.queue_depths()).values())
    assert_none_ran_backwards(pipeline)


async def the_first_day(pipeline: PipelineHarness) -> None:
    """The partner's token and the window both end after 24 hours, to the minute."""
    database = pipeline.waypost.database
    await database.write(
        add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, hash_secret(SECRET), pipeline.clock.now_ms()
    )
    token = await log_in(pipeline)
    await pipeline.open_window()
    await pipeline.travel(ms=DAY_MS - MINUTE_MS)
    assert await status_with(pipeline, token) == 200
    await pipeline.events_of(await pipeline.send_text("in time"), until="delivered")

    await pipeline.travel(ms=MINUTE_MS)

    assert await status_with(pipeline, token) == 401
    assert await status_with(pipeline, await log_in(pipeline)) == 200
    [*_, failed] = await pipeline.events_of(await pipeline.send_text("too late"), until="failed")
    assert failed["payload"]["code"] == 131047


async def the_operators_token(pipeline: PipelineHarness) -> None:
    """While the operator takes no token of ours, nothing is lost; with a new one it goes on."""
    await pipeline.open_window()
    wish = {"waba_ids": [ACCOUNT.id], "token": OPERATOR["token"], "expires_in_ms": HOUR_MS}
    await pipeline.control("POST", "tokens", wish)
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


async def the_pauses(pipeline: PipelineHarness) -> None:
    """Three hours, six hours, then never again."""
    template_id = await pipeline.approved_template()
    [held] = (await pipeline.control("GET", "templates"))["templates"]
    path = f"templates/{held['id']}/pause"
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


async def the_seventh_day(pipeline: PipelineHarness) -> None:
    """What a recipient sent can be fetched for seven days."""
    content = {"content": base64.b64encode(sample("png")).decode(), "mime_type": "image/png"}
    told = await pipeline.control(
        "POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "type": "image", "media": content}
    )
    callback = await pipeline.wait_for_callback(is_event("message", id=told["wamid"]))
    url = callback["payload"]["payload"]["url"]
    await pipeline.travel(ms=7 * DAY_MS - MINUTE_MS)
    assert await status_of(pipeline, url) == 200

    await pipeline.travel(ms=MINUTE_MS)

    assert await status_of(pipeline, url) == 404


async def the_locked_name(pipeline: PipelineHarness, began_ms: int) -> None:
    """A deleted name is free again after thirty days; an upload of ours is gone after thirty."""
    media_id = await pipeline.upload(sample("png"), "image/png")
    first = await pipeline.approved_template(elementName="spring")
    await pipeline.ask(
        "DELETE", f"/partner/app/{APP.id}/template/spring", headers={"Authorization": pipeline.app_token}
    )
    await pipeline.wait_for_callback(is_event("template-event", id=first, status="deleted"))
    too_soon = await pipeline.create_template(elementName="spring")
    refused = await pipeline.wait_for_callback(is_event("template-event", id=too_soon["id"], status="rejected"))
    assert "deleted" in refused["payload"]["rejectedReason"]

    await pipeline.travel(ms=30 * DAY_MS)

    await pipeline.ask(
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
    assert pipeline.clock.now_ms() - began_ms >= 30 * DAY_MS


async def log_in(pipeline: PipelineHarness) -> str:
    form = {"email": PARTNER.email, "password": SECRET}
    answer = await pipeline.ask("POST", "/partner/account/login", form)
    assert answer.status == 200, answer
    return answer.body["token"]


async def status_with(pipeline: PipelineHarness, token: str) -> int:
    """What a call of the partner is answered with."""
    headers = {"token": token}
    return (await pipeline.ask("GET", "/partner/account/api/partnerApps", headers=headers)).status


async def status_of(pipeline: PipelineHarness, url: str) -> int:
    async with pipeline.http.get(url) as answer:
        await answer.read()
        return answer.status


def assert_none_ran_backwards(pipeline: PipelineHarness) -> None:
    """Each message's events were told in the order in which they happened, each of them once."""
    order = ("enqueued", "sent", "delivered", "read", "failed")
    told: dict[str, list[str]] = {}
    for callback in pipeline.callbacks:
        if callback["type"] == "message-event":
            payload = callback["payload"]
            told.setdefault(payload.get("gsId", payload["id"]), []).append(payload["type"])
    for types in told.values():
        places = [order.index(one) for one in types]
        assert places == sorted(set(places)), told
