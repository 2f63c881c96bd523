"""What the walk needs from a product, whichever it is."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

FIRST_RECIPIENT = 15_560_000_000
RECIPIENTS = 10_000
SOURCE = "15550000000"
TEXT = "Hi Ann, your order 4711 is ready. Shall we bring it today?"


@dataclass(frozen=True)
class Surroundings:
    """What every product gets.

    Args:
        folder: an empty folder of its own, on the disk of the checkout.
        receiver_port: of the receiver of notifications.
        respond_after_ms: from a message at the upstream to its response.
        report_after_ms: from a message at the upstream to its delivery report.
        gather_ms: the least time between two webhooks of the upstream, which batches statuses.
        distinct_recipients: whether each message has a recipient of its own.
        uncertain_for_s: the setting of Waypost with this name.
    """

    folder: Path
    receiver_port: int
    respond_after_ms: int = 0
    report_after_ms: int = 200
    gather_ms: int = 10
    distinct_recipients: bool = False
    uncertain_for_s: int = 900

    def recipient(self, number: int) -> str:
        """Return the recipient of a message."""
        return str(FIRST_RECIPIENT + (number if self.distinct_recipients else number % RECIPIENTS))

    def inside(self, name: str) -> "Surroundings":
        """Return the same with a folder inside this one."""
        return dataclasses.replace(self, folder=self.folder / name)


class Product(Protocol):
    """A product with its upstream.

    Attributes:
        name: of the row.
        port: of its HTTP API.
        kinds: of the notifications of each message, in their order.
        description: versions and settings, for the result.
    """

    @property
    def name(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def kinds(self) -> tuple[str, str]: ...
    @property
    def description(self) -> dict[str, Any]: ...

    def start(self) -> None:
        """Start everything, and return when it accepts messages."""
        ...

    def end(self) -> None:
        """End everything."""
        ...

    def kill(self) -> None:
        """Kill the product and its stores and brokers, but not its upstream."""
        ...

    def restart(self) -> None:
        """Start what was killed, with what is on disk."""
        ...

    def request(self, number: int) -> bytes:
        """Return the request that submits a message."""
        ...

    def key(self, number: int, body: bytes) -> str:
        """Return the name that the notifications of a message use, from the response to it."""
        ...

    def trees(self) -> Mapping[str, list[int]]:
        """Return the roots of the process trees: of `product`, its `store` (if a process), and `upstream`."""
        ...

    def accepted_by_recipient(self) -> dict[str, int] | None:
        """Return how often the upstream accepted a message to each recipient; None if it does not count."""
        ...
