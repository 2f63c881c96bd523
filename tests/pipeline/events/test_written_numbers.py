"""Numbers of the operator's webhooks reach a partner as the operator wrote them, in both versions."""

from string import Template
from typing import Final

import pytest

from tests.support.builders import ACCOUNT, ANN, APP
from tests.support.operator_webhook import post_body
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver

BODY: Final = Template(
    '{"object":"whatsapp_business_account","entry":[{"id":"$account","changes":[{"field":"$field","value":{'
    '"messaging_product":"whatsapp","metadata":{"display_phone_number":"$phone","phone_number_id":"$number"},$members}}]}]}'
)
ORDER: Final = (
    '"order":{"catalog_id":"4711","product_items":[{"product_retailer_id":"shoe-1","quantity":2,"item_price":$number,'
    '"currency":"EUR"}]}'
)


def make_body(members: str, field: str = "messages") -> bytes:
    """Return a webhook of the app's number with these members of its value, as JSON text."""
    values = {"account": ACCOUNT.id, "phone": APP.phone_number, "number": APP.phone_number_id}
    return BODY.substitute(values, field=field, members=members).encode()


def make_message(kind: str, content: str) -> bytes:
    message = f'{{"from":"{ANN}","id":"wamid.number","timestamp":"1776944342","type":"{kind}",{content}}}'
    return make_body(f'"messages":[{message}]')


@pytest.mark.parametrize("number", ["7.50", "10.00", "1.0e2", "-0.10", "12345678901234567.10", "3000"])
async def test_price_of_an_order_is_passed_on_as_it_was_written(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, number: str
) -> None:
    await post_body(pipeline, make_message("order", Template(ORDER).substitute(number=number)))

    await receiver_v3.message("wamid.number")
    await pipeline.wait_for_callback(lambda callback: callback["type"] in ("order", "message"))

    (second,), (third,) = pipeline.sink.accepted, receiver_v3.sink.accepted
    assert f'"amount":{number},'.encode() in second.body
    assert f'"item_price":{number},'.encode() in third.body


async def test_degrees_of_a_location_are_passed_on_as_they_were_written(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    await post_body(pipeline, make_message("location", '"location":{"latitude":50.10,"longitude":-8.00}'))

    await receiver_v3.message("wamid.number")
    await pipeline.wait_for_callback(lambda callback: callback["type"] in ("order", "message"))

    (second,), (third,) = pipeline.sink.accepted, receiver_v3.sink.accepted
    assert b'"longitude":"-8.00","latitude":"50.10"' in second.body
    assert b'"location":{"latitude":50.10,"longitude":-8.00}' in third.body


async def test_numbers_of_a_status_and_of_a_change_are_passed_on_as_they_were_written(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text("Hello")
    await pipeline.events_of(message_id, until="delivered")
    status = (
        f'{{"id":"wamid.x","biz_opaque_callback_data":"{message_id}","status":"read","timestamp":"1776944342",'
        f'"recipient_id":"{ANN}","pricing":{{"billable":true,"pricing_model":"PMP","category":"utility","rate":0.0500}}}}'
    )
    await post_body(pipeline, make_body(f'"statuses":[{status}]'))
    await post_body(pipeline, make_body('"budget":1.50', field="account_update"))

    await receiver_v3.status(message_id, "read")
    await receiver_v3.change("account_update")

    bodies = b"\n".join(request.body for request in receiver_v3.sink.accepted)
    assert b'"rate":0.0500' in bodies
    assert b'"budget":1.50' in bodies


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity"])
async def test_number_that_json_does_not_have_is_null(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, number: str
) -> None:
    await post_body(pipeline, make_message("order", Template(ORDER).substitute(number=number)))

    await receiver_v3.message("wamid.number")

    (third,) = receiver_v3.sink.accepted
    assert b'"item_price":null,' in third.body
