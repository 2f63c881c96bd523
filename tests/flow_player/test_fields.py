"""The rules of inputs: what a person cannot enter, and what the handset says beside a field."""

from typing import Any

import pytest

from tests.flow_player.playing import one_screen
from waypost.flow_player.play_state import StepNotAllowed

OPTIONS = [{"id": "a", "title": "Ann"}, {"id": "b", "title": "Bo"}, {"id": "c", "title": "Cy", "enabled": False}]
RANGE = {"label": {"start-date": "From", "end-date": "To"}, "mode": "range"}


def text(**members: Any) -> dict[str, Any]:
    return {"type": "TextInput", "name": "x", "label": "X", **members}


def component(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": kind, "name": "x", "label": "X", **members}


def day(**members: Any) -> dict[str, Any]:
    return component("DatePicker", **members)


def stay(**members: Any) -> dict[str, Any]:
    return component("CalendarPicker", **{**RANGE, **members})


@pytest.mark.parametrize(
    ("one", "value", "rule"),
    [
        (text(required=True), "", "required"),
        (text(**{"min-chars": 3}), "ab", "min-chars"),
        (text(**{"min-chars": 3}), "abc", ""),
        (text(**{"min-chars": 3}), "", ""),
        (text(**{"max-chars": 3}), "abcd", "max-chars"),
        (text(), "a" * 81, "max-chars"),
        (text(), "a" * 80, ""),
        (text(**{"input-type": "number"}), "12a", "input-type"),
        (text(**{"input-type": "number"}), "-12.5", ""),
        (text(**{"input-type": "email"}), "a@b", "input-type"),
        (text(**{"input-type": "email"}), "a@b.example", ""),
        (text(**{"input-type": "phone"}), "call me", "input-type"),
        (text(**{"input-type": "phone"}), "+47 22 00 00 00", ""),
        (text(**{"input-type": "passcode"}), "12x", "input-type"),
        (text(**{"input-type": "passcode"}), "0012", ""),
        (text(**{"input-type": "password"}), "any thing", ""),
        (text(pattern="[A-Z]{2}", **{"helper-text": "AB"}), "ab", "pattern"),
        (text(pattern="[A-Z]{2}", **{"helper-text": "AB"}), "AB", ""),
        (component("TextArea", required=True), "", "required"),
        (component("TextArea"), "a" * 601, "max-length"),
        (component("TextArea", **{"max-length": 2}), "abc", "max-length"),
        (component("CheckboxGroup", required=True, **{"data-source": OPTIONS}), [], "required"),
        (component("CheckboxGroup", **{"data-source": OPTIONS, "min-selected-items": 2}), ["a"], "min-selected-items"),
        (component("CheckboxGroup", **{"data-source": OPTIONS, "min-selected-items": 2}), ["a", "Bo"], ""),
        (component("ChipsSelector", required=True, **{"data-source": OPTIONS}), [], "required"),
        (component("ChipsSelector", **{"data-source": OPTIONS, "min-selected-items": 2}), ["a"], "min-selected-items"),
        (component("RadioButtonsGroup", required=True, **{"data-source": OPTIONS}), "", "required"),
        (component("RadioButtonsGroup", required=True, **{"data-source": OPTIONS}), "b", ""),
        (component("Dropdown", required=True, **{"data-source": OPTIONS}), "", "required"),
        (component("OptIn", required=True), False, "required"),
        (component("OptIn", required=True), True, ""),
        (day(required=True), "", "required"),
        (component("CalendarPicker", mode="single", required=True), "", "required"),
        (stay(required={"start-date": True, "end-date": True}), {}, "required"),
        (stay(required={"start-date": True, "end-date": True}), {"start-date": "2026-01-05"}, "required"),
        (stay(required={"start-date": True, "end-date": False}), {"start-date": "2026-01-05"}, ""),
        (text(required=True, enabled=False, **{"init-value": "x"}), None, ""),
        (text(required=True, visible=False), None, ""),
    ],
)
def test_rule_of_a_field_is_told_beside_it_and_at_the_footer(one: dict[str, Any], value: Any, rule: str) -> None:
    flow = one_screen(one)
    if value is not None:
        flow.fill(x=value)
    shown = [each for each in flow.view.components if each.name == "x"]

    assert [each.rule for each in shown] in ([rule], [])
    if rule:
        assert shown[0].error
        with pytest.raises(StepNotAllowed, match=f"^x: {rule}: "):
            flow.tap("Send")
    else:
        flow.tap("Send")
        assert flow.view.state == "completed"


@pytest.mark.parametrize(
    ("one", "value", "rule"),
    [
        (text(), ["x"], "is not a text"),
        (text(), "a" * 10_001, "is not a text"),
        (text(enabled=False), "x", "is disabled"),
        (text(visible=False), "x", "is not shown"),
        (component("Dropdown", **{"data-source": OPTIONS}), "z", "has no such option"),
        (component("Dropdown", **{"data-source": OPTIONS}), "c", "the option c is disabled"),
        (component("CheckboxGroup", **{"data-source": OPTIONS}), "a", "is not a list of options"),
        (
            component("CheckboxGroup", **{"data-source": OPTIONS, "max-selected-items": 1}),
            ["a", "b"],
            "max-selected-items is 1",
        ),
        (component("OptIn"), "yes", "is not a decision"),
        (day(), "05.01.2026", "is no day"),
        (day(), "1899-12-31", "min-date"),
        (day(), "2101-01-01", "max-date"),
        (day(**{"min-date": "2026-01-02"}), "2026-01-01", "min-date"),
        (day(**{"max-date": "2026-01-02"}), "2026-01-03", "max-date"),
        (day(**{"unavailable-dates": ["2026-01-02"]}), "2026-01-02", "unavailable-dates"),
        (component("CalendarPicker", **{"include-days": ["Mon"]}), "2026-01-06", "include-days"),
        (stay(), "2026-01-05", "is no range of days"),
        (stay(), {"start-date": "2026-01-05", "end-date": "2026-01-04"}, "order"),
        (stay(**{"min-days": 3}), {"start-date": "2026-01-05", "end-date": "2026-01-06"}, "min-days"),
        (stay(**{"max-days": 2}), {"start-date": "2026-01-05", "end-date": "2026-01-07"}, "max-days"),
        (component("PhotoPicker"), ["x"], "is a PhotoPicker"),
    ],
)
def test_value_that_cannot_be_entered_is_an_error(one: dict[str, Any], value: Any, rule: str) -> None:
    flow = one_screen(one)

    with pytest.raises(StepNotAllowed, match=f"^x: {rule}"):
        flow.fill(x=value)


@pytest.mark.parametrize(
    ("picker", "mime_type", "size_bytes", "rule"),
    [
        ({"type": "PhotoPicker"}, "application/pdf", 10, "does not take files of type"),
        ({"type": "PhotoPicker", "max-file-size-kb": 1}, "image/png", 1025, "max-file-size-kb"),
        ({"type": "PhotoPicker"}, "image/png", 0, "max-file-size-kb"),
        ({"type": "PhotoPicker"}, "image/png", 25600 * 1024 + 1, "max-file-size-kb"),
        ({"type": "PhotoPicker", "max-uploaded-photos": 1}, "image/png", 10, "max-uploaded-photos is 1"),
        ({"type": "DocumentPicker"}, "audio/ogg", 10, "does not take files of type"),
        (
            {"type": "DocumentPicker", "allowed-mime-types": ["text/plain"]},
            "image/png",
            10,
            "does not take files of type",
        ),
    ],
)
def test_picker_takes_only_files_within_its_limits(
    picker: dict[str, Any], mime_type: str, size_bytes: int, rule: str
) -> None:
    flow = one_screen({"name": "x", "label": "X", **picker})
    if "max-uploaded-photos" in picker:
        flow.upload("x")

    with pytest.raises(StepNotAllowed, match=f"^x: {rule}"):
        flow.upload("x", mime_type, size_bytes)


def test_picker_needs_its_files_and_shows_them() -> None:
    flow = one_screen(component("DocumentPicker", **{"min-uploaded-documents": 2}))
    flow.upload("x", "text/plain")
    with pytest.raises(StepNotAllowed, match=r"^x: min-uploaded-documents: Add at least 2 files"):
        flow.tap("Send")
    flow.upload("x", "text/plain", media_id="m2")

    shown = flow.shown("x")

    assert [(one.media_id, one.mime_type) for one in shown.files] == [("m1", "text/plain"), ("m2", "text/plain")]
    assert flow.tap("Send") is not None


def test_message_may_have_ten_files() -> None:
    flow = one_screen(component("PhotoPicker"))
    for number in range(11):
        flow.upload("x", media_id=f"m{number}")

    with pytest.raises(StepNotAllowed, match="too many files"):
        flow.tap("Send")
