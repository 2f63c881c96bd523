"""Addresses are vetted when they are registered, whether or not they are pinged."""

import pytest

from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink
from waypost.client.api_client import ApiResponseError


@pytest.fixture
def engine() -> str:
    """What is refused never reaches the store."""
    return "sqlite"


@pytest.mark.parametrize("do_check", ["true", "false"])
@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://0xa9fea9fe/", "http://[::ffff:10.0.0.1]/", "http://[fe80::1]/"]
)
async def test_address_that_is_not_public_is_not_registered(teller: Teller, url: str, do_check: str) -> None:
    with pytest.raises(ApiResponseError, match="Invalid URL"):
        await teller.subscribe(url, doCheck=do_check)

    assert (await teller.admin("GET", "subscriptions"))["subscriptions"] == []


async def test_subscription_is_not_moved_to_an_address_that_is_not_public(teller: Teller, sink: CallbackSink) -> None:
    subscription = await teller.subscribe(sink.url)

    with pytest.raises(ApiResponseError, match="Invalid URL"):
        await teller.partner(
            "PUT", f"subscription/{subscription}", {"url": "http://169.254.169.254/latest", "doCheck": "false"}
        )

    assert (await teller.standing(subscription))["url"] == sink.url
