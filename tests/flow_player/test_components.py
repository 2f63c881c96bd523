"""Every component of Flow JSON 7.3: what the handset shows of it, and the whole Flow played to its end."""

from tests.flow_player.playing import FlowInHand
from tests.support.flow_components import PNG, every_component_flow, every_component_text
from waypost.flow_json.components import COMPONENTS
from waypost.flow_json.validator import check_flow_json
from waypost.flow_player.play_state import FlowCompletion, OpenedUrl, ShownImage, SummaryRow

STAY = {"start-date": "2026-01-05", "end-date": "2026-01-07"}


def at_fields() -> FlowInHand:
    flow = FlowInHand(every_component_flow(), flow_token="t-1")
    for target in ("All of it", "Terms", "Fields"):
        flow.tap(target)
    return flow


def test_flow_of_all_components_is_valid_and_has_each() -> None:
    checked = check_flow_json(every_component_text())

    assert (checked.errors, checked.warnings) == ([], [])
    assert checked.view is not None
    assert {one.type for screen in checked.view.screens for one in screen.components} == set(COMPONENTS)


def test_list_shows_its_items_and_leads_on() -> None:
    flow = FlowInHand(every_component_flow())
    [item, _] = flow.shown("NavigationList").options

    flow.tap(item.path)

    assert (item.title, item.description, item.metadata) == ("All of it", "Eight screens", "5 minutes")
    assert (item.badge, item.tags, item.image, item.alt_text) == ("New", ["long", "whole"], PNG, "A dot")
    assert item.end == {"title": "1", "description": "new"}
    assert (flow.view.screen_id, flow.view.title) == ("TEXTS", "Texts: Hello")


def test_texts_pictures_and_links_are_shown() -> None:
    flow = FlowInHand(every_component_flow())
    flow.tap("All of it")

    assert flow.texts() == ["Hello", "Hello, you", "Some **bold** text", "small", "Web site"]
    assert flow.shown("TextBody").blocks[0]["spans"][1] == {"text": "bold", "bold": True}
    assert flow.shown("TextCaption").style == {"font-weight": "italic", "strikethrough": True}
    assert flow.shown("Image").images == [ShownImage(PNG, "A dot")]
    assert [one.alt_text for one in flow.shown("ImageCarousel").images] == ["One", "Two"]
    assert flow.shown("Footer").captions == {"left-caption": "1", "right-caption": "of 6"}
    assert flow.tap("Web site") == OpenedUrl("https://example.com")
    flow.tap("Terms")
    assert [block["type"] for block in flow.shown("RichText").blocks] == ["heading", "paragraph"]


def test_inputs_are_filled_in_to_the_end() -> None:
    flow = at_fields()
    assert flow.shown("city").value == "Oslo"
    assert not flow.shown("Footer").enabled
    flow.fill(name="Bo", email="bo@example.com", pin="0012", age="7", code="AB1", notes="x")
    assert flow.shown("Footer").enabled
    flow.fill(city="Bergen")
    assert flow.shown("street").label == "Street"
    flow.tap("Choices")
    assert flow.texts() == ["Choose a size", "Welcome"]
    flow.fill(colors=["red", "Blue"], country="no")
    flow.tap("Small")
    flow.tap("I agree")
    assert flow.tap("Read more") == OpenedUrl("https://example.com/terms")
    assert flow.texts() == ["s costs 5", "Velkommen"]
    flow.tap("Dates")
    flow.fill(birthday="1999-05-05", visit="2026-01-05", stay=STAY)
    flow.tap("Photos")
    assert not flow.shown("Footer").enabled
    flow.upload("photos")
    flow.tap("Documents")

    ended = flow.tap("Send")

    assert isinstance(ended, FlowCompletion)
    assert ended.files == {"photos": ["m1"], "documents": []}
    assert {name: ended.payload[name] for name in ("flow_token", "name", "city", "colors", "stay")} == {
        "flow_token": "t-1",
        "name": "Bo",
        "city": "Bergen",
        "colors": ["red", "blue"],
        "stay": STAY,
    }
    assert flow.view.state == "completed"
    assert flow.view.summary[:3] == [
        SummaryRow("Name", "Bo"),
        SummaryRow("E-mail", "••••••••"),
        SummaryRow("City", "Bergen"),
    ]
    assert "PIN" not in {row.label for row in flow.view.summary}
