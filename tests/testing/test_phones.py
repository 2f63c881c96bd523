"""A person's actions with a test's phone, and the callbacks to the partner."""

import json
from typing import Final

import pytest

from pytest_waypost.client import ApiResponseError
from pytest_waypost.failures import NotSeen
from pytest_waypost.partner import Partner
from tests.support.flow_json import one_screen_flow
from tests.testing.test_partner import PIXEL

SCREENS: Final = one_screen_flow()


def test_same_name_is_the_same_phone(partner: Partner) -> None:
    ann, ben = partner.phone("Ann"), partner.phone("Ben")

    assert partner.phone("Ann") is ann
    assert ann.number != ben.number
    assert str(ann) == ann.number


def test_many_phones_have_different_numbers(partner: Partner) -> None:
    phones = [partner.phone(f"Guest {number}") for number in range(25)]

    assert len({phone.number for phone in phones}) == 25


def test_image_and_location_of_a_person_are_called_back(partner: Partner) -> None:
    ann = partner.phone("Ann")

    ann.send_media("image", PIXEL, "image/png", caption="Broken")
    ann.send_location(52.5, 13.4, name="Home")

    assert partner.wait_for_callback("image").text == "Broken"
    location = partner.wait_for_callback("location").body["payload"]["payload"]
    assert float(location["latitude"]) == 52.5


def test_reaction_and_reply_name_the_message_they_are_about(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")
    message_id = partner.send_text("Did you like it?", ann)
    message = ann.wait_for_message("like")

    ann.react("👍")
    ann.write("Very much", reply_to=message)

    assert partner.wait_for_callback("reaction").kind == "reaction"
    reply = partner.wait_for_callback("text", where=lambda callback: callback.text == "Very much")
    assert reply.message_id == message_id


def test_location_in_reply_to_a_request_names_the_request(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")
    message_id = partner.send_session(
        {
            "type": "location_request_message",
            "body": {"type": "text", "text": "Where are you?"},
            "action": {"name": "send_location"},
        },
        ann,
    )

    ann.send_location(52.5, 13.4, reply_to=ann.wait_for_message("Where"))

    assert partner.wait_for_callback("location").message_id == message_id


def test_order_is_paid_after_a_failed_payment(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("One tea, please")
    parameters = {
        "reference_id": "order-7",
        "type": "digital-goods",
        "currency": "INR",
        "total_amount": {"value": 12000, "offset": 100},
    }
    action = {"name": "review_and_pay", "parameters": parameters}
    interactive = {"type": "order_details", "body": {"text": "Your order"}, "action": action}
    order_id = partner.send_passthrough({"type": "interactive", "interactive": interactive}, ann)

    failed = ann.pay(status="failed")
    paid = ann.pay()

    assert failed != paid
    message = ann.wait_for_message("Your order")
    assert message.message_id == order_id
    assert message.raw["payment"]["transaction_id"] == paid
    with pytest.raises(ApiResponseError, match="paid already"):
        ann.pay(message)


def test_row_of_a_list_is_chosen_by_its_title(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")
    options = [{"type": "text", "title": title, "postbackText": title[0]} for title in ("Tea", "Milk")]
    partner.send_session(
        {
            "type": "list",
            "title": "Menu",
            "body": "What shall it be?",
            "globalButtons": [{"type": "text", "title": "Choose"}],
            "items": [{"title": "Drinks", "options": options}],
        },
        ann,
    )

    ann.tap("Milk")

    assert partner.wait_for_callback("list_reply").postback_text == "M"


def test_unknown_button_is_an_error_that_names_the_existing_buttons(partner: Partner) -> None:
    ann = partner.phone("Ann")
    template = partner.create_template("choice", "Yes or no?", buttons=["Yes", "No"])
    partner.send_template(template, ann)
    message = ann.wait_for_message()

    with pytest.raises(NotSeen, match=r"no button \[Maybe\]; its buttons are: Yes, No"):
        ann.tap("Maybe", message)


def test_offline_phone_gets_its_messages_in_order_when_it_is_online_again(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Off to the hills")
    ann.go_offline()
    for text in ("first", "second"):
        partner.send_text(text, ann)
    partner.wait_for_callback("sent")
    partner.wait_for_callback("sent")
    assert ann.inbox == ()

    ann.go_online()

    assert [ann.wait_for_message().text for _ in range(2)] == ["first", "second"]


def test_blocked_partner_gets_no_delivered_callback(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Enough")
    partner.wait_for_callback("text")
    ann.block()

    partner.send_text("Please", ann)
    partner.clock.wait_until_idle()

    assert [callback.kind for callback in partner.callbacks] == ["text", "enqueued", "sent"]
    assert ann.inbox == ()


def test_marketing_message_to_a_phone_that_stopped_marketing_fails(partner: Partner) -> None:
    ann = partner.phone("Ann")
    template = partner.create_template("sale", "Everything must go", category="MARKETING")
    ann.write("Hi")
    ann.stop_marketing()

    partner.send_template(template, ann)

    assert partner.wait_for_callback("failed").reason.startswith("131050")
    ann.resume_marketing()
    partner.send_template(template, ann)
    ann.wait_for_message("must go")


def test_flow_is_filled_in_and_sent_back(partner: Partner) -> None:
    ann = partner.phone("Ann")
    partner.callbacks_to("", version=3)
    flow_id = partner.publish_flow("booking", SCREENS)
    button = {"type": "FLOW", "text": "Book", "flow_id": flow_id, "flow_action": "NAVIGATE", "navigate_screen": "START"}
    template = partner.create_template("book", "A table?", category="MARKETING", buttons=[button])
    message_id = partner.send_template(template, ann)

    ann.submit_form({"seats": "4"})

    reply = partner.wait_for_callback("interactive")
    message = reply.body["entry"][0]["changes"][0]["value"]["messages"][0]
    response = json.loads(message["interactive"]["nfm_reply"]["response_json"])
    assert (response["seats"], reply.message_id) == ("4", message_id)


def test_unknown_phone_setting_is_an_error_that_names_the_existing_settings(partner: Partner) -> None:
    with pytest.raises(ApiResponseError, match="deliver_after_ms"):
        partner.phone("Ann").set(is_lost=True)
