"""The modes of a subscription, described as the form offers them."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.callbacks.subscription import MODE_ALL


@dataclass(frozen=True, slots=True)
class ModeRow:
    """A checkbox of the form.

    Attributes:
        meaning: the events of the mode, in a sentence.
        is_v3_only: it has no effect in version 2.
        is_default: checked on a new form.
    """

    mode: str
    meaning: str
    is_v3_only: bool = False
    is_default: bool = False


MODE_GROUPS: Final = (  # Source: docs/how-to/receive-callbacks.md; facts 4.4
    (
        "Messages you send",
        (
            ModeRow("ENQUEUED", "The operator accepted a message.", is_default=True),
            ModeRow("SENT", "The operator sent it to the recipient.", is_default=True),
            ModeRow("DELIVERED", "It reached the recipient's device.", is_default=True),
            ModeRow("READ", "The recipient read or played it.", is_default=True),
            ModeRow("FAILED", "It failed, or its outcome is uncertain.", is_default=True),
            ModeRow("DELETED", "The recipient deleted it."),
            ModeRow("BILLING", "The price of a message, once per message."),
            ModeRow("PAYMENTS", "The status of a requested payment changed.", is_v3_only=True),
        ),
    ),
    (
        "Recipient activity",
        (
            ModeRow(
                "MESSAGE",
                "A recipient sent a message or media, tapped a button, chose from a list, or reacted.",
                is_default=True,
            ),
            ModeRow("FLOWS_MESSAGE", "A recipient submitted a flow.", is_v3_only=True),
            ModeRow(
                "OTHERS",
                "A recipient changed numbers, stopped or resumed marketing; and events without a type of their own.",
            ),
        ),
    ),
    (
        "Templates and account",
        (
            ModeRow(
                "TEMPLATE",
                "A template was reviewed, paused or disabled, or its quality or category changed.",
                is_default=True,
            ),
            ModeRow(
                "ACCOUNT",
                (
                    "The account or number was reviewed, restricted or got a new limit; or the service paused a "
                    "subscription."
                ),
            ),
        ),
    ),
    (
        "Everything",
        (ModeRow(MODE_ALL, "All of the above, and future events. No effect in version 2.", is_v3_only=True),),
    ),
)

DEFAULT_MODES: Final = tuple(row.mode for _, rows in MODE_GROUPS for row in rows if row.is_default)
OFFERED_MODES: Final = tuple(row.mode for _, rows in MODE_GROUPS for row in rows)
