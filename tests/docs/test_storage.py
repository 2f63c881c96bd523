"""The numbers on the page about storage are those of the code."""

import re
from typing import Final

from tests.docs.repository import ROOT
from waypost.queue.plans import GROUP_WINDOW, SHARD_COUNT
from waypost.queue.queue import KNOWN_POLL_MS, POLL_MS
from waypost.store.engines.sqlite import PRAGMAS
from waypost.store.retention.rules import MAX_BATCH_ROWS

STORAGE: Final = (ROOT / "docs" / "explanation" / "storage.md").read_text(encoding="utf-8")


def test_pragmas_on_the_page_are_those_that_are_set() -> None:
    shown = re.findall(r"^\| `(\w+)` \| (\w+) \|", STORAGE, re.MULTILINE)

    assert shown
    assert set(shown) <= set(PRAGMAS)


def test_page_gives_the_limits_by_which_queues_are_worked() -> None:
    text = " ".join(STORAGE.split())

    assert f"each queue has {SHARD_COUNT}," in text
    assert f"at most {GROUP_WINDOW:,} of its jobs" in text
    assert f"deletes {MAX_BATCH_ROWS} rows in a transaction" in text
    assert POLL_MS == 5_000
    assert "every five seconds" in text
    assert KNOWN_POLL_MS == 60_000
    assert "once a minute on SQLite" in text
