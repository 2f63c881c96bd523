"""The modes of a subscription, described as the form offers them."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.callbacks.subscription import ALL


@dataclass(frozen=True, slots=True)
class ModeRow:
    """A checkbox of the form.

    Attributes:
        brings: the events of the mode, in a sentence.
        only_3: it has no effect in version 2.
        by_default: checked on a new form.
    """

    mode: str
    brings: str
    only_3: bool = False
    by_default: bool = False


# fmt: off
MODE_GROUPS: Final = (  # Source: docs/how-to/receive-callbacks.md; facts 4.4
    ("Messages you send", (
        ModeRow("ENQUEUED",      "The operator accepted a message.", by_default=True),
        ModeRow("SENT",          "The operator sent it to the recipient.", by_default=True),
        ModeRow("DELIVERED",     "It reached the recipient's device.", by_default=True),
        ModeRow("READ",          "The recipient read or played it.", by_default=True),
        ModeRow("FAILED",        "It failed, or its outcome is uncertain.", by_default=True),
        ModeRow("DELETED",       "The recipient deleted it."),
        ModeRow("BILLING",       "The price of a message, once per message."),
        ModeRow("PAYMENTS",      "The status of a requested payment changed.", only_3=True),
    )),
    ("Recipient activity", (
        ModeRow("MESSAGE",       "A recipient sent a message or media, tapped a button, chose from a list, or reacted.", by_default=True),
        ModeRow("FLOWS_MESSAGE", "A recipient submitted a flow.", only_3=True),
        ModeRow("OTHERS",        "A recipient changed numbers, stopped or resumed marketing; and events without a type of their own."),
    )),
    ("Templates and account", (
        ModeRow("TEMPLATE",      "A template was reviewed, paused or disabled, or its quality or category changed.", by_default=True),
        ModeRow("ACCOUNT",       "The account or number was reviewed, restricted or got a new limit; or the service paused a subscription."),
    )),
    ("Everything", (
        ModeRow(ALL,             "All of the above, and future events. No effect in version 2.", only_3=True),
    )),
)
# fmt: on

DEFAULTS: Final = tuple(row.mode for _, rows in MODE_GROUPS for row in rows if row.by_default)
OFFERED: Final = tuple(row.mode for _, rows in MODE_GROUPS for row in rows)
