"""Limited-time offers and one-time codes: created, approved, sent by both APIs, shown, called back."""

import json
from typing import Any, Final

import pytest

from tests.support.builders import APP
from tests.support.callback_assertions import assert_approval_callbacks, assert_delivery_callbacks, assert_tap_callbacks
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver

pytestmark = pytest.mark.content_only

IN_AN_HOUR_MS: Final = 3_600_000
SHOP_NOW: Final = {
    "type": "URL",
    "text": "Shop now",
    "url": "https://acme.test/offers/{{1}}",
    "example": ["https://acme.test/offers/1"],
}
CALL: Final = {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"}
YES: Final = {"type": "QUICK_REPLY", "text": "Yes"}
COPY_CODE: Final = {"type": "COPY_CODE", "example": "SAVE10"}
CODE_SENTENCE: Final = "{{1}} is your verification code."
APPLICATION: Final = {"package_name": "com.acme.shop", "signature_hash": "K8a/AINcGX7"}


def make_shown(category: str, **components: Any) -> dict[str, Any]:
    return {
        "type": "template",
        "template": {"name": "greeting", "language": "en_US", "category": category},
        **components,
    }


async def create_approved_offer(pipeline: PipelineHarness, buttons: list[dict[str, Any]], **fields: str) -> str:
    return await pipeline.approved_template(
        buttons=buttons,
        category="MARKETING",
        isLTO="true",
        limitedOfferText="Only today",
        content="Hi {{1}}, shoes are cheaper today.",
        example="Hi Ann, shoes are cheaper today.",
        **fields,
    )


@pytest.mark.holds(
    "does-templates", "record-type", "create-lto", "create-button-copy-code",
)  # fmt: skip
@pytest.mark.both_engines
async def test_offer_that_ends_shows_its_end_and_its_code(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    """The documented sample's four buttons: code, URL, phone number, and a quick reply that is tapped."""
    buttons = [COPY_CODE, SHOP_NOW, CALL, YES]
    template_id = await create_approved_offer(pipeline, buttons, hasExpiration="true")
    ends_ms = pipeline.clock.now_ms() + IN_AN_HOUR_MS

    sent = [
        await pipeline.send_template(
            template_id,
            by=api,
            params=["Ben", "shoes", "SAVE25"],
            expiration=expiration,
            postback_texts={3: "wants-it"},
        )
        for api, expiration in (("messaging", ends_ms), ("partner", str(ends_ms)))
    ]

    expected = make_shown(
        "MARKETING",
        text="Hi Ben, shoes are cheaper today.",
        limited_time_offer={"text": "Only today", "expiration_time_ms": ends_ms},
        buttons=[
            {"index": 0, "type": "COPY_CODE", "text": "Copy offer code", "code": "SAVE25"},
            {"index": 1, "type": "URL", "text": "Shop now", "url": "https://acme.test/offers/shoes"},
            {"index": 2, "type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
            {"index": 3, "type": "QUICK_REPLY", "text": "Yes", "payload": "wants-it"},
        ],
    )
    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    assert [await pipeline.visible_message(message_id) for message_id in sent] == [expected, expected]
    for message_id in sent:
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
    await assert_tap_callbacks(pipeline, receiver_v3, sent[-1], 3, text="Yes", postback_text="wants-it")
    record = await read_single_template(pipeline)
    assert record["templateType"] == "TEXT"
    assert record["buttonSupported"] == "CC,PN,QR,URL"


@pytest.mark.holds("does-templates", "create-lto")
async def test_offer_without_an_end_shows_none(pipeline: PipelineHarness, receiver_v3: Version3Receiver) -> None:
    template_id = await create_approved_offer(pipeline, [SHOP_NOW], hasExpiration="false")

    sent = [
        await pipeline.send_template(template_id, by=api, params=["Ben", "shoes"]) for api in ("messaging", "partner")
    ]

    expected = make_shown(
        "MARKETING",
        text="Hi Ben, shoes are cheaper today.",
        limited_time_offer={"text": "Only today"},
        buttons=[{"index": 0, "type": "URL", "text": "Shop now", "url": "https://acme.test/offers/shoes"}],
    )
    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    assert [await pipeline.visible_message(message_id) for message_id in sent] == [expected, expected]
    for message_id in sent:
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)


# fmt: off
ONE_TIME: Final = {  # the button, the first sentence, and the button as the phone shows it
    "COPY_CODE": (
        {"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy code"},
        CODE_SENTENCE,
        {"text": "Copy code", "otp_type": "COPY_CODE"},
    ),
    "ONE_TAP": (
        {"type": "OTP", "otp_type": "ONE_TAP", "text": "Copy", "autofill_text": "Fill in", **APPLICATION},
        CODE_SENTENCE.replace("{{1}}", "*{{1}}*"),
        {"text": "Copy", "otp_type": "ONE_TAP", "autofill_text": "Fill in"},
    ),
    "ZERO_TAP": (
        {"type": "OTP", "otp_type": "ZERO_TAP", "text": "Copy", "autofill_text": "Fill in",
         "zero_tap_terms_accepted": True, "supported_apps": [APPLICATION]},
        CODE_SENTENCE,
        {"text": "Copy", "otp_type": "ZERO_TAP", "autofill_text": "Fill in"},
    ),
}
# fmt: on


@pytest.mark.parametrize("otp_type", ONE_TIME)
@pytest.mark.holds(
    "does-templates", "does-categories", "create-authentication-content", "create-button-otp",
    "create-footer-authentication", "create-minutes", "create-security",
)  # fmt: skip
async def test_one_time_code_is_in_the_text_and_behind_the_button(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, otp_type: str
) -> None:
    button, sentence, button_shown = ONE_TIME[otp_type]
    template_id = await pipeline.approved_template(
        buttons=[button],
        category="AUTHENTICATION",
        content=sentence,
        example="[123456] is your verification code.",
        addSecurityRecommendation="true",
        codeExpirationMinutes="10",
    )

    sent = [
        await pipeline.send_template(template_id, by=api, params=params)
        for api, params in (("messaging", ["904213"]), ("partner", ["904213", "904213"]))
    ]

    expected = make_shown(
        "AUTHENTICATION",
        text="*904213* is your verification code. For your security, do not share this code.",
        footer="This code expires in 10 minutes.",
        buttons=[{"index": 0, "type": "OTP", **button_shown, "code": "904213"}],
    )
    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    assert [await pipeline.visible_message(message_id) for message_id in sent] == [expected, expected]
    for message_id in sent:
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
        await assert_tap_callbacks(
            pipeline,
            receiver_v3,
            message_id,
            0,
            text="I didn't request a code",
            payload="DID_NOT_REQUEST_CODE",
            not_requested=True,
        )
    record = await read_single_template(pipeline)
    assert record["data"].startswith("*{{1}}* is your verification code. For your security")
    assert json.loads(record["containerMeta"])["footer"] == "This code expires in 10 minutes."


async def read_single_template(pipeline: PipelineHarness) -> dict[str, Any]:
    """Return the record of the only template that the partner has."""
    response = await pipeline.send_request(
        "GET", f"/partner/app/{APP.id}/templates", headers={"Authorization": pipeline.app_token}
    )
    [record] = response.body["templates"]
    return record
