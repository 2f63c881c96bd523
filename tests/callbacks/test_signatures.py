"""Callbacks are signed by Standard Webhooks; the standard's own library is the referee."""

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink, Try
from waypost.base.clock import ManualClock


def verified(key: str, one: Try) -> object:
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return Webhook(key).verify(one.body, {name: one.headers[name] for name in names})


async def told(teller: Teller, sink: CallbackSink) -> Try:
    count = len(sink.tries)
    await teller.tell("ann")
    await sink.wait_until(lambda: len(sink.tries) > count)
    return sink.tries[-1]


async def test_signature_is_verified_with_the_key_that_is_shown(teller: Teller, sink: CallbackSink) -> None:
    subscription = await teller.subscribe(sink.url)

    one = await told(teller, sink)

    key = (await teller.admin("GET", f"subscriptions/{subscription}/key"))["key"]
    assert key.startswith("whsec_")
    assert verified(key, one) == {"about": "ann", "turn": 0}
    assert one.headers["webhook-id"] == one.headers["Waypost-Callback-Id"]


async def test_changed_body_id_or_key_is_not_verified(teller: Teller, sink: CallbackSink) -> None:
    first = await teller.subscribe(sink.url, "first")
    second = await teller.subscribe("http://127.0.0.1:9/", "second")
    one = await told(teller, sink)
    keys = [(await teller.admin("GET", f"subscriptions/{each}/key"))["key"] for each in (first, second)]

    assert keys[0] != keys[1]
    wrong = (
        (keys[1], one),
        (keys[0], Try(one.body + b" ", one.headers, one.path)),
        (keys[0], Try(one.body, {**one.headers, "webhook-id": "another"}, one.path)),
    )
    for key, changed in wrong:
        with pytest.raises(WebhookVerificationError):
            verified(key, changed)


async def test_both_keys_sign_while_a_rotation_lasts_and_only_the_new_one_after_it(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    subscription = await teller.subscribe(sink.url)
    path = f"subscriptions/{subscription}/key"
    old = (await teller.admin("GET", path))["key"]

    told_keys = await teller.admin("POST", f"{path}/rotate", {"keep_old_for_s": 3600})
    during = await told(teller, sink)
    clock.advance(ms=3_600_000)
    after = await told(teller, sink)

    assert told_keys["old_key"] == old
    assert len(during.headers["webhook-signature"].split()) == 2
    verified(old, during)
    verified(told_keys["key"], during)
    verified(told_keys["key"], after)
    with pytest.raises(WebhookVerificationError):
        verified(old, after)
    assert (await teller.admin("GET", path))["old_key"] is None


async def test_key_is_the_same_after_a_restart(teller: Teller, sink: CallbackSink) -> None:
    subscription = await teller.subscribe(sink.url)
    path = f"subscriptions/{subscription}/key"
    key = (await teller.admin("GET", path))["key"]

    await teller.close()
    await teller.open()

    assert (await teller.admin("GET", path))["key"] == key
    verified(key, await told(teller, sink))


async def test_headers_of_the_partner_never_stand_in_for_ours(teller: Teller, sink: CallbackSink) -> None:
    meta = '{"headers":{"Webhook-Id":"forged","WAYPOST-SEQUENCE":"9","X-Own":"kept"}}'
    subscription = await teller.subscribe(sink.url, meta=meta)

    one = await told(teller, sink)

    assert one.sequence == 1
    assert one.headers["X-Own"] == "kept"
    key = (await teller.admin("GET", f"subscriptions/{subscription}/key"))["key"]
    verified(key, one)
