"""Thirty days in a few seconds: everything that has an end comes to it at its own time."""

import base64
from dataclasses import replace
from typing import Any, Final

from tests.support.builders import ACCOUNT, ANN, APP, OPERATOR, PARTNER, is_event
from tests.support.media_samples import sample
from tests.support.street import Street
from waypost.admin import provisioning
from waypost.base.clock import VirtualClock
from waypost.base.encryption import hash_of
from waypost.store.accounts.credentials import CredentialKind, add_credential

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
SECRET: Final = "a client secret for thirty days"
NEW_TOKEN: Final = "operator-token-of-the-next-month"


async def test_in_thirty_days_everything_ends_when_it_should(make_street: Any) -> None:
    clock = VirtualClock()
    clock.run(factor=0)
    street: Street = await make_street(clock=clock)
    began_ms = clock.now_ms()

    await the_first_day(street)
    await the_operators_token(street)
    await the_pauses(street)
    await the_seventh_day(street)
    await the_locked_name(street, began_ms)

    assert clock.now_ms() - began_ms >= 30 * DAY_MS
    assert all(not any(counts.values()) for counts in (await street.queue_depths()).values())
    assert_none_ran_backwards(street)


async def the_first_day(street: Street) -> None:
    """The partner's token and the window both end after 24 hours, to the minute."""
    database = street.waypost.database
    await database.write(
        add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, hash_of(SECRET), street.clock.now_ms()
    )
    token = await log_in(street)
    await street.open_window()
    await street.travel(ms=DAY_MS - MINUTE_MS)
    assert await status_with(street, token) == 200
    await street.events_of(await street.send_text("in time"), until="delivered")

    await street.travel(ms=MINUTE_MS)

    assert await status_with(street, token) == 401
    assert await status_with(street, await log_in(street)) == 200
    [*_, failed] = await street.events_of(await street.send_text("too late"), until="failed")
    assert failed["payload"]["code"] == 131047


async def the_operators_token(street: Street) -> None:
    """While the operator takes no token of ours, nothing is lost; with a new one it goes on."""
    await street.open_window()
    wish = {"waba_ids": [ACCOUNT.id], "token": OPERATOR["token"], "expires_in_ms": HOUR_MS}
    await street.control("POST", "tokens", wish)
    await street.control("POST", "tokens", {"waba_ids": [ACCOUNT.id], "token": NEW_TOKEN})
    await street.travel(ms=2 * HOUR_MS)
    message_id = await street.send_text("waits for a token")
    await street.travel(ms=HOUR_MS)
    assert (await street.trace(message_id))["state"] == "accepted"

    account = replace(OPERATOR.with_fields(token=NEW_TOKEN), base_url=street.operator_url)
    await provisioning.put_operator_account(street.waypost.office, account)
    await street.travel(ms=HOUR_MS)

    await street.events_of(message_id, until="delivered")
    assert len(await street.deliveries(message_id)) == 1


async def the_pauses(street: Street) -> None:
    """Three hours, six hours, then never again."""
    template_id = await street.approved_template()
    [held] = (await street.control("GET", "templates"))["templates"]
    path = f"templates/{held['id']}/pause"
    for hours in (3, 6):
        await street.control("POST", path, {})
        await street.travel(ms=hours * HOUR_MS - MINUTE_MS)
        [*_, failed] = await street.events_of(await street.send(template_id), until="failed")
        assert failed["payload"]["code"] == 132015

        await street.travel(ms=MINUTE_MS)

        await street.events_of(await street.send(template_id), until="delivered")

    await street.control("POST", path, {})
    await street.travel(ms=2 * DAY_MS)

    [*_, failed] = await street.events_of(await street.send(template_id), until="failed")
    assert failed["payload"]["code"] == 132016


async def the_seventh_day(street: Street) -> None:
    """What a recipient sent can be fetched for seven days."""
    content = {"content": base64.b64encode(sample("png")).decode(), "mime_type": "image/png"}
    told = await street.control(
        "POST", f"phones/{ANN}/messages", {"to": APP.phone_number, "type": "image", "media": content}
    )
    callback = await street.wait_for_callback(is_event("message", id=told["wamid"]))
    url = callback["payload"]["payload"]["url"]
    await street.travel(ms=7 * DAY_MS - MINUTE_MS)
    assert await status_of(street, url) == 200

    await street.travel(ms=MINUTE_MS)

    assert await status_of(street, url) == 404


async def the_locked_name(street: Street, began_ms: int) -> None:
    """A deleted name is free again after thirty days; an upload of ours is gone after thirty."""
    media_id = await street.upload(sample("png"), "image/png")
    first = await street.approved_template(elementName="spring")
    await street.ask("DELETE", f"/partner/app/{APP.id}/template/spring", headers={"Authorization": street.app_token})
    await street.wait_for_callback(is_event("template-event", id=first, status="deleted"))
    too_soon = await street.create_template(elementName="spring")
    refused = await street.wait_for_callback(is_event("template-event", id=too_soon["id"], status="rejected"))
    assert "deleted" in refused["payload"]["rejectedReason"]

    await street.travel(ms=30 * DAY_MS)

    await street.ask(
        "PUT",
        f"/partner/app/{APP.id}/templates/{too_soon['id']}",
        {"content": "Hi {{1}}, spring is here.", "example": "Hi Ann, spring is here."},
        {"Authorization": street.app_token},
    )
    await street.wait_for_callback(is_event("template-event", id=too_soon["id"], status="approved"))
    await street.open_window()
    message_id = await street.send_session({"type": "image", "id": media_id})
    await street.travel(ms=MINUTE_MS)
    await street.events_of(message_id, until="failed")
    assert street.clock.now_ms() - began_ms >= 30 * DAY_MS


async def log_in(street: Street) -> str:
    form = {"email": PARTNER.email, "password": SECRET}
    answer = await street.ask("POST", "/partner/account/login", form)
    assert answer.status == 200, answer
    return answer.body["token"]


async def status_with(street: Street, token: str) -> int:
    """What a call of the partner is answered with."""
    headers = {"token": token}
    return (await street.ask("GET", "/partner/account/api/partnerApps", headers=headers)).status


async def status_of(street: Street, url: str) -> int:
    async with street.http.get(url) as answer:
        await answer.read()
        return answer.status


def assert_none_ran_backwards(street: Street) -> None:
    """Each message's events were told in the order in which they happened, each of them once."""
    order = ("enqueued", "sent", "delivered", "read", "failed")
    told: dict[str, list[str]] = {}
    for callback in street.callbacks:
        if callback["type"] == "message-event":
            payload = callback["payload"]
            told.setdefault(payload.get("gsId", payload["id"]), []).append(payload["type"])
    for types in told.values():
        places = [order.index(one) for one in types]
        assert places == sorted(set(places)), told
