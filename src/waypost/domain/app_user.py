"""A user as an app knows it."""

from dataclasses import dataclass
from typing import Final

WINDOW_MS: Final = 24 * 60 * 60 * 1000
"""How long session messages may be sent to a user who has written. Source: operator's facts 4.1."""


@dataclass(frozen=True, slots=True)
class AppUser:
    """What is known of one.

    Attributes:
        opted_in: None: nobody has said so either way.
        source: where the last change came from; empty without one.
        opted_on_ms: when it came; 0 without one.
        last_written_ms: when the user last wrote to the app's number; 0: never.
    """

    phone_number: str
    opted_in: bool | None = None
    source: str = ""
    opted_on_ms: int = 0
    blocked: bool = False
    last_written_ms: int = 0
