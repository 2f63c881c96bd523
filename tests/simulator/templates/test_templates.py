"""Templates: review, lists, edits and deletion."""

import asyncio

import pytest

from tests.simulator.conftest import APP, SECRET, TOKEN, WABA, Bench
from tests.support.manual_clock import ManualClock

HELLO = [{"type": "BODY", "text": "Hello there"}]
DAY_MS = 24 * 3600 * 1000


async def test_review_approves_after_its_delay(slow: Bench, clock: ManualClock) -> None:
    created = await slow.create_template(HELLO)
    clock.advance(ms=59_999)
    before = await slow.graph("GET", created.body["id"])
    clock.advance(ms=1)

    [update] = await slow.receiver.wait_until(slow.receiver.template_events)
    after = await slow.graph("GET", created.body["id"])
    assert (before.body["status"], after.body["status"]) == ("PENDING", "APPROVED")
    assert update == {
        "event": "APPROVED",
        "message_template_id": int(created.body["id"]),
        "message_template_name": "greeting",
        "message_template_language": "en_US",
        "reason": "NONE",
        "message_template_category": "UTILITY",
    }
    [entry] = slow.receiver.posts[0].value["entry"]
    assert entry["id"] == WABA
    assert entry["time"] == clock.now_ms() // 1000
    assert slow.receiver.is_signed(slow.receiver.posts[0])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Hello dear {{1}} {{2}}, how are you", ["A", "B"]),
        ("Hello dear {{1}}{{2}}, how are you", ["A", "B"]),
        ("Hello dear {{1}}, how are {{3}} today, my friend", ["A", "B"]),
        ("Hello dear {{$1}}, how are you", ["A"]),
    ],
)
async def test_review_rejects_with_reason_and_recommendation(bench: Bench, text: str, values: list[str]) -> None:
    body = {"type": "BODY", "text": text, "example": {"body_text": [values]}}
    created = await bench.create_template([body])

    [update] = await bench.receiver.wait_until(bench.receiver.template_events)
    shown = await bench.graph("GET", f"{created.body['id']}?fields=status,rejected_reason")
    assert (update["event"], update["reason"]) == ("REJECTED", "INVALID_FORMAT")
    assert update["rejection_info"]["reason"]
    assert update["rejection_info"]["recommendation"]
    assert shown.body == {"id": created.body["id"], "status": "REJECTED", "rejected_reason": "INVALID_FORMAT"}


async def test_manual_review_waits_for_the_control_api(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"review_delay_ms": None})
    first = await bench.create_template(HELLO, name="first")
    second = await bench.create_template(HELLO, name="second")

    approved = await bench.control("POST", f"templates/{first.body['id']}/approve")
    rejected = await bench.control("POST", f"templates/{second.body['id']}/reject", {"reason": "SCAM"})

    assert (approved.body["status"], rejected.body["status"]) == ("APPROVED", "REJECTED")
    await bench.receiver.wait_until(lambda: len(bench.receiver.template_events()) == 2)
    assert bench.receiver.template_events()[1]["reason"] == "SCAM"
    assert "rejection_info" not in bench.receiver.template_events()[1]


async def test_templates_of_an_account_with_manual_reviews_have_no_automatic_review(slow: Bench) -> None:
    account = {"name": "One", "token": TOKEN, "app_id": APP, "app_secret": SECRET}
    await slow.control("PUT", f"accounts/{WABA}", {**account, "manual_reviews": True})
    created = await slow.create_template(HELLO)

    shown = await slow.control("GET", f"templates?id={created.body['id']}")
    state = await slow.control("GET", "state")
    assert [template["review_due_ms"] for template in shown.body["templates"]] == [None]
    assert state.body["accounts"][0]["manual_reviews"] is True


async def test_concurrent_decisions_are_all_applied(slow: Bench) -> None:
    """Also one about a template that another decision, such as an automatic review, has just changed."""
    created = await slow.create_template(HELLO)
    reject = f"templates/{created.body['id']}/reject"

    decisions = await asyncio.gather(*(slow.control("POST", reject, {"reason": "SCAM"}) for _ in range(8)))

    assert [decision.body["status"] for decision in decisions] == ["REJECTED"] * 8


async def test_unknown_reason_is_rejected_and_the_known_ones_are_listed(slow: Bench) -> None:
    created = await slow.create_template(HELLO)

    response = await slow.control("POST", f"templates/{created.body['id']}/reject", {"reason": "MOOD"})

    assert response.status == 400
    assert response.body["field"] == "reason"
    assert "INVALID_FORMAT" in response.body["accepted"]


async def test_list_has_pages(slow: Bench, clock: ManualClock) -> None:
    for number in range(5):
        await slow.create_template(HELLO, name=f"t{number}")
        clock.advance(ms=1)

    first = await slow.graph("GET", f"{WABA}/message_templates?limit=2&fields=name")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    second = await slow.request("GET", first.body["paging"]["next"].removeprefix(slow.base), headers=headers)
    after = second.body["paging"]["cursors"]["after"]
    third = await slow.graph("GET", f"{WABA}/message_templates?limit=2&after={after}")
    before = second.body["paging"]["cursors"]["before"]
    back = await slow.graph("GET", f"{WABA}/message_templates?limit=2&before={before}")

    names = [[template["name"] for template in page.body["data"]] for page in (first, second, third, back)]
    assert names == [["t0", "t1"], ["t2", "t3"], ["t4"], ["t0", "t1"]]
    assert set(first.body["data"][0]) == {"id", "name"}
    assert "next" not in third.body["paging"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=b", ["b"]),
        ("status=pending", ["a", "b", "c"]),
        ("status=approved", []),
        ("category=MARKETING", ["c"]),
        ('category=["MARKETING","UTILITY"]', ["a", "b", "c"]),
        ("language=en_GB", ["b"]),
        ("name_or_content=goodbye", ["c"]),
    ],
)
async def test_list_can_be_filtered(slow: Bench, clock: ManualClock, query: str, names: list[str]) -> None:
    await slow.create_template(HELLO, name="a")
    clock.advance(ms=1)
    await slow.create_template(HELLO, name="b", language="en_GB")
    clock.advance(ms=1)
    await slow.create_template([{"type": "BODY", "text": "And goodbye"}], name="c", category="MARKETING")

    listed = await slow.graph("GET", f"{WABA}/message_templates?{query}")

    assert [template["name"] for template in listed.body["data"]] == names


async def test_edited_template_is_reviewed_again(slow: Bench, clock: ManualClock) -> None:
    created = await slow.create_template(HELLO)
    early = await slow.graph("POST", created.body["id"], json={"components": HELLO})
    clock.advance(ms=60_000)
    await slow.receiver.wait_until(slow.receiver.template_events)

    changed = [{"type": "BODY", "text": "Hello again"}]
    edited = await slow.graph("POST", created.body["id"], json={"components": changed})
    pending = await slow.graph("GET", created.body["id"])
    clock.advance(ms=60_000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.template_events()) == 2)
    soon = await slow.graph("POST", created.body["id"], json={"components": HELLO})
    recategorised = await slow.graph("POST", created.body["id"], json={"category": "MARKETING"})
    clock.advance(ms=DAY_MS)
    later = await slow.graph("POST", created.body["id"], json={"components": HELLO})

    assert early.error["error_subcode"] == 2388039
    assert edited.body["success"] is True
    assert pending.body["status"] == "PENDING"
    assert pending.body["components"] == changed
    assert (soon.status, recategorised.status) == (400, 400)
    assert later.status == 200


async def test_deleting_an_approved_template_locks_its_name(slow: Bench, clock: ManualClock) -> None:
    created = await slow.create_template(HELLO)
    await slow.control("POST", f"templates/{created.body['id']}/approve")

    deleted = await slow.graph("DELETE", f"{WABA}/message_templates?name=greeting")
    deleted_template = await slow.graph("GET", created.body["id"])
    locked = await slow.create_template(HELLO, language="en_GB")
    # Updates older than seven days are dropped, so both are awaited before the clock advances.
    await slow.receiver.wait_until(lambda: len(slow.receiver.template_events()) == 2)
    clock.advance(ms=30 * DAY_MS)
    free = await slow.create_template(HELLO)

    assert deleted.body == {"success": True}
    assert (deleted_template.status, deleted_template.error["error_subcode"]) == (400, 33)
    assert locked.error["error_subcode"] == 2388023
    assert free.status == 200
    assert slow.receiver.template_events()[1]["event"] == "DELETED"
    assert slow.receiver.template_events()[1]["reason"] is None


async def test_one_language_can_be_deleted_alone(slow: Bench) -> None:
    first = await slow.create_template(HELLO)
    await slow.create_template(HELLO, language="en_GB")

    path = f"{WABA}/message_templates?name=greeting&hsm_id={first.body['id']}"
    deleted = await slow.graph("DELETE", path)
    again = await slow.create_template(HELLO)
    unknown = await slow.graph("DELETE", f"{WABA}/message_templates?name=nothing")

    assert deleted.status == 200
    assert again.status == 200
    assert unknown.status == 404


async def test_seeding_a_template_twice_stores_it_once(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    await bench.seed_template(HELLO)

    listed = await bench.graph("GET", f"{WABA}/message_templates")

    assert [template["id"] for template in listed.body["data"]] == ["1400000000000004"]
    assert listed.body["data"][0]["status"] == "APPROVED"


@pytest.mark.parametrize(("language", "name"), [("en", "English"), ("en_US", "English (US)"), ("xx_YY", "xx_YY")])
async def test_duplicate_name_error_names_the_language(bench: Bench, language: str, name: str) -> None:
    # Source: facts 2.4, subcode 2388024.
    await bench.control("PUT", "settings", {"check_languages": False})
    body = [{"type": "BODY", "text": "Hello there"}]
    await bench.create_template(body, language=language)

    again = await bench.create_template(body, language=language)

    assert again.error["error_subcode"] == 2388024
    assert again.error["error_user_msg"].startswith(f"There is already {name} content")
