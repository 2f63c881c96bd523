"""Faults of webhooks: each kind as a receiver sees it; what is held back survives a restart."""

from typing import Any

import pytest

from tests.simulator.conftest import SECRET, WABA, Bench, Post
from tests.support.waiting import patiently
from waypost.base.clock import ManualClock
from waypost.simulator.accounts.accounts import Outlet
from waypost.simulator.webhooks.outbox import Outbox, Update
from waypost.simulator.webhooks.webhook_faults import BATCH_WAIT_MS
from waypost.simulator.webhooks.webhooks import GARBAGE_BODY

BEN = "15551234568"
TOLD: dict[str, Any] = {"on": "webhook"}


@pytest.fixture
async def open_window(bench: Bench) -> None:
    """Ann has written, and the business has heard it."""
    await bench.let_write()
    await bench.receiver.until(bench.receiver.messages)
    bench.receiver.posts.clear()


@pytest.mark.usefixtures("open_window")
async def test_dropped_update_is_never_told(bench: Bench) -> None:
    await arm(bench, {**TOLD, "webhook": "sent", "what": {"drop": True}, "when": {"next": 1}})

    first = await bench.send_text("one")
    second = await bench.send_text("two")

    await bench.receiver.until(lambda: len(bench.receiver.statuses(second)) == 2)
    assert kinds(bench, first) == ["delivered"]
    assert kinds(bench, second) == ["sent", "delivered"]


async def test_fault_that_is_armed_while_updates_are_read_counts(
    slow: Bench, manual: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    due, sent = Outbox.due_updates, list[str]()
    await slow.let_write()
    await slow.receiver.until(slow.receiver.messages)

    async def arm_before(outbox: Outbox, outlet: Outlet, **more: int) -> list[Update]:
        if not sent:
            sent.append("")
            await arm(slow, {**TOLD, "webhook": "sent", "what": {"drop": True}})
            sent.append(await slow.send_text())
        return await due(outbox, outlet, **more)

    monkeypatch.setattr(Outbox, "due_updates", arm_before)
    await slow.let_write(phone=BEN)  # has the outbox read
    await slow.receiver.until(lambda: len(sent) == 2)
    manual.advance(ms=1000)
    await slow.receiver.until(lambda: slow.receiver.statuses(sent[1]))

    assert kinds(slow, sent[1]) == ["delivered"]


async def test_delayed_update_is_told_later_with_its_own_time(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await slow.receiver.until(slow.receiver.messages)
    await arm(slow, {**TOLD, "webhook": "sent", "what": {"delay_ms": 60_000}})
    sent_ms = manual.now_ms()
    wamid = await slow.send_text()

    manual.advance(ms=1000)
    await slow.receiver.until(lambda: slow.receiver.statuses(wamid))
    manual.advance(ms=59_000)
    await slow.receiver.until(lambda: len(slow.receiver.statuses(wamid)) == 2)

    assert kinds(slow, wamid) == ["delivered", "sent"]
    assert slow.receiver.statuses(wamid)[1]["timestamp"] == str(sent_ms // 1000)


async def test_delay_outlives_a_restart_and_the_fault(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await slow.receiver.until(slow.receiver.messages)
    [fault] = await arm(slow, {**TOLD, "webhook": "sent", "what": {"delay_ms": 60_000}, "when": {"next": 1}})
    wamid = await slow.send_text()
    await until_hits(slow, fault, 1)
    await slow.control("DELETE", "faults")

    await slow.restart()
    waiting = (await slow.control("GET", "state")).body["accounts"][0]["updates_waiting"]
    due_ms = await slow.simulator.next_due_ms()
    manual.advance(ms=60_000)
    await slow.receiver.until(lambda: len(slow.receiver.statuses(wamid)) == 2)

    assert waiting == 2
    assert due_ms == manual.now_ms() - 59_000
    assert set(kinds(slow, wamid)) == {"delivered", "sent"}


@pytest.mark.usefixtures("open_window")
async def test_duplicated_update_is_told_again_in_posts_of_their_own(bench: Bench) -> None:
    await arm(bench, {**TOLD, "webhook": "delivered", "what": {"duplicate": 2}})

    wamid = await bench.send_text()

    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == 4)
    assert sorted(kinds(bench, wamid)) == ["delivered", "delivered", "delivered", "sent"]
    told = [post for post in bench.receiver.posts if b'"delivered"' in post.body]
    assert len(told) == 3
    assert all(map(bench.receiver.is_signed, told))


@pytest.mark.usefixtures("open_window")
@pytest.mark.parametrize("at_most", [1, 250])
async def test_reordered_update_changes_places_with_the_next(bench: Bench, at_most: int) -> None:
    await bench.control("PUT", "settings", {"batch_at_most": at_most})
    await arm(bench, {**TOLD, "what": {"reorder": True}})

    first = await bench.send_text("one")
    await bench.receiver.until(lambda: len(bench.receiver.statuses()) == 2)
    second = await bench.send_text("two")
    await bench.receiver.until(lambda: len(bench.receiver.statuses()) == 4)

    assert kinds(bench, first) == kinds(bench, second) == ["delivered", "sent"]


async def test_reordered_update_without_a_next_goes_alone_in_the_end(slow: Bench, manual: ManualClock) -> None:
    [fault] = await arm(slow, {**TOLD, "webhook": "message", "what": {"reorder": True}})
    await slow.let_write()
    await until_hits(slow, fault, 1)

    assert slow.receiver.posts == []
    manual.advance(ms=BATCH_WAIT_MS)

    await slow.receiver.until(slow.receiver.messages)


@pytest.mark.usefixtures("open_window")
async def test_batched_updates_share_a_post_whatever_the_settings_say(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"batch_at_most": 1})
    await arm(bench, {**TOLD, "what": {"batch": 6}})

    wamids = [await bench.send_text(str(number)) for number in range(3)]

    await bench.receiver.until(lambda: len(bench.receiver.statuses()) == 6)
    assert len(bench.receiver.posts) == 1
    assert [kinds(bench, wamid) for wamid in wamids] == [["sent", "delivered"]] * 3


async def test_batch_that_is_not_full_goes_in_the_end(slow: Bench, manual: ManualClock) -> None:
    [fault] = await arm(slow, {**TOLD, "what": {"batch": 50}})
    await slow.let_write("one")
    await slow.let_write("two")
    await until_hits(slow, fault, 2)

    manual.advance(ms=BATCH_WAIT_MS)

    await slow.receiver.until(lambda: len(slow.receiver.messages()) == 2)
    assert len(slow.receiver.posts) == 1


@pytest.mark.parametrize(("what", "header"), [("wrong_signature", "sha256="), ("unsigned", None)])
async def test_post_that_is_not_rightly_signed_is_tried_again(bench: Bench, what: str, header: str | None) -> None:
    bench.receiver.answers = [401, 401]
    await arm(bench, {**TOLD, "what": {what: True}, "when": {"next": 2}})

    await bench.let_write("once")

    await bench.receiver.until(lambda: len(bench.receiver.posts) == 3)
    wrong, _, right = bench.receiver.posts
    assert wrong.body == right.body
    assert (wrong.headers.get("X-Hub-Signature-256") or "")[:7] == (header or "")
    assert not is_signed(bench, wrong)
    assert bench.receiver.is_signed(right)


async def test_garbage_comes_rightly_signed_before_the_true_post(bench: Bench) -> None:
    await arm(bench, {**TOLD, "webhook": "message", "what": {"garbage": True}})

    await bench.let_write()

    await bench.receiver.until(lambda: len(bench.receiver.posts) == 2)
    garbage, true = bench.receiver.posts
    assert garbage.body == GARBAGE_BODY
    assert all(map(bench.receiver.is_signed, (garbage, true)))
    assert true.value["entry"][0]["id"] == WABA


@pytest.mark.usefixtures("open_window")
async def test_filters_narrow_a_fault_of_webhooks(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Hello there"}])
    drop = {**TOLD, "what": {"drop": True}}
    await arm(
        bench,
        {**drop, "webhook": "delivered", "phone": BEN},
        {**drop, "webhook": "sent", "template": "seeded"},
        {**drop, "waba_id": "1000000000000099"},
        {**drop, "number": "15559999999"},
    )
    await bench.let_write(phone=BEN)

    to_ann = await bench.send_text()
    to_ben = await bench.send_text(to=f"+{BEN}")
    by_template = (await bench.send_template()).body["messages"][0]["id"]

    await bench.receiver.until(lambda: kinds(bench, by_template))
    assert kinds(bench, to_ann) == ["sent", "delivered"]
    assert kinds(bench, to_ben) == ["sent"]
    assert kinds(bench, by_template) == ["delivered"]


async def test_webhooks_of_templates_are_narrowed_by_their_name(bench: Bench) -> None:
    name = "message_template_status_update"
    [fault] = await arm(bench, {**TOLD, "webhook": name, "template": "dropped", "what": {"drop": True}})
    hello = [{"type": "BODY", "text": "Hello there"}]

    for template in ("dropped", "told"):
        assert (await bench.create(hello, name=template)).status == 200

    await until_hits(bench, fault, 1)
    await bench.receiver.until(bench.receiver.templates)
    told = [one["message_template_name"] for one in bench.receiver.templates()]
    assert told == ["told"]


async def test_judged_update_is_not_judged_again_when_it_is_tried_again(bench: Bench) -> None:
    bench.receiver.answers = [500, 500]
    [fault] = await arm(bench, {**TOLD, "webhook": "message", "what": {"delay_ms": 1}})

    await bench.let_write()

    await bench.receiver.until(lambda: len(bench.receiver.posts) == 3)
    shown = (await bench.control("GET", f"faults/{fault['id']}")).body
    assert (shown["seen"], shown["hits"]) == (1, 1)
    assert [one["webhook"] for one in shown["firings"]] == ["message"]


async def test_nothing_is_left_behind_when_all_is_told(bench: Bench) -> None:
    await arm(bench, {**TOLD, "what": {"duplicate": 1}})
    await bench.let_write()
    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 2)
    await bench.control("DELETE", "faults")

    await bench.let_write("plain")

    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 3)

    async def waiting() -> int:
        return (await bench.control("GET", "state")).body["accounts"][0]["updates_waiting"]

    assert await patiently(waiting, lambda count: count == 0) == 0


async def arm(bench: Bench, *faults: dict[str, Any]) -> list[dict[str, Any]]:
    """Arm faults, and give them as they are shown."""
    answer = await bench.control("POST", "faults", {"faults": list(faults)})
    assert answer.status == 200, answer.body
    return answer.body["faults"]


async def until_hits(bench: Bench, fault: dict[str, Any], hits: int) -> None:
    """Return once a fault has fired so often."""

    async def ask() -> int:
        return (await bench.control("GET", f"faults/{fault['id']}")).body["hits"]

    await patiently(ask, lambda told: told == hits)


def kinds(bench: Bench, wamid: str) -> list[str]:
    """A message's statuses, in the order in which they were told."""
    return [one["status"] for one in bench.receiver.statuses(wamid)]


def is_signed(bench: Bench, post: Post) -> bool:
    """Whether a POST has the signature that it should have."""
    return "X-Hub-Signature-256" in post.headers and bench.receiver.is_signed(post, SECRET)
