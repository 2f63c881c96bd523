"""What may be stored of a subscription follows from its changes and their responses."""

import pytest

from simulation.agreement import Change, ExpectedTerms, check_subscriptions
from simulation.client import Response

ALL = frozenset({"READ", "SENT"})
DONE, REJECTED, LOST = Response(200), Response(429), None


def expected(*changes: tuple[Change, Response | None]) -> ExpectedTerms:
    terms = ExpectedTerms((ALL, True))
    for change, response in changes:
        terms.note(change, response)
    return terms


@pytest.mark.parametrize(
    ("terms", "stored", "is_right"),
    [
        (expected(), ("READ,SENT", True), True),
        (expected((Change(active=False), DONE)), ("READ,SENT", True), False),
        (expected((Change(active=False), DONE)), ("READ,SENT", False), True),
        (expected((Change(active=False), REJECTED)), ("READ,SENT", False), False),
        (expected((Change(active=False), LOST), (Change(active=True), DONE)), ("READ,SENT", False), True),
        (expected((Change(frozenset({"READ"})), DONE)), ("READ,SENT", True), False),
        (expected((Change(deletes=True), DONE)), None, True),
        (expected((Change(deletes=True), DONE)), ("READ,SENT", True), False),
        (expected((Change(deletes=True), LOST)), None, True),
        (expected((Change(deletes=True), DONE), (Change(active=True), LOST)), ("READ,SENT", True), False),
    ],
)
def test_subscription_is_stored_as_it_was_left(
    terms: ExpectedTerms, stored: tuple[str, bool] | None, is_right: bool
) -> None:
    rows = [] if stored is None else [("/path", *stored)]

    assert (not [*check_subscriptions({"/path": terms}, rows)]) == is_right
