"""The price of a message in billing callbacks."""

import pytest

from waypost.domain.event import StatusEvent
from waypost.operators.cloud.webhook_items import status_event
from waypost.wire.callbacks.callback_v2 import deductions


def status(billable: object) -> StatusEvent:
    """Return a status with this price."""
    pricing = {"billable": billable, "pricing_model": "PMP", "category": "utility", "type": "regular"}
    content = {"id": "wamid.1", "status": "sent", "timestamp": "1760000000", "recipient_id": "15551234567"}
    event = status_event({**content, "pricing": pricing}, {}, "1")
    assert isinstance(event, StatusEvent)
    return event


@pytest.mark.parametrize("free", [False, "false", "False", " FALSE ", "0", 0])
def test_message_that_is_free_is_not_billable_however_the_operator_writes_it(free: object) -> None:
    assert deductions(status(free))["billable"] is False


@pytest.mark.parametrize("priced", [True, "true", 1, None, "perhaps"])
def test_every_other_message_is_billable(priced: object) -> None:
    assert deductions(status(priced))["billable"] is True
