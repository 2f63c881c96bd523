"""Previews of drafts: the same as what a phone shows when the template is approved and sent."""

from dataclasses import replace
from typing import Any

import pytest

from tests.console.support.bubble_samples import DRAFTS, UNTIL_MS, business_message, template_message
from waypost.console.bubbles.buttons import BUTTON_BEHAVIOURS
from waypost.console.bubbles.items import add_media_data, prepare_messages, quote_of
from waypost.console.bubbles.previews import draft_message, message_view
from waypost.domain.templates.buttons import ButtonKind, Card, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.types import TemplateType
from waypost.simulator.messages.template_buttons import BUTTON_SEND_KINDS as SENT_KINDS

SENT_DRAFTS = (
    "text", "many", "image", "document", "location", "product", "catalog", "carousel", "offer", "flow", "one_tap",
)  # fmt: skip


def labels(message: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (button["index"], button["type"], button["text"], button.get("url"), button.get("code"), button.get("phone_number"))
        for button in message.get("buttons", [])
    ]  # fmt: skip


@pytest.mark.parametrize("name", SENT_DRAFTS)
def test_preview_of_a_draft_equals_the_message_sent_with_its_samples(name: str) -> None:
    preview = draft_message(DRAFTS[name], until_ms=UNTIL_MS)
    message = template_message(name)

    assert preview["text"] == message["text"]
    assert preview.get("footer") == message.get("footer")
    assert preview.get("header", {}).get("format") == message.get("header", {}).get("format")
    assert preview.get("header", {}).get("text") == message.get("header", {}).get("text")
    if name != "document":
        assert labels(preview) == labels(message)
    offer = dict(preview.get("limited_time_offer", {}))
    offer.pop("expires", None)
    assert offer == message.get("limited_time_offer", {})
    for card, sent_card in zip(preview.get("cards", []), message.get("cards", []), strict=True):
        assert (card["index"], labels(card)) == (sent_card["index"], labels(sent_card))
        assert card["header"]["format"] == sent_card["header"]["format"]


@pytest.mark.parametrize("type", [None, *TemplateType, "GIF", "NO SUCH"])
@pytest.mark.parametrize("category", [None, "MARKETING", "AUTHENTICATION", "?"])
def test_incomplete_draft_can_always_be_rendered(type: str | None, category: str | None) -> None:
    buttons = tuple(TemplateButton(kind) for kind in ButtonKind)
    for draft in (
        TemplateDraft(template_type=type, category=category),
        TemplateDraft(template_type=type, category=category, content="{{", example="{{1}}", header="{{1}} {{1}}", cards=(),
              buttons=buttons, is_lto=True, has_expiration=True),
        TemplateDraft(template_type=type, category=category, content="{{1}}{{2}}", example="x",
              cards=(Card(), Card("VIDEO", body="{{1}}"))),
    ):  # fmt: skip
        message_view(draft_message(draft), is_draft=True)


def test_variable_without_a_sample_stays_a_gap() -> None:
    preview = draft_message(DRAFTS["gaps"])

    assert preview["text"] == "Hello {{1}}, it is {{2}}."
    view = message_view(preview, is_draft=True)
    assert str(view.text).count('class="gap"') == 2
    assert view.header is not None
    assert 'class="gap"' in str(view.header.text)


def test_only_variable_accepts_an_example_that_is_only_its_value() -> None:
    draft = replace(DRAFTS["text"], header="For {{1}}", example_header="Ann")

    assert draft_message(draft)["header"]["text"] == "For Ann"


def test_sample_of_a_header_is_looked_up_by_its_handle() -> None:
    preview = draft_message(DRAFTS["carousel"], find=lambda handle: f"/samples/{handle}")
    assert [card["header"]["image"]["url"] for card in preview["cards"]] == [
        "/samples/4::0", "/samples/4::1", "/samples/4::2",
    ]  # fmt: skip
    header = draft_message(DRAFTS["image"], media_url="/here")["header"]
    assert header == {"format": "IMAGE", "image": {"url": "/here"}}


def test_url_of_a_button_is_filled_with_its_sample_or_is_the_sample() -> None:
    whole = TemplateButton(ButtonKind.URL, "x", url="https://a.test/{{1}}", example=("https://a.test/b",))
    tail = TemplateButton(ButtonKind.URL, "x", url="https://a.test/{{1}}", suffix="c")
    preview = draft_message(replace(DRAFTS["text"], buttons=(whole, tail)))

    assert [button["url"] for button in preview["buttons"]] == ["https://a.test/b", "https://a.test/c"]


def test_every_button_that_a_phone_can_show_has_a_behaviour() -> None:
    assert set(SENT_KINDS) <= set(BUTTON_BEHAVIOURS)


def test_button_links_only_to_web_pages() -> None:
    [button] = message_view({"buttons": [{"type": "URL", "text": "x", "url": "javascript:1"}]}).buttons

    assert button.does == "nothing"


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {}, {"format": 3}, [{"text": 1}], True])
def test_field_of_an_unexpected_type_is_left_out(value: Any) -> None:
    names = (
        "text", "header", "footer", "buttons", "cards", "media", "location", "contacts", "order", "response",
        "interactive", "limited_time_offer", "referral", "template", "unsupported", "reactions", "quoted",
    )  # fmt: skip
    for name in names:
        message_view({"type": "text", name: value})
        prepare_messages([{"wamid": "a", "type": "text", "direction": "to_phone", name: value}], lambda _: {})


def test_message_shows_the_latest_reaction_of_each_side() -> None:
    def react(wamid: str, emoji: str, direction: str) -> dict[str, Any]:
        reaction = {"message_id": "text", "emoji": emoji}
        return {"wamid": wamid, "type": "reaction", "direction": direction, "reaction": reaction}

    items = [
        business_message("text"), react("1", "👍", "from_phone"), react("2", "❤️", "from_phone"), react("3", "🎉", "to_phone"),
    ]  # fmt: skip
    [item] = prepare_messages(items, lambda _: {})
    of_phone = {"emoji": "❤️", "who": "phone", "from": "the phone"}
    of_business = {"emoji": "🎉", "who": "business", "from": "the business"}
    assert item["reactions"] == [of_phone, of_business]

    [item] = prepare_messages([*items, react("4", "", "from_phone")], lambda _: {})
    assert item["reactions"] == [of_business]


def test_reply_quotes_the_original_message() -> None:
    reply = {"wamid": "a", "type": "text", "direction": "from_phone", "text": "Yes", "context_id": "image"}
    item = prepare_messages([business_message("image"), reply], lambda _: {})[1]

    assert item["quoted"] == {
        "wamid": "image", "who": "Business", "text": "The green one", "kind": "Photo",
    }  # fmt: skip
    assert quote_of(business_message("sticker"))["text"] == "Sticker"


def test_media_get_the_data_of_the_page_and_external_media_are_not_loaded() -> None:
    message = add_media_data(business_message("image"), lambda media_id: {"url": f"/m/{media_id}", "size_bytes": 2048})
    header = message_view(message).header
    assert header is not None
    assert header.medium is not None
    assert (header.medium.url, header.medium.detail) == ("/m/m-image", "PNG · 2 kB")

    external = message_view({"media": {"kind": "image", "url": "//evil.test/x", "link": "https://a.test/b.png"}})
    assert external.header is not None
    assert external.header.medium is not None
    assert (external.header.medium.url, external.header.medium.external_host) == ("", "a.test")
