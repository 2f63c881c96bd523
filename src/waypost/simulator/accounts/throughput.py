"""Send rates of a business: per number, and per pair of number and phone. In memory."""

from collections import deque
from typing import Final

from waypost.base.clock import Clock
from waypost.simulator.errors import message_error

_PAIR_INTERVAL_MS: Final = 6_000  # Source: facts 8, "Pair rate"
_PAIR_BURST: Final = 45  # Source: facts 8, "Pair rate"
_MAX_PAIRS: Final = 200_000


class ThroughputLimits:
    """Counts sent messages; rejected messages do not count."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[str, deque[int]] = {}
        self._used_until_ms: dict[tuple[str, str], int] = {}

    def consume(self, phone_number_id: str, phone: str, throughput: int) -> None:
        """Count one message, or raise the error of an exceeded limit.

        A burst to one phone borrows from the future: every message moves the time until which the pair has used its
        rate by six seconds, and that time may be ahead of now by one burst at most.

        Args:
            phone_number_id: the sender.
            phone: the recipient.
            throughput: messages per second that the number may send.

        Raises:
            GraphApiError: 130429 for the number, 131056 for the pair.

        Source: facts 8.
        """
        now_ms = self._clock.now_ms()
        sent = self._sent.setdefault(phone_number_id, deque())
        while sent and sent[0] <= now_ms - 1000:
            sent.popleft()
        if len(sent) >= throughput:
            raise message_error(130429, "Message failed to send because there were too many messages sent in a second.")
        pair = (phone_number_id, phone)
        used_until_ms = max(self._used_until_ms.get(pair, 0), now_ms)
        ahead_ms = (_PAIR_BURST - 1) * _PAIR_INTERVAL_MS
        if used_until_ms - now_ms > ahead_ms:
            raise message_error(
                131056,
                "Message failed to send because there were too many messages sent from this phone "
                "number to the same phone number in a short period of time.",
                retry_after_s=-((now_ms + ahead_ms - used_until_ms) // 1000),
            )
        sent.append(now_ms)
        self._used_until_ms[pair] = used_until_ms + _PAIR_INTERVAL_MS
        if len(self._used_until_ms) > _MAX_PAIRS:
            ahead = ((pair, until_ms) for pair, until_ms in self._used_until_ms.items() if until_ms > now_ms)
            self._used_until_ms = dict(ahead)

    def clear(self) -> None:
        """Delete all counts."""
        self._sent.clear()
        self._used_until_ms.clear()
