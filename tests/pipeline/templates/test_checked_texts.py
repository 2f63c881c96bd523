"""Texts that the check warns of, and those it does not: the operator's review agrees with it in both directions."""

from typing import Any

import pytest

from tests.support.builders import APP, is_event
from tests.support.pipeline import PipelineHarness

LABELS = '[{"type": "QUICK_REPLY", "text": "%s"}]'
FIELDS = {
    "elementName": "greeting", "category": "UTILITY", "templateType": "TEXT", "vertical": "Greetings",
    "content": "We are open.", "example": "We are open.",
}  # fmt: skip


async def submit(pipeline: PipelineHarness, path: str, fields: dict[str, str]) -> Any:
    """Submit a form to a path below the app's templates, and return the response's body."""
    url, headers = f"/partner/app/{APP.id}/templates{path}", {"Authorization": pipeline.app_token}
    response = await pipeline.send_request("POST", url, FIELDS | fields, headers)
    assert response.status == 200, response
    return response.body


async def find_rules(pipeline: PipelineHarness, fields: dict[str, str]) -> list[str]:
    """Return the rules that the check says a draft breaks."""
    findings = (await submit(pipeline, "/check", fields))["findings"]
    assert all(finding["remedy"] for finding in findings)
    return [finding["rule"] for finding in findings]


@pytest.mark.parametrize(
    ("language", "content"),
    [
        ("zh_CN", "您好{{1}}，您的订单已发货。"),  # noqa: RUF001  the language's own punctuation
        ("zh_HK", "您好 {{1}} 訂單已寄出"),
        ("ja", "ご注文{{1}}が発送されました。"),
        ("th", "สวัสดี {{1}} คำสั่งซื้อของคุณพร้อมแล้ว"),
        ("lo", "ສະບາຍດີ {{1}} ຄໍາສັ່ງຊື້ຂອງທ່ານພ້ອມແລ້ວ"),
        ("en_US", "Hi {{1}} - - - ok"),
    ],
)
async def test_ordinary_body_of_a_language_is_approved_without_a_warning(
    pipeline: PipelineHarness, language: str, content: str
) -> None:
    fields = {"languageCode": language, "content": content, "example": content.replace("{{1}}", "Ann")}

    assert await find_rules(pipeline, fields) == []
    template = (await submit(pipeline, "", fields))["template"]

    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))


@pytest.mark.parametrize(
    ("fields", "rule", "reason"),
    [
        ({"buttons": LABELS % "Yes \U0001f44d"}, "label-plain", "can't have any variables, newlines, emojis"),
        ({"buttons": LABELS % "*Yes*"}, "label-plain", "can't have any variables, newlines, emojis"),
        ({"header": "Hello \U0001f44b"}, "header-plain", "can't have any new lines"),
        ({"content": "Hi {{1}} https://a.example/x/y", "example": "Hi Ann https://a.example/x/y"}, "content-words",
         "too many variables"),
    ],
)  # fmt: skip
async def test_text_that_the_check_warns_of_is_rejected(
    pipeline: PipelineHarness, fields: dict[str, str], rule: str, reason: str
) -> None:
    assert await find_rules(pipeline, fields) == [rule]
    template = (await submit(pipeline, "", fields))["template"]

    callback = await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="rejected"))

    assert reason in callback["payload"]["rejectedReason"]
