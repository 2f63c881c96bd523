"""Attempts at the operator on the page of a message: many equal ones are one step, and the rows are limited."""

from typing import Any, Final

import pytest

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.console.messages.trace_steps import (
    MAX_FOLDS,
    MAX_LISTED_PER_FOLD,
    MAX_LISTED_PER_RUN,
    MIN_FOLDED,
    TraceStepView,
    fold_attempts,
)
from waypost.store.database import Database
from waypost.store.trace_events import SEND_ATTEMPTED, MessageTraceEvent, add_trace_events

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

AT_MS: Final = 1_763_800_000_000  # 2025-11-22 08:26:40 UTC
MINUTE_MS: Final = 60_000
NO_RESPONSE: Final = "no response"
BUSY: Final = "The operator was unavailable (code 131016): again later"


def attempt_steps(*results: str) -> list[TraceStepView]:
    """Return an attempt per minute, with these results."""
    return [
        TraceStepView(
            f"s-event-{n}", AT_MS + n * MINUTE_MS, "Operator", "warn", f"Try {n}", text,
            gap_ms=MINUTE_MS, number=n,
        )
        for n, text in enumerate(results, 1)
    ]  # fmt: skip


def count_rows(steps: list[TraceStepView]) -> int:
    """Return the number of their rows on a page, including hidden ones."""
    return sum(1 if step.fold is None else 3 + len(step.fold.between) for step in steps)


async def test_few_attempts_are_listed_one_by_one() -> None:
    steps = attempt_steps(*[NO_RESPONSE] * (MIN_FOLDED - 1), *[BUSY] * (MIN_FOLDED - 1), NO_RESPONSE)

    assert fold_attempts(steps) == steps


async def test_attempts_with_the_same_result_are_one_step_with_the_id_of_the_first() -> None:
    steps = attempt_steps(BUSY, *[NO_RESPONSE] * 47, BUSY)

    [before, folded, after] = fold_attempts(steps)

    assert (before, after) == (steps[0], steps[-1])
    assert (folded.id, folded.at_ms, folded.gap_ms) == ("s-event-2", steps[1].at_ms, MINUTE_MS)
    assert folded.title == "47 failed attempts"
    assert folded.text == f"Each: {NO_RESPONSE}"
    assert folded.fold is not None
    assert (folded.fold.first.at_ms, folded.fold.last.at_ms) == (steps[1].at_ms, steps[-2].at_ms)
    assert (folded.fold.first.number, folded.fold.last.number) == (2, 48)
    assert [attempt.number for attempt in folded.fold.between] == list(range(3, 48))
    assert folded.fold.older == 0
    assert {attempt.text for attempt in folded.fold.between} == {""}


async def test_fold_keeps_its_ids_while_it_grows() -> None:
    [shorter] = fold_attempts(attempt_steps(*[NO_RESPONSE] * 10))
    [longer] = fold_attempts(attempt_steps(*[NO_RESPONSE] * 11))

    assert shorter.fold is not None
    assert longer.fold is not None
    assert (shorter.id, shorter.fold.id, shorter.fold.first.id) == (longer.id, longer.fold.id, longer.fold.first.id)
    assert {attempt.id for attempt in shorter.fold.between} < {attempt.id for attempt in longer.fold.between}


async def test_fold_of_a_day_lists_the_latest_attempts_and_counts_the_others() -> None:
    [folded] = fold_attempts(attempt_steps(*[NO_RESPONSE] * 1440))

    assert folded.text.startswith("Each: ")
    assert folded.title == "1\u202f440 failed attempts"
    assert folded.fold is not None
    assert [attempt.number for attempt in folded.fold.between] == list(range(1440 - MAX_LISTED_PER_FOLD, 1440))
    assert folded.fold.older == 1440 - 2 - MAX_LISTED_PER_FOLD


async def test_another_step_between_attempts_ends_a_fold() -> None:
    steps = attempt_steps(*[NO_RESPONSE] * 8)
    steps.insert(4, TraceStepView("s-callback-1", AT_MS, "Callback", "good", "Delivered"))

    assert [step.id for step in fold_attempts(steps)] == ["s-event-1", "s-callback-1", "s-event-5"]


async def test_results_that_alternate_are_one_fold_with_their_texts() -> None:
    [folded] = fold_attempts(attempt_steps(*[NO_RESPONSE, BUSY, BUSY] * 480))

    assert "2 different errors. Most frequent, 960 times: The operator" in folded.text
    assert folded.fold is not None
    assert (folded.fold.first.text, folded.fold.last.text) == (NO_RESPONSE, BUSY)
    assert {attempt.text for attempt in folded.fold.between} == {NO_RESPONSE, BUSY}


@pytest.mark.parametrize("length", [1, 3, 4, 60, 72, 200, 720])
async def test_page_has_few_rows_for_any_sequence_of_results(length: int) -> None:
    results = [NO_RESPONSE if (n // length) % 2 else BUSY for n in range(1440)]

    steps = fold_attempts(attempt_steps(*results))

    assert count_rows(steps) <= MAX_LISTED_PER_RUN + 3 * MAX_FOLDS
    assert sum(len(step.fold.between) + step.fold.older + 2 if step.fold else 1 for step in steps) == 1440


def get_store(console: ConsoleClient) -> Database:
    return vars(console.dev)["_sides"].waypost.console.services.database


async def get_trace(console: ConsoleClient, message_id: str) -> dict[str, Any]:
    return await console.admin.json("GET", f"/admin/trace/{message_id}")


async def deliver_message(console: ConsoleClient, text: str) -> tuple[str, int]:
    """Deliver a message; return its ID and a time after its last event."""
    message_id = await console.send_text(text)
    trace = await poll_until(lambda: get_trace(console, message_id), lambda trace: trace["state"] == "delivered")
    return message_id, max(event["at_ms"] for event in trace["events"]) + 1


async def add_attempts(console: ConsoleClient, message_id: str, first_ms: int, count: int) -> None:
    detail = "131016: again <b>later</b>"
    events = [
        MessageTraceEvent(message_id, SEND_ATTEMPTED, first_ms + n * MINUTE_MS, False, detail) for n in range(count)
    ]
    await get_store(console).write(add_trace_events, events)


async def test_open_fold_stays_open_and_grows(tabs: Tabs, console: ConsoleClient) -> None:
    message_id, at_ms = await deliver_message(console, "Many times")
    await add_attempts(console, message_id, at_ms, 3)
    tab = await tabs(f"/apps/{demo.APP_ID}/messages/{message_id}", width=360)
    steps = tab.page.locator("#steps")
    await steps.get_by_text("Attempt 3 failed").wait_for()
    assert await steps.locator("details .fold").count() == 0

    await add_attempts(console, message_id, at_ms + 3 * MINUTE_MS, 44)
    await steps.get_by_text("47 failed attempts").wait_for()
    await steps.get_by_text("45 attempts in between").click()
    await add_attempts(console, message_id, at_ms + 47 * MINUTE_MS, 1000)
    await steps.get_by_text("1\u202f047 failed attempts").wait_for()

    await steps.get_by_text("The latest 50 are listed, 995 earlier ones are not.").wait_for()
    assert await steps.locator("details .fold > li").count() == MAX_LISTED_PER_FOLD
    assert await steps.locator(".fold-attempt", has_text="Attempt 1\u202f047").is_visible()
    assert await steps.locator(".fold-attempt", has_text="Attempt 1\u202f046").is_visible(), "the fold is still open"
    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert len((await get_trace(console, message_id))["events"]) > 1047, "the API returns each of them"


async def test_page_of_a_message_with_a_day_of_attempts_is_small(console: ConsoleClient) -> None:
    message_id, at_ms = await deliver_message(console, "All day")
    path = f"/apps/{demo.APP_ID}/messages/{message_id}"
    before = len(await console.get(path))

    await add_attempts(console, message_id, at_ms, 1440)
    page = await console.get(path)

    assert page.count('class="fold-attempt"') == MAX_LISTED_PER_FOLD + 2
    assert len(page) - before < 20_000
    assert "Each: The operator was unavailable (code 131016): again &lt;b&gt;later" in page
