"""Templates of a catalogue and of products: created, approved, sent by both APIs, seen, ordered from."""

from typing import Any, Final

import pytest

from tests.support.both_versions import an_answer_comes_back, is_told_as_approved, is_told_as_delivered
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import ThirdVersion

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


def mpm(*, as_objects: bool) -> dict[str, Any]:
    """The products of both sections, in one of the two ways to write them."""

    def products(*ids: str) -> list[Any]:
        return [{"product_retailer_id": one} if as_objects else one for one in ids]

    return {
        "sections": [
            {"title": "Shoes", "products": products("shoe-1", "shoe-2")},
            {"title": "Hats", "products": products("hat-1")},
        ]
    }


async def approved_sale(pipeline: PipelineHarness, type: str) -> str:
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
async def test_catalog_template_opens_the_catalogue(pipeline: PipelineHarness, third: ThirdVersion) -> None:
    template_id = await approved_sale(pipeline, "CATALOG")

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
    await is_told_as_approved(pipeline, third, template_id)
    assert [await pipeline.shown(one) for one in sent] == [
        {**expected, "buttons": [{**button, "thumbnail_product_retailer_id": "shoe-2"}]},
        {**expected, "buttons": [button]},
    ]
    for message_id in sent:
        await is_told_as_delivered(pipeline, third, message_id)
        await an_order_comes_back(pipeline, third, message_id)


@pytest.mark.holds("does-templates", "create-added-buttons")
async def test_product_template_shows_its_products(pipeline: PipelineHarness, third: ThirdVersion) -> None:
    template_id = await approved_sale(pipeline, "PRODUCT")

    sent = [
        await pipeline.send_template(template_id, by=api, params=["Ben", "shoe-2"], mpm=mpm(as_objects=as_objects))
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
    await is_told_as_approved(pipeline, third, template_id)
    assert [await pipeline.shown(one) for one in sent] == [expected, expected]
    for message_id in sent:
        await is_told_as_delivered(pipeline, third, message_id)
        await an_order_comes_back(pipeline, third, message_id)


async def an_order_comes_back(pipeline: PipelineHarness, third: ThirdVersion, message_id: str) -> None:
    await an_answer_comes_back(
        pipeline,
        third,
        message_id,
        {"type": "order", "order": ORDER},
        second=("order", ORDER),
        third_says=("order", ORDER),
    )
