"""Flows on a test's phone: filled in, gone through, checked and completed; also by scenarios as data."""

import json
from typing import Any

import pytest

from pytest_waypost.client import ApiResponseError
from pytest_waypost.failures import NotSeen
from pytest_waypost.flow import read_flow_scenario, take_snapshot
from pytest_waypost.partner import Partner
from pytest_waypost.phone import Phone
from tests.simulator.flows.test_sessions import ASK_AND_SHOW
from tests.testing.test_partner import PIXEL


@pytest.fixture
def ann(partner: Partner) -> Phone:
    """Send a person a message with a Flow of two screens."""
    partner.callbacks_to("", version=3)
    flow_id = partner.publish_flow("booking", ASK_AND_SHOW)
    button = {"type": "FLOW", "text": "Book", "flow_id": flow_id, "flow_action": "NAVIGATE", "navigate_screen": "ASK"}
    template = partner.create_template("book", "A table?", category="MARKETING", buttons=[button])
    phone = partner.phone("Ann")
    partner.send_template(template, phone)
    return phone


def test_flow_is_played_in_four_lines(partner: Partner, ann: Phone) -> None:
    flow = ann.flow()
    flow.fill(name="Bo").tap("Next")
    flow.expect_screen("SHOW", "Bo").submit()
    flow.expect_response(name="Bo")

    reply = partner.wait_for_callback("interactive")
    message = reply.body["entry"][0]["changes"][0]["value"]["messages"][0]
    assert json.loads(message["interactive"]["nfm_reply"]["response_json"])["name"] == "Bo"


def test_what_the_phone_does_not_allow_names_field_and_rule(ann: Phone) -> None:
    flow = ann.flow()

    with pytest.raises(ApiResponseError, match="name: min-chars: Enter at least 2 characters"):
        flow.fill(name="B").tap("Next")
    with pytest.raises(ApiResponseError, match="Next"):
        flow.tap("Previous")

    assert (flow.screen, flow.errors) == ("ASK", {"name": "Enter at least 2 characters."})


def test_errors_of_a_refused_submit_are_shown(ann: Phone) -> None:
    flow = ann.flow()

    with pytest.raises(ApiResponseError, match="name: required"):
        flow.submit()

    assert flow.errors == {"name": "This field is required."}


def test_other_screen_and_absent_text_show_what_there_is(ann: Phone) -> None:
    flow = ann.flow().fill(name="Bo")

    with pytest.raises(
        NotSeen, match=r'does not show the screen SHOW\nthe phone shows screen ASK "Ask"\n.* name "Name" = '
    ):
        flow.expect_screen("SHOW")
    with pytest.raises(NotSeen, match="does not have: Bea"):
        flow.tap("Next").expect_screen("SHOW", "Bea")
    with pytest.raises(NotSeen, match="is not completed"):
        flow.expect_response(name="Bo")
    with pytest.raises(NotSeen, match="/name is 'Bo', not 'Bea'"):
        flow.submit().expect_response(name="Bea")


def test_closed_flow_is_opened_where_it_was_left_or_again(ann: Phone) -> None:
    flow = ann.flow().fill(name="Bo").tap("Next").close()
    assert flow.status == "closed"

    assert ann.flow().screen == "SHOW"
    assert ann.flow().back().screen == "ASK"
    assert ann.flow(restart=True).expect_screen("ASK", "Name").raw["view"]["components"][0].get("value") in (None, "")


def test_file_of_a_picker_reaches_the_partner(partner: Partner) -> None:
    partner.callbacks_to("", version=3)
    flow_id = partner.publish_flow("receipt", PICKER)
    button = {"type": "FLOW", "text": "Send", "flow_id": flow_id, "flow_action": "NAVIGATE", "navigate_screen": "FILE"}
    template = partner.create_template("receipt", "A receipt?", category="MARKETING", buttons=[button])
    ann = partner.phone("Ann")
    partner.send_template(template, ann)

    flow = ann.flow().upload("photo", PIXEL, "image/png", file_name="receipt.png").submit()

    assert flow.response is not None
    [photo] = flow.response["photo"]
    assert (photo["mime_type"], photo["file_name"]) == ("image/png", "receipt.png")


PICKER: dict[str, Any] = {
    "version": "7.3",
    "screens": [
        {
            "id": "FILE",
            "title": "A receipt",
            "terminal": True,
            "layout": {
                "type": "SingleColumnLayout",
                "children": [
                    {
                        "type": "PhotoPicker",
                        "name": "photo",
                        "label": "Photo",
                        "min-uploaded-photos": 1,
                        "max-uploaded-photos": 1,
                        "max-file-size-kb": 1000,
                    },
                    {
                        "type": "Footer",
                        "label": "Send",
                        "on-click-action": {"name": "complete", "payload": {"photo": "${form.photo}"}},
                    },
                ],
            },
        }
    ],
}

FLOWSO: list[dict[str, Any]] = [
    {"expect": {"screen": "ASK", "status": "ready", "history": ["ASK"], "canSubmit": False}},
    {"fill": "name", "value": "B"},
    {"submit": True, "expect": {"screen": "ASK", "fieldErrors": {"name": "Enter at least 2 characters."}}},
    {"fill": "name", "value": "Bo", "expect": {"fields": {"name": {"value": "Bo", "required": True}}}},
    {"submit": True, "expect": {"screen": "SHOW", "data": {"name": "Bo"}, "fields": {}, "canSubmit": True}},
    {"back": True, "expect": {"screen": "ASK"}},
    {"fill": "name", "valueFrom": "/fields/name/value"},
    {"submit": True, "expect": {"screen": "SHOW"}},
    {"submit": True, "expect": {"status": "completed", "completion": {"name": "Bo"}}},
]


def test_scenario_of_flowso_is_played(ann: Phone) -> None:
    flow = ann.flow().play({"name": "with a correction", "steps": FLOWSO})

    assert flow.response is not None
    assert flow.response["name"] == "Bo"


def test_scenario_of_the_control_api_is_played(ann: Phone) -> None:
    flow = ann.flow().play([{"fill": {"name": "Bo"}}, {"tap": "Next", "expect": {"screen": "SHOW"}}, {"tap": "Done"}])

    flow.expect_response(name="Bo")


def test_errors_have_to_be_expected_once_something_is_tapped() -> None:
    taken: list[dict[str, Any]] = [
        {"submit": True, "expect": {"errorMessage": "Taken"}},
        {"fill": "name", "value": "Bo"},
    ]

    steps = list(read_flow_scenario([*taken, {"back": True}]))

    assert [expected for _, expected in steps] == [
        {"fieldErrors": {}, "errorMessage": "Taken"},
        {},
        {"fieldErrors": {}, "errorMessage": None},
    ]


def test_scenario_can_submit_once_required_fields_have_values() -> None:
    footer = {"path": "1", "type": "Footer", "enabled": False}
    field = {"path": "0", "type": "TextInput", "name": "name", "required": True, "enabled": True}

    snapshots = [
        take_snapshot({"view": {"components": [*fields, footer], "footer": "1"}}, None)["canSubmit"]
        for fields in ([], [field], [field | {"value": "Bo"}], [field | {"enabled": False}])
    ]

    assert snapshots == [True, False, True, True]


IMPOSSIBLE: list[tuple[list[dict[str, Any]], type[Exception], str]] = [
    ([{"fill": "name", "value": "B"}, {"submit": True}], NotSeen, r"steps\[1\] is not possible: .*at least 2 char"),
    (
        [{"expect": {"screen": "SHOW"}}],
        NotSeen,
        r"steps\[0\] does not lead to what it expects: /screen is 'ASK', not 'SHOW'",
    ),
    ([{"submit": True, "back": True}], ValueError, r"steps\[0\]: cannot have back, submit; accepted: one of fill"),
    ([{}], ValueError, r"steps\[0\]: must have one of"),
    ([{"expect": {"colour": "red"}}], ValueError, r"steps\[0\]\.expect: cannot have colour"),
    ([{"fill": "name", "valueFrom": "/fields/age/value"}], ValueError, "leads nowhere, from age on"),
    ([{"click": "x", "item": "y"}], NotSeen, "has no item y"),
]


@pytest.mark.parametrize(("steps", "error", "text"), IMPOSSIBLE)
def test_scenario_that_cannot_be_played_names_the_step(
    ann: Phone, steps: list[dict[str, Any]], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        ann.flow().play(steps)
