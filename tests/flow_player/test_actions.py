"""Screens, routes, actions, expressions and versions, as the handset carries them out."""

from typing import Any

import pytest

from tests.flow_player.playing import FlowInHand, one_screen
from tests.support.flow_components import footer, navigate, screen, text_data
from waypost.flow_player import player
from waypost.flow_player.play_state import ErrorNotice, ExchangeRequest, FlowCompletion, StepNotAllowed

NAME: dict[str, Any] = {"type": "TextInput", "name": "name", "label": "Name"}
END: dict[str, Any] = {"name": "complete", "payload": {}}
EXCHANGE = {"name": "data_exchange", "payload": {"name": "${form.name}"}}
CITIES: dict[str, Any] = {
    "required": ["cities"],
    "cities": {
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "string"}}},
        "__example__": [],
    },
}


def two_screens(**members: Any) -> dict[str, Any]:
    first = screen("ONE", NAME, footer("Next", navigate("TWO", name="${form.name}")), title="One ${data.x}")
    second = screen("TWO", footer("Send", END), terminal=True, data=text_data("name"), **members)
    return {"version": "7.3", "screens": [first, second]}


def with_endpoint(*children: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a Flow of three screens; the endpoint leads from the first to the second, which has the components."""
    first = screen("ONE", NAME, footer("Next", EXCHANGE))
    second = screen("TWO", *children, footer("Send", EXCHANGE | {"payload": {}}), terminal=True, **members)
    return {
        "version": "7.3",
        "data_api_version": "3.0",
        "routing_model": {"ONE": ["TWO"], "TWO": [], "THREE": []},
        "screens": [first, second, screen("THREE", footer("End", END), terminal=True)],
    }


def test_back_shows_the_screen_before_with_what_was_entered() -> None:
    flow = FlowInHand(two_screens())
    assert not flow.view.can_go_back
    flow.fill(name="Bo")
    flow.tap("Next")
    assert flow.view.can_go_back

    flow.back()

    assert (flow.view.screen_id, flow.shown("name").value) == ("ONE", "Bo")
    with pytest.raises(StepNotAllowed, match="first screen"):
        flow.back()


def test_refresh_empties_the_screen() -> None:
    flow = FlowInHand(two_screens())
    flow.fill(name="Bo")

    flow.refresh()

    assert flow.shown("name").value == ""


def test_closed_flow_goes_on_where_it_was() -> None:
    flow = FlowInHand(two_screens())
    flow.fill(name="Bo")
    flow.state = player.close(flow.state)
    assert flow.view.state == "closed"
    with pytest.raises(StepNotAllowed, match="closed"):
        flow.tap("Next")

    flow.state = player.reopen(flow.state)

    assert flow.shown("name").value == "Bo"


def test_endpoint_leads_to_the_next_screen() -> None:
    flow = FlowInHand(with_endpoint({"type": "TextBody", "text": "${data.name}"}, data=text_data("name")))
    flow.fill(name="Bo")
    request = flow.tap("Next")
    assert request == ExchangeRequest("data_exchange", "ONE", {"name": "Bo"})
    assert flow.view.state == "busy"
    with pytest.raises(StepNotAllowed, match="waits"):
        flow.fill(name="Cy")

    flow.respond("TWO", name="Hello Bo")

    assert flow.view.screen_id == "TWO"
    assert flow.texts() == ["Hello Bo"]
    assert flow.tap("Send") == ExchangeRequest("data_exchange", "TWO", {})
    ended = flow.respond("SUCCESS", extension_message_response={"params": {"flow_token": "t", "x": 1}})
    assert isinstance(ended, FlowCompletion)
    assert ended.payload == {"flow_token": "t", "x": 1}


def test_flow_begins_with_init_and_shows_its_failure() -> None:
    flow = FlowInHand(with_endpoint(), action="data_exchange", flow_token="t-1")
    assert flow.effect == ExchangeRequest("INIT", "")
    flow.state = player.fail_request(flow.state)
    assert (flow.view.state, flow.view.error) == ("error", "Something went wrong. Please try again later.")

    assert flow.refresh() == ExchangeRequest("INIT", "")
    flow.respond("ONE")

    assert flow.view.screen_id == "ONE"


def test_flow_without_endpoint_has_no_init() -> None:
    with pytest.raises(StepNotAllowed, match="no endpoint"):
        FlowInHand(two_screens(), action="data_exchange")


def test_message_of_the_endpoint_is_a_snackbar_on_the_same_screen() -> None:
    flow = FlowInHand(with_endpoint())
    flow.fill(name="Bo")
    flow.tap("Next")

    flow.respond("ONE", error_message="Unknown name")

    assert (flow.view.screen_id, flow.view.snackbar, flow.shown("name").value) == ("ONE", "Unknown name", "Bo")
    flow.fill(name="Cy")
    assert flow.view.snackbar == "Unknown name"
    flow.tap("Next")
    assert flow.view.snackbar == ""


def test_invalid_token_ends_the_flow_for_good() -> None:
    flow = FlowInHand(with_endpoint())
    flow.tap("Next")

    flow.state = player.fail_request(flow.state, error_message="Already ordered", is_token_invalid=True)

    assert (flow.view.state, flow.view.error) == ("token_invalid", "Already ordered")


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ({"screen": "NOWHERE", "data": {}}, "invalid-screen-transition"),
        ({"screen": "THREE", "data": {}}, "invalid-screen-transition"),
        ({"data": {}}, "invalid-screen-transition"),
        ({}, "invalid-screen-transition"),
        ({"screen": 5}, "invalid-screen-transition"),
        ({"screen": "TWO", "data": []}, "payload-schema-error"),
        ({"screen": "TWO", "data": {}}, "payload-schema-error"),
        ({"screen": "TWO", "data": {"cities": "x"}}, "payload-schema-error"),
        ({"screen": "TWO", "data": {"cities": [5]}}, "payload-schema-error"),
        ({"screen": "TWO", "data": {"cities": [{"id": 5}]}}, "payload-schema-error"),
        ({"screen": "TWO", "data": {"cities": [{"id": "x" * 1_100_000}]}}, "payload-schema-error"),
        ({"screen": "SUCCESS", "data": {}}, "payload-schema-error"),
    ],
)
def test_invalid_response_is_reported_and_shows_the_general_error(response: dict[str, Any], error: str) -> None:
    flow = FlowInHand(with_endpoint(data=CITIES))
    flow.tap("Next")

    notice = flow.follow(player.take_response(flow.flow, flow.state, response))

    assert isinstance(notice, ErrorNotice)
    assert (notice.action, notice.screen, notice.error) == ("data_exchange", "ONE", error)
    assert (flow.view.screen_id, flow.view.snackbar) == ("ONE", "Something went wrong. Please try again later.")


def test_deep_response_is_not_valid() -> None:
    value: Any = "x"
    for _ in range(500):
        value = [value]
    flow = FlowInHand(with_endpoint(data=CITIES))
    flow.tap("Next")

    notice = flow.respond("TWO", cities=value)

    assert isinstance(notice, ErrorNotice)


def test_back_can_be_the_endpoints_to_decide() -> None:
    flow = FlowInHand(with_endpoint(refresh_on_back=True))
    flow.tap("Next")
    flow.respond("TWO")

    request = flow.back()
    flow.respond("ONE")

    assert request == ExchangeRequest("BACK", "TWO")
    assert flow.state.stack == ["ONE"]


def test_request_without_a_response_has_failed_after_a_restart() -> None:
    flow = FlowInHand(with_endpoint())
    flow.tap("Next")

    flow.state = player.reopen(flow.state)

    assert flow.view.snackbar == "Something went wrong. Please try again later."
    assert flow.refresh() == ExchangeRequest("data_exchange", "ONE", {"name": ""})


def test_error_messages_stay_until_the_field_is_changed() -> None:
    form = {
        "type": "Form",
        "name": "form",
        "error-messages": "${data.errors}",
        "children": [{**NAME, "name": "city"}, NAME],
    }
    data: dict[str, Any] = {"errors": {"type": "object", "properties": {}, "__example__": {}}}
    flow = one_screen(form, data=data)
    flow.state = player.open_flow(flow.flow, data={"errors": {"name": "Taken", "city": "Unknown"}}).state
    assert [flow.shown(name).error for name in ("name", "city")] == ["Taken", "Unknown"]

    flow.fill(name="Bo")

    assert [flow.shown(name).error for name in ("name", "city")] == ["", "Unknown"]


def selection(kind: str = "RadioButtonsGroup", /, **members: Any) -> dict[str, Any]:
    options = [{"id": "a", "title": "Ann"}, {"id": "b", "title": "Bo"}]
    return {"type": kind, "name": "who", "label": "Who", "data-source": options, **members}


def update(text: str) -> dict[str, Any]:
    return {"name": "update_data", "payload": {"seen": text}}


@pytest.mark.parametrize(
    ("component", "values", "seen"),
    [
        (selection(**{"on-select-action": update("${form.who}")}), ["a", "b"], ["a", "b"]),
        (selection("CheckboxGroup", **{"on-select-action": update("on")}), [["a"], []], ["on", "on"]),
        (
            selection("CheckboxGroup", **{"on-select-action": update("on"), "on-unselect-action": update("off")}),
            [["a"], ["a", "b"], ["b"]],
            ["on", "on", "off"],
        ),
        (
            {
                "type": "OptIn",
                "name": "who",
                "label": "Who",
                "on-select-action": update("yes"),
                "on-unselect-action": update("no"),
            },
            [True, False],
            ["yes", "no"],
        ),
        (
            selection(
                "ChipsSelector",
                **{
                    "data-source": [
                        {
                            "id": "a",
                            "title": "Ann",
                            "on-select-action": update("a"),
                            "on-unselect-action": update("not a"),
                        },
                        {"id": "b", "title": "Bo", "on-select-action": update("b")},
                    ]
                },
            ),
            [["a"], ["b"], []],
            ["a", "b", "b"],
        ),
    ],
)
def test_selection_runs_its_actions(component: dict[str, Any], values: list[Any], seen: list[str]) -> None:
    flow = one_screen(component, {"type": "TextBody", "text": "${data.seen}"}, data=text_data("seen"))
    shown: list[str] = []
    for value in values:
        flow.fill(who=value)
        shown.append(flow.shown("TextBody").text)

    assert shown == seen


@pytest.mark.parametrize(("version", "seen"), [("6.0", "a"), ("6.3", "a"), ("7.0", ""), ("7.3", "")])
def test_select_action_runs_when_drawn_only_before_7(version: str, seen: str) -> None:
    chosen = selection(**{"on-select-action": update("${form.who}"), "init-value": "a"})
    flow = one_screen(chosen, {"type": "TextBody", "text": "${data.seen}"}, version=version, data=text_data("seen"))

    assert flow.shown("TextBody").text == seen
    assert flow.shown("who").value == "a"


@pytest.mark.parametrize(("version", "sent"), [("4.0", "1767571200000"), ("5.0", "2026-01-05"), ("7.3", "2026-01-05")])
def test_day_is_sent_in_the_form_of_the_version(version: str, sent: str) -> None:
    flow = one_screen({"type": "DatePicker", "name": "day", "label": "Day", "min-date": "0"}, version=version)
    flow.fill(day="2026-01-05")

    ended = flow.tap("Send")

    assert isinstance(ended, FlowCompletion)
    assert ended.payload["day"] == sent


@pytest.mark.parametrize(("version", "text"), [("5.1", "`'a' 'b'`"), ("6.0", "ab")])
def test_nested_expressions_count_from_6(version: str, text: str) -> None:
    assert one_screen({"type": "TextBody", "text": "`'a' 'b'`"}, version=version).texts() == [text]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("`'a' ${data.n} 'b'`", "a7b"),
        ("`${data.n} + 1`", "8"),
        ("`${data.n} / 2`", "3.5"),
        ("`${data.n} / 0`", "0"),
        ("`${data.n} % ${data.none}`", "0"),
        ("`${data.n} - 10`", "-3"),
        ("`(${data.n} + 1) * 2`", "16"),
        ("`${data.n} > 5 && !(${data.b} == false)`", "true"),
        ("`${data.b} || ${data.n} < 0`", "true"),
        ("`${data.t} == 'x'`", "true"),
        ("`${data.t} != 'x'`", "false"),
        ("`${form.age} >= 18`", "true"),
        ("`'it\\'s ' ${data.t}`", "it's x"),
        ("${data.o.inner}", "deep"),
        ("${data.nothing}", ""),
        ("${screen.TWO.form.other}", ""),
        ("${screen.TWO.data.other}", ""),
    ],
)
def test_expression_has_its_value(expression: str, text: str) -> None:
    age = {"type": "TextInput", "name": "age", "label": "Age", "input-type": "number", "init-value": "18"}
    flow = one_screen(age, {"type": "TextBody", "text": expression})

    flow.state = player.open_flow(flow.flow, data={"n": 7, "t": "x", "b": True, "o": {"inner": "deep"}}).state

    assert flow.shown("TextBody").text == text


def test_input_of_a_branch_that_is_not_shown_is_not_sent() -> None:
    more = {"type": "TextInput", "name": "more", "label": "More"}
    branch = {"type": "If", "condition": "${form.name} == 'Bo'", "then": [more]}
    hidden = {"type": "TextInput", "name": "hidden", "label": "H", "visible": False, "init-value": "kept"}
    payload = {name: f"${{form.{name}}}" for name in ("name", "more", "hidden")}
    last = screen("ONE", NAME, branch, hidden, footer("Send", {"name": "complete", "payload": payload}), terminal=True)
    flow = FlowInHand({"version": "7.3", "screens": [last]})
    flow.fill(name="Bo", more="x")
    flow.fill(name="Cy")

    ended = flow.tap("Send")

    assert isinstance(ended, FlowCompletion)
    assert ended.payload == {"flow_token": "unused", "name": "Cy", "more": "", "hidden": "kept"}


def test_button_waits_for_the_data_of_the_next_screen() -> None:
    flow = FlowInHand(two_screens())
    flow.flow.screens["ONE"].children[1]["on-click-action"]["payload"]["name"] = "${data.late}"

    assert not flow.shown("Footer").enabled
    with pytest.raises(StepNotAllowed, match="The data name of the screen TWO is not there yet"):
        flow.tap("Next")


def test_several_with_one_text_are_told_by_their_paths() -> None:
    link = {
        "type": "EmbeddedLink",
        "text": "More",
        "on-click-action": {"name": "open_url", "url": "https://example.com"},
    }
    flow = one_screen(link, link)

    with pytest.raises(StepNotAllowed, match="stands for several") as error:
        flow.tap("More")

    assert error.value.accepted == "0, 1"
    assert flow.tap("1") is not None


def test_growing_data_ends_in_the_general_error() -> None:
    grow: dict[str, Any] = {
        "name": "update_data",
        "payload": {"x": "`${data.x} ${data.x} 'a'`", "y": ["${data.y}", "${data.y}"]},
    }
    flow = one_screen({"type": "OptIn", "name": "who", "label": "Who", "on-select-action": grow})

    for turn in range(40):
        flow.fill(who=turn % 2 == 0)

    assert flow.view.snackbar or flow.view.state == "screen"
    assert len(str(flow.state.memory.data)) < 20_000_000
