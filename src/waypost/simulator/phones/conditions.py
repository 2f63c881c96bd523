"""Which messages fail on a phone, as a table; and how long one may wait for a phone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import DAY_MS, MINUTE_MS
from waypost.simulator.templates.template import Template

# fmt: off
LIFETIMES_MS: Final = {  # Source: facts 2.3, `message_send_ttl_seconds`; what a template says itself wins
    "":               30 * DAY_MS,    # a session message
    "AUTHENTICATION": 10 * MINUTE_MS,
    "UTILITY":        30 * DAY_MS,
    "MARKETING":      30 * DAY_MS,
}
# fmt: on


@dataclass(frozen=True)
class Situation:
    """What decides whether a message fails.

    Args:
        condition: the phone's; empty: nothing is the matter with it.
        category: the template's; empty for a session message.
        is_business: whether the phone is a business number.
        is_in_window: whether it wrote in the last 24 hours.
        wants_marketing: whether its owner takes the business's marketing.
    """

    condition: str
    category: str
    is_business: bool
    is_in_window: bool
    wants_marketing: bool


@dataclass(frozen=True)
class End:
    """One row: on which phones (condition empty: on all) which messages fail, and with which code."""

    condition: str
    code: int
    fails: Callable[[Situation], bool]


def _every(_situation: Situation) -> bool:
    return True


def _is_marketing(situation: Situation) -> bool:
    return situation.category == "MARKETING"


# fmt: off
ENDS: Final = (  # Source: facts 5.2, the codes of mode A. The first row that applies decides.
    #   condition             code    which messages
    End("",                   131026, lambda message: message.is_business),
    End("not_on_whatsapp",    131026, _every),
    End("old_client",         131026, _every),
    End("terms_not_accepted", 131026, _every),
    End("",                   131047, lambda message: not message.category and not message.is_in_window),
    End("",                   131050, lambda message: _is_marketing(message) and not message.wants_marketing),
    End("in_experiment",      130472, lambda message: _is_marketing(message) and not message.is_in_window),
    End("marketing_limit",    131049, _is_marketing),
)
# fmt: on

CONDITIONS: Final = tuple(end.condition for end in ENDS if end.condition)
"""What may be the matter with a phone."""


def failure_of(situation: Situation) -> int | None:
    """The code that the message fails with; None when it does not."""
    for end in ENDS:
        if end.condition in ("", situation.condition) and end.fails(situation):
            return end.code
    return None


def lifetime_ms(template: Template | None) -> int:
    """How long a message may wait for its phone; after that it is dropped and nobody is told.

    Args:
        template: None for a session message.

    Source: facts 2.3 (-1 stands for 30 days), 7.3.
    """
    if template is None:
        return LIFETIMES_MS[""]
    own_s = template.message_send_ttl_seconds
    if own_s is None:
        return LIFETIMES_MS.get(template.category, LIFETIMES_MS[""])
    return LIFETIMES_MS[""] if own_s < 0 else own_s * 1000
