"""The table of messages that fail on a phone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class FailureFacts:
    """The facts that decide whether a message fails.

    Args:
        condition: the phone's; empty: no problem.
        category: the template's; empty for a session message.
        is_number: whether a country may have the number.
        is_business: whether the phone is a business number.
        is_in_window: whether it wrote in the last 24 hours.
        wants_marketing: whether its owner accepts the business's marketing.
    """

    condition: str
    category: str
    is_number: bool
    is_business: bool
    is_in_window: bool
    wants_marketing: bool


@dataclass(frozen=True)
class FailureRule:
    """One row: the code with which some messages fail on phones of a condition (empty: on all phones)."""

    condition: str
    code: int
    fails: Callable[[FailureFacts], bool]


def _is_any_message(_situation: FailureFacts) -> bool:
    return True


def _is_marketing(situation: FailureFacts) -> bool:
    return situation.category == "MARKETING"


# fmt: off
FAILURE_RULES: Final = (  # Source: facts 5.2, the codes of mode A. The first row that applies decides.
    #   condition             code    which messages
    FailureRule("",                   131026, lambda message: message.is_business or not message.is_number),
    FailureRule("not_on_whatsapp",    131026, _is_any_message),
    FailureRule("old_client",         131026, _is_any_message),
    FailureRule("terms_not_accepted", 131026, _is_any_message),
    FailureRule("",                   131047, lambda message: not message.category and not message.is_in_window),
    FailureRule("",                   131050, lambda message: _is_marketing(message) and not message.wants_marketing),
    FailureRule("in_experiment",      130472, lambda message: _is_marketing(message) and not message.is_in_window),
    FailureRule("marketing_limit",    131049, _is_marketing),
)
# fmt: on


PHONE_CONDITIONS: Final = tuple(end.condition for end in FAILURE_RULES if end.condition)
"""Every condition that a phone may have."""


def find_failure_code(facts: FailureFacts) -> int | None:
    """Return the code with which a message fails; None if it does not fail."""
    for rule in FAILURE_RULES:
        if rule.condition in ("", facts.condition) and rule.fails(facts):
            return rule.code
    return None
