"""A receiver can be checked at any time: it gets a signed ping, and its response is returned."""

import pytest
from standardwebhooks import Webhook

from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink, respond_always
from waypost.client.api_client import ApiResponseError


@pytest.fixture
def engine() -> str:
    """Run on one engine: checks store nothing."""
    return "sqlite"


@pytest.mark.parametrize("version", ["2", "3"])
async def test_check_sends_the_ping_of_the_version_signed_with_the_headers_of_the_partner(
    service: CallbackService, sink: CallbackSink, version: str
) -> None:
    meta = '{"headers":{"X-Own":"kept","Webhook-Id":"forged"}}'
    subscription = await service.subscribe(sink.url, version=version, meta=meta)

    check = await service.admin("POST", f"subscriptions/{subscription}/check", {})

    [ping] = sink.requests
    assert (check["delivered"], check["status"], check["error"]) == (True, 200, None)
    assert check["sent"].encode() == ping.body
    assert ("sandbox-start" in check["sent"]) is (version == "2")
    assert ping.headers["X-Own"] == "kept"
    assert check["request_headers"]["X-Own"] == "(hidden)"
    assert check["request_headers"]["webhook-id"] == ping.headers["webhook-id"]
    key = (await service.admin("GET", f"subscriptions/{subscription}/key"))["key"]
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    Webhook(key).verify(ping.body, {name: ping.headers[name] for name in names})


async def test_check_reports_the_response_of_a_receiver_or_its_absence(
    service: CallbackService, sink: CallbackSink
) -> None:
    sink.choose_status = respond_always(503)
    subscription = await service.subscribe(sink.url)

    failed = await service.admin("POST", f"subscriptions/{subscription}/check", {})
    await sink.close()
    unreachable = await service.admin("POST", f"subscriptions/{subscription}/check", {})

    assert (failed["delivered"], failed["status"]) == (False, 503)
    assert (unreachable["delivered"], unreachable["status"]) == (False, None)
    assert unreachable["error"]
    assert (await service.subscription_health(subscription))["failing_since_ms"] is None


async def test_check_of_an_unknown_subscription_is_an_error(service: CallbackService) -> None:
    with pytest.raises(ApiResponseError, match="There is no subscription "):
        await service.admin("POST", "subscriptions/77/check", {})


async def test_subscription_shows_since_when_its_oldest_callback_waits(
    service: CallbackService, sink: CallbackSink
) -> None:
    subscription = await service.subscribe(sink.url)
    assert (await service.subscription_health(subscription))["waiting_since_ms"] is None
    await service.partner("PUT", f"subscription/{subscription}", {"active": "false"})

    sink.choose_status = respond_always(503)
    await service.partner("PUT", f"subscription/{subscription}", {"active": "true"})
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: bool(sink.requests))

    assert (await service.subscription_health(subscription))["waiting_since_ms"] == service.clock.now_ms()
