"""Webhook faults: each kind as a receiver sees it; delayed updates survive a restart."""

from typing import Any

import pytest

from tests.simulator.conftest import SECRET, WABA, Bench, WebhookPost
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until
from waypost.simulator.state.accounts import Outlet
from waypost.simulator.state.outbox import Outbox, Update
from waypost.simulator.webhooks.webhook_faults import BATCH_WAIT_MS
from waypost.simulator.webhooks.webhooks import GARBAGE_BODY

BEN = "15551234568"
WEBHOOK: dict[str, Any] = {"on": "webhook"}


@pytest.fixture
async def open_window(bench: Bench) -> None:
    """Open the window: Ann has written, and the business has received the message."""
    await bench.send_from_phone()
    await bench.receiver.wait_until(bench.receiver.messages)
    bench.receiver.posts.clear()


@pytest.mark.usefixtures("open_window")
async def test_dropped_update_is_never_sent(bench: Bench) -> None:
    await arm(bench, {**WEBHOOK, "webhook": "sent", "what": {"drop": True}, "when": {"next": 1}})

    first = await bench.send_text("one")
    second = await bench.send_text("two")

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(second)) == 2)
    assert status_names(bench, first) == ["delivered"]
    assert status_names(bench, second) == ["sent", "delivered"]


async def test_fault_armed_while_updates_are_read_applies(
    slow: Bench, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    due, sent = Outbox.due_updates, list[str]()
    await slow.send_from_phone()
    await slow.receiver.wait_until(slow.receiver.messages)

    async def arm_before(outbox: Outbox, outlet: Outlet, **more: int) -> list[Update]:
        if not sent:
            sent.append("")
            await arm(slow, {**WEBHOOK, "webhook": "sent", "what": {"drop": True}})
            sent.append(await slow.send_text())
        return await due(outbox, outlet, **more)

    monkeypatch.setattr(Outbox, "due_updates", arm_before)
    await slow.send_from_phone(phone=BEN)  # triggers a read of the outbox
    await slow.receiver.wait_until(lambda: len(sent) == 2)
    clock.advance(ms=1000)
    await slow.receiver.wait_until(lambda: slow.receiver.statuses(sent[1]))

    assert status_names(slow, sent[1]) == ["delivered"]


async def test_delayed_update_is_sent_later_with_its_original_timestamp(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await slow.receiver.wait_until(slow.receiver.messages)
    await arm(slow, {**WEBHOOK, "webhook": "sent", "what": {"delay_ms": 60_000}})
    sent_ms = clock.now_ms()
    wamid = await slow.send_text()

    clock.advance(ms=1000)
    await slow.receiver.wait_until(lambda: slow.receiver.statuses(wamid))
    clock.advance(ms=59_000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses(wamid)) == 2)

    assert status_names(slow, wamid) == ["delivered", "sent"]
    assert slow.receiver.statuses(wamid)[1]["timestamp"] == str(sent_ms // 1000)


async def test_delay_survives_a_restart_and_the_end_of_the_fault(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await slow.receiver.wait_until(slow.receiver.messages)
    [fault] = await arm(slow, {**WEBHOOK, "webhook": "sent", "what": {"delay_ms": 60_000}, "when": {"next": 1}})
    wamid = await slow.send_text()
    await wait_for_hits(slow, fault, 1)
    await slow.control("DELETE", "faults")

    await slow.restart()
    waiting_count = (await slow.control("GET", "state")).body["accounts"][0]["updates_waiting"]
    due_ms = await slow.simulator.next_due_ms()
    clock.advance(ms=60_000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses(wamid)) == 2)

    assert waiting_count == 2
    assert due_ms == clock.now_ms() - 59_000
    assert set(status_names(slow, wamid)) == {"delivered", "sent"}


@pytest.mark.usefixtures("open_window")
async def test_duplicated_update_is_sent_again_in_separate_posts(bench: Bench) -> None:
    await arm(bench, {**WEBHOOK, "webhook": "delivered", "what": {"duplicate": 2}})

    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 4)
    assert sorted(status_names(bench, wamid)) == ["delivered", "delivered", "delivered", "sent"]
    copies = [post for post in bench.receiver.posts if b'"delivered"' in post.body]
    assert len(copies) == 3
    assert all(map(bench.receiver.is_signed, copies))


@pytest.mark.usefixtures("open_window")
@pytest.mark.parametrize("at_most", [1, 250])
async def test_reordered_update_is_swapped_with_the_next(bench: Bench, at_most: int) -> None:
    await bench.control("PUT", "settings", {"batch_at_most": at_most})
    await arm(bench, {**WEBHOOK, "what": {"reorder": True}})

    first = await bench.send_text("one")
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses()) == 2)
    second = await bench.send_text("two")
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses()) == 4)

    assert status_names(bench, first) == status_names(bench, second) == ["delivered", "sent"]


async def test_reordered_update_without_a_next_is_sent_alone_after_a_wait(slow: Bench, clock: ManualClock) -> None:
    [fault] = await arm(slow, {**WEBHOOK, "webhook": "message", "what": {"reorder": True}})
    await slow.send_from_phone()
    await wait_for_hits(slow, fault, 1)

    assert slow.receiver.posts == []
    clock.advance(ms=BATCH_WAIT_MS)

    await slow.receiver.wait_until(slow.receiver.messages)


@pytest.mark.usefixtures("open_window")
async def test_batched_updates_share_a_post_regardless_of_batch_settings(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"batch_at_most": 1})
    await arm(bench, {**WEBHOOK, "what": {"batch": 6}})

    wamids = [await bench.send_text(str(number)) for number in range(3)]

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses()) == 6)
    assert len(bench.receiver.posts) == 1
    assert [status_names(bench, wamid) for wamid in wamids] == [["sent", "delivered"]] * 3


async def test_incomplete_batch_is_sent_after_a_wait(slow: Bench, clock: ManualClock) -> None:
    [fault] = await arm(slow, {**WEBHOOK, "what": {"batch": 50}})
    await slow.send_from_phone("one")
    await slow.send_from_phone("two")
    await wait_for_hits(slow, fault, 2)

    clock.advance(ms=BATCH_WAIT_MS)

    await slow.receiver.wait_until(lambda: len(slow.receiver.messages()) == 2)
    assert len(slow.receiver.posts) == 1


@pytest.mark.parametrize(("what", "header"), [("wrong_signature", "sha256="), ("unsigned", None)])
async def test_post_with_an_invalid_signature_is_retried(bench: Bench, what: str, header: str | None) -> None:
    bench.receiver.response_statuses = [401, 401]
    await arm(bench, {**WEBHOOK, "what": {what: True}, "when": {"next": 2}})

    await bench.send_from_phone("once")

    await bench.receiver.wait_until(lambda: len(bench.receiver.posts) == 3)
    wrong, _, right = bench.receiver.posts
    assert wrong.body == right.body
    assert (wrong.headers.get("X-Hub-Signature-256") or "")[:7] == (header or "")
    assert not is_signed(bench, wrong)
    assert bench.receiver.is_signed(right)


async def test_signed_garbage_is_sent_before_the_real_post(bench: Bench) -> None:
    await arm(bench, {**WEBHOOK, "webhook": "message", "what": {"garbage": True}})

    await bench.send_from_phone()

    await bench.receiver.wait_until(lambda: len(bench.receiver.posts) == 2)
    garbage, real = bench.receiver.posts
    assert garbage.body == GARBAGE_BODY
    assert all(map(bench.receiver.is_signed, (garbage, real)))
    assert real.value["entry"][0]["id"] == WABA


@pytest.mark.usefixtures("open_window")
async def test_filters_limit_a_webhook_fault(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Hello there"}])
    drop = {**WEBHOOK, "what": {"drop": True}}
    await arm(
        bench,
        {**drop, "webhook": "delivered", "phone": BEN},
        {**drop, "webhook": "sent", "template": "seeded"},
        {**drop, "waba_id": "1000000000000099"},
        {**drop, "number": "15559999999"},
    )
    await bench.send_from_phone(phone=BEN)

    to_ann = await bench.send_text()
    to_ben = await bench.send_text(to=f"+{BEN}")
    by_template = (await bench.send_template()).body["messages"][0]["id"]

    await bench.receiver.wait_until(lambda: status_names(bench, by_template))
    assert status_names(bench, to_ann) == ["sent", "delivered"]
    assert status_names(bench, to_ben) == ["sent"]
    assert status_names(bench, by_template) == ["delivered"]


async def test_template_webhook_faults_can_be_filtered_by_template_name(bench: Bench) -> None:
    name = "message_template_status_update"
    [fault] = await arm(bench, {**WEBHOOK, "webhook": name, "template": "dropped", "what": {"drop": True}})
    hello = [{"type": "BODY", "text": "Hello there"}]

    for template in ("dropped", "sent"):
        assert (await bench.create_template(hello, name=template)).status == 200

    await wait_for_hits(bench, fault, 1)
    await bench.receiver.wait_until(bench.receiver.template_events)
    names = [event["message_template_name"] for event in bench.receiver.template_events()]
    assert names == ["sent"]


async def test_retry_does_not_apply_a_fault_again(bench: Bench) -> None:
    bench.receiver.response_statuses = [500, 500]
    [fault] = await arm(bench, {**WEBHOOK, "webhook": "message", "what": {"delay_ms": 1}})

    await bench.send_from_phone()

    await bench.receiver.wait_until(lambda: len(bench.receiver.posts) == 3)
    shown = (await bench.control("GET", f"faults/{fault['id']}")).body
    assert (shown["seen"], shown["hits"]) == (1, 1)
    assert [firing["webhook"] for firing in shown["firings"]] == ["message"]


async def test_nothing_is_waiting_after_everything_was_sent(bench: Bench) -> None:
    await arm(bench, {**WEBHOOK, "what": {"duplicate": 1}})
    await bench.send_from_phone()
    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    await bench.control("DELETE", "faults")

    await bench.send_from_phone("plain")

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 3)

    async def count_waiting() -> int:
        return (await bench.control("GET", "state")).body["accounts"][0]["updates_waiting"]

    assert await poll_until(count_waiting, lambda count: count == 0) == 0


async def arm(bench: Bench, *faults: dict[str, Any]) -> list[dict[str, Any]]:
    """Arm faults and return them as the control API shows them."""
    response = await bench.control("POST", "faults", {"faults": list(faults)})
    assert response.status == 200, response.body
    return response.body["faults"]


async def wait_for_hits(bench: Bench, fault: dict[str, Any], hits: int) -> None:
    """Return once the fault has fired this many times."""

    async def current_hits() -> int:
        return (await bench.control("GET", f"faults/{fault['id']}")).body["hits"]

    await poll_until(current_hits, lambda current: current == hits)


def status_names(bench: Bench, wamid: str) -> list[str]:
    """Return the statuses of a message in the order received."""
    return [status["status"] for status in bench.receiver.statuses(wamid)]


def is_signed(bench: Bench, post: WebhookPost) -> bool:
    """True if the POST has a valid signature."""
    return "X-Hub-Signature-256" in post.headers and bench.receiver.is_signed(post, SECRET)
