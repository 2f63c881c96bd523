"""A draft as its recipient will see it: the same as what a phone shows once it is approved and sent."""

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.console.support.bubble_samples import DRAFTS, UNTIL_MS, of_template, sent
from waypost.console.bubbles.buttons import BUTTON_BEHAVIOURS
from waypost.console.bubbles.drafts import draft_message
from waypost.console.bubbles.flow_forms import parse_screens
from waypost.console.bubbles.items import add_media_data, prepare_messages, quote_of
from waypost.console.bubbles.previews import message_view
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.cards import Card
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.types import TemplateType
from waypost.simulator.messages.template_sends.buttons import BUTTON_SEND_KINDS as SENT_KINDS

SENT = (
    "text", "many", "image", "document", "location", "product", "catalog", "carousel", "offer", "flow", "one_tap",
)  # fmt: skip


def labels(shown: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (one["index"], one["type"], one["text"], one.get("url"), one.get("code"), one.get("phone_number"))
        for one in shown.get("buttons", [])
    ]  # fmt: skip


@pytest.mark.parametrize("name", SENT)
def test_draft_looks_as_the_phone_shows_it_when_it_is_sent_with_its_samples(name: str) -> None:
    drawn = draft_message(DRAFTS[name], until_ms=UNTIL_MS)
    arrived = of_template(name)

    assert drawn["text"] == arrived["text"]
    assert drawn.get("footer") == arrived.get("footer")
    assert drawn.get("header", {}).get("format") == arrived.get("header", {}).get("format")
    assert drawn.get("header", {}).get("text") == arrived.get("header", {}).get("text")
    if name != "document":
        assert labels(drawn) == labels(arrived)
    offer = dict(drawn.get("limited_time_offer", {}))
    offer.pop("expires", None)
    assert offer == arrived.get("limited_time_offer", {})
    for card, shown in zip(drawn.get("cards", []), arrived.get("cards", []), strict=True):
        assert (card["index"], labels(card)) == (shown["index"], labels(shown))
        assert card["header"]["format"] == shown["header"]["format"]


@pytest.mark.parametrize("type", [None, *TemplateType, "GIF", "NO SUCH"])
@pytest.mark.parametrize("category", [None, "MARKETING", "AUTHENTICATION", "?"])
def test_draft_that_is_being_written_can_always_be_drawn(type: str | None, category: str | None) -> None:
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
    shown = draft_message(DRAFTS["gaps"])

    assert shown["text"] == "Hello {{1}}, it is {{2}}."
    face = message_view(shown, is_draft=True)
    assert str(face.text).count('class="gap"') == 2
    assert face.header is not None
    assert 'class="gap"' in str(face.header.text)


def test_lone_variable_takes_an_example_that_is_only_its_value() -> None:
    draft = replace(DRAFTS["text"], header="For {{1}}", example_header="Ann")

    assert draft_message(draft)["header"]["text"] == "For Ann"


def test_sample_of_a_header_comes_from_who_knows_its_path() -> None:
    shown = draft_message(DRAFTS["carousel"], find=lambda handle: f"/samples/{handle}")
    assert [card["header"]["image"]["url"] for card in shown["cards"]] == [
        "/samples/4::0", "/samples/4::1", "/samples/4::2",
    ]  # fmt: skip
    header = draft_message(DRAFTS["image"], media_url="/here")["header"]
    assert header == {"format": "IMAGE", "image": {"url": "/here"}}


def test_address_of_a_button_is_filled_with_its_sample_or_is_the_sample() -> None:
    whole = TemplateButton(ButtonKind.URL, "x", url="https://a.test/{{1}}", example=("https://a.test/b",))
    tail = TemplateButton(ButtonKind.URL, "x", url="https://a.test/{{1}}", suffix="c")
    shown = draft_message(replace(DRAFTS["text"], buttons=(whole, tail)))

    assert [one["url"] for one in shown["buttons"]] == ["https://a.test/b", "https://a.test/c"]


def test_every_button_that_a_phone_can_show_has_its_row() -> None:
    assert set(SENT_KINDS) <= set(BUTTON_BEHAVIOURS)


def test_button_leads_only_to_pages() -> None:
    [button] = message_view({"buttons": [{"type": "URL", "text": "x", "url": "javascript:1"}]}).buttons

    assert button.does == "nothing"


@pytest.mark.parametrize("odd", [None, 1, "x", [], [1], {}, {"format": 3}, [{"text": 1}], True])
def test_what_has_another_shape_than_expected_is_drawn_without_it(odd: Any) -> None:
    names = (
        "text", "header", "footer", "buttons", "cards", "media", "location", "contacts", "order", "response",
        "interactive", "limited_time_offer", "referral", "template", "unsupported", "reactions", "quoted",
    )  # fmt: skip
    for name in names:
        message_view({"type": "text", name: odd})
        prepare_messages([{"wamid": "a", "type": "text", "direction": "to_phone", name: odd}], lambda _: {})


def test_reaction_is_under_what_it_is_about_and_the_newest_of_each_side_counts() -> None:
    def react(wamid: str, emoji: str, direction: str) -> dict[str, Any]:
        about = {"message_id": "text", "emoji": emoji}
        return {"wamid": wamid, "type": "reaction", "direction": direction, "reaction": about}

    items = [
        sent("text"), react("1", "👍", "from_phone"), react("2", "❤️", "from_phone"), react("3", "🎉", "to_phone"),
    ]  # fmt: skip
    [item] = prepare_messages(items, lambda _: {})
    assert item["reactions"] == [
        {"emoji": "❤️", "who": "phone"}, {"emoji": "🎉", "who": "business"},
    ]  # fmt: skip

    [item] = prepare_messages([*items, react("4", "", "from_phone")], lambda _: {})
    assert item["reactions"] == [{"emoji": "🎉", "who": "business"}]


def test_reply_quotes_what_it_answers() -> None:
    answer = {"wamid": "a", "type": "text", "direction": "from_phone", "text": "Yes", "context_id": "image"}
    item = prepare_messages([sent("image"), answer], lambda _: {})[1]

    assert item["quoted"] == {
        "wamid": "image", "who": "Business", "text": "The green one", "kind": "Photo",
    }  # fmt: skip
    assert quote_of(sent("sticker"))["text"] == "Sticker"


def test_media_get_what_the_page_knows_of_them_and_nothing_elsewhere_is_shown() -> None:
    known = add_media_data(sent("image"), lambda media_id: {"url": f"/m/{media_id}", "size_bytes": 2048})
    header = message_view(known).header
    assert header is not None
    assert header.medium is not None
    assert (header.medium.url, header.medium.detail) == ("/m/m-image", "PNG · 2 kB")

    elsewhere = message_view({"media": {"kind": "image", "url": "//evil.test/x", "link": "https://a.test/b.png"}})
    assert elsewhere.header is not None
    assert elsewhere.header.medium is not None
    assert (elsewhere.header.medium.url, elsewhere.header.medium.external_host) == ("", "a.test")


def test_fields_of_a_flow_are_read_through_forms_and_branches() -> None:
    field = {"type": "TextInput", "name": "a", "label": "A"}
    branches = {"type": "If", "then": [field], "else": [{**field, "name": "b"}]}
    cases = {"type": "Switch", "cases": {"x": [{**field, "name": "c"}]}}
    layout = {"children": [{"type": "Form", "children": [branches, cases, {"type": "Image"}]}]}
    [screen] = parse_screens({"screens": [{"id": "ONE", "layout": layout}, {"id": "EMPTY"}]})

    assert [part.name for part in screen.parts] == ["a", "b", "c"]
    assert screen.title == "ONE"


ODD_FORMS: Final = (
    "null", "[]", '{"screens": 1}', '{"screens": [{"layout": {"children": [1, {"type": []}]}}]}',
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD_FORMS)
def test_flow_of_another_shape_has_no_form(odd: str) -> None:
    assert parse_screens(json.loads(odd)) == []


def test_flow_without_an_end_is_read_to_some_depth() -> None:
    within: dict[str, Any] = {"type": "TextInput", "name": "deep"}
    for _ in range(100):
        within = {"type": "Form", "children": [within]}

    assert parse_screens({"screens": [{"layout": within}]}) == []
