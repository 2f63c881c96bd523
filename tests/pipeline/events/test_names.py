"""Display names and messaging limits of a number: the operator reports changes, which are called back and shown."""

from typing import Any

import pytest

from tests.support.builders import ACCOUNT, APP, is_event
from tests.support.pipeline import PipelineHarness

pytestmark = pytest.mark.content_only


async def display_name(pipeline: PipelineHarness) -> dict[str, Any]:
    async with pipeline.http.get(
        f"{pipeline.service_url}/partner/app/{APP.id}/profile/displayName", headers={"token": pipeline.app_token}
    ) as response:
        return (await response.json())["displayNameInfo"]


async def test_decision_about_a_display_name_is_called_back_and_shown(pipeline: PipelineHarness) -> None:
    async with pipeline.http.post(
        f"{pipeline.service_url}/partner/app/{APP.id}/profile/displayName",
        data={"newDisplayName": "Acme Spare Parts"},
        headers={"token": pipeline.app_token},
    ) as response:
        assert response.status == 200, await response.text()
    requested = await display_name(pipeline)

    await pipeline.control("PUT", f"numbers/{APP.phone_number_id}/names", {"display_name": "APPROVED"})
    callback = await pipeline.wait_for_callback(is_event("account-event"))

    assert callback["payload"] == {"type": "pndn-event", "payload": {"status": "approved"}}
    assert (requested["requestedName"], requested["requestedNameStatus"]) == ("Acme Spare Parts", "PENDING_REVIEW")
    assert (await display_name(pipeline))["verifiedName"] == "Acme Spare Parts"


@pytest.mark.holds("get-ratings")
async def test_last_change_of_the_limit_is_in_the_ratings(pipeline: PipelineHarness) -> None:
    for event, old, new in (("UPGRADE", "TIER_250", "TIER_2K"), ("DOWNGRADE", "TIER_2K", "TIER_250")):
        value = {
            "display_phone_number": APP.phone_number, "event": event, "old_limit": old, "current_limit": new,
        }  # fmt: skip
        body = {"field": "phone_number_quality_update", "value": value}
        await pipeline.control("POST", f"accounts/{ACCOUNT.id}/webhooks", body)
        await pipeline.wait_for_callback(
            lambda callback, event=event: (
                is_event("account-event")(callback) and callback["payload"]["payload"].get("event") == event.lower()
            )
        )

    async with pipeline.http.get(
        f"{pipeline.service_url}/partner/app/{APP.id}/ratings", headers={"token": pipeline.app_token}
    ) as response:
        ratings = await response.json()

    assert ratings.pop("eventTime") > 0
    assert ratings == {
        "oldLimit": "TIER_2K", "currentLimit": "TIER_250", "event": "downgrade", "phoneQuality": "Green",
    }  # fmt: skip
