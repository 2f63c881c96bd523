"""Templates of a catalog and of products: created, approved, sent by both APIs, shown, ordered from."""

from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP, is_event
from tests.support.callback_assertions import (
    assert_approval_callbacks,
    assert_delivery_callbacks,
    assert_version_3_callback,
    operator_id_of,
)
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver

pytestmark = pytest.mark.content_only

ORDER: Final = {
    "catalog_id": "4711",
    "text": "Please soon",
    "product_items": [{"product_retailer_id": "shoe-1", "quantity": 2, "item_price": 49.5, "currency": "EUR"}],
}
SECTIONS_SHOWN: Final = [
    {"title": "Shoes", "product_items": [{"product_retailer_id": "shoe-1"}, {"product_retailer_id": "shoe-2"}]},
    {"title": "Hats", "product_items": [{"product_retailer_id": "hat-1"}]},
]


def make_mpm(*, as_objects: bool) -> dict[str, Any]:
    """Return the products of both sections, in one of the two accepted forms."""

    def products(*ids: str) -> list[Any]:
        return [{"product_retailer_id": product_id} if as_objects else product_id for product_id in ids]

    return {
        "sections": [
            {"title": "Shoes", "products": products("shoe-1", "shoe-2")},
            {"title": "Hats", "products": products("hat-1")},
        ]
    }


async def create_approved_sale(pipeline: PipelineHarness, type: str) -> str:
    return await pipeline.approved_template(
        buttons=(),
        category="MARKETING",
        templateType=type,
        content="Hi {{1}}, see what is new.",
        example="Hi Ann, see what is new.",
        footer="Acme",
    )


@pytest.mark.holds("does-templates", "create-added-buttons")
@pytest.mark.both_engines
async def test_catalog_template_has_a_button_that_opens_the_catalog(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    template_id = await create_approved_sale(pipeline, "CATALOG")

    sent = [
        await pipeline.send_template(template_id, by=api, params=params)
        for api, params in (("messaging", ["Ben", "shoe-2"]), ("partner", ["Ben"]))
    ]

    button = {"index": 0, "type": "CATALOG", "text": "View catalog"}
    expected: dict[str, Any] = {
        "type": "template",
        "template": {"name": "greeting", "language": "en_US", "category": "MARKETING"},
        "text": "Hi Ben, see what is new.",
        "footer": "Acme",
    }
    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    assert [await pipeline.visible_message(message_id) for message_id in sent] == [
        {**expected, "buttons": [{**button, "thumbnail_product_retailer_id": "shoe-2"}]},
        {**expected, "buttons": [button]},
    ]
    for message_id in sent:
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
        await check_order_callback(pipeline, receiver_v3, message_id)


@pytest.mark.holds("does-templates", "create-added-buttons")
async def test_product_template_shows_its_products(pipeline: PipelineHarness, receiver_v3: Version3Receiver) -> None:
    template_id = await create_approved_sale(pipeline, "PRODUCT")

    sent = [
        await pipeline.send_template(template_id, by=api, params=["Ben", "shoe-2"], mpm=make_mpm(as_objects=as_objects))
        for api, as_objects in (("messaging", False), ("partner", True))
    ]

    expected = {
        "type": "template",
        "template": {"name": "greeting", "language": "en_US", "category": "MARKETING"},
        "header": {"format": "TEXT", "text": "Hi, see what is new."},
        "text": "Hi Ben, see what is new.",
        "footer": "Acme",
        "buttons": [
            {
                "index": 0,
                "type": "MPM",
                "text": "View items",
                "thumbnail_product_retailer_id": "shoe-2",
                "sections": SECTIONS_SHOWN,
            }
        ],
    }
    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    assert [await pipeline.visible_message(message_id) for message_id in sent] == [expected, expected]
    for message_id in sent:
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
        await check_order_callback(pipeline, receiver_v3, message_id)


async def check_order_callback(pipeline: PipelineHarness, receiver_v3: Version3Receiver, message_id: str) -> None:
    operator_id = await operator_id_of(pipeline, message_id)
    body = {"to": APP.phone_number, "context_id": operator_id, "type": "order", "order": ORDER}
    created = await pipeline.control("POST", f"phones/{ANN}/messages", body)

    callback = await pipeline.wait_for_callback(is_event("order", id=created["wamid"]))

    payload = callback["payload"]
    assert (payload["type"], payload["payload"]) == ("text", {"text": "Please soon"})
    items = [{"id": "shoe-1", "currency": "EUR", "amount": 49.5, "quantity": 2}]
    reply = {"id": operator_id, "gsId": message_id, "forwarded": False, "frequently_forwarded": False}
    assert payload["context"] == {**reply, "catalog": {"id": "4711", "order": {"items": items}}}
    await assert_version_3_callback(receiver_v3, callback, operator_id, message_id, "order", ORDER)
