"""Files of wire cases: how a case is assembled from the defaults of its file and its own differences.

A file under `tests/wire/cases` has:

    source        the source of the cases' statements, unless a case names another
    [common]      names of rows of `tests/wire/common.toml`, by their group: cases that differ in the same
                  way from the default request of many files, such as a missing credential
    [requests.*]  valid requests, each whole or as differences from the one it names by `request`;
                  cases and steps that name none begin from `default`; `response` is its expected response, and
                  `form_order` the order of its form's fields where differences would not give it
    [before.*]    lists of steps by name
    [cases.*]     the cases, by the last part of their ids

A case and a step name a request by `request` (of this file or of `tests/wire/shared.toml`, or as `file.name`
of another file) and its differences: members that are not named stay, `"<absent>"` removes one, and
another kind of body replaces the existing one. A table as the value of a form field or of `body` is
sent as compact JSON; `parts` are a table by name, or a list, where a part may be repeated `times`. A step may
be just the name of a list of steps or of a request, in this file or the shared one.

A case has `error`, a row of `tests/wire/errors.toml`, which gives the status and the body (`error.CLOCK_FILE_NAME` gives
a text that varies); or `response`; otherwise it expects the response of its request.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import msgspec

FOLDER: Final = Path(__file__).parents[1] / "wire"
CASES: Final = FOLDER / "cases"
SHARED: Final = FOLDER / "shared.toml"
ABSENT: Final = "<absent>"
DEFAULT: Final = "default"
BODIES: Final = ("form", "parts", "body", "hex")
RESPONSE_BODIES: Final = ("body", "body_has", "text", "json_texts")
COPIED: Final = ("source", "why", "holds", "strict", "settings")
NOT_IN_REQUEST: Final = (*COPIED, "request", "before", "error", "response")

Table = dict[str, Any]


class CaseFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One file, as written."""

    source: str = ""
    common: dict[str, list[str]] = {}
    requests: dict[str, Table] = {}
    before: dict[str, list[str | Table]] = {}
    cases: dict[str, Table] = {}


def complete_cases() -> Iterator[tuple[str, Table]]:
    """Yield the id of each case and the complete case."""
    rows = read_toml(FOLDER / "common.toml")
    for path in sorted(CASES.glob("*.toml")):
        file = read_case_file(path)
        common = {name: rows[group][name] for group, names in file.common.items() for name in names}
        assert not common.keys() & file.cases.keys(), f"{path.name} has a case twice"
        for name, case in (common | file.cases).items():
            yield f"{path.stem}/{name}", complete_case(file, case)


def complete_case(file: CaseFile, case: Table) -> Table:
    """Return a case with its complete request, steps and response."""
    base = case.get("request", DEFAULT)
    changes = {name: value for name, value in case.items() if name not in NOT_IN_REQUEST}
    request = apply_changes(request_named(file, base), changes)
    steps = [request for step in case.get("before", []) for request in steps_of(file, step, base=base)]
    complete: Table = {"source": file.source} | {name: case[name] for name in COPIED if name in case}
    complete["response"] = response_of(case, default=request.get("response", {}))
    complete["before"] = [encode_request(step) for step in steps]
    complete["request"] = encode_request(request)
    if "error" in case:
        complete["error_code"], _ = error_of(case)
    return complete


def request_named(file: CaseFile, name: str) -> Table:
    """Return the complete request of a name."""
    if name == ABSENT:
        return {}
    other, _, own = name.rpartition(".")
    if other:
        return request_named(read_case_file(CASES / f"{other}.toml"), own)
    if name not in file.requests:
        file = read_case_file(SHARED)
    changes = dict(file.requests[name])
    return apply_changes(request_named(file, changes.pop("request", ABSENT)), changes)


def steps_of(file: CaseFile, step: str | Table, *, base: str) -> Iterator[Table]:
    """Yield the requests of a step; differences that name no request apply to the base."""
    if isinstance(step, str):
        if step not in file.before and step not in file.requests and "." not in step:
            file = read_case_file(SHARED)
        for inner in file.before.get(step, [{"request": step}]):
            yield from steps_of(file, inner, base=DEFAULT)
    else:
        changes = dict(step)
        yield apply_changes(request_named(file, changes.pop("request", base)), changes)


def apply_changes(request: Table, changes: Table) -> Table:
    """Return a request with changes applied; a response is replaced, not merged."""
    if "response" in changes:
        request = {name: value for name, value in request.items() if name != "response"}
    if any(changes.get(kind, ABSENT) != ABSENT for kind in BODIES):
        request = {name: value for name, value in request.items() if name not in BODIES or name in changes}
    return merge(request, changes)


def merge(base: Any, change: Any) -> Any:
    """Return the base with the members of the change replaced, at any depth."""
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return change
    result: Table = dict(cast(Table, base))
    for name, value in cast(Table, change).items():
        if value == ABSENT:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result


def response_of(case: Table, *, default: Table) -> Table:
    """Return the response that a case expects; the default is its request's."""
    own: Table = case.get("response", {})
    if "error" not in case:
        return {"status": 200, **(own or default)}
    name, text = error_of(case)
    row = read_toml(FOLDER / "errors.toml")[name]
    text = text or row.get("text")
    if text is None or any(name in own for name in RESPONSE_BODIES):
        return {"status": row["status"], **own}
    message = {"message": text} if row.get("nested") else text
    return {"status": row["status"], "body": {"status": "error", "message": message}, **own}


def error_of(case: Table) -> tuple[str, str | None]:
    """Return the error code of a case, and its text if the case gives one."""
    error: str | Table = case["error"]
    if isinstance(error, str):
        return error, None
    [(name, text)] = error.items()
    return name, text


def encode_request(request: Table) -> Table:
    """Return a request with its tables encoded as JSON, its fields in order, and its parts as a list."""
    encoded = {name: value for name, value in request.items() if name not in ("response", "form_order")}
    if isinstance(encoded.get("body"), dict):
        encoded["body"] = compact_json(encoded["body"])
    parts: Table | list[Table] = encoded.get("parts", [])
    if isinstance(parts, dict):
        encoded["parts"] = [{"name": name, **part} for name, part in parts.items()]
    elif parts:
        encoded["parts"] = [copy for part in parts for copy in repeated(part)]
    if "form" in encoded:
        fields = encoded["form"]
        names = request.get("form_order", list(fields))
        form = {name: fields[name] for name in (*names, *fields) if name in fields}
        encoded["form"] = {
            name: compact_json(cast(Table, value)) if isinstance(value, dict) else value for name, value in form.items()
        }
    return encoded


def repeated(part: Table) -> list[Table]:
    """Return a part of a multipart form, repeated by its `times`."""
    return [{name: value for name, value in part.items() if name != "times"}] * part.get("times", 1)


def compact_json(value: Mapping[str, Any]) -> str:
    """Return JSON without spaces and without escapes for letters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@cache
def read_case_file(path: Path) -> CaseFile:
    """Read a file of cases, or the shared one."""
    return msgspec.convert(read_toml(path), CaseFile)


@cache
def read_toml(path: Path) -> Table:
    """Read a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))
