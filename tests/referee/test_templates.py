"""The public client creates a template of every type, reads it back, and sends it."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import datetime
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from pywa_async import types
from pywa_async.types import templates as t

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN
from tests.support.media_samples import SAMPLES

EN: Final = t.TemplateLanguage.ENGLISH_US
APPS: Final = [t.OTPSupportedApp(package_name="com.example.app", signature_hash="AbC/def1234")]
OFFER_ENDS: Final = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
PRODUCTS: Final = [types.ProductsSection("Hats", ["h-1", "h-2"])]
BuiltTemplate = tuple[t.Template, Sequence[t.BaseParams]]


def build(
    category: t.TemplateCategory, *components: Any, params: Sequence[t.BaseParams] = (), **more: Any
) -> BuiltTemplate:
    """Return a template, and the parameters of a message with it."""
    template = t.Template(name="made", language=EN, category=category, components=list(components), **more)
    return template, params


def marketing(*components: Any, **more: Any) -> BuiltTemplate:
    return build(t.TemplateCategory.MARKETING, *components, **more)


def utility(*components: Any, **more: Any) -> BuiltTemplate:
    return build(t.TemplateCategory.UTILITY, *components, **more)


def authentication(button: Any, **more: Any) -> BuiltTemplate:
    body = t.AuthenticationBody(add_security_recommendation=True)
    footer = t.AuthenticationFooter(code_expiration_minutes=5)
    params = [body.params(otp="123456"), button.params(otp="123456")]
    return build(t.TemplateCategory.AUTHENTICATION, body, footer, t.Buttons(buttons=[button]), params=params, **more)


def every_button() -> BuiltTemplate:
    text = t.BodyText("Hello {{1}}, what now?", "Ann")
    replies = [t.QuickReplyButton(text="Yes"), t.QuickReplyButton(text="No")]
    link = t.URLButton(text="Track", url="https://shop.example/{{1}}", example="https://shop.example/a")
    buttons: list[Any] = [
        *replies,
        link,
        t.URLButton(text="Home", url="https://shop.example"),
        t.PhoneNumberButton(text="Call us", phone_number="+15550001111"),
        t.CopyCodeButton(example="SAVE20"),
    ]
    params = [
        text.params("Bo"),
        replies[0].params(callback_data="y", index=0),
        replies[1].params(callback_data="n", index=1),
        link.params(url_variable="b", index=2),
        t.CopyCodeButton.params(coupon_code="SAVE30", index=5),
    ]
    return marketing(t.HeaderText("News"), text, t.FooterText(text="Bye"), t.Buttons(buttons=buttons), params=params)


def positional() -> BuiltTemplate:
    header, body = (t.HeaderText("For {{1}}", "Ann"), t.BodyText("Hi {{1}}, your new {{2}} is here.", "Ann", "hat"))
    return utility(
        header, body, params=[header.params("Bo"), body.params("Bo", "shoe")],
        parameter_format=t.ParamFormat.POSITIONAL,
    )  # fmt: skip


def named() -> BuiltTemplate:
    header = t.HeaderText("For {{first_name}}", first_name="Ann")
    body = t.BodyText("Hi {{first_name}}, your new {{thing}} is here.", first_name="Ann", thing="hat")
    return utility(
        header, body,
        params=[header.params(first_name="Bo"), body.params(first_name="Bo", thing="shoe")],
        parameter_format=t.ParamFormat.NAMED,
    )  # fmt: skip


def money_and_date() -> BuiltTemplate:
    body = t.BodyText("You should pay {{1}} before {{2}}, please.", "$10", "May 5")
    price = t.Currency(fallback_value="$10.50", code="USD", amount_1000=10500)
    date = t.DateTime(fallback_value="5 May 2030")
    return utility(body, params=[body.params(price, date)])


def image() -> BuiltTemplate:
    header = t.HeaderImage(SAMPLES["png"], mime_type="image/png")
    return marketing(header, t.BodyText("Look"), params=[header.params(image="https://cdn.example/a.png")])


def video() -> BuiltTemplate:
    header = t.HeaderVideo(SAMPLES["mp4"], mime_type="video/mp4")
    params = [header.params(video=SAMPLES["mp4"], mime_type="video/mp4")]
    return marketing(header, t.BodyText("Look"), params=params)


def document() -> BuiltTemplate:
    header = t.HeaderDocument(SAMPLES["pdf"], mime_type="application/pdf")
    params = [header.params(document="https://cdn.example/a.pdf", filename="bill.pdf")]
    return utility(header, t.BodyText("Your bill"), params=params)


def location() -> BuiltTemplate:
    header = t.HeaderLocation()
    params = [header.params(lat=59.91, lon=10.75, name="Office", address="Main Road 1")]
    return utility(header, t.BodyText("We are here"), params=params)


def catalog() -> BuiltTemplate:
    button = t.CatalogButton(text="View catalog")
    return marketing(
        t.BodyText("Our things"), t.Buttons(buttons=[button]),
        params=[button.params(thumbnail_product_sku="h-1", index=0)],
    )  # fmt: skip


def several_products() -> BuiltTemplate:
    button = t.MPMButton(text="View items")
    params = [button.params(product_sections=PRODUCTS, thumbnail_product_sku="h-1", index=0)]
    return marketing(t.HeaderText("Things"), t.BodyText("Some things"), t.Buttons(buttons=[button]), params=params)


def one_product() -> BuiltTemplate:
    header = t.HeaderProduct()
    return marketing(
        header, t.BodyText("One thing"), t.Buttons(buttons=[t.SPMButton(text="View")]),
        params=[header.params(catalog_id="77", sku="h-1")],
    )  # fmt: skip


def carousel(header: Callable[[], Any], filled: Callable[[Any], Any]) -> BuiltTemplate:
    body = t.BodyText("Slide through, {{1}}, please", "Ann")
    cards: list[t.CarouselCard] = []
    params: list[Any] = []
    for index in range(2):
        top, text = header(), t.BodyText("Card {{1}} here", "A")
        reply = t.QuickReplyButton(text="More")
        link = t.URLButton(text="Buy", url="https://s.example/{{1}}", example="https://s.example/a")
        cards.append(t.CarouselCard(components=[top, text, t.Buttons(buttons=[reply, link])]))
        params.append(
            t.CarouselCard.params(
                index=index,
                params=[
                    filled(top),
                    text.params("B"),
                    reply.params(callback_data=f"more-{index}", index=0),
                    link.params(url_variable="b", index=1),
                ],
            )
        )
    return marketing(body, t.Carousel(cards=cards), params=[body.params("Bo"), t.Carousel.params(cards=params)])


def image_carousel() -> BuiltTemplate:
    return carousel(
        lambda: t.HeaderImage(SAMPLES["jpeg"], mime_type="image/jpeg"),
        lambda top: top.params(image="https://cdn.example/a.jpg"),
    )


def video_carousel() -> BuiltTemplate:
    return carousel(
        lambda: t.HeaderVideo(SAMPLES["mp4"], mime_type="video/mp4"),
        lambda top: top.params(video="https://cdn.example/a.mp4"),
    )


def product_carousel() -> BuiltTemplate:
    cards = [
        t.CarouselCard(components=[t.HeaderProduct(), t.Buttons(buttons=[t.SPMButton(text="View")])]) for _ in range(2)
    ]
    params = [
        t.CarouselCard.params(index=index, params=[t.HeaderProduct.params(catalog_id="77", sku=f"h-{index}")])
        for index in range(2)
    ]
    body = t.BodyText("Our hats")
    return marketing(body, t.Carousel(cards=cards), params=[t.Carousel.params(cards=params)])


def limited_offer() -> BuiltTemplate:
    """It is sent without its expiration time, which the client writes in seconds (see `test_differences`)."""
    header = t.HeaderImage(SAMPLES["png"], mime_type="image/png")
    link = t.URLButton(text="Buy", url="https://s.example/{{1}}", example="https://s.example/a")
    return marketing(
        header,
        t.LimitedTimeOffer(text="Ends soon!", has_expiration=False),
        t.BodyText("Hats for less"),
        t.Buttons(buttons=[link]),
        params=[header.params(image="https://cdn.example/a.png"), link.params(url_variable="b", index=0)],
    )


def one_tap() -> BuiltTemplate:
    return authentication(t.OneTapOTPButton(text="Copy", autofill_text="Fill in", supported_apps=APPS))


def zero_tap() -> BuiltTemplate:
    button = t.ZeroTapOTPButton(text="Copy", autofill_text="Fill in", zero_tap_terms_accepted=True, supported_apps=APPS)
    return authentication(button, message_send_ttl_seconds=300)


def copy_code() -> BuiltTemplate:
    return authentication(t.CopyCodeOTPButton(text="Copy"))


BUILDERS: Final = (
    every_button, positional, named, money_and_date, image, video, document, location, catalog,
    several_products, one_product, image_carousel, video_carousel, product_carousel, limited_offer,
    one_tap, zero_tap, copy_code,
)  # fmt: skip


def kinds_of(components: Sequence[Any]) -> list[str]:
    """Return the types of components; one that the client does not know would have none."""
    return [component.type for component in components]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("build_case", BUILDERS)
async def test_template_is_created_approved_read_back_and_sent(
    shared_harness: ClientHarness, build_case: Callable[[], BuiltTemplate]
) -> None:
    template, params = build_case()
    template.name = build_case.__name__

    created = await shared_harness.client.create_template(template)
    approved = await shared_harness.wait_for_update(
        t.TemplateStatusUpdate, lambda update: update.template_id == created.id
    )
    details = await shared_harness.client.get_template(created.id)
    sent = await shared_harness.client.send_template(ANN, template.name, EN, params)

    assert approved.new_status is t.TemplateStatus.APPROVED
    assert (details.name, details.category) == (template.name, template.category)
    assert kinds_of(details.components) == kinds_of(template.components)
    assert sent.status is types.SentTemplateStatus.ACCEPTED
    assert (await shared_harness.phone_message(sent.id))["type"] == "template"
