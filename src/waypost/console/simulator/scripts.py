"""Scripts of phones and fleets: presets, and a form of one row of fields for each step, with its JSON.

Nothing here is JavaScript: the buttons that add and remove a row send the form, which comes back with its rows changed.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from waypost.base.invalid_values import describe_malformed_json
from waypost.base.json_values import list_or_none
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import error_notice
from waypost.console.simulator.context import parse_fraction, parse_seconds_ms, parse_whole
from waypost.console.web.page_request import InvalidPageRequest


@dataclass(frozen=True, slots=True)
class ScriptPreset:
    """A script preset.

    Args:
        key: the value of the form field.
        steps: as the control API accepts them.
    """

    key: str
    name: str
    does: str
    steps: tuple[dict[str, Any], ...]


# fmt: off
SCRIPT_PRESETS: Final = (
    ScriptPreset("silent", "Receive only", "Messages are delivered; nobody reads or replies.", ()),
    ScriptPreset("readers", "Read",
        "80 % read within 10 s.",
        ({"on": "message", "do": "read", "after_ms": [500, 10_000], "probability": 0.8},)),
    ScriptPreset("customers", "Read, tap and reply",
        "90 % read; 50 % tap the first button; 20 % reply to a session message.",
        ({"on": "message", "do": "read", "after_ms": [300, 4000], "probability": 0.9},
         {"on": "button", "do": "tap", "index": 0, "after_ms": [1000, 8000], "probability": 0.5},
         {"on": "session", "do": "reply", "text": "Thank you", "after_ms": [2000, 9000], "probability": 0.2})),
    ScriptPreset("annoyed", "Opt out of marketing",
        "10 % stop marketing, 5 % block, 2 % report the business; 60 % read.",
        ({"on": "marketing", "do": "opt_out", "after_ms": [1000, 5000], "probability": 0.1},
         {"on": "marketing", "do": "block", "after_ms": [1000, 5000], "probability": 0.05},
         {"on": "marketing", "do": "report", "after_ms": [1000, 5000], "probability": 0.02},
         {"on": "message", "do": "read", "after_ms": [500, 5000], "probability": 0.6})),
    ScriptPreset("underground", "Go offline",
        "33 % go offline for a minute after a message; further messages arrive afterwards.",
        ({"on": "message", "do": "read", "after_ms": [300, 2000]},
         {"on": "message", "do": "offline", "for_ms": 60_000, "after_ms": [2000, 4000], "probability": 0.33})),
)
# fmt: on


MAX_SCRIPT_ROWS: Final = 32
"""Most steps of a script. Source: simulator/phones/scripts.py."""
EDIT_FIELD: Final = "edit"
"""Form field of the button that changes the rows: `add`, `remove-` and a row, or `import`."""
_MAX_NUMBER: Final = 10**15
_ROW_FIELD: Final = re.compile(r"step-(\d{1,2})-([a-z_-]+)")

ScriptRow = dict[str, str]
"""The texts of one step by field: `on`, `do`, `from_s`, `to_s`, `probability`, `times`, and `{do}-{member}`."""

# fmt: off
STEP_EVENTS: Final = (  # Source: simulator/phones/script_steps.py
    ("message",        "any message arrives"),
    ("template",       "a template arrives"),
    ("session",        "a message without a template arrives"),
    ("marketing",      "a marketing template arrives"),
    ("utility",        "a utility template arrives"),
    ("authentication", "an authentication template arrives"),
    ("button",         "a message with a button arrives"),
    ("form",           "a message with a form arrives"),
)
STEP_EFFECTS: Final = (  # Source: simulator/phones/script_steps.py
    ("read",    "read it"),
    ("reply",   "reply with a text"),
    ("tap",     "tap a button"),
    ("react",   "react with an emoji"),
    ("respond", "submit the form"),
    ("block",   "block the business"),
    ("report",  "report the business"),
    ("opt_out", "stop its marketing"),
    ("offline", "go offline"),
    ("nothing", "skip the remaining steps"),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class StepOption:
    """A further field of steps with one effect.

    Args:
        effect: the `do` of these steps.
        member: of the step.
        kind: text, whole, seconds or json.
        empty: what an empty field means.
    """

    effect: str
    member: str
    label: str
    kind: str = "text"
    is_required: bool = False
    empty: str = ""

    @property
    def field(self) -> str:
        """The name of the field in a row."""
        return f"{self.effect}-{self.member}"


# fmt: off
STEP_OPTIONS: Final = (  # Source: simulator/phones/script_steps.py
    StepOption("reply",   "text",     "Text", is_required=True),
    StepOption("tap",     "text",     "Button label", empty="any"),
    StepOption("tap",     "index",    "Button index, from 0", "whole", empty="any"),
    StepOption("tap",     "card",     "Card index, from 0", "whole", empty="no card"),
    StepOption("react",   "text",     "Emoji", is_required=True),
    StepOption("respond", "response", "Values of the form, as JSON", "json"),
    StepOption("offline", "for_ms",   "For, in seconds", "seconds", empty="until turned on"),
)
# fmt: on
_MEMBER_LABELS: Final = {
    "on": "When",
    "do": "Then",
    "after_ms": "After",
    "probability": "Probability",
    "times": "Times for one phone",
    "text": "Text, label or emoji",
    "index": "Button index",
    "card": "Card index",
    "response": "Values of the form",
    "for_ms": "For",
}  # fmt: skip
NEW_ROW: Final[Mapping[str, str]] = {"on": "message", "do": "read", "from_s": "1"}


def read_rows(form: Mapping[str, str]) -> list[ScriptRow]:
    """Return the rows of a form, in their order."""
    rows: dict[int, ScriptRow] = {}
    for name, value in form.items():
        match = _ROW_FIELD.fullmatch(name)
        if match is not None:
            rows.setdefault(int(match[1]), {"on": "", "do": ""})[match[2]] = value
    return [row for _, row in sorted(rows.items())]


def edit_rows(rows: Sequence[ScriptRow], edit: str, json_text: str) -> list[ScriptRow]:
    """Return the rows after a button that changes them.

    Raises:
        InvalidPageRequest: the JSON to import is no script.
    """
    if edit == "import":
        return format_rows(parse_steps(json_text))
    if edit == "add" and len(rows) < MAX_SCRIPT_ROWS:
        return [*rows, dict(NEW_ROW)]
    removed = edit.removeprefix("remove-")
    return [row for index, row in enumerate(rows) if str(index) != removed]


def parse_rows(rows: Sequence[ScriptRow]) -> list[dict[str, Any]]:
    """Return the steps as the control API accepts them; it checks their values.

    Raises:
        InvalidPageRequest: a time is not a number, or the values of a form are not JSON.
    """
    return [_parse_row(row, f"step {number}") for number, row in enumerate(rows, 1)]


def format_rows(steps: Sequence[Any]) -> list[ScriptRow]:
    """Return steps of the control API as rows.

    Raises:
        InvalidPageRequest: a step is not an object, or has a member that no step has.
    """
    return [_format_step(step, f"Step {number}") for number, step in enumerate(steps, 1)]


def parse_steps(text: str) -> list[Any]:
    """Return the steps of a JSON text; an empty one has none.

    Raises:
        InvalidPageRequest: it is not a JSON list.
    """
    try:
        steps: object = msgspec.json.decode(text.strip() or "[]")  # rejects lone surrogates
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidPageRequest(
            f"The script {describe_malformed_json(error)}.", "Enter a JSON list of steps."
        ) from None
    if not isinstance(steps, list):
        raise InvalidPageRequest("The script is not a list.", "Enter a JSON list of steps.")
    return cast("list[Any]", steps)


def explain_error(error: ApiResponseError) -> tuple[int | None, str]:
    """Return the row that an error of the control API is about, as in `script[2].text`, and its text in our labels."""
    match = re.fullmatch(r"script\[(\d+)\]\.?(\w*)", error.field)
    if match is None:
        return None, " ".join(error_notice(error)).strip()
    label = _MEMBER_LABELS.get(match[2], match[2] or "The step")
    accepted = f" Accepted: {error.accepted}." if error.accepted else ""
    return int(match[1]), f"“{label}” {error.rule}.{accepted}"


def describe_step(step: Mapping[str, Any]) -> str:
    """Return a step of the control API as a sentence."""
    on, do = str(step.get("on", "")), str(step.get("do", ""))
    shortest, longest = _read_delay(step.get("after_ms", 0))
    sentence = f"When {dict(STEP_EVENTS).get(on, on)}, {dict(STEP_EFFECTS).get(do, do)}"
    details = [f"{member} {step[member]}" for member in ("text", "index", "card") if member in step]
    details += [f"for {step['for_ms'] / 1000:g} s"] if "for_ms" in step else []
    sentence += f" ({', '.join(details)})" if details else ""
    if longest:
        seconds = f"{longest / 1000:g} s" if shortest == longest else f"{shortest / 1000:g} to {longest / 1000:g} s"
        sentence += f" after {seconds}"
    sentence += f", with probability {step['probability']:g}" if step.get("probability", 1) != 1 else ""
    return sentence + (f", at most {step['times']} times." if "times" in step else ".")


def _parse_row(row: ScriptRow, label: str) -> dict[str, Any]:
    step: dict[str, Any] = {"on": row.get("on", ""), "do": row.get("do", "")}
    shortest = parse_seconds_ms(row.get("from_s", ""), f"{label}, after")
    longest = parse_seconds_ms(row.get("to_s", ""), f"{label}, at most")
    if longest is not None:
        step["after_ms"] = [shortest or 0, longest]
    elif shortest is not None:
        step["after_ms"] = shortest
    if row.get("probability", "").strip():
        step["probability"] = parse_fraction(row["probability"])
    if row.get("times", "").strip():
        step["times"] = parse_whole(row["times"])
    for option in STEP_OPTIONS:
        text = row.get(option.field, "")
        if option.effect == step["do"] and (text.strip() or option.is_required):
            step[option.member] = _parse_option(option, text, label)
    return step


def _parse_option(option: StepOption, text: str, label: str) -> Any:
    match option.kind:
        case "seconds":
            return parse_seconds_ms(text, f"{label}, offline for")
        case "whole":
            return parse_whole(text)
        case "json":
            try:
                return msgspec.json.decode(text)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                problem = f"The text of the values of the form of {label} {describe_malformed_json(error)}."
                raise InvalidPageRequest(problem, 'Enter an object, such as {"name": "Ann"}.') from None
        case _:
            return text


def _format_step(step: Any, label: str) -> ScriptRow:
    if not isinstance(step, dict):
        raise InvalidPageRequest(f"{label} is not an object.", 'Use steps such as {"on": "message", "do": "read"}.')
    members = dict(cast("dict[str, Any]", step))
    row: ScriptRow = {name: _format_value("text", members.pop(name, "")) for name in ("on", "do")}
    shortest, longest = _read_delay(members.pop("after_ms", None))
    longest = None if longest == shortest else longest
    row |= {"from_s": _format_value("seconds", shortest), "to_s": _format_value("seconds", longest)}
    row |= {name: _format_value("text", members.pop(name, None)) for name in ("probability", "times")}
    for option in STEP_OPTIONS:
        if option.effect == row["do"] and option.member in members:
            row[option.field] = _format_value(option.kind, members.pop(option.member))
    if members:
        unknown = str(next(iter(members)))[:40]
        raise InvalidPageRequest(f"{label}: {unknown} does not go with {row['do'][:40] or 'no effect'}.", "Remove it.")
    return row


def _read_delay(delay: Any) -> tuple[Any, Any]:
    """Return the shortest and longest delay: of a pair, or a number twice."""
    pair = list_or_none(delay) or []
    return (pair[0], pair[1]) if len(pair) == 2 else (delay, delay)


def _format_value(kind: str, value: Any) -> str:
    if value is None:
        return ""
    if kind == "seconds" and isinstance(value, int | float) and -_MAX_NUMBER < value < _MAX_NUMBER:
        return f"{value / 1000:.15g}"
    try:
        return json.dumps(value, ensure_ascii=False) if kind == "json" else str(value)
    except ValueError:  # a number with more digits than Python writes
        return "?"
