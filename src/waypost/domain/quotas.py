"""Quotas of what one partner may have waiting."""

from dataclasses import dataclass
from typing import Final

DEFAULT_MESSAGE_QUOTA: Final = 1_000_000
DEFAULT_CALLBACK_QUOTA: Final = 4_000_000  # four for each message: enqueued, sent, delivered, read
MAX_QUOTA: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PartnerQuotas:
    """The maximum of what may wait; 0: no limit. Source: decision 0099.

    Attributes:
        messages: that wait for the operator.
        callbacks: that wait for the partner's receivers.
    """

    messages: int = DEFAULT_MESSAGE_QUOTA
    callbacks: int = DEFAULT_CALLBACK_QUOTA
