"""The template editor: it previews and checks the draft at once, and also works without scripts."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Dialog, Route, expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.support.media_samples import sample
from waypost.assembly.dev import demo
from waypost.console.templates.draft_text import draft_content, parse_content
from waypost.console.templates.editor import CONDITIONAL_MAX_CHARS, MAX_CHARS_BY_FIELD
from waypost.console.templates.submission import encode_content, encode_draft
from waypost.domain.templates.buttons import ButtonKind, Card, TemplateButton
from waypost.domain.templates.fields import DRAFT_ATTRIBUTES, TEMPLATE_FIELDS, FieldFormat, TemplateDraft, has_part
from waypost.domain.templates.rules import TEMPLATE_RULES
from waypost.domain.templates.types import type_row
from waypost.wire.forms import Form
from waypost.wire.templates.drafts import apply_edit, read_draft

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NEW = f"/apps/{demo.APP_ID}/templates/new"
DEMO = f"/apps/{demo.APP_ID}/templates/{demo.TEMPLATE_ID}"
# fmt: off
FIELDS = {
    "elementName": "order_update", "languageCode": "en_US", "category": "UTILITY", "templateType": "TEXT",
    "vertical": "Orders", "content": "Hi {{1}}, your order is on its way.", "value-1": "Ann",
}
CARD = {"headerType": "IMAGE", "mediaUrl": "https://shop.example/a.png", "body": "A coat for {{1}} days",
        "sampleText": "A coat for cold days", "buttons": [{"type": "QUICK_REPLY", "text": "More"}]}
FORMS: dict[str, dict[str, Any]] = {  # one per type, as the API accepts them
    "text": {
        "elementName": "a", "languageCode": "de", "category": "MARKETING", "templateType": "TEXT", "vertical": "b",
        "content": "Hi {{1}}, is all *well* with {{2}}?", "example": "Hi Ann, is all *well* with Ben?", "header": "For {{1}}",
        "exampleHeader": "For Ann", "footer": "Acme", "allowTemplateCategoryChange": "true", "messageValidity": "86400",
        "buttons": [
            {"type": "QUICK_REPLY", "text": "Yes"},
            {"type": "URL", "text": "Look", "url": "https://acme.test/{{1}}", "example": ["https://acme.test/a"]},
            {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
            {"type": "FLOW", "text": "Ask", "flow_id": "7", "flow_action": "NAVIGATE", "navigate_screen": "ONE"},
        ],
    },
    "image": {
        "elementName": "a", "languageCode": "de", "category": "UTILITY", "templateType": "IMAGE", "vertical": "b",
        "content": "Look", "example": "Look", "exampleMedia": "4::aW1n:x", "enableSample": "true",
    },
    "offer": {
        "elementName": "a", "languageCode": "de", "category": "MARKETING", "templateType": "TEXT", "vertical": "b",
        "content": "Look", "example": "Look", "isLTO": "true", "limitedOfferText": "Soon", "hasExpiration": "true",
        "buttons": [{"type": "COPY_CODE", "text": "Copy offer code", "example": "SAVE"},
                    {"type": "URL", "text": "Look", "url": "https://acme.test"}],
    },
    "code": {
        "elementName": "a", "languageCode": "de", "category": "AUTHENTICATION", "templateType": "TEXT", "vertical": "b",
        "content": "{{1}} is your verification code.", "example": "123456 is your verification code.",
        "addSecurityRecommendation": "true", "codeExpirationMinutes": "10",
        "buttons": [{"type": "OTP", "otp_type": "ZERO_TAP", "text": "Copy", "autofill_text": "Fill",
                     "supported_apps": [{"package_name": "com.a.b", "signature_hash": "AbC/def1234"},
                                        {"package_name": "com.a.c", "signature_hash": "AbC/def1234"}],
                     "zero_tap_terms_accepted": True}],
    },
    "carousel": {
        "elementName": "a", "languageCode": "de", "category": "MARKETING", "templateType": "CAROUSEL", "vertical": "b",
        "content": "Look", "example": "Look", "cards": [CARD, CARD],
    },
    "products": {
        "elementName": "a", "languageCode": "de", "category": "MARKETING", "templateType": "PRODUCT", "vertical": "b",
        "content": "Look", "example": "Look",
    },
    "named": {
        "elementName": "a", "languageCode": "de", "category": "UTILITY", "templateType": "TEXT", "vertical": "b",
        "content": "Hi {{name}}, all well?", "example": "Hi Ann, all well?", "parameterFormat": "NAMED", "isCPR": "true",
    },
}
# fmt: on
FORMS["labelled"] = FORMS["text"] | {
    field.name: "true" if field.format is FieldFormat.FLAG else field.example
    for field in TEMPLATE_FIELDS
    if field.label
}


def read_form(form: dict[str, Any]) -> TemplateDraft:
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in form.items()}
    return read_draft(Form(list(texts.items())))


@pytest.mark.parametrize("kind", FORMS)
async def test_editor_preserves_a_draft(kind: str) -> None:
    draft = read_form(FORMS[kind])

    submitted = encode_content(draft_content(draft))

    assert read_draft(Form(list(submitted.items()))) == draft
    assert read_draft(Form(list(encode_draft(draft).items()))) == draft


@pytest.mark.parametrize("kind", FORMS)
async def test_edit_without_changes_preserves_the_draft(kind: str) -> None:
    draft = read_form(FORMS[kind])

    form = Form(list(encode_content(draft_content(draft, "its id")).items()))

    assert apply_edit(draft, form) == draft


async def test_line_breaks_of_a_browser_are_one_character() -> None:
    content = parse_content([("content", "Hi\r\nAnn")])

    assert encode_content(content)["content"] == "Hi\nAnn"


# fmt: off
DRAFT_WITH_TEXT: dict[str, Callable[[str], TemplateDraft]] = {  # a draft with a text in a field that has a counter
    "content of an offer":  lambda text: TemplateDraft(content=text, is_lto=True),
    "button.text":          lambda text: TemplateDraft(buttons=(TemplateButton(ButtonKind.QUICK_REPLY, text),)),
    "button.autofill_text": lambda text: TemplateDraft(buttons=(TemplateButton(ButtonKind.OTP, autofill_text=text),)),
    "button.url":           lambda text: TemplateDraft(buttons=(TemplateButton(ButtonKind.URL, url=f"https://{text[8:]}"),)),
    "button.phone_number":  lambda text: TemplateDraft(buttons=(TemplateButton(ButtonKind.PHONE_NUMBER, phone_number=text.replace("x", "5")),)),
    "button.code":          lambda text: TemplateDraft(buttons=(TemplateButton(ButtonKind.COPY_CODE, example=(text,)),)),
    "card.body":            lambda text: TemplateDraft(template_type="CAROUSEL", cards=(Card(body=text),)),
}
# fmt: on


async def test_field_with_a_length_rule_has_a_counter_with_its_limit() -> None:
    requirements = {
        rule.field: rule.requirement
        for rule in TEMPLATE_RULES
        if rule.id.endswith("-length") and rule.field in DRAFT_ATTRIBUTES
    }
    counters = {
        name: f"must be at most {max_chars} characters"
        for name, max_chars in MAX_CHARS_BY_FIELD.items()
        if name in DRAFT_ATTRIBUTES
    }

    assert counters == {
        name: requirement for name, requirement in requirements.items() if name not in ("buttons", "cards")
    }


@pytest.mark.parametrize("name", CONDITIONAL_MAX_CHARS)
async def test_limit_of_a_counter_is_the_limit_of_the_rule(name: str) -> None:
    max_chars, rule_id = CONDITIONAL_MAX_CHARS[name]
    rule = next(rule for rule in TEMPLATE_RULES if rule.id == rule_id)

    assert rule.check(DRAFT_WITH_TEXT[name]("x" * max_chars)) is None
    assert rule.check(DRAFT_WITH_TEXT[name]("x" * (max_chars + 1))) is not None


async def test_form_can_be_submitted_without_scripts(console: ConsoleClient) -> None:
    response = await console.post(NEW, {**FIELDS, "do": "submit"})

    page = await console.get(response.headers["location"])
    assert "order_update" in page
    assert "The operator is reviewing it" in page


async def test_rejected_submit_keeps_its_input_and_shows_the_violation_at_its_field(console: ConsoleClient) -> None:
    page = await post_form(console, NEW, {**FIELDS, "elementName": "Order Update", "footer": "Acme", "button-0-type": "QUICK_REPLY", "button-0-text": "Thanks", "do": "submit"}, 400)  # fmt: skip

    for typed in (
        "Order Update",
        "Hi {{1}}, your order is on its way.",
        'value="Ann"',
        'value="Acme"',
        'value="Thanks"',
    ):
        assert typed in page
    note = page.partition('id="n-f-elementName"')[2].partition("</p>")[0]
    assert "Use a to z" in note
    assert "API error" in page


async def test_name_in_use_is_reported_before_the_submit(console: ConsoleClient) -> None:
    page = await post_form(console, NEW, {**FIELDS, "elementName": "order_ready", "do": "check"})

    assert "Name order_ready is taken in en_US." in page


async def test_buttons_are_added_moved_and_removed_without_scripts(console: ConsoleClient) -> None:
    rows = {
        "button-0-type": "QUICK_REPLY",
        "button-0-text": "One",
        "button-1-type": "QUICK_REPLY",
        "button-1-text": "Two",
    }

    added = await post_form(console, NEW, {**FIELDS, **rows, "new-button-kind": "URL", "do": "add-button"})
    moved = await post_form(console, NEW, {**FIELDS, **rows, "do": "up-button-1"})
    removed = await post_form(console, NEW, {**FIELDS, **rows, "do": "remove-button-0"})

    assert 'name="button-2-url"' in added
    assert moved.index('value="Two"') < moved.index('value="One"')
    assert 'value="One"' not in removed
    for nonsense in ("up-button-9", "remove-card-3", "add-card-7-button", "fly"):
        await post_form(console, NEW, {**FIELDS, **rows, "do": nonsense})


async def test_edit_is_accepted_and_keeps_the_category_of_an_approved_template(console: ConsoleClient) -> None:
    page = await console.get(f"{DEMO}/edit")
    assert '<input type="hidden" name="category" value="UTILITY">' in page

    response = await console.post(
        f"{DEMO}/edit",
        {"category": "UTILITY", "templateType": "TEXT", "content": "Hi {{1}}, your {{2}} is here now.",
         "value-1": "Ann", "value-2": "coat", "footer": "Acme", "do": "submit"},
    )  # fmt: skip

    shown = await console.get(response.headers["location"])
    if "Edit on its way" in shown:  # the operator may have it already
        assert "<del>ready</del><ins>here now</ins>" in shown
    assert "here now" in shown
    assert "Edited" in shown
    await console.get(f"{DEMO}/edit", status=404)  # it is under review


async def test_duplicate_starts_with_the_content_of_the_template_and_no_name(console: ConsoleClient) -> None:
    page = await console.get(f"{NEW}?from={demo.TEMPLATE_ID}")

    assert "Shall we bring it today?" in page
    assert 'name="button-1-text" value="Another day"' in page
    assert 'name="elementName" value=""' in page


async def test_invalid_number_is_a_violation_and_no_defect(console: ConsoleClient) -> None:
    page = await post_form(console, NEW, {**FIELDS, "messageValidity": "soon", "do": "check"})

    assert "messageValidity" in page
    assert "A field cannot be read" in page


async def post_form(console: ConsoleClient, path: str, fields: dict[str, str], status: int = 200) -> str:
    form = {"csrf": await console.csrf(), **fields}
    async with console.http.post(console.base_url + path, data=form, allow_redirects=False) as response:
        text = await response.text()
        assert response.status == status, text[:2000]
        return text


async def test_template_is_written_approved_and_sent_in_the_browser(tabs: Tabs, console: ConsoleClient) -> None:
    page = (await tabs(NEW)).page
    await page.get_by_label("Name", exact=True).fill("order_packed")
    await page.get_by_label("Topic").fill("Orders")
    await page.get_by_role("textbox", name="Body", exact=True).fill("Hi ")
    await page.get_by_role("button", name="Variable").click()
    await page.keyboard.type(", it is packed.")
    await page.get_by_label("Sample for {{1}}").fill("Ann")
    await page.get_by_label("New button").select_option("QUICK_REPLY")
    await page.get_by_role("button", name="Add button").click()
    await expect(page.locator("#f-button-0-text")).to_be_focused()
    await page.keyboard.type("Thanks")
    await expect(page.locator("#preview")).to_contain_text("Hi Ann, it is packed.")
    await expect(page.locator("#preview")).to_contain_text("Thanks")
    await page.get_by_label("Header", exact=True).fill("Box {{1}}")
    await page.get_by_label("Sample for the header").fill("7")
    await expect(page.locator("#preview")).to_contain_text("Box 7")
    await expect(page.locator("#lint")).to_contain_text("No violations")

    await page.get_by_role("button", name="Submit").click()

    await page.wait_for_url("**/templates/0*")
    await expect(page.locator("#status")).to_contain_text("approved")
    await expect(page.locator("#history")).to_contain_text("Accepted by the operator")
    await page.get_by_label("Body, {{1}}").fill("Zoe")
    await page.get_by_role("button", name="Send", exact=True).click()
    await page.wait_for_url("**/messages/0*")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
async def test_submit_and_the_number_of_violations_stay_in_reach(tabs: Tabs, width: int, height: int) -> None:
    page = (await tabs(NEW, width=width, height=height)).page
    body = page.get_by_role("textbox", name="Body", exact=True)
    await body.fill("Your code is {{1}}")
    count = page.locator("#lint-brief a")
    await expect(count).to_contain_text("violation")

    for field in (page.get_by_label("Name", exact=True), body, page.get_by_role("button", name="Add button")):
        await field.focus()
        await expect(field).to_be_in_viewport(ratio=0.9)
        await expect(page.get_by_role("button", name="Submit")).to_be_in_viewport(ratio=0.9)
        await expect(count).to_be_in_viewport(ratio=0.9)
    first = page.locator("#lint [data-finding]").first
    element = await first.get_attribute("data-finding")
    await count.click()

    await expect(page.locator(f"[id='{element}']")).to_be_focused()


async def test_violation_appears_while_typing_links_to_its_field_and_disappears(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    await page.get_by_role("textbox", name="Body", exact=True).fill("Your code is {{1}}")
    violation = page.get_by_role("link", name="Body must neither begin nor end with a variable.")
    await violation.wait_for()
    await expect(page.locator("#n-f-content")).to_contain_text("Put a word")
    cited = [rule.source for rule in TEMPLATE_RULES if rule.source in await page.locator("#lint").inner_text()]
    assert cited == []  # sources are for those who write rules, not for those who break one
    await expect(page.locator("#f-content")).to_have_attribute("aria-invalid", "true")

    await violation.click()
    await expect(page.locator("#f-content")).to_be_focused()
    await page.keyboard.press("End")
    await page.keyboard.type(" for today.")

    await violation.wait_for(state="detached")
    await expect(page.locator("#n-f-content")).to_be_empty()
    await expect(page.locator("[data-counts=f-content]")).to_have_text("29/1024")


async def test_sample_is_uploaded_and_shown(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    await page.get_by_label("Type").select_option("IMAGE")

    picture = {"name": "a.png", "mimeType": "image/png", "buffer": sample("png")}
    await page.get_by_label("Sample image").set_input_files(picture)  # type: ignore[arg-type]

    await page.locator("#preview img").wait_for()
    await expect(page.locator(".sample-there")).to_contain_text("a.png")
    assert await page.locator("#preview img").evaluate("one => one.complete && one.naturalWidth") > 0


async def test_field_keeps_the_focus_if_the_form_changes_while_somebody_types(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    await page.get_by_label("Category", exact=True).select_option("MARKETING")
    body, may_respond = page.get_by_role("textbox", name="Body", exact=True), asyncio.Event()
    await body.fill("Hello ")
    await expect(page.locator("#preview")).to_contain_text("Hello")

    async def hold(route: Route) -> None:
        await may_respond.wait()
        await route.continue_()

    await page.route(lambda url: url.endswith(NEW), hold)
    await page.get_by_label("Type", exact=True).select_option("GIF")
    await body.press("End")
    may_respond.set()
    await page.get_by_label("Sample GIF").wait_for(state="attached")

    await page.keyboard.type("there")

    await expect(body).to_have_value("Hello there")


async def test_gif_is_written_with_its_video_and_url_and_edited(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    await page.get_by_label("Name", exact=True).fill("wave")
    await page.get_by_label("Topic").fill("Greetings")
    await page.get_by_label("Category", exact=True).select_option("MARKETING")
    await page.get_by_label("Type", exact=True).select_option("GIF")
    await page.get_by_role("textbox", name="Body", exact=True).fill("Hello there")
    video = {"name": "wave.mp4", "mimeType": "video/mp4", "buffer": sample("mp4")}
    await page.get_by_label("Sample GIF").set_input_files(video)  # type: ignore[arg-type]
    await page.locator("#preview .is-gif video").wait_for()
    await page.get_by_label("And its public URL").fill("https://shop.example/wave.mp4")
    await expect(page.locator("#lint")).to_contain_text("No violations")

    await page.get_by_role("button", name="Submit").click()

    await page.wait_for_url("**/templates/0*")
    await expect(page.locator("#status")).to_contain_text("approved")
    await page.get_by_role("link", name="Edit").click()
    await expect(page.locator("#lint")).to_contain_text("No violations")
    await page.get_by_role("textbox", name="Body", exact=True).fill("Hello again")
    await page.get_by_role("button", name="Submit edit").click()
    await expect(page.locator("#history")).to_contain_text("Edited")


async def test_carousel_is_written_card_by_card_by_keyboard(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    await page.get_by_label("Category", exact=True).select_option("MARKETING")
    await page.get_by_label("Type").select_option("CAROUSEL")
    await expect(page.locator(".a-card")).to_have_count(2)
    await page.locator("#f-card-0-body").fill("First")
    await page.locator("#f-card-1-body").fill("Second")
    await page.get_by_role("button", name="Add card").press("Enter")
    await expect(page.locator(".a-card")).to_have_count(3)
    await page.locator("#f-card-2-body").fill("Third")

    await page.get_by_role("button", name="Move card 3 up").press("Enter")

    await expect(page.locator("#f-card-1-body")).to_have_value("Third")
    await expect(page.locator("#f-card-2-body")).to_have_value("Second")
    await expect(page.get_by_role("button", name="Move card 2 up")).to_be_focused()
    await expect(page.locator("#preview")).to_contain_text("Third")


async def test_texts_of_a_carousel_are_edited_and_its_media_are_kept(tabs: Tabs, console: ConsoleClient) -> None:
    base = f"/partner/app/{demo.APP_ID}"
    upload = await console.api.file(f"{base}/upload/media", sample("png"), name="a.png", media_type="image/png")
    card_media = {"exampleMedia": upload["handleId"]["message"], "mediaUrl": ""}
    form = FORMS["carousel"] | {"cards": json.dumps([CARD | card_media] * 2)}
    template_id = (await console.api.form("POST", f"{base}/templates", form))["template"]["id"]
    page = (await tabs(f"/apps/{demo.APP_ID}/templates/{template_id}")).page
    await expect(page.locator("#status")).to_contain_text("approved")

    await page.get_by_role("link", name="Edit").click()
    await page.locator("#f-card-1-body").fill("A hat for {{1}} days")
    assert await page.get_by_role("button", name="Add card").count() == 0
    await page.get_by_role("button", name="Submit edit").click()

    await expect(page.locator("#history")).to_contain_text("Edited")
    await expect(page.locator(".phone-frame")).to_contain_text("A hat for cold days")
    assert await page.locator(".phone-frame img").count() == 2


async def test_leaving_with_unsaved_input_needs_confirmation(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    dialogs: list[str] = []

    async def stay(dialog: Dialog) -> None:
        dialogs.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", stay)
    await page.get_by_label("Footer").fill("Acme")
    await page.locator(".up").get_by_role("link", name="Templates").click(no_wait_after=True)
    await page.wait_for_timeout(300)

    assert dialogs == ["beforeunload"]
    assert page.url.endswith("/templates/new")
    page.remove_listener("dialog", stay)
    page.on("dialog", lambda dialog: dialog.accept())


@pytest.mark.parametrize("width", [360, 1440])
async def test_pages_need_no_horizontal_scrolling(tabs: Tabs, width: int) -> None:
    tab = await tabs(NEW, width=width)
    for path in (f"{NEW}?from={demo.TEMPLATE_ID}", DEMO, DEMO.rpartition("/")[0]):
        await tab.go(path)
        assert await tab.page.evaluate("document.documentElement.scrollWidth") <= width


async def test_labelled_fields_are_under_more_options_and_in_an_edit_if_changeable(console: ConsoleClient) -> None:
    row = type_row("TEXT")
    labelled = [
        field for field in TEMPLATE_FIELDS if field.label and has_part(field.part, row, {"isCPR"}, is_code=False)
    ]

    new = (await post_form(console, NEW, {**FIELDS, "isCPR": "on", "do": "refresh"})).partition(
        "<h2>More options</h2>"
    )[2]
    edited = await post_form(console, f"{DEMO}/edit", {**FIELDS, "isCPR": "on", "do": "refresh"})

    assert [field.name for field in labelled if f'id="f-{field.name}"' not in new or field.label not in new] == []
    assert [field.name for field in labelled if (f'id="f-{field.name}"' in edited) is not field.changeable] == []
    assert 'name="isCPR" value="on" checked' in new
    assert '<input type="hidden" name="isCPR" value="on">' in edited


async def test_edit_that_the_operator_rejects_is_shown_beside_the_approved_version(
    tabs: Tabs, console: ConsoleClient
) -> None:
    base = f"/partner/app/{demo.APP_ID}"
    form = {"elementName": "twice", "category": "UTILITY", "templateType": "TEXT", "vertical": "Orders"}
    text = {"content": "Your order has left our house.", "example": "Your order has left our house."}
    template_id = (await console.api.form("POST", f"{base}/templates", form | text))["template"]["id"]
    page = (await tabs(f"/apps/{demo.APP_ID}/templates/{template_id}")).page
    await expect(page.locator("#status")).to_contain_text("approved")
    await console.api.form("PUT", f"{base}/templates/{template_id}", {"footer": "Acme"})
    await expect(page.locator("#shown")).to_contain_text("Acme")
    await expect(page.locator("#status")).to_contain_text("approved")

    await console.api.form("PUT", f"{base}/templates/{template_id}", {"footer": "Twice a day is too often"})

    await expect(page.locator("#edit")).to_contain_text("Edit rejected")
    await expect(page.locator("#edit")).to_contain_text("once in 24 hours")
    await expect(page.locator("#edit ins")).to_contain_text("Twice a day is too often")
    await expect(page.locator("#status")).to_contain_text("approved")
    await expect(page.locator("#shown")).to_contain_text("Acme")
