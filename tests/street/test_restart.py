"""The service stops and starts again on the same folder: whatever waited goes on."""

from typing import Any

from tests.support.between import Between
from tests.support.builders import APP
from tests.support.callback_sink import always
from tests.support.street import Street
from waypost.base.clock import ManualClock


async def test_message_taken_before_a_restart_is_sent_after_it(make_street: Any) -> None:
    street: Street = await make_street(clock=ManualClock())
    await street.open_window()
    await street.close_operator()
    message_id = await street.send_text()
    await street.close_service()
    await street.open_operator()

    await street.open_service()
    await street.pass_time_until(lambda: has_come(street, message_id, "delivered"))

    events = await street.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await street.deliveries(message_id)) == 1


async def test_doubt_of_before_a_restart_ends_after_it(make_street: Any) -> None:
    clock = ManualClock()
    between = Between()
    street: Street = await make_street(clock=clock, between=between)
    await street.open_window()
    between.let_webhooks_pass = False
    between.lose_answers = 1
    message_id = await street.send_text()
    await street.wait_for_state(message_id, "uncertain")
    await street.close_service()

    await street.open_service()
    clock.advance(ms=900_001)

    [failed] = await street.events_of(message_id, until="failed")
    assert failed["payload"]["code"] == 4002
    assert between.sends == 1


async def test_callback_refused_before_a_restart_comes_after_it_with_the_same_bytes(make_street: Any) -> None:
    street: Street = await make_street(clock=ManualClock())
    await street.open_window()
    street.sink.answers = always(500)
    message_id = await street.send_text()
    await street.wait_for_state(message_id, "delivered")
    await street.sink.wait_until(lambda: len(street.sink.tries) == 2)
    await street.close_service()
    street.sink.answers = always(200)

    await street.open_service()
    await street.pass_time_until(lambda: len(street.sink.taken) == 4)

    _, refused, *rest = street.sink.tries
    assert (refused.body, refused.callback_id) == (rest[0].body, rest[0].callback_id)
    assert [one.sequence for one in street.sink.taken] == [1, 2, 3, 4]


async def test_news_that_came_while_the_service_was_stopped_arrives_after_it(make_street: Any) -> None:
    street: Street = await make_street(clock=ManualClock())
    await street.open_window()
    message_id = await street.send_text()
    await street.events_of(message_id, until="delivered")
    await street.close_service()
    await street.read()

    await street.open_service()
    await street.pass_time_until(lambda: has_come(street, message_id, "read"))

    events = await street.events_of(message_id, until="read")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered", "read"]


async def test_credentials_templates_and_subscriptions_outlive_a_restart(make_street: Any) -> None:
    street: Street = await make_street()
    template_id = await street.approved_template()
    path = f"/partner/app/{APP.id}/subscription"
    headers = {"Authorization": street.app_token}
    before = await street.ask("GET", path, headers=headers)
    await street.close_service()

    await street.open_service()

    assert (await street.ask("GET", path, headers=headers)).raw == before.raw
    message_id = await street.send(template_id)
    await street.events_of(message_id, until="delivered")


def has_come(street: Street, message_id: str, news: str) -> bool:
    """Whether the partner has been told."""
    return any(
        callback["payload"]["type"] == news
        and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
        for callback in street.callbacks
    )
