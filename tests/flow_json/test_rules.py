"""Flow JSON is checked by the operator's rules: each is broken once, and our own valid Flows break none."""

import re
from typing import Any

import pytest

from tests.flow_json.cases import CASES, BrokenRule
from tests.flow_json.samples import all_components, changed, line_of, simple, text_of
from waypost.flow_json import errors
from waypost.flow_json.components import COMPONENTS
from waypost.flow_json.errors import FlowRule, pointer_text
from waypost.flow_json.nodes import MAX_PIECES
from waypost.flow_json.validator import check_flow_json
from waypost.flow_json.versions import FLOW_VERSIONS, Version

RULES = {name: rule for name, rule in vars(errors).items() if isinstance(rule, FlowRule)}
OF_THE_TEXT = {"INVALID_JSON", "MISSING_JSON", "TOO_LARGE"}


@pytest.mark.parametrize("version", [one.number for one in FLOW_VERSIONS], ids=lambda one: f"{one[0]}.{one[1]}")
def test_flow_with_each_component_of_a_version_is_valid(version: Version) -> None:
    checked = check_flow_json(text_of(all_components(version)))

    assert (checked.errors, checked.warnings) == ([], [])


def test_every_component_is_in_a_valid_flow() -> None:
    texts = "".join(text_of(all_components(version.number)) for version in FLOW_VERSIONS)

    assert [name for name in COMPONENTS if f'"type": "{name}"' not in texts] == []


@pytest.mark.parametrize("case", CASES, ids=[f"{case.rule}-{index}" for index, case in enumerate(CASES)])
def test_broken_rule_is_reported_at_its_place(case: BrokenRule) -> None:
    flow = changed(simple(), case.changes)

    checked = check_flow_json(text_of(flow))

    found = checked.errors + checked.warnings
    fitting = [one for one in found if _fits(one, case.expected)]
    assert fitting, [(one["error"], one["message"]) for one in found]
    path = case.path.strip()
    expected = [(pointer_text(_steps(path)), line_of(flow, path))]
    assert [(_pointer(one), one["line_start"]) for one in fitting][:1] == expected


def test_every_rule_is_broken_by_a_case() -> None:
    assert set(RULES) - {case.rule for case in CASES} - OF_THE_TEXT == set()


def test_what_the_operator_accepts_is_a_warning() -> None:
    checked = check_flow_json(
        text_of(changed(simple(), {"screens/0/title": "x", "screens/0/layout/children/0/text": "x" * 99}))
    )

    assert (checked.errors, [one["error"] for one in checked.warnings]) == ([], ["MAX_CHARS_REQUIRED"])


def test_rule_of_a_later_version_is_a_warning_before() -> None:
    flow = changed(simple(), {"screens/0/layout/children/3/on-click-action/payload/more": "${form.who}"})

    errors_of = {
        version: [one["error"] for one in check_flow_json(text_of({**flow, "version": version})).errors]
        for version in ("5.1", "6.0", "7.2", "7.3")
    }

    name = "INVALID_NAVIGATE_ACTION_PAYLOAD"
    assert errors_of == {"5.1": [name], "6.0": [], "7.2": [], "7.3": [name]}


def test_flow_of_the_wrong_shape_gets_errors_of_the_shape_only() -> None:
    flow = changed(simple(), {"screens/0/layout/children/0/colour": "red", "screens/1/terminal": False})

    assert [one["error"] for one in check_flow_json(text_of(flow)).errors] == ["INVALID_PROPERTY_KEY"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The Flow has no JSON yet."),
        ("{", "Flow JSON is not valid. It is not valid JSON at line 1, column 2."),
        ("[]", "Flow JSON is not valid. JSON is not an object."),
        ('{"version": "7.3", "screens": [1' + "0" * 5000 + "]}", "Flow JSON is not valid. a number is too long."),
        ('{"version": NaN}', "Flow JSON is not valid. NaN is no number of JSON."),
        ("[" * 99_999, "Flow JSON is not valid. values are nested deeper than 100."),
    ],
)
def test_text_that_is_no_flow_is_rejected(text: str, message: str) -> None:
    checked = check_flow_json(text)

    assert [(one["error"], one["message"]) for one in checked.errors] == [("INVALID_FLOW_JSON", message)]


def test_text_over_ten_megabytes_is_rejected() -> None:
    checked = check_flow_json('{"version": "' + "7" * 10 * 1024**2 + '"}')

    assert [one["error"] for one in checked.errors] == ["INVALID_FLOW_JSON"]


def test_message_about_very_many_fields_names_the_first_hundred() -> None:
    payload = {f"field_{index}": "x" for index in range(103)}
    flow = changed(simple(), {"screens/0/layout/children/3/on-click-action/payload": payload})

    messages = [one["message"] for one in check_flow_json(text_of(flow)).errors]

    assert [one for one in messages if one.endswith("field_98, field_99 and 3 more].")]


def test_required_members_are_missed_in_each_item_of_an_example() -> None:
    items = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
    schema = {"type": "array", "items": items, "__example__": [{"a": "x"}, {}, {"a": 1}]}

    found = check_flow_json(text_of(changed(simple(), {"screens/0/data/list": schema}))).errors

    assert [one["error"] for one in found] == ["MISSING_REQUIRED_PROPERTY", "INVALID_PROPERTY_TYPE"]


def test_no_two_rules_have_the_same_name_and_message() -> None:
    pairs = [(rule.error, rule.message) for rule in RULES.values()]

    assert len(pairs) == len(set(pairs))


def _fits(one: dict[str, Any], rule: FlowRule) -> bool:
    pattern = re.escape(rule.message.replace("{{", "\x01").replace("}}", "\x02"))
    pattern = re.sub(r"\\\{\w+\\\}", ".*", pattern).replace("\x01", r"\{").replace("\x02", r"\}")
    return one["error"] == rule.error and re.fullmatch(pattern, one["message"], re.DOTALL) is not None


def _pointer(one: dict[str, Any]) -> str:
    return one["pointers"][0]["path"] if one["pointers"] else ""


def _steps(path: str) -> tuple[str | int, ...]:
    return tuple(int(step) if step.isdecimal() else step for step in path.split("/")) if path else ()


def test_text_of_more_values_than_memory_should_have_is_rejected_at_once() -> None:
    [error] = check_flow_json("[" + "1," * (MAX_PIECES + 1) + "1]").errors

    assert error["error"] == "INVALID_FLOW_JSON"
    assert "more than 500000 names and values" in error["message"]
