"""Faults are validated against the tables before they are armed; errors name the accepted values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.faults.fault_kinds import FAULT_KINDS, WEBHOOKS
from waypost.simulator.faults.fault_reading import read_faults
from waypost.simulator.serving.graph_routes import ROOT_ROUTES, ROUTES
from waypost.simulator.state.graph_operations import MARK_READ, SEND, call_names

CALL = {"on": "call", "what": {"error": 2}}
WEBHOOK = {"on": "webhook", "what": {"drop": True}}

# fmt: off
INVALID: dict[str, tuple[Any, str]] = {  # the fault, and the member that the error names
    "nothing":                      (None,                                                    "body"),
    "a_list":                       ([],                                                      "body"),
    "an_unknown_member":            ({**CALL, "wen": {"next": 1}},                            "wen"),
    "on_missing":                   ({"what": {"error": 2}},                                  "on"),
    "on_unknown":                   ({**CALL, "on": "calls"},                                 "on"),
    "on_a_list":                    ({**CALL, "on": ["call"]},                                "on"),
    "a_call_of_a_webhook_fault":    ({**WEBHOOK, "call": "messages.send"},                    "call"),
    "a_webhook_of_a_call_fault":    ({**CALL, "webhook": "sent"},                             "webhook"),
    "an_unknown_call":              ({**CALL, "call": "messages.sent"},                       "call"),
    "a_call_that_is_not_text":      ({**CALL, "call": ["messages.send"]},                     "call"),
    "an_unknown_webhook":           ({**WEBHOOK, "webhook": "arrived"},                       "webhook"),
    "a_number_as_phone":            ({**CALL, "call": "messages.send", "phone": 15551234567}, "phone"),
    "a_phone_of_another_call":      ({**CALL, "call": "templates.create", "phone": "1555"},   "phone"),
    "a_template_of_another_call":   ({**CALL, "call": "media.upload", "template": "a"},       "template"),
    "a_phone_of_a_template":        ({**WEBHOOK, "webhook": "template_category_update", "phone": "1"}, "phone"),
    "a_template_of_a_message":      ({**WEBHOOK, "webhook": "message", "template": "a"},      "template"),
    "a_number_of_an_account":       ({**WEBHOOK, "webhook": "account_update", "number": "1"}, "number"),
    "an_unknown_request":           ({"on": "endpoint", "endpoint": "init", "what": {"replay": True}}, "endpoint"),
    "a_flow_of_a_call":             ({**CALL, "flow": "1"},                                   "flow"),
    "a_template_of_an_endpoint":    ({"on": "endpoint", "template": "a", "what": {"replay": True}}, "template"),
    "a_status_of_an_endpoint":      ({"on": "endpoint", "what": {"status": 200}},             "what.status"),
    "what_missing":                 ({"on": "call"},                                          "what"),
    "what_empty":                   ({**CALL, "what": {}},                                    "what"),
    "what_of_two_kinds":            ({**CALL, "what": {"error": 2, "timeout": True}},         "what"),
    "what_of_webhooks":             ({**CALL, "what": {"drop": True}},                        "what"),
    "what_of_calls":                ({**WEBHOOK, "what": {"slow_ms": 5}},                     "what"),
    "an_unknown_parameter":         ({**CALL, "what": {"error": 2, "state": 500}},            "what.state"),
    "a_parameter_of_another_kind":  ({**CALL, "what": {"slow_ms": 5, "processed": True}},         "what.processed"),
    "a_code_as_text":               ({**CALL, "what": {"error": "2"}},                        "what.error"),
    "a_code_as_boolean":            ({**CALL, "what": {"error": True}},                       "what.error"),
    "a_status_of_success":          ({**CALL, "what": {"error": 2, "status": 200}},           "what.status"),
    "a_fraction_of_ms":             ({**CALL, "what": {"slow_ms": 0.5}},                      "what.slow_ms"),
    "a_false_timeout":              ({**CALL, "what": {"timeout": False}},                    "what.timeout"),
    "an_unknown_reset_moment":      ({**CALL, "what": {"reset": "during"}},                   "what.reset"),
    "an_unknown_garbage_kind":      ({**CALL, "what": {"garbage": "xml"}},                    "what.garbage"),
    "a_choice_as_list":             ({**CALL, "what": {"garbage": ["html"]}},                 "what.garbage"),
    "a_batch_of_one":               ({**WEBHOOK, "what": {"batch": 1}},                       "what.batch"),
    "a_failure_of_any_call":        ({**CALL, "what": {"fail": 131049}},                      "what.fail"),
    "when_empty":                   ({**CALL, "when": {}},                                    "when"),
    "when_of_two_kinds":            ({**CALL, "when": {"next": 1, "every": 2}},               "when"),
    "when_unknown":                 ({**CALL, "when": {"first": 1}},                          "when.first"),
    "next_zero":                    ({**CALL, "when": {"next": 0}},                           "when.next"),
    "every_one":                    ({**CALL, "when": {"every": 1}},                          "when.every"),
    "a_probability_of_zero":        ({**CALL, "when": {"probability": 0}},                    "when.probability"),
    "a_probability_above_one":      ({**CALL, "when": {"probability": 1.01}},                 "when.probability"),
    "a_probability_of_nan":         ({**CALL, "when": {"probability": float("nan")}},         "when.probability"),
    "a_label_too_long":             ({**CALL, "label": "x" * 201},                            "label"),
    "a_time_as_text":               ({**CALL, "until_ms": "2026"},                            "until_ms"),
    "a_negative_seed":              ({**CALL, "seed": -1},                                    "seed"),
    "a_scenario_without_faults":    ({"faults": []},                                          "faults"),
    "a_scenario_of_an_object":      ({"faults": CALL},                                        "faults"),
    "an_extra_scenario_member":     ({"faults": [CALL], "label": "x"},                        "label"),
    "a_seed_of_a_scenario":         ({"faults": [CALL], "seed": "7"},                         "seed"),
    "a_fault_not_an_object":        ({"faults": [CALL, 7]},                                   "faults[1]"),
    "an_invalid_scenario_fault":    ({"faults": [CALL, {**CALL, "on": 1}]},                   "faults[1].on"),
}
# fmt: on


@pytest.mark.parametrize("name", INVALID)
def test_invalid_fault_is_rejected_and_names_the_invalid_member(name: str) -> None:
    content, field = INVALID[name]

    with pytest.raises(ControlApiError) as error:
        read_faults(content)

    assert (error.value.status, error.value.field) == (400, field)
    assert error.value.rule
    assert error.value.accepted


def test_when_defaults_to_always_and_the_call_to_any() -> None:
    [parsed] = read_faults(CALL)

    assert parsed == {"on": "call", "call": "*", "when": {"always": True}, "what": {"error": 2}}


def test_scenario_seed_is_the_default_of_its_faults() -> None:
    first, second = read_faults({"faults": [CALL, {**CALL, "seed": 3}], "seed": 7})

    assert (first["seed"], second["seed"]) == (7, 3)


@pytest.mark.parametrize("kind", FAULT_KINDS, ids=lambda kind: f"{kind.target}-{kind.name}")
def test_minimum_and_maximum_of_every_parameter_are_accepted(kind: Any) -> None:
    for parameter in (kind.parameter, *kind.extra_parameters):
        for value in _limits(parameter):
            what = {kind.name: next(iter(_limits(kind.parameter))), parameter.name: value}
            fault = {"on": kind.target, kind.target: kind.only_call or "*", "what": what}

            [parsed] = read_faults(fault)

            assert parsed["what"] == what


def test_every_route_has_a_unique_call_name() -> None:
    shared = ("library.list", SEND)  # two edges of one call each
    names = [row.name for row in ROUTES.values() if row.name not in shared]
    assert len(names) == len(set(names))
    assert {row.name for row in (*ROUTES.values(), *ROOT_ROUTES.values())} | {MARK_READ} == set(call_names())


NAMES = st.sampled_from(
    ("on", "call", "webhook", "phone", "template", "number", "when", "what", "seed", "label",
     "until_ms", "faults", "next", "every", "probability", "always", "processed", "status", "x",
     *(kind.name for kind in FAULT_KINDS))
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4),
    st.sampled_from(("call", "webhook", "*", "messages.send", "sent", "html", "before")),
)  # fmt: skip
ANY_JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4))


@given(ANY_JSON)
def test_any_json_is_parsed_or_rejected_with_the_accepted_values(anything: Any) -> None:
    try:
        outcome = read_faults(anything)
    except ControlApiError as error:
        outcome = error.accepted

    assert outcome


def test_fault_and_webhook_names_are_unique() -> None:
    assert len(WEBHOOKS) == len(set(WEBHOOKS))
    assert len(FAULT_KINDS) == len({(kind.target, kind.name) for kind in FAULT_KINDS})


def _limits(parameter: Any) -> list[Any]:
    match parameter.type:
        case "whole":
            return [parameter.at_least, parameter.at_most]
        case "boolean":
            return [True, False]
        case "choice":
            return list(parameter.choices)
        case "text":
            return ["x", "x" * parameter.at_most]
        case _:
            return [True]


@pytest.mark.parametrize(("name", "hint"), [("message.send", "did you mean messages.send?"), ("zzz", "")])
def test_unknown_call_error_suggests_the_nearest_name_and_lists_names_once(name: str, hint: str) -> None:
    with pytest.raises(ControlApiError) as error:
        read_faults({**CALL, "call": name})

    body = error.value.response_body()
    assert body["error"] == f"call: {name!r} is unknown; {hint or 'accepted: ' + body['accepted']}"
    assert body.get("hint", "") == hint
    assert body["accepted"].split(", ").count("messages.send") == 1
