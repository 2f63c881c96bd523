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
from waypost.console.page_request import PageRequest
from waypost.console.simulator.context import parse_fraction, parse_seconds_ms, parse_whole
from waypost.console.web.errors import InvalidPageRequest


@dataclass(frozen=True, slots=True)
class ScriptPreset:
    """A script preset."""

    key: str  # the value of the form field
    name: str
    does: str
    steps: tuple[dict[str, Any], ...]  # as the control API accepts them


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


EDIT_FIELD: Final = "edit"
"""Form field of the button that changes the rows: `add`, `remove-` and a row, or `import`."""
_MAX_NUMBER: Final = 10**15
_ROW_FIELD: Final = re.compile(r"step-(\d{1,2})-([a-z_-]+)")

ScriptRow = dict[str, str]
"""The texts of one step by field: `on`, `do`, `from_s`, `to_s`, `probability`, `times`, and `{do}-{member}`."""
StepDeclarations = Mapping[str, Any]
"""What steps accept, as the member `steps` of `GET /control/declarations`."""

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
    "steps": "Steps in the Flow",
    "for_ms": "For",
}  # fmt: skip
_JSON_EXAMPLES: Final = {"response": '{"name": "Ann"}', "steps": '[{"fill": {"name": "Ann"}}, {"tap": "Send"}]'}
_COMMON_MEMBERS: Final = ("on", "do", "probability", "times")
NEW_ROW: Final[Mapping[str, str]] = {"on": "message", "do": "read", "from_s": "1"}


async def read_steps_declaration(request: PageRequest) -> StepDeclarations:
    """Return what the simulator accepts as steps."""
    return (await request.control.get("/control/declarations"))["steps"]


def read_rows(form: Mapping[str, str]) -> list[ScriptRow]:
    """Return the rows of a form, in their order."""
    rows: dict[int, ScriptRow] = {}
    for name, value in form.items():
        match = _ROW_FIELD.fullmatch(name)
        if match is not None:
            rows.setdefault(int(match[1]), {"on": "", "do": ""})[match[2]] = value
    return [row for _, row in sorted(rows.items())]


def edit_rows(rows: Sequence[ScriptRow], edit: str, json_text: str, declared: StepDeclarations) -> list[ScriptRow]:
    """Return the rows after a button that changes them.

    Raises:
        InvalidPageRequest: the JSON to import is no script.
    """
    if edit == "import":
        return format_rows(parse_steps(json_text), declared)
    if edit == "add" and len(rows) < declared["at_most"]:
        return [*rows, dict(NEW_ROW)]
    removed = edit.removeprefix("remove-")
    return [row for index, row in enumerate(rows) if str(index) != removed]


def parse_rows(rows: Sequence[ScriptRow], declared: StepDeclarations) -> list[dict[str, Any]]:
    """Return the steps as the control API accepts them; it checks their values.

    Raises:
        InvalidPageRequest: a time is not a number, or the values of a form are not JSON.
    """
    return [_parse_row(row, f"step {number}", declared) for number, row in enumerate(rows, 1)]


def format_rows(steps: Sequence[Any], declared: StepDeclarations) -> list[ScriptRow]:
    """Return steps of the control API as rows.

    Raises:
        InvalidPageRequest: a step is not an object, or has a member that no step has.
    """
    return [_format_step(step, f"Step {number}", declared) for number, step in enumerate(steps, 1)]


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


def explain_error(error: ApiResponseError, rows: Sequence[ScriptRow]) -> dict[str, Any]:
    """Return an error of the control API, as in `script[2].text`, for the page: its text, row and field."""
    match = re.fullmatch(r"script\[(\d+)\]\.?(\w*)", error.field)
    if match is None:
        return {"wrong": " ".join(error_notice(error)).strip(), "wrong_field": error.top_field}
    index, member = int(match[1]), match[2]
    field = {"after_ms": "from_s"}.get(member, member if member in _COMMON_MEMBERS else f"{rows[index]['do']}-{member}")
    label = _MEMBER_LABELS.get(member, member or "The step")
    accepted = f" Accepted: {error.accepted}." if error.accepted else ""
    return {
        "wrong": f"“{label}” {error.rule}.{accepted}", "wrong_row": index, "wrong_field": f"step-{index}-{field}",
    }  # fmt: skip


def describe_step(step: Mapping[str, Any], declared: StepDeclarations) -> str:
    """Return a step of the control API as a sentence."""
    on, do = str(step.get("on", "")), str(step.get("do", ""))
    shortest, longest = _read_delay(step.get("after_ms", 0))
    sentence = f"When {declared['on'].get(on, on)}, {declared['do'].get(do, do)}"
    details = [f"{member} {step[member]}" for member in ("text", "index", "card") if member in step]
    details += [f"for {step['for_ms'] / 1000:g} s"] if "for_ms" in step else []
    sentence += f" ({', '.join(details)})" if details else ""
    if longest:
        seconds = f"{longest / 1000:g} s" if shortest == longest else f"{shortest / 1000:g} to {longest / 1000:g} s"
        sentence += f" after {seconds}"
    sentence += f", with probability {step['probability']:g}" if step.get("probability", 1) != 1 else ""
    return sentence + (f", at most {step['times']} times." if "times" in step else ".")


def _parse_row(row: ScriptRow, label: str, declared: StepDeclarations) -> dict[str, Any]:
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
    for member in declared["members"]:
        text = row.get(f"{member['do']}-{member['name']}", "")
        if member["do"] == step["do"] and (text.strip() or member["is_required"]):
            step[member["name"]] = _parse_member(member["name"], text, label)
    return step


def _parse_member(name: str, text: str, label: str) -> Any:
    match name:
        case "text":
            return text
        case "for_ms":
            return parse_seconds_ms(text, f"{label}, offline for")
        case "response" | "steps":
            try:
                return msgspec.json.decode(text)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                what = _MEMBER_LABELS[name].lower()
                problem = f"The text of the {what} of {label} {describe_malformed_json(error)}."
                raise InvalidPageRequest(problem, f"Enter JSON, such as {_JSON_EXAMPLES[name]}.") from None
        case _:
            return parse_whole(text)


def _format_step(step: Any, label: str, declared: StepDeclarations) -> ScriptRow:
    if not isinstance(step, dict):
        raise InvalidPageRequest(f"{label} is not an object.", 'Use steps such as {"on": "message", "do": "read"}.')
    members = dict(cast("dict[str, Any]", step))
    row: ScriptRow = {name: _format_member(name, members.pop(name, "")) for name in ("on", "do")}
    shortest, longest = _read_delay(members.pop("after_ms", None))
    row["from_s"] = _format_member("after_ms", shortest)
    row["to_s"] = _format_member("after_ms", None if longest == shortest else longest)
    row |= {name: _format_member(name, members.pop(name, None)) for name in ("probability", "times")}
    known = {member["name"] for member in declared["members"] if member["do"] == row["do"]}
    for name, value in members.items():
        if name not in known:
            problem = f"{label}: {name[:40]} does not go with {row['do'][:40] or 'no effect'}."
            raise InvalidPageRequest(problem, "Remove it.")
        row[f"{row['do']}-{name}"] = _format_member(name, value)
    return row


def _read_delay(delay: Any) -> tuple[Any, Any]:
    """Return the shortest and longest delay: of a pair, or a number twice."""
    pair = list_or_none(delay) or []
    return (pair[0], pair[1]) if len(pair) == 2 else (delay, delay)


def _format_member(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name.endswith("_ms") and isinstance(value, int | float) and -_MAX_NUMBER < value < _MAX_NUMBER:
        return f"{value / 1000:.15g}"
    try:
        return json.dumps(value, ensure_ascii=False) if name in _JSON_EXAMPLES else str(value)
    except ValueError:  # a number with more digits than Python writes
        return "?"
