"""The life of a template: reviewed, listed, edited, deleted."""

import pytest

from tests.simulator.conftest import TOKEN, WABA, Bench
from waypost.base.clock import ManualClock

HELLO = [{"type": "BODY", "text": "Hello there"}]
DAY_MS = 24 * 3600 * 1000


async def test_review_approves_after_its_delay(slow: Bench, manual: ManualClock) -> None:
    created = await slow.create(HELLO)
    manual.advance(ms=59_999)
    before = await slow.graph("GET", created.body["id"])
    manual.advance(ms=1)

    [told] = await slow.receiver.until(slow.receiver.templates)
    after = await slow.graph("GET", created.body["id"])
    assert (before.body["status"], after.body["status"]) == ("PENDING", "APPROVED")
    assert told == {
        "event": "APPROVED",
        "message_template_id": int(created.body["id"]),
        "message_template_name": "greeting",
        "message_template_language": "en_US",
        "reason": "NONE",
        "message_template_category": "UTILITY",
    }
    [entry] = slow.receiver.posts[0].value["entry"]
    assert entry["id"] == WABA
    assert entry["time"] == manual.now_ms() // 1000
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
async def test_review_rejects_and_explains(bench: Bench, text: str, values: list[str]) -> None:
    body = {"type": "BODY", "text": text, "example": {"body_text": [values]}}
    created = await bench.create([body])

    [told] = await bench.receiver.until(bench.receiver.templates)
    shown = await bench.graph("GET", f"{created.body['id']}?fields=status,rejected_reason")
    assert (told["event"], told["reason"]) == ("REJECTED", "INVALID_FORMAT")
    assert told["rejection_info"]["reason"]
    assert told["rejection_info"]["recommendation"]
    assert shown.body == {"id": created.body["id"], "status": "REJECTED", "rejected_reason": "INVALID_FORMAT"}


async def test_manual_review_waits_for_the_control_door(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"review_delay_ms": None})
    first = await bench.create(HELLO, name="first")
    second = await bench.create(HELLO, name="second")

    approved = await bench.control("POST", f"templates/{first.body['id']}/approve")
    rejected = await bench.control("POST", f"templates/{second.body['id']}/reject", {"reason": "SCAM"})

    assert (approved.body["status"], rejected.body["status"]) == ("APPROVED", "REJECTED")
    await bench.receiver.until(lambda: len(bench.receiver.templates()) == 2)
    assert bench.receiver.templates()[1]["reason"] == "SCAM"
    assert "rejection_info" not in bench.receiver.templates()[1]


async def test_unknown_reason_is_refused_with_the_known_ones(slow: Bench) -> None:
    created = await slow.create(HELLO)

    answer = await slow.control("POST", f"templates/{created.body['id']}/reject", {"reason": "MOOD"})

    assert answer.status == 400
    assert answer.body["field"] == "reason"
    assert "INVALID_FORMAT" in answer.body["accepted"]


async def test_list_has_pages(slow: Bench, manual: ManualClock) -> None:
    for number in range(5):
        await slow.create(HELLO, name=f"t{number}")
        manual.advance(ms=1)

    first = await slow.graph("GET", f"{WABA}/message_templates?limit=2&fields=name")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    second = await slow.ask("GET", first.body["paging"]["next"].removeprefix(slow.base), headers=headers)
    after = second.body["paging"]["cursors"]["after"]
    third = await slow.graph("GET", f"{WABA}/message_templates?limit=2&after={after}")
    before = second.body["paging"]["cursors"]["before"]
    back = await slow.graph("GET", f"{WABA}/message_templates?limit=2&before={before}")

    names = [[one["name"] for one in page.body["data"]] for page in (first, second, third, back)]
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
async def test_list_can_be_filtered(slow: Bench, manual: ManualClock, query: str, names: list[str]) -> None:
    await slow.create(HELLO, name="a")
    manual.advance(ms=1)
    await slow.create(HELLO, name="b", language="en_GB")
    manual.advance(ms=1)
    await slow.create([{"type": "BODY", "text": "And goodbye"}], name="c", category="MARKETING")

    listed = await slow.graph("GET", f"{WABA}/message_templates?{query}")

    assert [one["name"] for one in listed.body["data"]] == names


async def test_edited_template_is_reviewed_again(slow: Bench, manual: ManualClock) -> None:
    created = await slow.create(HELLO)
    early = await slow.graph("POST", created.body["id"], json={"components": HELLO})
    manual.advance(ms=60_000)
    await slow.receiver.until(slow.receiver.templates)

    changed = [{"type": "BODY", "text": "Hello again"}]
    edited = await slow.graph("POST", created.body["id"], json={"components": changed})
    pending = await slow.graph("GET", created.body["id"])
    manual.advance(ms=60_000)
    await slow.receiver.until(lambda: len(slow.receiver.templates()) == 2)
    soon = await slow.graph("POST", created.body["id"], json={"components": HELLO})
    recategorised = await slow.graph("POST", created.body["id"], json={"category": "MARKETING"})
    manual.advance(ms=DAY_MS)
    later = await slow.graph("POST", created.body["id"], json={"components": HELLO})

    assert early.error["error_subcode"] == 2388039
    assert edited.body["success"] is True
    assert pending.body["status"] == "PENDING"
    assert pending.body["components"] == changed
    assert (soon.status, recategorised.status) == (400, 400)
    assert later.status == 200


async def test_deleting_an_approved_template_locks_its_name(slow: Bench, manual: ManualClock) -> None:
    created = await slow.create(HELLO)
    await slow.control("POST", f"templates/{created.body['id']}/approve")

    deleted = await slow.graph("DELETE", f"{WABA}/message_templates?name=greeting")
    gone = await slow.graph("GET", created.body["id"])
    locked = await slow.create(HELLO, language="en_GB")
    # Updates older than seven days are dropped, so both are waited for before time goes on.
    await slow.receiver.until(lambda: len(slow.receiver.templates()) == 2)
    manual.advance(ms=30 * DAY_MS)
    free = await slow.create(HELLO)

    assert deleted.body == {"success": True}
    assert (gone.status, gone.error["error_subcode"]) == (400, 33)
    assert locked.error["error_subcode"] == 2388023
    assert free.status == 200
    assert slow.receiver.templates()[1]["event"] == "DELETED"
    assert slow.receiver.templates()[1]["reason"] is None


async def test_one_language_can_be_deleted_alone(slow: Bench) -> None:
    first = await slow.create(HELLO)
    await slow.create(HELLO, language="en_GB")

    path = f"{WABA}/message_templates?name=greeting&hsm_id={first.body['id']}"
    deleted = await slow.graph("DELETE", path)
    again = await slow.create(HELLO)
    unknown = await slow.graph("DELETE", f"{WABA}/message_templates?name=nothing")

    assert deleted.status == 200
    assert again.status == 200
    assert unknown.status == 404


async def test_seeded_template_can_be_seeded_again(bench: Bench) -> None:
    await bench.seed_template(HELLO)
    await bench.seed_template(HELLO)

    listed = await bench.graph("GET", f"{WABA}/message_templates")

    assert [one["id"] for one in listed.body["data"]] == ["1400000000000004"]
    assert listed.body["data"][0]["status"] == "APPROVED"


@pytest.mark.parametrize(("language", "name"), [("en", "English"), ("en_US", "English (US)"), ("xx_YY", "xx_YY")])
async def test_refusals_of_a_name_call_the_language_by_its_name(bench: Bench, language: str, name: str) -> None:
    # Source: facts 2.4, subcode 2388024.
    await bench.control("PUT", "settings", {"check_languages": False})
    body = [{"type": "BODY", "text": "Hello there"}]
    await bench.create(body, language=language)

    again = await bench.create(body, language=language)

    assert again.error["error_subcode"] == 2388024
    assert again.error["error_user_msg"].startswith(f"There is already {name} content")
