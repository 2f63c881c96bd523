"""Rows of the page of error texts: each text once, with a request or a value that causes it.

The texts of the partner API and the admin API are those of the wire cases, whose test sends each request. Those of
the control API and of the settings are made here, by giving wrong values to their readers. All others are read from
the calls that raise them.
"""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec.structs import fields

from tests.support.case_files import (
    ABSENT,
    CASES,
    FOLDER,
    NOT_IN_REQUEST,
    complete_case,
    error_of,
    read_case_file,
    read_toml,
)
from waypost.cli.setting_sources import GivenValue, describe_invalid_setting
from waypost.config import SETTINGS, InvalidSettingValue, convert_settings
from waypost.domain.errors import ErrorCode
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import declared_struct, read_members
from waypost.simulator.serving.control_api import CALLS
from waypost.wire.errors import ERRORS

SOURCE: Final = Path(__file__).parents[1] / "src" / "waypost"
READERS: Final = ("admin", "api", "assembly/dev/partners", "domain", "simulator", "wire")
"""The packages that read requests; the command line has its own tests of its texts."""
MIN_TEXT_CHARS: Final = 8
MAX_CAUSE_CHARS: Final = 160
WRONG_VALUES: Final = (7, "x", -1, True, [7], {"x": 7}, 0.5)
"""Of these, each field gets the first that its type does not accept."""
WRONG_SETTINGS: Final = ("x", "-1", "70000", "x=1")


def case_texts() -> dict[ErrorCode, list[tuple[str, str, str]]]:
    """Return by error code each text of the cases, the request, and how that differs from a valid one."""
    texts: dict[ErrorCode, dict[str, tuple[str, str]]] = {}
    rows = read_toml(FOLDER / "common.toml")
    for path in sorted(CASES.glob("*.toml")):
        file = read_case_file(path)
        common = {name: rows[group][name] for group, names in file.common.items() for name in names}
        for case in (file.cases | common).values():
            if "error" not in case:
                continue
            name, text = error_of(case)
            code = ErrorCode[name]
            shown = _readable(
                text or case.get("response", {}).get("headers", {}).get("Waypost-Reason") or ERRORS[code].text or ""
            )
            complete = complete_case(file, case)["request"]
            request = f"{complete['method']} {complete['path'].partition('?')[0]}"
            if shown:
                texts.setdefault(code, {}).setdefault(shown, (request, _cause(case)))
    return {code: sorted((text, *cause) for text, cause in texts[code].items()) for code in ERRORS if code in texts}


def control_texts() -> list[tuple[str, str, str]]:
    """Return each text of the control API about a field, the field with a wrong value, and the accepted values."""
    rows: dict[tuple[str, str], tuple[str, str]] = {}
    for _, _, function in CALLS:
        struct = declared_struct(function)
        if struct is None:
            continue
        for field in fields(struct):
            for value in WRONG_VALUES:
                problem = _control_problem(struct, field.encode_name, value)
                if problem is not None:
                    text, accepted = problem
                    rows.setdefault((text, accepted), (_json({field.encode_name: value}), accepted))
                    break
    return sorted((text, *row) for (text, _), row in rows.items())


def _control_problem(struct: type[msgspec.Struct], name: str, value: object) -> tuple[str, str] | None:
    try:
        read_members(struct, {name: value})
    except ControlApiError as error:
        if error.field.startswith(name):
            return f"{error.field} {error.rule}", error.accepted
    return None


def setting_texts() -> list[tuple[str, str]]:
    """Return the errors of settings, and an assignment that causes each."""
    rows: dict[str, str] = {}
    for name in SETTINGS:
        for value in WRONG_SETTINGS:
            source = f"--set {name}"
            try:
                convert_settings({name: value})
            except InvalidSettingValue as error:
                rows.setdefault(describe_invalid_setting(error, {name: GivenValue(value, source)}), f"{source}={value}")
                break
    return list(rows.items())


def _readable(text: str) -> str:
    """Return an expected text without the marks of a regular expression."""
    if not text.startswith("~"):
        return text
    plain = text[1:].replace(".+", "…").replace(".*", "…").replace(r"\d+", "1")
    return re.sub(r"\\(.)", r"\1", plain)


def _cause(case: Mapping[str, Any]) -> str:
    """Return how a case's request differs from the valid one."""
    changes = {name: value for name, value in case.items() if name not in NOT_IN_REQUEST}
    path = changes.pop("path", "")
    parts = list(_differences(changes))
    if path:
        parts.insert(0, str(path))
    if not parts and "before" in case:
        parts = [case["why"]]
    text = "; ".join(parts) or str(case["why"])
    return text if len(text) <= MAX_CAUSE_CHARS else f"{text[:MAX_CAUSE_CHARS].rpartition(' ')[0]} …"


def _differences(changes: Any, path: str = "") -> Iterator[str]:
    if isinstance(changes, dict):
        for name, value in cast("dict[str, Any]", changes).items():
            inner = (
                "" if not path and name in ("form", "body", "headers", "parts") and isinstance(value, dict) else name
            )
            yield from _differences(value, f"{path}.{inner}" if path and inner else path or inner)
    elif changes == ABSENT:
        yield f"without {path}"
    else:
        yield f"{path}: {_json(changes)}"


def _json(value: Any) -> str:
    """Return a value as JSON; a text that can be read as it is without quotes."""
    is_plain = isinstance(value, str) and value and value.isprintable() and value == value.strip()
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def other_texts(shown: Iterable[str]) -> list[tuple[str, str]]:
    """Return each text that the code raises and no example shows, and the file that raises it; `…` is a value.

    Args:
        shown: the texts of the examples.
    """
    examples = list(shown)
    rows: dict[str, str] = {}
    for path in sorted(path for folder in READERS for path in (SOURCE / folder).rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = _raised_text(node) if isinstance(node, ast.Call) else ""
            if len(text.strip("… :;.")) > MIN_TEXT_CHARS and not any(_matches(text, example) for example in examples):
                rows.setdefault(text, name)
    return sorted(rows.items(), key=lambda row: (row[1], row[0]))


def _raised_text(call: ast.Call) -> str:
    """Return the text of an error that a call makes; empty if it makes none."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    parts = [_literal_text(argument) for argument in call.args]
    match name, parts:
        case ("ApiError", [_, text, *_]) | (
            ("InvalidSetting" | "InvalidScenario" | "fail" | "BadParameter"),
            [text, *_],
        ):
            return text
        case ("invalid_field" | "wrong_type", [field, accepted]):
            return f"{field} must be {accepted}."
        case ("missing_parameter", [field, accepted, *_]):
            return f"{field} is required: {accepted}."
        case ("missing_member", [field, accepted]):
            return f"message.{field} is required: {accepted}."
        case ("ControlApiError", [field, rule, accepted, *_]):
            return f"{field}: {rule}; accepted: {accepted}" if accepted else f"{field}: {rule}"
        case _:
            return ""


def _literal_text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_literal_text, values))
        case ast.BinOp(left=left, right=right):
            return _literal_text(left) + _literal_text(right)
        case _:
            return "…"


def _matches(text: str, example: str) -> bool:
    """True if an example is this text with values in place of each `…`; its end may be missing."""
    if example.endswith("…") and len(example) > MIN_TEXT_CHARS:
        return text.startswith(example[:-1])
    return re.fullmatch(".*".join(map(re.escape, text.split("…"))), example) is not None


def main() -> int:
    """Print the texts that no example shows, to be read."""
    for text, path in other_texts(text for rows in case_texts().values() for text, *_ in rows):
        sys.stdout.write(f"{path}: {text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
