"""Texts of the editor: findings in the words of its labels, languages by name, samples in place, and differences."""

import re
from dataclasses import replace
from typing import Final

import pytest
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.support.builders import draft
from waypost.assembly.dev import demo
from waypost.console.templates.texts import (
    TextChange,
    compare_drafts,
    field_label,
    find_language,
    label_text,
    listed_languages,
)
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.fields import TEMPLATE_FIELDS
from waypost.domain.templates.rules import TEMPLATE_RULES, TemplateRule
from waypost.domain.templates.types import LANGUAGES

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NEW: Final = f"/apps/{demo.APP_ID}/templates/new"
DEMO: Final = f"/apps/{demo.APP_ID}/templates/{demo.TEMPLATE_ID}"
CAMEL_CASE: Final = re.compile(r"\b[a-z]+[A-Z]\w*")
CAPITALS: Final = re.compile(r"\b[A-Z]{2,}(?:_[A-Z]+)*\b")
WORDS_IN_CAPITALS: Final = {"URL", "ID", "API", "GIF", "LTO"}


@pytest.mark.parametrize("rule", TEMPLATE_RULES, ids=lambda rule: rule.id)
async def test_finding_has_no_names_of_the_wire(rule: TemplateRule) -> None:
    says = label_text(f"{rule.field} {rule.requirement}", rule.field, rule.id)
    fix_hint = label_text(rule.fix_hint, rule.field, rule.id)

    assert says.split()[0] != rule.field
    for text in (says, fix_hint):
        assert CAMEL_CASE.findall(text) == []
        assert set(CAPITALS.findall(text)) <= WORDS_IN_CAPITALS


async def test_field_is_named_by_the_labels_of_its_place() -> None:
    fields = {
        "cards[1].buttons[0].url": "Card 2, button 1, URL",
        "cards[0].body": "Card 1, Card text",
        "buttons[2].phone_number": "Button 3, Phone number",
        "buttons": "Buttons",
        "something new": "something new",
    }

    assert {field: field_label(field) for field in fields} == fields
    assert [field.name for field in TEMPLATE_FIELDS if field_label(field.name) == field.name] == []


async def test_language_is_found_by_its_name_or_code_in_any_case() -> None:
    assert [find_language(text) for text in ("german", " English  (ireland)", "PT_br", "Klingon")] == [
        "de", "en_IE", "pt_BR", "Klingon",
    ]  # fmt: skip
    names = dict(listed_languages())
    assert set(names) == set(LANGUAGES)
    assert len(set(names.values())) == len(LANGUAGES)
    assert "" not in names.values()


async def test_differences_are_words_of_the_fields_that_changed() -> None:
    before = draft(buttons=(TemplateButton(ButtonKind.QUICK_REPLY, "Yes"),))
    after = replace(before, content="Hi {{1}}, your coat is ready.", footer="Acme", buttons=())
    after = replace(after, example="Hi Ann, your coat is ready.")

    changes = {change.label: list(change.parts) for change in compare_drafts(before, after)}

    assert changes == {
        "Body": [
            TextChange("same", "Hi {{1}}, your "),
            TextChange("removed", "order"),
            TextChange("added", "coat"),
            TextChange("same", " is ready."),
        ],
        "Footer": [TextChange("added", "Acme")],
        "Button 1": [TextChange("removed", "Quick reply: Yes")],
    }
    assert compare_drafts(before, before) == []


async def test_first_finding_has_the_focus_after_a_check(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    await page.get_by_label("Name", exact=True).fill("order_update")
    await page.get_by_label("Topic").fill("Orders")
    await page.get_by_role("textbox", name="Body", exact=True).fill("Your code is {{1}}")

    await page.get_by_role("button", name="Check").click()

    await page.get_by_role("link", name="Sample of the body is required").wait_for()
    await expect(page.locator("#f-value-1")).to_be_focused()
    await page.get_by_role("link", name="Body must neither begin nor end").click()
    await expect(page.locator("#f-content")).to_be_focused()


async def test_first_finding_has_the_focus_without_scripts(console: ConsoleClient) -> None:
    form = {"csrf": await console.csrf(), "elementName": "Order Update", "content": "Hi", "do": "check"}
    async with console.http.post(console.base_url + NEW, data=form) as response:
        page = await response.text()

    focused = re.findall(r'<(?:input|select|textarea) id="([^"]+)"[^>]* autofocus', page)
    assert len(focused) == 1
    assert f'href="#{focused[0]}"' in page


async def test_language_is_typed_as_its_name(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    field = page.get_by_label("Language", exact=True)

    await field.fill("german")
    await expect(page.locator("#language-name")).to_have_text("German")
    await page.keyboard.press("Tab")

    await expect(field).to_have_value("de")


async def test_sample_stands_in_its_place_in_the_text(tabs: Tabs) -> None:
    page = (await tabs(NEW)).page
    await page.get_by_role("textbox", name="Body", exact=True).fill(
        "Hi {{1}}, your order {{2}} is ready, shall we bring it today?"
    )

    second = page.locator(".value").filter(has_text="Sample for {{2}}")
    await expect(second.locator(".value-before")).to_have_text("Hi {{1}}, your order")
    await expect(second.locator(".value-after")).to_have_text(re.compile(r"^\s*is ready, shall we b[a-z]+…$"))


async def test_language_is_added_to_a_template(tabs: Tabs) -> None:
    page = (await tabs(DEMO)).page
    await page.get_by_role("link", name="Add language").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Add a language to order_ready")
    await expect(page.get_by_label("Name", exact=True)).to_have_value("order_ready")
    language = page.get_by_label("Language", exact=True)
    await expect(language).to_be_focused()
    await expect(page.locator("#language-name")).to_contain_text("Exists in en_US.")
    assert await page.locator('#languages option[value="en_US"]').count() == 0
    await page.keyboard.type("German")
    await page.get_by_role("button", name="Submit").click()

    await page.wait_for_url("**/templates/0*")
    await expect(page.locator("#facts")).to_contain_text("de")


async def test_edit_shows_what_differs_from_the_approved_version(tabs: Tabs, console: ConsoleClient) -> None:
    await console.control.json("PUT", "/control/settings", {"review_delay_ms": None})
    tab = await tabs(f"{DEMO}/edit")
    page = tab.page
    changes = page.locator("#changes")
    await expect(changes).to_contain_text("None.")

    body = page.get_by_role("textbox", name="Body", exact=True)
    await body.fill((await body.input_value()).replace("order", "coat"))
    await expect(changes.locator("del").first).to_have_text("order")
    await expect(changes.locator("ins").first).to_have_text("coat")
    await page.get_by_role("button", name="Submit edit").click()
    await page.wait_for_url("**/templates/0*")

    await expect(changes.locator("ins").first).to_have_text("coat")
