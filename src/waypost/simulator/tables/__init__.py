"""Tables with columns of their own, for data that is queried by more than its key: their rows and their SQL."""

from typing import Final

from waypost.simulator.tables.messages import MESSAGES
from waypost.simulator.tables.phone_plans import ACTS, STEPS, WAITING
from waypost.simulator.tables.updates import JUDGED, OUTBOX

SCHEMA: Final = "".join(table.schema for table in (MESSAGES, WAITING, ACTS, STEPS, OUTBOX, JUDGED))
"""The statements that create all tables that do not exist yet."""
