"""What happens to templates after their review: pauses, quality, categories, deletion."""

from typing import Any

import pytest

from tests.simulator.conftest import Bench
from waypost.base.clock import ManualClock, SystemClock

ID = "1400000000000004"
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
HOUR_MS = 3_600_000


async def act(bench: Bench, name: str, wish: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = await bench.control("POST", f"templates/{ID}/{name}", wish)
    assert answer.status == 200, answer.body
    return answer.body


# fmt: off
ACTS: list[tuple[str, str, str, str | None, str | None]] = [
    # act               status              event               reason  title
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


@pytest.mark.parametrize(("name", "status", "event", "reason", "title"), ACTS, ids=[row[0] for row in ACTS])
async def test_act_is_told_in_the_documented_shape(
    bench: Bench, name: str, status: str, event: str, reason: str | None, title: str | None
) -> None:
    await bench.seed_template(HELLO)

    view = await act(bench, name)

    assert view["status"] == status
    [told] = await bench.receiver.until(bench.receiver.templates)
    assert (told["event"], told["reason"]) == (event, reason)
    assert told["message_template_id"] == int(ID)
    assert told["message_template_category"] == "UTILITY"
    assert told.get("other_info", {}).get("title") == title
    assert ("disable_info" in told) == (event == "DISABLED")


async def test_third_pause_disables(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(HELLO)

    first = await act(slow, "pause")
    paused = await slow.send_template()
    manual.advance(ms=3 * HOUR_MS)
    await slow.receiver.until(lambda: len(slow.receiver.templates()) == 2)
    resumed = await slow.send_template()
    await act(slow, "pause")
    manual.advance(ms=6 * HOUR_MS)
    await slow.receiver.until(lambda: len(slow.receiver.templates()) == 4)
    third = await act(slow, "pause")
    disabled = await slow.send_template()

    assert first["resume_due_ms"] is not None
    assert paused.error["code"] == 132015
    assert resumed.status == 200
    assert third["status"] == "DISABLED"
    assert disabled.error["code"] == 132016
    await slow.receiver.until(lambda: len(slow.receiver.templates()) == 5)
    titles = [told["other_info"]["title"] for told in slow.receiver.templates()]
    assert titles == ["FIRST_PAUSE", "UNPAUSE", "SECOND_PAUSE", "UNPAUSE", "DISABLED"]


async def test_quality_is_told_with_the_one_before(bench: Bench) -> None:
    await bench.seed_template(HELLO)

    await act(bench, "quality", {"score": "YELLOW"})

    [told] = await bench.receiver.until(lambda: bench.receiver.changes("message_template_quality_update"))
    assert told == {
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

    announced = await act(bench, "category", {"category": "MARKETING", "announced": True, "due_ms": due_s * 1000})
    changed = await act(bench, "category", {"category": "MARKETING"})

    assert (announced["category"], announced["correct_category"]) == ("UTILITY", "MARKETING")
    assert (changed["category"], changed["previous_category"]) == ("MARKETING", "UTILITY")
    first, second = await bench.receiver.until(
        lambda: (
            told
            if len(told := bench.receiver.changes("template_category_update")) == 2
            else None
        )
    )  # fmt: skip
    assert (first["new_category"], first["correct_category"]) == ("UTILITY", "MARKETING")
    assert first["category_update_timestamp"] == due_s
    assert (second["previous_category"], second["new_category"]) == ("UTILITY", "MARKETING")
    shown = await bench.graph("GET", ID)
    assert shown.body["previous_category"] == "UTILITY"


async def test_edit_is_told_with_the_new_components(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    button = {"type": "URL", "text": "Open", "url": "https://x.example"}
    components = [
        {"type": "HEADER", "text": "Title"},
        {"type": "BODY", "text": "Hello again"},
        {"type": "FOOTER", "text": "Bye"},
        {"type": "BUTTONS", "buttons": [button]},
    ]

    await bench.graph("POST", ID, json={"components": components})

    [told] = await bench.receiver.until(lambda: bench.receiver.changes("message_template_components_update"))
    assert told["message_template_title"] == "Title"
    assert told["message_template_element"] == "Hello again"
    assert told["message_template_footer"] == "Bye"
    assert told["message_template_buttons"] == [
        {
            "message_template_button_type": "URL",
            "message_template_button_text": "Open",
            "message_template_button_url": "https://x.example",
        }
    ]


async def test_template_can_be_deleted_unless_it_is_disabled(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    await act(bench, "disable")

    refused = await bench.control("POST", f"templates/{ID}/delete")
    await act(bench, "reinstate")
    deleted = await bench.control("POST", f"templates/{ID}/delete")

    assert refused.status == 409
    assert deleted.body == {"deleted": ID}
    await bench.receiver.until(lambda: len(bench.receiver.templates()) == 3)
    assert bench.receiver.templates()[-1]["event"] == "DELETED"
    assert bench.receiver.templates()[-1]["reason"] is None


async def test_rejection_explains_itself(slow: Bench) -> None:
    made = await slow.create(HELLO)
    wish = {"explanation": "Unclear.", "recommendation": "Say more."}

    await slow.control("POST", f"templates/{made.body['id']}/reject", wish)

    [told] = await slow.receiver.until(slow.receiver.templates)
    assert (told["event"], told["reason"]) == ("REJECTED", "INVALID_FORMAT")
    assert told["rejection_info"] == {"reason": "Unclear.", "recommendation": "Say more."}


async def test_unknown_act_names_the_known_ones(bench: Bench) -> None:
    await bench.seed_template(HELLO)

    answer = await bench.control("POST", f"templates/{ID}/dance")

    assert (answer.status, answer.body["field"]) == (404, "act")
    assert "pause" in answer.body["accepted"]


# fmt: off
SALES: list[dict[str, Any]] = [{"type": "BODY", "text": "Our Summer Sale begins"}]
CATEGORIES = [
    # submitted as  allowed  what is answered  and after the review
    ("UTILITY",     True,    "MARKETING",      ("APPROVED", "NONE")),
    ("UTILITY",     False,   "UTILITY",        ("REJECTED", "INCORRECT_CATEGORY")),
    ("MARKETING",   False,   "MARKETING",      ("APPROVED", "NONE")),
]
# fmt: on


@pytest.mark.parametrize(("asked", "allowed", "given", "reviewed"), CATEGORIES)
async def test_category_may_differ_from_the_one_asked_for(
    bench: Bench, asked: str, allowed: bool, given: str, reviewed: tuple[str, str]
) -> None:
    # Source: facts 2.1, allow_category_change; 12, previous_category.
    await bench.control("PUT", "settings", {"marketing_words": ["sale"]})
    await bench.restart()

    created = await bench.create(SALES, category=asked, allow_category_change=allowed)
    [told] = await bench.receiver.until(bench.receiver.templates)
    fields = "category,previous_category,status,rejected_reason"
    shown = await bench.graph("GET", f"{created.body['id']}?fields={fields}")

    assert created.body["category"] == told["message_template_category"] == given
    assert shown.body.get("previous_category") == (asked if given != asked else None)
    assert (shown.body["status"], shown.body["rejected_reason"]) == reviewed
    assert told["reason"] == reviewed[1]
