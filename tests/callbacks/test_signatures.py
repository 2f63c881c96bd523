"""Callbacks are signed as in Standard Webhooks; the standard's own library verifies them."""

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink, ReceivedCallback
from tests.support.manual_clock import ManualClock


def verify(key: str, attempt: ReceivedCallback) -> object:
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return Webhook(key).verify(attempt.body, {name: attempt.headers[name] for name in names})


async def emit_callback(service: CallbackService, sink: CallbackSink) -> ReceivedCallback:
    count = len(sink.requests)
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.requests) > count)
    return sink.requests[-1]


async def test_signature_is_verified_with_the_shown_key(service: CallbackService, sink: CallbackSink) -> None:
    subscription = await service.subscribe(sink.url)

    attempt = await emit_callback(service, sink)

    key = (await service.admin("GET", f"subscriptions/{subscription}/key"))["key"]
    assert key.startswith("whsec_")
    assert verify(key, attempt) == {"about": "ann", "turn": 0}
    assert attempt.headers["webhook-id"] == attempt.headers["Waypost-Callback-Id"]


async def test_changed_body_id_or_key_is_not_verified(service: CallbackService, sink: CallbackSink) -> None:
    first = await service.subscribe(sink.url, "first")
    second = await service.subscribe("http://127.0.0.1:9/", "second")
    attempt = await emit_callback(service, sink)
    ids = (first, second)
    keys = [(await service.admin("GET", f"subscriptions/{subscription}/key"))["key"] for subscription in ids]

    assert keys[0] != keys[1]
    wrong = (
        (keys[1], attempt),
        (keys[0], ReceivedCallback(attempt.body + b" ", attempt.headers, attempt.path)),
        (keys[0], ReceivedCallback(attempt.body, {**attempt.headers, "webhook-id": "another"}, attempt.path)),
    )
    for key, changed in wrong:
        with pytest.raises(WebhookVerificationError):
            verify(key, changed)


async def test_both_keys_sign_during_a_rotation_and_only_the_new_key_after_it(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    subscription = await service.subscribe(sink.url)
    path = f"subscriptions/{subscription}/key"
    old = (await service.admin("GET", path))["key"]

    rotated = await service.admin("POST", f"{path}/rotate", {"keep_old_for_s": 3600})
    during = await emit_callback(service, sink)
    clock.advance(ms=3_600_000)
    after = await emit_callback(service, sink)

    assert rotated["old_key"] == old
    assert len(during.headers["webhook-signature"].split()) == 2
    verify(old, during)
    verify(rotated["key"], during)
    verify(rotated["key"], after)
    with pytest.raises(WebhookVerificationError):
        verify(old, after)
    assert (await service.admin("GET", path))["old_key"] is None


async def test_key_is_the_same_after_a_restart(service: CallbackService, sink: CallbackSink) -> None:
    subscription = await service.subscribe(sink.url)
    path = f"subscriptions/{subscription}/key"
    key = (await service.admin("GET", path))["key"]

    await service.close()
    await service.open()

    assert (await service.admin("GET", path))["key"] == key
    verify(key, await emit_callback(service, sink))


async def test_headers_of_the_partner_never_replace_ours(service: CallbackService, sink: CallbackSink) -> None:
    meta = '{"headers":{"Webhook-Id":"forged","WAYPOST-SEQUENCE":"9","X-Own":"kept"}}'
    subscription = await service.subscribe(sink.url, meta=meta)

    attempt = await emit_callback(service, sink)

    assert attempt.sequence == 1
    assert attempt.headers["X-Own"] == "kept"
    key = (await service.admin("GET", f"subscriptions/{subscription}/key"))["key"]
    verify(key, attempt)
