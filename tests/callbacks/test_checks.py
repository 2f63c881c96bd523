"""A receiver can be checked at any time: it gets a signed ping, and whoever asked sees what it answered."""

import pytest
from standardwebhooks import Webhook

from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink, always
from waypost.client.api_client import ApiResponseError


@pytest.fixture
def engine() -> str:
    """Nothing of it is kept."""
    return "sqlite"


@pytest.mark.parametrize("version", ["2", "3"])
async def test_check_sends_the_ping_of_the_version_signed_with_the_headers_of_the_partner(
    teller: Teller, sink: CallbackSink, version: str
) -> None:
    meta = '{"headers":{"X-Own":"kept","Webhook-Id":"forged"}}'
    subscription = await teller.subscribe(sink.url, version=version, meta=meta)

    told = await teller.admin("POST", f"subscriptions/{subscription}/check", {})

    [ping] = sink.tries
    assert (told["taken"], told["status"], told["error"]) == (True, 200, None)
    assert told["sent"].encode() == ping.body
    assert ("sandbox-start" in told["sent"]) is (version == "2")
    assert ping.headers["X-Own"] == "kept"
    key = (await teller.admin("GET", f"subscriptions/{subscription}/key"))["key"]
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    Webhook(key).verify(ping.body, {name: ping.headers[name] for name in names})


async def test_check_says_what_a_receiver_answers_and_that_none_does(teller: Teller, sink: CallbackSink) -> None:
    sink.answers = always(503)
    subscription = await teller.subscribe(sink.url)

    refused = await teller.admin("POST", f"subscriptions/{subscription}/check", {})
    await sink.close()
    silent = await teller.admin("POST", f"subscriptions/{subscription}/check", {})

    assert (refused["taken"], refused["status"]) == (False, 503)
    assert (silent["taken"], silent["status"]) == (False, None)
    assert silent["error"]
    assert (await teller.standing(subscription))["failing_since_ms"] is None


async def test_check_of_a_subscription_that_there_is_not_is_refused(teller: Teller) -> None:
    with pytest.raises(ApiResponseError, match="no such subscription"):
        await teller.admin("POST", "subscriptions/77/check", {})


async def test_receivers_say_since_when_something_waits(teller: Teller, sink: CallbackSink) -> None:
    subscription = await teller.subscribe(sink.url)
    assert (await teller.standing(subscription))["waiting_since_ms"] is None
    await teller.partner("PUT", f"subscription/{subscription}", {"active": "false"})

    sink.answers = always(503)
    await teller.partner("PUT", f"subscription/{subscription}", {"active": "true"})
    await teller.tell("ann")
    await sink.wait_until(lambda: bool(sink.tries))

    assert (await teller.standing(subscription))["waiting_since_ms"] == teller.clock.now_ms()
