"""Templates after their review: pauses, quality, categories, deletion."""

from typing import Any

import pytest

from tests.simulator.conftest import Bench
from tests.support.manual_clock import ManualClock
from waypost.base.clock import SystemClock

ID = "1400000000000004"
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
HOUR_MS = 3_600_000


async def apply_action(bench: Bench, name: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    response = await bench.control("POST", f"templates/{ID}/{name}", body)
    assert response.status == 200, response.body
    return response.body


# fmt: off
ACTIONS: list[tuple[str, str, str, str | None, str | None]] = [
    # action            status              event               reason  title
    ("appeal",          "IN_APPEAL",        "IN_APPEAL",        "NONE", None),
    ("disable",         "DISABLED",         "DISABLED",         "NONE", "DISABLED"),
    ("flag",            "APPROVED",         "FLAGGED",          "NONE", None),
    ("reinstate",       "APPROVED",         "REINSTATED",       "NONE", None),
    ("unpause",         "APPROVED",         "APPROVED",         "NONE", "UNPAUSE"),
    ("pause",           "PAUSED",           "PAUSED",           "NONE", "FIRST_PAUSE"),
    ("pacing-pause",    "PAUSED",           "PAUSED",           "NONE", "RATE_LIMITING_PAUSE"),
    ("archive",         "ARCHIVED",         "ARCHIVED",         "NONE", None),
    ("unarchive",       "APPROVED",         "UNARCHIVED",       "NONE", None),
    ("limit",           "LIMIT_EXCEEDED",   "LIMIT_EXCEEDED",   "NONE", None),
    ("pending-deletion", "PENDING_DELETION", "PENDING_DELETION", None,  None),
    ("pend",            "PENDING",          "PENDING",          "NONE", None),
]
# fmt: on


@pytest.mark.parametrize(("name", "status", "event", "reason", "title"), ACTIONS, ids=[row[0] for row in ACTIONS])
async def test_template_action_sends_the_documented_webhook(
    bench: Bench, name: str, status: str, event: str, reason: str | None, title: str | None
) -> None:
    await bench.seed_template(HELLO)

    view = await apply_action(bench, name)

    assert view["status"] == status
    [update] = await bench.receiver.wait_until(bench.receiver.template_events)
    assert (update["event"], update["reason"]) == (event, reason)
    assert update["message_template_id"] == int(ID)
    assert update["message_template_category"] == "UTILITY"
    assert update.get("other_info", {}).get("title") == title
    assert ("disable_info" in update) == (event == "DISABLED")


async def test_third_pause_disables_the_template(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(HELLO)

    first = await apply_action(slow, "pause")
    paused = await slow.send_template()
    clock.advance(ms=3 * HOUR_MS)
    await slow.receiver.wait_until(lambda: len(slow.receiver.template_events()) == 2)
    resumed = await slow.send_template()
    await apply_action(slow, "pause")
    clock.advance(ms=6 * HOUR_MS)
    await slow.receiver.wait_until(lambda: len(slow.receiver.template_events()) == 4)
    third = await apply_action(slow, "pause")
    disabled = await slow.send_template()

    assert first["resume_due_ms"] is not None
    assert paused.error["code"] == 132015
    assert resumed.status == 200
    assert third["status"] == "DISABLED"
    assert disabled.error["code"] == 132016
    await slow.receiver.wait_until(lambda: len(slow.receiver.template_events()) == 5)
    titles = [update["other_info"]["title"] for update in slow.receiver.template_events()]
    assert titles == ["FIRST_PAUSE", "UNPAUSE", "SECOND_PAUSE", "UNPAUSE", "DISABLED"]


async def test_quality_webhook_has_the_previous_score(bench: Bench) -> None:
    await bench.seed_template(HELLO)

    await apply_action(bench, "quality", {"score": "YELLOW"})

    [update] = await bench.receiver.wait_until(lambda: bench.receiver.changes("message_template_quality_update"))
    assert update == {
        "previous_quality_score": "UNKNOWN",
        "new_quality_score": "YELLOW",
        "message_template_id": int(ID),
        "message_template_name": "seeded",
        "message_template_language": "en_US",
    }
    shown = await bench.graph("GET", f"{ID}?fields=quality_score")
    assert shown.body["quality_score"]["score"] == "YELLOW"


async def test_category_is_announced_and_then_changed(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    due_s = SystemClock().now_ms() // 1000 + 30 * 86_400

    announced = await apply_action(
        bench, "category", {"category": "MARKETING", "announced": True, "due_ms": due_s * 1000}
    )
    changed = await apply_action(bench, "category", {"category": "MARKETING"})

    assert (announced["category"], announced["correct_category"]) == ("UTILITY", "MARKETING")
    assert (changed["category"], changed["previous_category"]) == ("MARKETING", "UTILITY")
    first, second = await bench.receiver.wait_until(
        lambda: (
            updates
            if len(updates := bench.receiver.changes("template_category_update")) == 2
            else None
        )
    )  # fmt: skip
    assert (first["new_category"], first["correct_category"]) == ("UTILITY", "MARKETING")
    assert first["category_update_timestamp"] == due_s
    assert (second["previous_category"], second["new_category"]) == ("UTILITY", "MARKETING")
    shown = await bench.graph("GET", ID)
    assert shown.body["previous_category"] == "UTILITY"


async def test_edit_webhook_has_the_new_components(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    button = {"type": "URL", "text": "Open", "url": "https://x.example"}
    components = [
        {"type": "HEADER", "text": "Title"},
        {"type": "BODY", "text": "Hello again"},
        {"type": "FOOTER", "text": "Bye"},
        {"type": "BUTTONS", "buttons": [button]},
    ]

    await bench.graph("POST", ID, json={"components": components})

    [update] = await bench.receiver.wait_until(lambda: bench.receiver.changes("message_template_components_update"))
    assert update["message_template_title"] == "Title"
    assert update["message_template_element"] == "Hello again"
    assert update["message_template_footer"] == "Bye"
    assert update["message_template_buttons"] == [
        {
            "message_template_button_type": "URL",
            "message_template_button_text": "Open",
            "message_template_button_url": "https://x.example",
        }
    ]


async def test_template_can_be_deleted_unless_it_is_disabled(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    await apply_action(bench, "disable")

    rejected = await bench.control("POST", f"templates/{ID}/delete")
    await apply_action(bench, "reinstate")
    deleted = await bench.control("POST", f"templates/{ID}/delete")

    assert rejected.status == 409
    assert deleted.body == {"deleted": ID}
    await bench.receiver.wait_until(lambda: len(bench.receiver.template_events()) == 3)
    assert bench.receiver.template_events()[-1]["event"] == "DELETED"
    assert bench.receiver.template_events()[-1]["reason"] is None


async def test_rejection_webhook_has_explanation_and_recommendation(slow: Bench) -> None:
    created = await slow.create_template(HELLO)
    body = {"explanation": "Unclear.", "recommendation": "Say more."}

    await slow.control("POST", f"templates/{created.body['id']}/reject", body)

    [update] = await slow.receiver.wait_until(slow.receiver.template_events)
    assert (update["event"], update["reason"]) == ("REJECTED", "INVALID_FORMAT")
    assert update["rejection_info"] == {"reason": "Unclear.", "recommendation": "Say more."}


async def test_unknown_action_error_lists_the_known_actions(bench: Bench) -> None:
    await bench.seed_template(HELLO)

    response = await bench.control("POST", f"templates/{ID}/dance")

    assert (response.status, response.body["field"]) == (404, "action")
    assert "pause" in response.body["accepted"]


# fmt: off
SALES: list[dict[str, Any]] = [{"type": "BODY", "text": "Our Summer Sale begins"}]
CATEGORIES = [
    # requested     allowed  in the response   after the review
    ("UTILITY",     True,    "MARKETING",      ("APPROVED", "NONE")),
    ("UTILITY",     False,   "UTILITY",        ("REJECTED", "INCORRECT_CATEGORY")),
    ("MARKETING",   False,   "MARKETING",      ("APPROVED", "NONE")),
]
# fmt: on


@pytest.mark.parametrize(("requested", "allowed", "expected", "reviewed"), CATEGORIES)
async def test_category_may_differ_from_the_one_requested(
    bench: Bench, requested: str, allowed: bool, expected: str, reviewed: tuple[str, str]
) -> None:
    # Source: facts 2.1, allow_category_change; 12, previous_category.
    await bench.control("PUT", "settings", {"marketing_words": ["sale"]})
    await bench.restart()

    created = await bench.create_template(SALES, category=requested, allow_category_change=allowed)
    [update] = await bench.receiver.wait_until(bench.receiver.template_events)
    fields = "category,previous_category,status,rejected_reason"
    shown = await bench.graph("GET", f"{created.body['id']}?fields={fields}")

    assert created.body["category"] == update["message_template_category"] == expected
    assert shown.body.get("previous_category") == (requested if expected != requested else None)
    assert (shown.body["status"], shown.body["rejected_reason"]) == reviewed
    assert update["reason"] == reviewed[1]
