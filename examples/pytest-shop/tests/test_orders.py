"""Tests of the shop, with customers on simulated phones."""

from pytest_waypost import Partner
from shop.shop import Shop


def test_order_is_confirmed_by_a_message(open_shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")

    order_id = open_shop.place_order("Ann", ann.number, "green tea")

    message = ann.wait_for_message("green tea")
    assert message.text == f"Hi Ann, thank you for your order {order_id}: green tea. All right?"
    assert message.labels == ("Keep it", "Cancel it")
    waypost.wait_for_callback("delivered", message_id=message.message_id)
    assert open_shop.get_order(order_id).message_state == "delivered"


def test_tap_cancels_the_order_and_the_customer_is_notified(open_shop: Shop, waypost: Partner) -> None:
    ann, ben = waypost.phone("Ann"), waypost.phone("Ben")
    anns = open_shop.place_order("Ann", ann.number, "green tea")
    bens = open_shop.place_order("Ben", ben.number, "coffee")
    ben.wait_for_message("coffee")

    ann.tap("Cancel it")

    ann.wait_for_message(f"Your order {anns} is cancelled.")
    assert open_shop.get_order(anns).state == "cancelled"
    assert open_shop.get_order(bens).state == "placed"


def test_repeated_tap_is_processed_once(open_shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")
    open_shop.place_order("Ann", ann.number, "green tea")

    with waypost.fault(webhook="message", duplicate=1):
        ann.tap("Keep it")
        ann.wait_for_message("is confirmed")
        waypost.clock.wait_until_idle()

    assert [message.text for message in ann.inbox if "confirmed" in message.text] == ["Your order 1 is confirmed."]


def test_orders_are_not_confirmed_while_the_template_is_rejected(shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")
    order_id = shop.place_order("Ann", ann.number, "green tea")

    waypost.reject_template("order_confirmation", "TAG_CONTENT_MISMATCH")

    waypost.wait_for_callback("status-update")
    waypost.clock.wait_until_idle()
    assert shop.rejection_reasons == {"order_confirmation": "TAG_CONTENT_MISMATCH"}
    assert shop.get_order(order_id).message_id == ""
    assert ann.inbox == ()


def test_outage_of_the_operator_delays_a_message_without_duplicating_it(open_shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")

    with waypost.fault("messages.send", next=3, error=131016) as outage:
        open_shop.place_order("Ann", ann.number, "green tea")
        waypost.clock.advance(minutes=5)
        hits = outage.hits

    ann.wait_for_message("green tea")
    assert hits == 3
    assert len(ann.inbox) == 1


def test_template_replaces_a_text_after_the_window_has_closed(open_shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")
    order_id = open_shop.place_order("Ann", ann.number, "green tea")
    ann.write("Where is my tea?")
    waypost.wait_for_callback("text")
    open_shop.send_text(order_id, "On its way, Ann!")
    ann.wait_for_message("On its way, Ann!")

    waypost.clock.advance(hours=25)
    open_shop.send_text(order_id, "It is in the next street.")

    ann.wait_for_message(f"Update on your order {order_id}: it is placed now.")
    assert "It is in the next street." not in [message.text for message in ann.inbox]
