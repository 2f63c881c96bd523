"""Endpoint URLs are checked when they are registered, with and without a ping."""

import pytest

from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink
from waypost.client.api_client import ApiResponseError


@pytest.fixture
def engine() -> str:
    """Run on one engine: an invalid URL never reaches the store."""
    return "sqlite"


@pytest.mark.parametrize("do_check", ["true", "false"])
@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://0xa9fea9fe/", "http://[::ffff:10.0.0.1]/", "http://[fe80::1]/"]
)
async def test_endpoint_url_that_is_not_public_is_not_registered(
    service: CallbackService, url: str, do_check: str
) -> None:
    with pytest.raises(ApiResponseError, match="Invalid URL"):
        await service.subscribe(url, doCheck=do_check)

    assert (await service.admin("GET", "subscriptions"))["subscriptions"] == []


async def test_subscription_is_not_changed_to_an_endpoint_url_that_is_not_public(
    service: CallbackService, sink: CallbackSink
) -> None:
    subscription = await service.subscribe(sink.url)

    with pytest.raises(ApiResponseError, match="Invalid URL"):
        await service.partner(
            "PUT", f"subscription/{subscription}", {"url": "http://169.254.169.254/latest", "doCheck": "false"}
        )

    assert (await service.subscription_health(subscription))["url"] == sink.url
