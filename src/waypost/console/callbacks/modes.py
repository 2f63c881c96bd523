"""What each mode of a subscription brings, in the words of whoever chooses."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.callbacks.subscription import ALL


@dataclass(frozen=True, slots=True)
class ModeRow:
    """One box of the form.

    Attributes:
        brings: what is told, in a sentence.
        only_3: it brings nothing in version 2.
        by_default: ticked on a new form.
    """

    mode: str
    brings: str
    only_3: bool = False
    by_default: bool = False


# fmt: off
MODE_GROUPS: Final = (  # Source: docs/how-to/receive-callbacks.md; facts 4.4
    ("Messages of yours", (
        ModeRow("ENQUEUED",      "The operator has taken a message.", by_default=True),
        ModeRow("SENT",          "The operator has sent it on.", by_default=True),
        ModeRow("DELIVERED",     "It is on the recipient's device.", by_default=True),
        ModeRow("READ",          "The recipient has read it, or played it.", by_default=True),
        ModeRow("FAILED",        "It has failed, or nobody knows.", by_default=True),
        ModeRow("DELETED",       "The recipient has deleted it."),
        ModeRow("BILLING",       "What a message costs, once a message."),
        ModeRow("PAYMENTS",      "A payment that a message asked for has come further.", only_3=True),
    )),
    ("What recipients do", (
        ModeRow("MESSAGE",       "Somebody wrote, tapped a button, chose from a list, reacted or sent a medium.", by_default=True),
        ModeRow("FLOWS_MESSAGE", "Somebody sent a flow back.", only_3=True),
        ModeRow("OTHERS",        "A number has changed, marketing was stopped or resumed, and all that has no shape of its own."),
    )),
    ("Templates and the account", (
        ModeRow("TEMPLATE",      "A template was reviewed, paused or disabled, or its quality or category has changed.", by_default=True),
        ModeRow("ACCOUNT",       "The account or the number was reviewed, restricted or given another limit; or we have paused a subscription."),
    )),
    ("Everything", (
        ModeRow(ALL,             "All of the above, and what comes new. In version 2 it adds nothing.", only_3=True),
    )),
)
# fmt: on

DEFAULTS: Final = tuple(row.mode for _, rows in MODE_GROUPS for row in rows if row.by_default)
OFFERED: Final = tuple(row.mode for _, rows in MODE_GROUPS for row in rows)
