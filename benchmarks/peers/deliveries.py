"""What the upstream of a measurement has accepted, counted by recipient, and when it responds and reports."""

import asyncio
from collections import Counter
from collections.abc import Callable


class Deliveries:
    """The messages that an upstream accepted.

    Args:
        report_after_s: from a message to its delivery report.
        respond_after_s: from a message to the response to it.
    """

    def __init__(self, *, report_after_s: float, respond_after_s: float = 0.0) -> None:
        self.report_after_s = report_after_s + respond_after_s
        self.respond_after_s = respond_after_s
        self.by_recipient: Counter[str] = Counter()
        self.count = 0

    def add(self, recipient: str) -> int:
        """Count a message; return its number."""
        self.count += 1
        self.by_recipient[recipient.removeprefix("+")] += 1
        return self.count

    def later(self, seconds: float, function: Callable[..., object], *arguments: object) -> None:
        """Call a function after a time."""
        asyncio.get_running_loop().call_later(seconds, function, *arguments)
