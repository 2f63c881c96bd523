"""Tables with columns of their own, for data that is queried by more than its key: their rows and their SQL."""

from typing import Final

from waypost.simulator.storage.tables.messages import GROUP_DELIVERIES, MESSAGES
from waypost.simulator.storage.tables.phone_plans import PLANNED_ACTIONS, STEP_COUNTS, WAITING_MESSAGES
from waypost.simulator.storage.tables.updates import FAULTED_UPDATES, OUTBOX

SCHEMA: Final = "".join(
    table.schema
    for table in (MESSAGES, WAITING_MESSAGES, PLANNED_ACTIONS, STEP_COUNTS, OUTBOX, FAULTED_UPDATES, GROUP_DELIVERIES)
)
"""The statements that create all tables that do not exist yet."""
