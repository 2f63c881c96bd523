"""The table of messages that fail on a phone, and how long a message may wait for a phone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import DAY_MS, MINUTE_MS
from waypost.simulator.templates.template import Template

# fmt: off
LIFETIMES_MS: Final = {  # Source: facts 2.3, `message_send_ttl_seconds`; a template's own lifetime takes precedence
    "":               30 * DAY_MS,    # a session message
    "AUTHENTICATION": 10 * MINUTE_MS,
    "UTILITY":        30 * DAY_MS,
    "MARKETING":      30 * DAY_MS,
}
# fmt: on


@dataclass(frozen=True)
class Situation:
    """The facts that decide whether a message fails.

    Args:
        condition: the phone's; empty: no problem.
        category: the template's; empty for a session message.
        is_business: whether the phone is a business number.
        is_in_window: whether it wrote in the last 24 hours.
        wants_marketing: whether its owner accepts the business's marketing.
    """

    condition: str
    category: str
    is_business: bool
    is_in_window: bool
    wants_marketing: bool


@dataclass(frozen=True)
class End:
    """One row: the code with which some messages fail on phones of a condition (empty: on all phones)."""

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
"""Every condition that a phone may have."""


def failure_of(situation: Situation) -> int | None:
    """Return the code with which a message fails; None if it does not fail."""
    for rule in ENDS:
        if rule.condition in ("", situation.condition) and rule.fails(situation):
            return rule.code
    return None


def lifetime_ms(template: Template | None) -> int:
    """Return how long a message may wait for its phone; after that it is dropped without a status.

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
