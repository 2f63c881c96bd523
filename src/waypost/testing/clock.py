"""The clock that service and simulator share, moved by a test."""

from datetime import UTC, datetime
from typing import Any, Final

from waypost.client.blocking_client import BlockingApiClient
from waypost.client.responses import is_told

__tracebackhide__ = is_told

ADVANCE_WITHIN_S: Final = 70
"""Real time for one request: longer than the simulator takes for a part of an advance."""
SETTLE_MS: Final = 100
"""Longer than a message takes to a phone of `waypost dev`."""


class TimeMachine:
    """Virtual time, for everything that waits: windows, reviews, retries, expiries.

    It is shared by all tests of one process. Time never goes back: what a test has moved stays moved, and
    the next test begins later, with a partner of its own for whom no time has passed. A clock that a test
    has stopped or sped up runs as before when the test is over.
    """

    def __init__(self, control: BlockingApiClient) -> None:
        self._control = control
        self._is_touched = False

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """Move time forward, and return when everything that became due has happened.

        The clock stops at each due time on the way, so that things happen in the order in which they
        would have: a retry before its expiry, a review before the window closes.

        Returns:
            The time it is then.
        """
        all_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        return self._advance(round(all_s * 1000))

    def settle(self) -> datetime:
        """Return when nothing is under way at either side; for claims that something did not happen.

        Moves time by a tenth of a second, so that what is on its way to a phone arrives.
        """
        return self._advance(SETTLE_MS)

    def freeze(self) -> datetime:
        """Stop the clock: nothing becomes due by itself. It still can be advanced."""
        self._is_touched = True
        return self._ask("freeze", {})

    def run(self, factor: float = 1.0) -> datetime:
        """Let the clock run, at so many times the machine's speed."""
        self._is_touched = True
        return self._ask("run", {"factor": factor})

    @property
    def now(self) -> datetime:
        """The time it is, as far as rules are concerned."""
        return _moment(self._control.json("GET", "/clock"))

    def put_back(self) -> None:
        """Let it run at the machine's speed again, if this test has changed that."""
        if self._is_touched:
            self._ask("run", {"factor": 1.0})
            self._is_touched = False

    def _advance(self, ms: int) -> datetime:
        """Advance part by part: the simulator answers after a time, wherever it is."""
        answer = self._post("advance", {"ms": ms})
        while not answer["is_complete"]:
            answer = self._post("advance", {"ms": answer["left_ms"]})
        return _moment(answer)

    def _ask(self, act: str, body: dict[str, Any]) -> datetime:
        return _moment(self._post(act, body))

    def _post(self, act: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._control.json("POST", f"/clock/{act}", body, timeout_s=ADVANCE_WITHIN_S)


def _moment(view: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(view["now_ms"] / 1000, UTC)
