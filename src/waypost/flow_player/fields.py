"""The rules of inputs: what a person can enter, and what the handset says beside a field.

Source: public pages "Components" and "Media upload components". The texts are ours.
"""

import re
from typing import Any, Final, NamedTuple

from waypost.base.json_values import list_of, object_of, object_or_none, objects_in, text_or_none, texts_in
from waypost.flow_json.components import DOCUMENT_TYPES, MAX_FILE_KB, MAX_FILES
from waypost.flow_json.versions import Version
from waypost.flow_player.days import RANGE_ENDS, find_day_problem, find_range_problem, read_day, write_day
from waypost.flow_player.field_values import is_list
from waypost.flow_player.layout import LaidOutComponent, is_required, maximum_name, minimum_name
from waypost.flow_player.patterns import matches_pattern
from waypost.flow_player.play_state import MAX_VALUE_CHARS, StepNotAllowed, UploadedFile

TEXT_INPUTS: Final = ("TextInput", "TextArea")
SINGLE_SELECTIONS: Final = ("RadioButtonsGroup", "Dropdown")
MULTIPLE_SELECTIONS: Final = ("CheckboxGroup", "ChipsSelector")
SELECTIONS: Final = (*SINGLE_SELECTIONS, *MULTIPLE_SELECTIONS)
FILE_PICKERS: Final = ("PhotoPicker", "DocumentPicker")
DEFAULT_MAX_CHARS: Final = 80
DEFAULT_MAX_LENGTH: Final = 600
_PHOTO_TYPES: Final = ("image/jpeg", "image/png", "image/heic", "image/heif", "image/webp")
# fmt: off
_FORMATS: Final = {  # of `input-type`
    "number":   (re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?"),       "Enter a number."),
    "email":    (re.compile(r"[^@\s]{1,64}@[^@\s.]+(?:\.[^@\s.]+)+"), "Enter a valid e-mail address."),
    "phone":    (re.compile(r"\+?[0-9][0-9 ()./-]{4,23}"),        "Enter a valid phone number."),
    "passcode": (re.compile(r"[0-9]+"),                           "Enter digits only."),
}
# fmt: on


class FieldProblem(NamedTuple):
    """The rule that a value breaks, as the property that sets it, and the rule in words."""

    rule: str
    text: str


def read_entry(component: LaidOutComponent, value: Any, version: Version) -> Any:
    """Return what a person enters as the value that is sent.

    Raises:
        StepNotAllowed: the handset does not let a person enter it.
    """
    name = component.name
    if component.type in TEXT_INPUTS:
        return _read_text(name, value)
    if component.type in SINGLE_SELECTIONS:
        return _read_option(component, value) if value else ""
    if component.type in MULTIPLE_SELECTIONS:
        values = value if is_list(value) else None
        if values is None:
            raise StepNotAllowed(name, "is not a list of options", _option_names(component))
        chosen = list(dict.fromkeys(_read_option(component, one) for one in list_of(values)))
        most = component.number("max-selected-items")
        if most is not None and len(chosen) > most:
            raise StepNotAllowed(name, f"max-selected-items is {most}", f"at most {most} options")
        return chosen
    if component.type == "OptIn":
        if not isinstance(value, bool):
            raise StepNotAllowed(name, "is not a decision", "true or false")
        return value
    if component.type in FILE_PICKERS:
        raise StepNotAllowed(name, f"is a {component.type}", "the step upload")
    return _read_days(component, value, version)


def _read_text(name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > MAX_VALUE_CHARS:
        raise StepNotAllowed(
            name, "is not a text that can be entered", f"a text of at most {MAX_VALUE_CHARS} characters"
        )
    return value


def _read_option(component: LaidOutComponent, wanted: Any) -> str:
    """Return the id of an option, named by its id or its title."""
    options = component.options()
    found = next((one for key in ("id", "title") for one in options if one.get(key) == wanted), None)
    if found is None:
        raise StepNotAllowed(component.name, "has no such option", _option_names(component))
    if found.get("enabled", True) is False:
        raise StepNotAllowed(component.name, f"the option {found['id']} is disabled", _option_names(component))
    return str(found["id"])


def _option_names(component: LaidOutComponent) -> str:
    names = [str(one["id"]) for one in component.options() if one.get("enabled", True) is not False]
    return ", ".join(names[:20])[:500]


def _read_days(component: LaidOutComponent, value: Any, version: Version) -> Any:
    name = component.name
    if value in ("", None, {}):
        return {} if is_range(component) else ""
    if not is_range(component):
        day = read_day(value)
        if day is None:
            raise StepNotAllowed(name, "is no day", "YYYY-MM-DD")
        _forbid(name, find_day_problem(day, component))
        return write_day(day, component.type, version)
    members = object_or_none(value) or {}
    days = {end: read_day(members.get(end)) for end in RANGE_ENDS if members.get(end)}
    if not days or None in days.values() or set(members) - set(RANGE_ENDS):
        raise StepNotAllowed(name, "is no range of days", '{"start-date": "YYYY-MM-DD", "end-date": "YYYY-MM-DD"}')
    known = {end: day for end, day in days.items() if day is not None}
    if len(known) == len(RANGE_ENDS):
        _forbid(name, find_range_problem(known["start-date"], known["end-date"], component))
    for day in known.values():
        _forbid(name, find_day_problem(day, component))
    return {end: day.isoformat() for end, day in known.items()}


def _forbid(name: str, problem: tuple[str, str] | None) -> None:
    if problem is not None:
        raise StepNotAllowed(name, f"{problem[0]}: {problem[1]}")


def is_range(component: LaidOutComponent) -> bool:
    """Return True for a CalendarPicker of two days."""
    return component.type == "CalendarPicker" and component.properties.get("mode") == "range"


def find_problem(component: LaidOutComponent, value: Any) -> FieldProblem | None:
    """Return what is wrong with the value of an input; None if it may be sent. A disabled input is never wrong."""
    if not component.is_enabled:
        return None
    if component.type in FILE_PICKERS:
        return _find_files_problem(component, list_of(value))
    if value in ("", [], {}, None, False):
        return FieldProblem("required", "This field is required.") if is_required(component) else None
    if component.type in TEXT_INPUTS:
        return _find_text_problem(component, str(value))
    if component.type in SELECTIONS:
        return _find_selection_problem(component, value)
    if component.type in {"DatePicker", "CalendarPicker"}:
        return _find_days_problem(component, value)
    return None


def _find_text_problem(component: LaidOutComponent, text: str) -> FieldProblem | None:
    if component.type == "TextArea":
        most = component.number("max-length", DEFAULT_MAX_LENGTH) or 0
        return _too_long("max-length", most) if len(text) > most else None
    least, most = component.number("min-chars", 0) or 0, component.number("max-chars", DEFAULT_MAX_CHARS) or 0
    if len(text) < least:
        return FieldProblem("min-chars", f"Enter at least {least} characters.")
    if len(text) > most:
        return _too_long("max-chars", most)
    expected = _FORMATS.get(component.text("input-type"))
    if expected is not None and not expected[0].fullmatch(text):
        return FieldProblem("input-type", expected[1])
    pattern = component.text("pattern")
    if pattern and not matches_pattern(pattern, text):
        return FieldProblem("pattern", component.text("helper-text") or "Enter it in the requested form.")
    return None


def _too_long(rule: str, most: int) -> FieldProblem:
    return FieldProblem(rule, f"Enter at most {most} characters.")


def _find_selection_problem(component: LaidOutComponent, value: Any) -> FieldProblem | None:
    chosen = texts_in(value) if is_list(value) else [str(value)]
    known = {one["id"] for one in component.options()}
    if not known.issuperset(chosen):
        return FieldProblem("data-source", "Choose one of the options.") if is_required(component) else None
    if component.type in SINGLE_SELECTIONS:
        return None
    least, most = component.number("min-selected-items", 0) or 0, component.number("max-selected-items")
    if len(chosen) < least:
        return FieldProblem("min-selected-items", f"Choose at least {least}.")
    if most is not None and len(chosen) > most:
        return FieldProblem("max-selected-items", f"Choose at most {most}.")
    return None


def _find_days_problem(component: LaidOutComponent, value: Any) -> FieldProblem | None:
    if not is_range(component):
        day = read_day(value)
        problem = find_day_problem(day, component) if day is not None else ("date", "Choose a day.")
        return FieldProblem(*problem) if problem else None
    days = {end: read_day(object_of(value).get(end)) for end in RANGE_ENDS}
    for end, day in days.items():
        if day is None:
            words = "a start" if end == "start-date" else "an end"
            return FieldProblem("required", f"Choose {words} date.") if is_required(component, end) else None
    start, end = days["start-date"], days["end-date"]
    problem = find_range_problem(start, end, component) if start and end else None
    return FieldProblem(*problem) if problem else None


def _find_files_problem(component: LaidOutComponent, files: list[Any]) -> FieldProblem | None:
    least = component.number(minimum_name(component), 0) or 0
    if len(objects_in(files)) < least:
        return FieldProblem(minimum_name(component), f"Add at least {least} file{'s' * (least > 1)}.")
    return None


def check_file(component: LaidOutComponent, file: UploadedFile, count: int) -> None:
    """Check that a picker takes a file beside so many others.

    Raises:
        StepNotAllowed: it does not.
    """
    name, most = component.name, component.number(maximum_name(component), MAX_FILES) or MAX_FILES
    max_kb = component.number("max-file-size-kb", MAX_FILE_KB) or MAX_FILE_KB
    if count >= most:
        raise StepNotAllowed(name, f"{maximum_name(component)} is {most}", f"at most {most} files")
    if not 0 < file.size_bytes <= max_kb * 1024:
        raise StepNotAllowed(name, "max-file-size-kb: the file is empty or too large", f"1 byte to {max_kb} kB")
    accepted = _PHOTO_TYPES
    if component.type == "DocumentPicker":
        accepted = tuple(texts_in(component.properties.get("allowed-mime-types"))) or DOCUMENT_TYPES
    if file.mime_type not in accepted:
        raise StepNotAllowed(name, f"does not take files of type {file.mime_type}", ", ".join(accepted))


def text_of_option(component: LaidOutComponent, option_id: Any) -> str:
    """Return the title of an option."""
    titles = (text_or_none(one.get("title")) for one in component.options() if one["id"] == option_id)
    return next(titles, None) or str(option_id)
