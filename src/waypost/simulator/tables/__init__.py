"""What is found by more than its key: tables with columns of their own, their rows and their SQL."""

from typing import Final

from waypost.simulator.tables.messages import MESSAGES
from waypost.simulator.tables.phone_plans import ACTS, STEPS, WAITING
from waypost.simulator.tables.updates import JUDGED, OUTBOX

SCHEMA: Final = "".join(table.schema for table in (MESSAGES, WAITING, ACTS, STEPS, OUTBOX, JUDGED))
"""The statements that make all of them where they are not there."""
