"""Fixtures: a running shop that receives the callbacks of the test's own partner."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_waypost import Partner
from shop.messenger import Messenger
from shop.orders import Orders
from shop.receiver import serve_receiver
from shop.shop import Shop


@pytest.fixture
def shop(waypost: Partner, tmp_path: Path) -> Iterator[Shop]:
    """The shop, configured as in production; its templates wait for their review."""
    orders = Orders(tmp_path / "orders.db")
    shop = Shop(Messenger(waypost.env), orders)
    with serve_receiver(shop) as url:
        waypost.callbacks_to(url)
        shop.submit_templates()
        yield shop
    orders.close()


@pytest.fixture
def open_shop(shop: Shop, waypost: Partner) -> Shop:
    """The shop after it has received the approval of its templates."""
    for name in ("order_confirmation", "order_update"):
        waypost.approve_template(name)
        waypost.wait_for_callback("status-update")
    return shop
