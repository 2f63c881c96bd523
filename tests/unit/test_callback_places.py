"""How many places in flight an address gets, by how it has been lately."""

import pytest

from waypost.callbacks.worker import FAILING, SLOW_SHARE, Address, places_of


@pytest.mark.parametrize(
    ("address", "places"),
    [
        (Address(), None),
        (Address(failures=FAILING - 1), None),
        (Address(failures=FAILING), 1),
        (Address(is_slow=True), SLOW_SHARE),
        (Address(failures=FAILING, is_slow=True), 1),
    ],
)
def test_address_gets_as_many_places_as_it_has_earned(address: Address, places: int | None) -> None:
    assert places_of(address) == places
