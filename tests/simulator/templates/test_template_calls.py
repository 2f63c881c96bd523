"""Less common template calls: unpause, bulk deletion, upsert, previews, summaries, pages, strict checks."""

from typing import Any

import pytest

from tests.simulator.conftest import WABA, Bench
from tests.support.manual_clock import ManualClock

ID = "1400000000000004"
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
CODE: list[dict[str, Any]] = [
    {"type": "BODY", "add_security_recommendation": True},
    {"type": "FOOTER", "code_expiration_minutes": 10},
    {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
]


async def test_pacing_pause_can_be_ended_after_five_minutes(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(HELLO)
    await slow.control("POST", f"templates/{ID}/pacing-pause")

    early = await slow.graph("POST", f"{ID}/unpause")
    clock.advance(ms=5 * MINUTE_MS)
    late = await slow.graph("POST", f"{ID}/unpause")
    again = await slow.graph("POST", f"{ID}/unpause")

    assert (early.body["success"], late.body) == (False, {"success": True})
    assert "5 minutes" in early.body["reason"]
    assert again.body["success"] is False
    assert (await slow.graph("GET", ID)).body["status"] == "APPROVED"


async def test_pause_for_quality_cannot_be_ended(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(HELLO)
    await slow.control("POST", f"templates/{ID}/pause")
    clock.advance(ms=10 * MINUTE_MS)

    rejected = await slow.graph("POST", f"{ID}/unpause")

    assert (rejected.status, rejected.body["success"]) == (200, False)


async def test_several_templates_are_deleted_at_once(slow: Bench) -> None:
    ids = [(await slow.create_template(HELLO, name=f"t_{n}")).body["id"] for n in range(3)]

    response = await slow.graph("DELETE", f"{WABA}/message_templates?hsm_ids=[{','.join(ids[:2])}]")

    assert response.body == {"success": True}
    listed = await slow.graph("GET", f"{WABA}/message_templates")
    assert [template["id"] for template in listed.body["data"]] == ids[2:]


# fmt: off
INVALID_DELETIONS = [
    # what                 query
    ("an unknown id",      "hsm_ids=[{id},999]"),
    ("no array",           "hsm_ids="),
    ("together with name", "hsm_ids=[{id}]&name=t"),
    ("an id without name", "hsm_id={id}"),
    ("101 ids",            "hsm_ids=[{id}," + ",".join(str(n) for n in range(100)) + "]"),
]
# fmt: on


@pytest.mark.parametrize("query", [row[1] for row in INVALID_DELETIONS], ids=lambda row: row[:20])
async def test_invalid_deletion_deletes_nothing(slow: Bench, query: str) -> None:
    created = await slow.create_template(HELLO, name="t")

    rejected = await slow.graph("DELETE", f"{WABA}/message_templates?{query.format(id=created.body['id'])}")

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert (await slow.graph("GET", created.body["id"])).status == 200


async def test_authentication_template_is_created_in_many_languages(bench: Bench) -> None:
    fields = {"name": "code", "category": "AUTHENTICATION", "components": CODE}

    created = await bench.graph(
        "POST", f"{WABA}/upsert_message_templates", json={**fields, "languages": ["en_US", "es_ES", "fr"]}
    )

    assert [template["language"] for template in created.body["data"]] == ["en_US", "es_ES", "fr"]
    assert {template["status"] for template in created.body["data"]} == {"PENDING"}
    shown = await bench.graph("GET", created.body["data"][1]["id"])
    assert (shown.body["name"], shown.body["language"]) == ("code", "es_ES")


async def test_existing_authentication_template_is_updated(slow: Bench, clock: ManualClock) -> None:
    fields = {"name": "code", "category": "AUTHENTICATION", "languages": ["en_US"]}
    path = f"{WABA}/upsert_message_templates"
    created = await slow.graph("POST", path, json={**fields, "components": CODE})
    [template] = created.body["data"]
    clock.advance(ms=MINUTE_MS)
    await slow.receiver.wait_until(slow.receiver.template_events)

    changed = await slow.graph("POST", path, json={**fields, "components": [CODE[0], CODE[2]]})

    assert changed.body["data"][0]["id"] == template["id"]
    shown = await slow.graph("GET", template["id"])
    assert [component["type"] for component in shown.body["components"]] == ["BODY", "BUTTONS"]


@pytest.mark.parametrize(
    "invalid",
    [
        {"category": "UTILITY"},
        {"languages": []},
        {"languages": ["en_US", "xx"]},
        {"components": [CODE[0], {"type": "BUTTONS", "buttons": [
            {"type": "OTP", "otp_type": "COPY_CODE", "text": "Own words"}]}]},
    ],
)  # fmt: skip
async def test_invalid_upsert_creates_nothing(slow: Bench, invalid: dict[str, Any]) -> None:
    fields = {"name": "code", "category": "AUTHENTICATION", "languages": ["en_US"]}

    rejected = await slow.graph(
        "POST", f"{WABA}/upsert_message_templates", json={**fields, "components": CODE, **invalid}
    )

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    listed = await slow.graph("GET", f"{WABA}/message_templates")
    assert listed.body["data"] == []


async def test_preview_shows_the_operators_texts(bench: Bench) -> None:
    shown = await bench.graph(
        "GET",
        f"{WABA}/message_template_previews?category=AUTHENTICATION&languages=en_US,es_ES"
        "&add_security_recommendation=true&code_expiration_minutes=5&button_types=OTP",
    )

    first, second = shown.body["data"]
    assert first == {
        "body": "{{1}} is your verification code. For your security, do not share this code.",
        "footer": "This code expires in 5 minutes.",
        "buttons": [{"text": "Copy code", "autofill_text": "Autofill"}],
        "language": "en_US",
    }
    assert second["language"] == "es_ES"


async def test_list_can_have_a_summary(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"templates_at_most": 250})
    await bench.create_template(HELLO)

    listed = await bench.graph("GET", f"{WABA}/message_templates?summary=total_count,message_template_limit")
    invalid = await bench.graph("GET", f"{WABA}/message_templates?summary=weather")

    assert listed.body["summary"] == {"total_count": 1, "message_template_limit": 250}
    assert invalid.error["code"] == 100


async def test_pages_link_to_next_and_previous(slow: Bench, clock: ManualClock) -> None:
    for n in range(3):
        await slow.create_template(HELLO, name=f"t_{n}")
        clock.advance(ms=1)

    first = await slow.graph("GET", f"{WABA}/message_templates?limit=2&fields=name")
    second = await slow.request(
        "GET", first.body["paging"]["next"].removeprefix(slow.base),
        headers={"Authorization": "Bearer token-of-one"},
    )  # fmt: skip
    back = await slow.request(
        "GET", second.body["paging"]["previous"].removeprefix(slow.base),
        headers={"Authorization": "Bearer token-of-one"},
    )  # fmt: skip

    assert "previous" not in first.body["paging"]
    assert "next" not in second.body["paging"]
    assert [template["name"] for template in second.body["data"]] == ["t_2"]
    assert [template["name"] for template in back.body["data"]] == ["t_0", "t_1"]


async def test_optional_members_are_stored_and_shown(bench: Bench) -> None:
    created = await bench.create_template(HELLO, sub_category="order_status", cta_url_link_tracking_opted_out=True)
    invalid = await bench.create_template(HELLO, name="b", sub_category="WEATHER")

    shown = await bench.graph("GET", f"{created.body['id']}?fields=sub_category,cta_url_link_tracking_opted_out")
    assert shown.body["sub_category"] == "ORDER_STATUS"
    assert shown.body["cta_url_link_tracking_opted_out"] is True
    assert invalid.error["code"] == 100


async def test_template_beyond_the_limit_is_rejected(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"templates_at_most": 1})
    await bench.create_template(HELLO)

    rejected = await bench.create_template(HELLO, name="other")

    assert rejected.error["error_subcode"] == 2388019


async def test_language_check_can_be_switched_off(bench: Bench) -> None:
    rejected = await bench.create_template(HELLO, language="xx_YY")
    await bench.control("PUT", "settings", {"check_languages": False})
    accepted = await bench.create_template(HELLO, language="xx_YY")

    assert (rejected.error["code"], accepted.status) == (100, 200)


async def test_strict_operator_rejects_sample_names_and_repeated_bodies(slow: Bench, clock: ManualClock) -> None:
    # Source: facts 2.4; off by default, decision 0035.
    await slow.control("PUT", "settings", {"strict": True})
    await slow.create_template(HELLO, name="first")
    clock.advance(ms=MINUTE_MS)
    await slow.receiver.wait_until(slow.receiver.template_events)

    sample = await slow.create_template(HELLO, name="hello_world")
    await slow.create_template(HELLO, name="second")
    await slow.create_template(HELLO, name="first", language="en_GB")
    clock.advance(ms=MINUTE_MS)

    updates = await slow.receiver.wait_until(
        lambda: updates if len(updates := slow.receiver.template_events()) == 3 else None
    )
    assert "sample template" in sample.error["error_user_msg"]
    events = {(update["message_template_name"], update["message_template_language"]): update for update in updates}
    assert events["first", "en_GB"]["event"] == "APPROVED"
    assert events["second", "en_US"]["event"] == "REJECTED"
    assert "same body" in events["second", "en_US"]["rejection_info"]["reason"]


async def test_strict_operator_accepts_100_creations_an_hour(slow: Bench, clock: ManualClock) -> None:
    await slow.control("PUT", "settings", {"strict": True})
    for n in range(100):
        created = await slow.create_template(HELLO, name=f"t_{n}")
        assert created.status == 200

    rejected = await slow.create_template(HELLO, name="t_100")
    await slow.restart()
    after_restart = await slow.create_template(HELLO, name="t_100")
    clock.advance(ms=HOUR_MS)
    later = await slow.create_template(HELLO, name="t_100")

    assert rejected.error["code"] == after_restart.error["code"] == 80007
    assert later.status == 200
