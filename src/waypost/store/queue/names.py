"""The queues, and the states of their jobs."""

from enum import IntEnum


class QueueName(IntEnum):
    """The queues; the numbers are stored."""

    OUTBOUND = 1
    WEBHOOKS = 2
    CALLBACKS = 3
    UNCONFIRMED = 4
    MEDIA = 5


class JobState(IntEnum):
    """States of a job; the numbers are stored."""

    OPEN = 0
    IN_FLIGHT = 1
    DEAD_LETTER = 2
    DEAD_LETTER_IN_FLIGHT = 3  # and it may have been sent
