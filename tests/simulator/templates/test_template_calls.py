"""Calls about templates beside the everyday ones: several at once, previews, summaries, pages."""

from typing import Any

import pytest

from tests.simulator.conftest import WABA, Bench
from waypost.base.clock import ManualClock

ID = "1400000000000004"
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
CODE: list[dict[str, Any]] = [
    {"type": "BODY", "add_security_recommendation": True},
    {"type": "FOOTER", "code_expiration_minutes": 10},
    {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
]


async def test_pause_by_pacing_ends_after_five_minutes_when_asked(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(HELLO)
    await slow.control("POST", f"templates/{ID}/pacing-pause")

    early = await slow.graph("POST", f"{ID}/unpause")
    manual.advance(ms=5 * MINUTE_MS)
    late = await slow.graph("POST", f"{ID}/unpause")
    again = await slow.graph("POST", f"{ID}/unpause")

    assert (early.body["success"], late.body) == (False, {"success": True})
    assert "5 minutes" in early.body["reason"]
    assert again.body["success"] is False
    assert (await slow.graph("GET", ID)).body["status"] == "APPROVED"


async def test_pause_for_quality_cannot_be_ended(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(HELLO)
    await slow.control("POST", f"templates/{ID}/pause")
    manual.advance(ms=10 * MINUTE_MS)

    refused = await slow.graph("POST", f"{ID}/unpause")

    assert (refused.status, refused.body["success"]) == (200, False)


async def test_several_templates_are_deleted_at_once(slow: Bench) -> None:
    ids = [(await slow.create(HELLO, name=f"t_{n}")).body["id"] for n in range(3)]

    answer = await slow.graph("DELETE", f"{WABA}/message_templates?hsm_ids=[{','.join(ids[:2])}]")

    assert answer.body == {"success": True}
    listed = await slow.graph("GET", f"{WABA}/message_templates")
    assert [one["id"] for one in listed.body["data"]] == ids[2:]


# fmt: off
REFUSED_DELETIONS = [
    # what                 query
    ("an unknown id",      "hsm_ids=[{id},999]"),
    ("no array",           "hsm_ids="),
    ("together with name", "hsm_ids=[{id}]&name=t"),
    ("an id without name", "hsm_id={id}"),
    ("101 ids",            "hsm_ids=[{id}," + ",".join(str(n) for n in range(100)) + "]"),
]
# fmt: on


@pytest.mark.parametrize("query", [row[1] for row in REFUSED_DELETIONS], ids=lambda row: row[:20])
async def test_deletion_that_may_not_be_deletes_nothing(slow: Bench, query: str) -> None:
    created = await slow.create(HELLO, name="t")

    refused = await slow.graph("DELETE", f"{WABA}/message_templates?{query.format(id=created.body['id'])}")

    assert (refused.status, refused.error["code"]) == (400, 100)
    assert (await slow.graph("GET", created.body["id"])).status == 200


async def test_authentication_template_is_made_in_many_languages(bench: Bench) -> None:
    fields = {"name": "code", "category": "AUTHENTICATION", "components": CODE}

    made = await bench.graph(
        "POST", f"{WABA}/upsert_message_templates", json={**fields, "languages": ["en_US", "es_ES", "fr"]}
    )

    assert [one["language"] for one in made.body["data"]] == ["en_US", "es_ES", "fr"]
    assert {one["status"] for one in made.body["data"]} == {"PENDING"}
    shown = await bench.graph("GET", made.body["data"][1]["id"])
    assert (shown.body["name"], shown.body["language"]) == ("code", "es_ES")


async def test_authentication_template_that_is_there_is_changed(slow: Bench, manual: ManualClock) -> None:
    fields = {"name": "code", "category": "AUTHENTICATION", "languages": ["en_US"]}
    path = f"{WABA}/upsert_message_templates"
    made = await slow.graph("POST", path, json={**fields, "components": CODE})
    [template] = made.body["data"]
    manual.advance(ms=MINUTE_MS)
    await slow.receiver.until(slow.receiver.templates)

    changed = await slow.graph("POST", path, json={**fields, "components": [CODE[0], CODE[2]]})

    assert changed.body["data"][0]["id"] == template["id"]
    shown = await slow.graph("GET", template["id"])
    assert [one["type"] for one in shown.body["components"]] == ["BODY", "BUTTONS"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"category": "UTILITY"},
        {"languages": []},
        {"languages": ["en_US", "xx"]},
        {"components": [CODE[0], {"type": "BUTTONS", "buttons": [
            {"type": "OTP", "otp_type": "COPY_CODE", "text": "Own words"}]}]},
    ],
)  # fmt: skip
async def test_upsert_that_may_not_be_makes_nothing(slow: Bench, wrong: dict[str, Any]) -> None:
    fields = {"name": "code", "category": "AUTHENTICATION", "languages": ["en_US"]}

    refused = await slow.graph("POST", f"{WABA}/upsert_message_templates", json={**fields, "components": CODE, **wrong})

    assert (refused.status, refused.error["code"]) == (400, 100)
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
    await bench.create(HELLO)

    listed = await bench.graph("GET", f"{WABA}/message_templates?summary=total_count,message_template_limit")
    wrong = await bench.graph("GET", f"{WABA}/message_templates?summary=weather")

    assert listed.body["summary"] == {"total_count": 1, "message_template_limit": 250}
    assert wrong.error["code"] == 100


async def test_pages_lead_forward_and_back(slow: Bench, manual: ManualClock) -> None:
    for n in range(3):
        await slow.create(HELLO, name=f"t_{n}")
        manual.advance(ms=1)

    first = await slow.graph("GET", f"{WABA}/message_templates?limit=2&fields=name")
    second = await slow.ask(
        "GET", first.body["paging"]["next"].removeprefix(slow.base),
        headers={"Authorization": "Bearer token-of-one"},
    )  # fmt: skip
    back = await slow.ask(
        "GET", second.body["paging"]["previous"].removeprefix(slow.base),
        headers={"Authorization": "Bearer token-of-one"},
    )  # fmt: skip

    assert "previous" not in first.body["paging"]
    assert "next" not in second.body["paging"]
    assert [one["name"] for one in second.body["data"]] == ["t_2"]
    assert [one["name"] for one in back.body["data"]] == ["t_0", "t_1"]


async def test_further_members_are_shown_again(bench: Bench) -> None:
    made = await bench.create(HELLO, sub_category="order_status", cta_url_link_tracking_opted_out=True)
    wrong = await bench.create(HELLO, name="b", sub_category="WEATHER")

    shown = await bench.graph("GET", f"{made.body['id']}?fields=sub_category,cta_url_link_tracking_opted_out")
    assert shown.body["sub_category"] == "ORDER_STATUS"
    assert shown.body["cta_url_link_tracking_opted_out"] is True
    assert wrong.error["code"] == 100


async def test_template_beyond_the_limit_is_refused(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"templates_at_most": 1})
    await bench.create(HELLO)

    refused = await bench.create(HELLO, name="other")

    assert refused.error["error_subcode"] == 2388019


async def test_languages_need_not_be_on_the_list(bench: Bench) -> None:
    refused = await bench.create(HELLO, language="xx_YY")
    await bench.control("PUT", "settings", {"check_languages": False})
    taken = await bench.create(HELLO, language="xx_YY")

    assert (refused.error["code"], taken.status) == (100, 200)


async def test_strict_operator_refuses_samples_and_rejects_repeated_wording(slow: Bench, manual: ManualClock) -> None:
    # Source: facts 2.4; off by default, decision 0035.
    await slow.control("PUT", "settings", {"strict": True})
    await slow.create(HELLO, name="first")
    manual.advance(ms=MINUTE_MS)
    await slow.receiver.until(slow.receiver.templates)

    sample = await slow.create(HELLO, name="hello_world")
    await slow.create(HELLO, name="second")
    await slow.create(HELLO, name="first", language="en_GB")
    manual.advance(ms=MINUTE_MS)

    told = await slow.receiver.until(lambda: told if len(told := slow.receiver.templates()) == 3 else None)
    assert "sample template" in sample.error["error_user_msg"]
    events = {(one["message_template_name"], one["message_template_language"]): one for one in told}
    assert events["first", "en_GB"]["event"] == "APPROVED"
    assert events["second", "en_US"]["event"] == "REJECTED"
    assert "same body" in events["second", "en_US"]["rejection_info"]["reason"]


async def test_strict_operator_takes_100_creations_an_hour(slow: Bench, manual: ManualClock) -> None:
    await slow.control("PUT", "settings", {"strict": True})
    for n in range(100):
        created = await slow.create(HELLO, name=f"t_{n}")
        assert created.status == 200

    refused = await slow.create(HELLO, name="t_100")
    await slow.restart()
    still = await slow.create(HELLO, name="t_100")
    manual.advance(ms=HOUR_MS)
    later = await slow.create(HELLO, name="t_100")

    assert refused.error["code"] == still.error["code"] == 80007
    assert later.status == 200
