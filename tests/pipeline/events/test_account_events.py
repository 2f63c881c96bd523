"""Webhooks about an account, its numbers and its users are called back to its apps."""

from typing import Any

import pytest

from tests.support.builders import ACCOUNT, ANN, APP, is_event
from tests.support.manual_clock import ServiceClock
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.version_3_receiver import open_version_3_receiver, value_of

pytestmark = pytest.mark.content_only

RESTRICTION = {"restriction_type": "RESTRICTED_ADD_PHONE_NUMBER_ACTION", "expiration": 1760003600}

# fmt: off
ACCOUNT_WEBHOOKS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [  # Source: facts 6.6; operator's facts 7.2
    # field                         value                                                  type                inner payload
    ("account_update",              {"event": "VERIFIED_ACCOUNT"},                         "status-event",     {"status": "ACCOUNT_VERIFIED"}),
    ("account_update",              {"event": "ACCOUNT_VIOLATION", "violation_info": {"violation_type": "SCAM"}}, "status-event", {"status": "ACCOUNT_VIOLATION", "violation_type": "SCAM"}),
    ("account_update",              {"event": "ACCOUNT_RESTRICTION", "restriction_info": [RESTRICTION]}, "status-event", {"status": "ACCOUNT_RESTRICTED", "restrictionInfo": [{"restrictionType": "RESTRICTED_ADD_PHONE_NUMBER_ACTION", "expiration": 1760003600}]}),
    ("account_update",              {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE", "waba_ban_date": "March 6, 2026"}}, "status-event", {"status": "DISABLE", "actionDate": "March 6, 2026"}),
    ("account_update",              {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "REINSTATE", "waba_ban_date": "March 7, 2026"}}, "status-event", {"status": "REINSTATE", "actionDate": "March 7, 2026"}),
    ("account_update",              {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "SCHEDULE_FOR_DISABLE", "waba_ban_date": "March 8, 2026"}}, "status-event", {"status": "ACCOUNT_DISABLE", "actionDate": "March 8, 2026"}),
    ("account_update",              {"event": "AD_ACCOUNT_LINKED", "waba_info": {"waba_id": "1", "owner_business_id": "2", "ad_account_id": "3"}}, "status-event", {"status": "AD_ACCOUNT_LINKED", "waba_id": "1", "owner_business_id": "2", "ad_account_id": "3"}),
    ("phone_number_name_update",    {"display_phone_number": APP.phone_number, "decision": "APPROVED", "requested_verified_name": "Acme"}, "pndn-event", {"status": "approved"}),
    ("phone_number_name_update",    {"display_phone_number": APP.phone_number, "decision": "REJECTED", "rejection_reason": "INVALID_FORMAT"}, "pndn-event", {"status": "rejected", "rejectedReason": "INVALID_FORMAT"}),
    ("phone_number_quality_update", {"display_phone_number": APP.phone_number, "event": "UPGRADE", "old_limit": "TIER_250", "current_limit": "TIER_1K"}, "tier-event", {"event": "upgrade", "oldLimit": "TIER_250", "currentLimit": "TIER_1K"}),
    ("business_capability_update",  {"max_daily_conversation_per_phone": 1000, "max_phone_numbers_per_business": 25}, "capability-event", {"maxDailyConversationPerPhone": 1000, "maxPhoneNumbersPerBusiness": 25}),
]
# fmt: on


async def post_webhook(pipeline: PipelineHarness, field: str, value: dict[str, Any]) -> None:
    response = await pipeline.control("POST", f"accounts/{ACCOUNT.id}/webhooks", {"field": field, "value": value})
    assert response == {"queued": True}


@pytest.mark.holds("event-others")
@pytest.mark.parametrize(("field", "value", "type", "inner"), ACCOUNT_WEBHOOKS, ids=range(len(ACCOUNT_WEBHOOKS)))
async def test_account_webhook_is_called_back_in_both_versions(
    pipeline: PipelineHarness, field: str, value: dict[str, Any], type: str, inner: dict[str, Any]
) -> None:
    async with open_version_3_receiver(pipeline, "ACCOUNT") as receiver_v3:
        await post_webhook(pipeline, field, value)

        callback = await pipeline.wait_for_callback(is_event("account-event"))
        body = await receiver_v3.change(field)

    assert callback["payload"] == {"type": type, "payload": inner}
    assert value_of(body) == value


async def test_rejected_account_is_called_back_with_the_day(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ServiceClock(1_612_051_200_000))
    await post_webhook(pipeline, "account_review_update", {"decision": "REJECTED"})
    await post_webhook(
        pipeline, "account_update", {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE"}}
    )

    review, disabled = await pipeline.sink.wait_for(is_event("account-event"), count=2)

    assert review["payload"] == {
        "type": "review-event",
        "payload": {"status": "rejected", "actionDate": "January 31,2021"},
    }
    assert disabled["payload"]["payload"] == {"status": "DISABLE", "actionDate": "January 31,2021"}


@pytest.mark.holds("event-30", "event-65")
@pytest.mark.both_engines
async def test_app_that_becomes_live_is_called_back_once(pipeline: PipelineHarness) -> None:
    number = {"phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}
    async with open_version_3_receiver(pipeline, "ACCOUNT") as receiver_v3:
        for live in (False, True, True):
            await _connect_app(pipeline, {**number, "business_account_id": ACCOUNT.id, "live": live})
        await post_webhook(pipeline, "account_update", {"event": "VERIFIED_ACCOUNT"})
        first, last = await pipeline.sink.wait_for(lambda callback: callback["type"].endswith("-event"), count=2)
        live_v3, _ = await receiver_v3.sink.wait_for(lambda _: True, count=2)

    assert (first["type"], first["app"], first["appId"]) == ("onboarding-event", APP.name, APP.id)
    assert first["payload"] == {
        "type": "docker-status-event",
        "payload": {"status": "live", "waId": ACCOUNT.id, "namespace": ACCOUNT.namespace},
    }
    assert last["payload"]["type"] == "status-event"
    [entry] = live_v3["entry"]
    assert entry["changes"] == [
        {"field": "account-event", "value": {"type": "status-event", "payload": {"status": "ACCOUNT_VERIFIED"}}}
    ]
    assert entry["id"] == ACCOUNT.id
    assert abs(entry["time"] - pipeline.clock.now_ms()) < 60_000


@pytest.mark.holds("event-12")
@pytest.mark.parametrize(("live", "text", "events"), [(False, f" proxy {APP.name.lower()}", 1), (False, "proxy", 0), (True, f"Proxy {APP.name}", 0)])  # fmt: skip
async def test_sandbox_app_is_invoked_by_its_name(
    pipeline: PipelineHarness, live: bool, text: str, events: int
) -> None:
    number = {"phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id}
    await _connect_app(pipeline, {**number, "business_account_id": ACCOUNT.id, "live": live})

    await pipeline.reply(ANN, text)
    await pipeline.reply(ANN, "Hello?")

    user_events = [callback["payload"] for callback in pipeline.callbacks if callback["type"] == "user-event"]
    assert user_events == [{"phone": ANN, "type": "sandbox-start"}] * events


async def _connect_app(pipeline: PipelineHarness, connection: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    url = f"{pipeline.service_url}/admin/apps/{APP.id}/connect"
    async with pipeline.http.post(url, json=connection, headers=headers) as response:
        assert response.status == 200, await response.text()


@pytest.mark.parametrize(
    ("field", "modes"),
    [("account_alerts", "ACCOUNT"), ("flows", "OTHERS"), ("message_template_components_update", "TEMPLATE")],
)  # fmt: skip
async def test_webhook_without_a_body_in_version_2_is_called_back_in_version_3_only(
    pipeline: PipelineHarness, field: str, modes: str
) -> None:
    async with open_version_3_receiver(pipeline, modes) as receiver_v3:
        await post_webhook(pipeline, field, {"event": "SOMETHING"})
        body = await receiver_v3.change(field)
    await pipeline.reply(ANN, "Hello?")

    assert value_of(body) == {"event": "SOMETHING"}
    assert [callback["type"] for callback in pipeline.callbacks] == ["message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("phone_number_name_update", {"display_phone_number": "15559990000", "decision": "APPROVED"}),
        ("phone_number_quality_update", {"display_phone_number": "15559990000", "event": "UPGRADE"}),
        ("user_preferences", {"metadata": {"phone_number_id": "2000000000000099"}, "user_preferences": [{"wa_id": ANN, "value": "stop"}]}),
    ],
)  # fmt: skip
async def test_webhook_of_a_number_that_no_app_has_is_not_called_back(
    pipeline: PipelineHarness, field: str, value: dict[str, Any]
) -> None:
    await post_webhook(pipeline, field, value)
    await post_webhook(pipeline, "account_update", {"event": "VERIFIED_ACCOUNT", "phone_number": "15559990000"})  # fmt: skip

    await pipeline.wait_for_callback(is_event("account-event", type="status-event"))
    assert [callback["payload"]["type"] for callback in pipeline.callbacks] == ["status-event"]


@pytest.mark.parametrize(("wants", "preference", "type"), [(False, "stop", "opted-out"), (True, "resume", "opted-in")])  # fmt: skip
@pytest.mark.both_engines
async def test_user_who_stops_marketing_is_called_back_as_preference_event_and_user_event(
    pipeline: PipelineHarness, wants: bool, preference: str, type: str
) -> None:
    await pipeline.open_window()
    if wants:
        await pipeline.control("POST", f"phones/{ANN}/marketing", {"to": APP.phone_number, "wants": False})
        await pipeline.wait_for_callback(is_event("user-event", type="opted-out"))

    await pipeline.control("POST", f"phones/{ANN}/marketing", {"to": APP.phone_number, "wants": wants})

    user = await pipeline.wait_for_callback(is_event("user-event", type=type))
    assert user["payload"] == {"phone": ANN, "type": type}
    events = [callback["payload"] for callback in pipeline.callbacks if callback["type"] == "preference-event"]
    [entry] = events[-1]["payload"]["user_preferences"]
    assert events[-1]["type"] == "user_preferences"
    assert entry.keys() == {"wa_id", "detail", "category", "value", "timestamp"}
    assert (entry["wa_id"], entry["value"]) == (ANN, preference)


async def test_payment_is_called_back_in_version_3_only(pipeline: PipelineHarness) -> None:
    """The message is no order, for which the real operator would post no payment."""
    await pipeline.open_window()
    async with open_version_3_receiver(pipeline, "PAYMENTS") as receiver_v3:
        message_id = await pipeline.send_text()
        events = await pipeline.events_of(message_id, until="delivered")
        status = {
            "id": events[-1]["id"],
            "type": "payment",
            "status": "captured",
            "timestamp": "1760000000",
            "recipient_id": ANN,
            "payment": {"reference_id": "r-1"},
        }
        metadata = {"phone_number_id": APP.phone_number_id}

        await post_webhook(pipeline, "messages", {"metadata": metadata, "statuses": [status]})

        payment = await receiver_v3.status(message_id, "captured")

    assert payment["payment"] == {"reference_id": "r-1"}
    assert len(receiver_v3.sink.accepted) == 1
    assert (await pipeline.trace(message_id))["state"] == "delivered"
