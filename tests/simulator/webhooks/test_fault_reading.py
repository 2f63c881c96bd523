"""A fault is held against the tables before it is armed, and a wrong one is told what would do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.simulator.control.fault_reading import read_faults
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.faults.fault_kinds import FAULT_KINDS, WEBHOOKS
from waypost.simulator.graph.call_names import CALL_NAMES, MARK_READ, OBJECT_CALL_NAMES, ROOT_CALL_NAMES
from waypost.simulator.graph.routes import FILE_ROUTES, ROOT_ROUTES, ROUTES

CALL = {"on": "call", "what": {"error": 2}}
TOLD = {"on": "webhook", "what": {"drop": True}}

# fmt: off
WRONG: dict[str, tuple[Any, str]] = {  # the fault, and the member that the refusal names
    "nothing":                      (None,                                                    "body"),
    "a_list":                       ([],                                                      "body"),
    "an_unknown_member":            ({**CALL, "wen": {"next": 1}},                            "wen"),
    "on_missing":                   ({"what": {"error": 2}},                                  "on"),
    "on_unknown":                   ({**CALL, "on": "calls"},                                 "on"),
    "on_a_list":                    ({**CALL, "on": ["call"]},                                "on"),
    "a_call_of_a_webhook_fault":    ({**TOLD, "call": "messages.send"},                       "call"),
    "a_webhook_of_a_call_fault":    ({**CALL, "webhook": "sent"},                             "webhook"),
    "a_call_that_is_none":          ({**CALL, "call": "messages.sent"},                       "call"),
    "a_call_that_is_no_text":       ({**CALL, "call": ["messages.send"]},                     "call"),
    "a_webhook_that_is_none":       ({**TOLD, "webhook": "arrived"},                          "webhook"),
    "a_number_as_phone":            ({**CALL, "call": "messages.send", "phone": 15551234567}, "phone"),
    "a_phone_of_a_call_without":    ({**CALL, "call": "templates.create", "phone": "1555"},   "phone"),
    "a_template_of_a_call_without": ({**CALL, "call": "media.upload", "template": "a"},       "template"),
    "a_phone_of_a_template":        ({**TOLD, "webhook": "template_category_update", "phone": "1"}, "phone"),
    "a_template_of_an_answer":      ({**TOLD, "webhook": "message", "template": "a"},         "template"),
    "a_number_of_an_account":       ({**TOLD, "webhook": "account_update", "number": "1"},    "number"),
    "what_missing":                 ({"on": "call"},                                          "what"),
    "what_empty":                   ({**CALL, "what": {}},                                    "what"),
    "what_of_two_kinds":            ({**CALL, "what": {"error": 2, "timeout": True}},         "what"),
    "what_of_webhooks":             ({**CALL, "what": {"drop": True}},                        "what"),
    "what_of_calls":                ({**TOLD, "what": {"slow_ms": 5}},                        "what"),
    "an_unknown_parameter":         ({**CALL, "what": {"error": 2, "state": 500}},            "what.state"),
    "a_parameter_of_another_kind":  ({**CALL, "what": {"slow_ms": 5, "taken": True}},         "what.taken"),
    "a_code_as_text":               ({**CALL, "what": {"error": "2"}},                        "what.error"),
    "a_code_as_boolean":            ({**CALL, "what": {"error": True}},                       "what.error"),
    "a_status_of_success":          ({**CALL, "what": {"error": 2, "status": 200}},           "what.status"),
    "a_fraction_of_ms":             ({**CALL, "what": {"slow_ms": 0.5}},                      "what.slow_ms"),
    "no_timeout":                   ({**CALL, "what": {"timeout": False}},                    "what.timeout"),
    "a_reset_in_between":           ({**CALL, "what": {"reset": "during"}},                   "what.reset"),
    "garbage_of_another_sort":      ({**CALL, "what": {"garbage": "xml"}},                    "what.garbage"),
    "a_choice_as_list":             ({**CALL, "what": {"garbage": ["html"]}},                 "what.garbage"),
    "a_batch_of_one":               ({**TOLD, "what": {"batch": 1}},                          "what.batch"),
    "a_failure_of_any_call":        ({**CALL, "what": {"fail": 131049}},                      "what.fail"),
    "when_empty":                   ({**CALL, "when": {}},                                    "when"),
    "when_two_things":              ({**CALL, "when": {"next": 1, "every": 2}},               "when"),
    "when_unknown":                 ({**CALL, "when": {"first": 1}},                          "when.first"),
    "next_none":                    ({**CALL, "when": {"next": 0}},                           "when.next"),
    "every_one":                    ({**CALL, "when": {"every": 1}},                          "when.every"),
    "a_chance_of_none":             ({**CALL, "when": {"probability": 0}},                    "when.probability"),
    "a_chance_above_one":           ({**CALL, "when": {"probability": 1.01}},                 "when.probability"),
    "a_chance_that_is_no_number":   ({**CALL, "when": {"probability": float("nan")}},         "when.probability"),
    "a_label_without_end":          ({**CALL, "label": "x" * 201},                            "label"),
    "a_time_as_text":               ({**CALL, "until_ms": "2026"},                            "until_ms"),
    "a_seed_below_none":            ({**CALL, "seed": -1},                                    "seed"),
    "a_scenario_without_faults":    ({"faults": []},                                          "faults"),
    "a_scenario_of_an_object":      ({"faults": CALL},                                        "faults"),
    "a_scenario_with_more":         ({"faults": [CALL], "label": "x"},                        "label"),
    "a_seed_of_a_scenario":         ({"faults": [CALL], "seed": "7"},                         "seed"),
    "a_fault_that_is_none":         ({"faults": [CALL, 7]},                                   "faults[1]"),
    "a_wrong_fault_of_a_scenario":  ({"faults": [CALL, {**CALL, "on": 1}]},                   "faults[1].on"),
}
# fmt: on


@pytest.mark.parametrize("name", WRONG)
def test_wrong_fault_is_refused_with_the_member_that_is_wrong(name: str) -> None:
    given, field = WRONG[name]

    with pytest.raises(ControlApiError) as refused:
        read_faults(given)

    assert (refused.value.status, refused.value.field) == (400, field)
    assert refused.value.rule
    assert refused.value.accepted


def test_when_is_always_and_the_name_is_any_unless_told_otherwise() -> None:
    [read] = read_faults(CALL)

    assert read == {"on": "call", "call": "*", "when": {"always": True}, "what": {"error": 2}}


def test_seed_of_a_scenario_is_that_of_each_fault_without_one() -> None:
    first, second = read_faults({"faults": [CALL, {**CALL, "seed": 3}], "seed": 7})

    assert (first["seed"], second["seed"]) == (7, 3)


@pytest.mark.parametrize("kind", FAULT_KINDS, ids=lambda kind: f"{kind.target}-{kind.name}")
def test_least_and_greatest_value_of_every_parameter_is_taken(kind: Any) -> None:
    for parameter in (kind.parameter, *kind.extra_parameters):
        for value in _limits(parameter):
            what = {kind.name: next(iter(_limits(kind.parameter))), parameter.name: value}
            fault = {"on": kind.target, kind.target: kind.only_call or "*", "what": what}

            [read] = read_faults(fault)

            assert read["what"] == what


def test_every_route_has_a_name_of_its_own() -> None:
    assert set(OBJECT_CALL_NAMES) == set(ROUTES)
    assert set(ROOT_CALL_NAMES) == {*FILE_ROUTES, *ROOT_ROUTES}
    names = [name for name in OBJECT_CALL_NAMES.values() if name != "library.list"]
    assert len(names) == len(set(names))
    assert {*OBJECT_CALL_NAMES.values(), *ROOT_CALL_NAMES.values(), MARK_READ} == set(CALL_NAMES)


WORDS = st.sampled_from(
    ("on", "call", "webhook", "phone", "template", "number", "when", "what", "seed", "label",
     "until_ms", "faults", "next", "every", "probability", "always", "taken", "status", "x",
     *(kind.name for kind in FAULT_KINDS))
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4),
    st.sampled_from(("call", "webhook", "*", "messages.send", "sent", "html", "before")),
)  # fmt: skip
ANY_JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4))


@given(ANY_JSON)
def test_anything_is_read_or_refused_with_what_would_do(anything: Any) -> None:
    try:
        outcome = read_faults(anything)
    except ControlApiError as refused:
        outcome = refused.accepted

    assert outcome


def test_no_name_stands_twice() -> None:
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
def test_an_unknown_call_is_refused_with_the_nearest_name_and_the_names_once(name: str, hint: str) -> None:
    with pytest.raises(ControlApiError) as refused:
        read_faults({**CALL, "call": name})

    answer = refused.value.response_body()
    assert answer["error"] == f"call: {name!r} is unknown; {hint or 'accepted: ' + answer['accepted']}"
    assert answer.get("hint", "") == hint
    assert answer["accepted"].split(", ").count("messages.send") == 1
