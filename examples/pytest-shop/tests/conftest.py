"""The one fixture: a running shop whose callbacks come from the partner of the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shop.messenger import Messenger
from shop.orders import Orders
from shop.receiver import receiving
from shop.shop import Shop
from waypost.testing import Partner


@pytest.fixture
def shop(waypost: Partner, tmp_path: Path) -> Iterator[Shop]:
    """The shop, configured as it would be in real life, with templates that wait for their review."""
    orders = Orders(tmp_path / "orders.db")
    shop = Shop(Messenger(waypost.env), orders)
    with receiving(shop) as url:
        waypost.callbacks_to(url)
        shop.submit_templates()
        yield shop
    orders.close()


@pytest.fixture
def open_shop(shop: Shop, waypost: Partner) -> Shop:
    """The shop with its templates approved, and aware of it."""
    for name in ("order_confirmation", "order_update"):
        waypost.approve_template(name)
        waypost.wait_for_callback("status-update")
    return shop
