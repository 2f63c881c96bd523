"""Tries at the operator on a message's page: many equal ones are one step, and what is rendered is bounded."""

from typing import Any, Final

import pytest

from tests.console.conftest import LOOP, Desk, Tabs
from tests.support.waiting import patiently
from waypost.assembly.dev import demo
from waypost.console.messages.trace_step import MessageTraceStep
from waypost.console.messages.trace_steps import (
    MAX_FOLDS,
    MAX_LISTED_PER_FOLD,
    MAX_LISTED_PER_RUN,
    MIN_FOLDED,
    fold_attempts,
)
from waypost.store.database import Database
from waypost.store.trace_events import SEND_ATTEMPTED, MessageTraceEvent, add_trace_events

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

AT_MS: Final = 1_763_800_000_000  # 2025-11-22 08:26:40 UTC
MINUTE_MS: Final = 60_000
AWAY: Final = "nothing answered"
BUSY: Final = "The operator was unavailable (code 131016): again later"


def tried(*answers: str) -> list[MessageTraceStep]:
    """A try a minute, with these answers."""
    return [
        MessageTraceStep(
            f"s-news-{n}", AT_MS + n * MINUTE_MS, "Operator", "warn", f"Try {n}", text,
            gap_ms=MINUTE_MS, number=n,
        )
        for n, text in enumerate(answers, 1)
    ]  # fmt: skip


def rows_of(steps: list[MessageTraceStep]) -> int:
    """How many lines a page has for them, hidden ones too."""
    return sum(1 if one.fold is None else 3 + len(one.fold.between) for one in steps)


async def test_few_tries_stand_one_below_the_other() -> None:
    steps = tried(*[AWAY] * (MIN_FOLDED - 1), *[BUSY] * (MIN_FOLDED - 1), AWAY)

    assert fold_attempts(steps) == steps


async def test_tries_with_one_answer_are_one_step_that_keeps_its_first_ones_id() -> None:
    steps = tried(BUSY, *[AWAY] * 47, BUSY)

    [before, many, after] = fold_attempts(steps)

    assert (before, after) == (steps[0], steps[-1])
    assert (many.id, many.at_ms, many.gap_ms) == ("s-news-2", steps[1].at_ms, MINUTE_MS)
    assert many.title == "47 failed attempts"
    assert many.text == f"From 08:28:40 to 09:14:40 UTC, each: {AWAY}"
    assert many.fold is not None
    assert (many.fold.first.number, many.fold.last.number) == (2, 48)
    assert [one.number for one in many.fold.between] == list(range(3, 48))
    assert many.fold.older == 0
    assert {one.text for one in many.fold.between} == {""}


async def test_longer_fold_keeps_its_ids_while_it_grows() -> None:
    [once] = fold_attempts(tried(*[AWAY] * 10))
    [later] = fold_attempts(tried(*[AWAY] * 11))

    assert once.fold is not None
    assert later.fold is not None
    assert (once.id, once.fold.id, once.fold.first.id) == (later.id, later.fold.id, later.fold.first.id)
    assert {one.id for one in once.fold.between} < {one.id for one in later.fold.between}


async def test_fold_of_a_day_lists_the_newest_and_says_how_many_more_there_are() -> None:
    [many] = fold_attempts(tried(*[AWAY] * 1440))

    assert many.text.startswith("From 2025-11-22 08:27:40 to 2025-11-23 08:26:40 UTC, each: ")
    assert many.title == "1\u202f440 failed attempts"
    assert many.fold is not None
    assert [one.number for one in many.fold.between] == list(range(1440 - MAX_LISTED_PER_FOLD, 1440))
    assert many.fold.older == 1440 - 2 - MAX_LISTED_PER_FOLD


async def test_another_step_between_tries_ends_a_fold() -> None:
    steps = tried(*[AWAY] * 8)
    steps.insert(4, MessageTraceStep("s-callback-1", AT_MS, "Callback", "good", "Told"))

    assert [one.id for one in fold_attempts(steps)] == ["s-news-1", "s-callback-1", "s-news-5"]


async def test_answers_that_change_every_time_are_one_fold_with_their_words() -> None:
    [many] = fold_attempts(tried(*[AWAY, BUSY, BUSY] * 480))

    assert "2 different errors. Most frequent, 960 times: The operator" in many.text
    assert many.fold is not None
    assert (many.fold.first.text, many.fold.last.text) == (AWAY, BUSY)
    assert {one.text for one in many.fold.between} == {AWAY, BUSY}


@pytest.mark.parametrize("length", [1, 3, 4, 60, 72, 200, 720])
async def test_page_has_few_lines_whatever_the_answers_were(length: int) -> None:
    answers = [AWAY if (n // length) % 2 else BUSY for n in range(1440)]

    steps = fold_attempts(tried(*answers))

    assert rows_of(steps) <= MAX_LISTED_PER_RUN + 3 * MAX_FOLDS
    assert sum(len(one.fold.between) + one.fold.older + 2 if one.fold else 1 for one in steps) == 1440


def store_of(desk: Desk) -> Database:
    return vars(desk.dev)["_sides"].waypost.console.services.database


async def trace_of(desk: Desk, message_id: str) -> dict[str, Any]:
    return await desk.admin.json("GET", f"/admin/trace/{message_id}")


async def arrived(desk: Desk, text: str) -> tuple[str, int]:
    """A message that has arrived, and a time after all that has become of it."""
    message_id = await desk.send_text(text)
    trace = await patiently(lambda: trace_of(desk, message_id), lambda trace: trace["state"] == "delivered")
    return message_id, max(line["at_ms"] for line in trace["news"])


async def add_tries(desk: Desk, message_id: str, first_ms: int, count: int) -> None:
    detail = "131016: again <b>later</b>"
    news = [
        MessageTraceEvent(message_id, SEND_ATTEMPTED, first_ms + n * MINUTE_MS, False, detail) for n in range(count)
    ]
    await store_of(desk).write(add_trace_events, news)


async def test_fold_stays_open_and_grows_while_it_is_looked_at(tabs: Tabs, desk: Desk) -> None:
    message_id, at_ms = await arrived(desk, "Many times")
    await add_tries(desk, message_id, at_ms, 3)
    tab = await tabs(f"/apps/{demo.APP_ID}/messages/{message_id}", width=360)
    steps = tab.page.locator("#steps")
    await steps.get_by_text("Attempt 3 failed").wait_for()
    assert await steps.locator("details .fold").count() == 0

    await add_tries(desk, message_id, at_ms + 3 * MINUTE_MS, 44)
    await steps.get_by_text("47 failed attempts").wait_for()
    await steps.get_by_text("45 attempts in between").click()
    await add_tries(desk, message_id, at_ms + 47 * MINUTE_MS, 1000)
    await steps.get_by_text("1\u202f047 failed attempts").wait_for()

    await steps.get_by_text("The latest 50 are listed, 995 earlier ones are not.").wait_for()
    assert await steps.locator("details .fold > li").count() == MAX_LISTED_PER_FOLD
    assert await steps.locator(".fold-attempt", has_text="Attempt 1\u202f047").is_visible()
    assert await steps.locator(".fold-attempt", has_text="Attempt 1\u202f046").is_visible(), "it is still open"
    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert len((await trace_of(desk, message_id))["news"]) > 1047, "scripts are told of each"


async def test_page_of_a_message_that_was_tried_for_a_day_is_small(desk: Desk) -> None:
    message_id, at_ms = await arrived(desk, "All day")
    path = f"/apps/{demo.APP_ID}/messages/{message_id}"
    before = len(await desk.get(path))

    await add_tries(desk, message_id, at_ms, 1440)
    page = await desk.get(path)

    assert page.count('class="fold-attempt"') == MAX_LISTED_PER_FOLD + 2
    assert len(page) - before < 20_000
    assert "each: The operator was unavailable (code 131016): again &lt;b&gt;later" in page
