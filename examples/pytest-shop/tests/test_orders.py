"""What the shop promises, with customers who hold simulated phones."""

from shop.shop import Shop
from waypost.testing import Partner


def test_customer_is_asked_whether_the_order_is_right(open_shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")

    order_id = open_shop.place("Ann", ann.number, "green tea")

    message = ann.wait_for_message("green tea")
    assert message.text == f"Hi Ann, thank you for your order {order_id}: green tea. All right?"
    assert message.labels == ("Keep it", "Cancel it")
    waypost.wait_for_callback("delivered", message_id=message.message_id)
    assert open_shop.order(order_id).message_state == "delivered"


def test_tap_cancels_the_order_and_the_customer_reads_so(open_shop: Shop, waypost: Partner) -> None:
    ann, ben = waypost.phone("Ann"), waypost.phone("Ben")
    anns = open_shop.place("Ann", ann.number, "green tea")
    bens = open_shop.place("Ben", ben.number, "coffee")
    ben.wait_for_message("coffee")

    ann.tap("Cancel it")

    ann.wait_for_message(f"Your order {anns} is cancelled.")
    assert open_shop.order(anns).state == "cancelled"
    assert open_shop.order(bens).state == "placed"


def test_tap_that_is_told_twice_is_answered_once(open_shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")
    open_shop.place("Ann", ann.number, "green tea")

    with waypost.fault(webhook="message", duplicate=1):
        ann.tap("Keep it")
        ann.wait_for_message("is confirmed")
        waypost.clock.wait_until_idle()

    assert [one.text for one in ann.inbox if "confirmed" in one.text] == ["Your order 1 is confirmed."]


def test_rejected_template_holds_orders_back_and_says_why(shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")
    order_id = shop.place("Ann", ann.number, "green tea")

    waypost.reject_template("order_confirmation", "TAG_CONTENT_MISMATCH")

    waypost.wait_for_callback("status-update")
    waypost.clock.wait_until_idle()
    assert shop.problems == {"order_confirmation": "TAG_CONTENT_MISMATCH"}
    assert shop.order(order_id).message_id == ""
    assert ann.inbox == ()


def test_outage_of_the_operator_delays_a_message_and_doubles_none(open_shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")

    with waypost.fault("messages.send", next=3, error=131016) as outage:
        open_shop.place("Ann", ann.number, "green tea")
        waypost.clock.advance(minutes=5)
        strikes = outage.hits

    ann.wait_for_message("green tea")
    assert strikes == 3
    assert len(ann.inbox) == 1


def test_day_after_the_customer_wrote_a_template_takes_over(open_shop: Shop, waypost: Partner) -> None:
    ann = waypost.phone("Ann")
    order_id = open_shop.place("Ann", ann.number, "green tea")
    ann.write("Where is my tea?")
    waypost.wait_for_callback("text")
    open_shop.write(order_id, "On its way, Ann!")
    ann.wait_for_message("On its way, Ann!")

    waypost.clock.advance(hours=25)
    open_shop.write(order_id, "It is in the next street.")

    ann.wait_for_message(f"News of your order {order_id}: it is placed now.")
    assert "It is in the next street." not in [one.text for one in ann.inbox]
