"""Files of wire cases: how a case is put together from what its file says once and what differs.

A file under `tests/wire/cases` has:

    source        where the statements of cases stand that name no other source
    [common]      names of rows of `tests/wire/common.toml`, by their group: cases that differ in the same
                  way from the default request of many files, such as a missing credential
    [requests.*]  valid requests, each whole or as differences from the one it names by `request`;
                  cases and steps that name none begin from `default`; `response` is the answer to it, and
                  `form_order` the order of its form's fields where differences would not give it
    [before.*]    lists of steps by name
    [cases.*]     the cases, by the last part of their ids

A case and a step name a request by `request` (of this file or of `tests/wire/shared.toml`, or as `file.name`
of another file) and give what differs: members that are not named stay, `"<absent>"` takes one away, and
another kind of body replaces the one that was there. A table as the value of a form field or of `body` is
sent as compact JSON; `parts` are a table by name, or a list, where a part may be repeated `times`. A step may be only a name, of a list of steps or of a request, in this file or the shared one.

A case has `error`, a row of `tests/wire/errors.toml`, which gives the status and the body (`error.CLOCK_FILE_NAME` is the text
where that varies); or `response`; or else the response of its request.
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
NOT_OF_THE_REQUEST: Final = (*COPIED, "request", "before", "error", "response")

Table = dict[str, Any]


class CaseFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One file, as it stands."""

    source: str = ""
    common: dict[str, list[str]] = {}
    requests: dict[str, Table] = {}
    before: dict[str, list[str | Table]] = {}
    cases: dict[str, Table] = {}


def whole_cases() -> Iterator[tuple[str, Table]]:
    """Yield the id of each case and the case, with its request, steps and response whole."""
    rows = read_toml(FOLDER / "common.toml")
    for path in sorted(CASES.glob("*.toml")):
        file = read_case_file(path)
        common = {name: rows[group][name] for group, names in file.common.items() for name in names}
        assert not common.keys() & file.cases.keys(), f"{path.name} has a case twice"
        for name, case in (common | file.cases).items():
            yield f"{path.stem}/{name}", whole_case(file, case)


def whole_case(file: CaseFile, case: Table) -> Table:
    """Return a case with its request, steps and response whole."""
    base = case.get("request", DEFAULT)
    change = {name: value for name, value in case.items() if name not in NOT_OF_THE_REQUEST}
    request = changed(request_named(file, base), change)
    steps = [one for step in case.get("before", []) for one in steps_of(file, step, base=base)]
    whole: Table = {"source": file.source} | {name: case[name] for name in COPIED if name in case}
    whole["response"] = response_of(case, usual=request.get("response", {}))
    whole["before"] = [as_sent(step) for step in steps]
    whole["request"] = as_sent(request)
    if "error" in case:
        whole["reason"], _ = error_of(case)
    return whole


def request_named(file: CaseFile, name: str) -> Table:
    """Return the request of a name, whole."""
    if name == ABSENT:
        return {}
    other, _, own = name.rpartition(".")
    if other:
        return request_named(read_case_file(CASES / f"{other}.toml"), own)
    if name not in file.requests:
        file = read_case_file(SHARED)
    change = dict(file.requests[name])
    return changed(request_named(file, change.pop("request", ABSENT)), change)


def steps_of(file: CaseFile, step: str | Table, *, base: str) -> Iterator[Table]:
    """Yield the requests that a step stands for; differences that name no request are from the base."""
    if isinstance(step, str):
        if step not in file.before and step not in file.requests and "." not in step:
            file = read_case_file(SHARED)
        for one in file.before.get(step, [{"request": step}]):
            yield from steps_of(file, one, base=DEFAULT)
    else:
        change = dict(step)
        yield changed(request_named(file, change.pop("request", base)), change)


def changed(request: Table, change: Table) -> Table:
    """Return a request with what differs from it; a response is another one, and not merged."""
    if "response" in change:
        request = {name: value for name, value in request.items() if name != "response"}
    if any(change.get(kind, ABSENT) != ABSENT for kind in BODIES):
        request = {name: value for name, value in request.items() if name not in BODIES or name in change}
    return merged(request, change)


def merged(base: Any, change: Any) -> Any:
    """Return the base with what the change names put in its place, at any depth."""
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return change
    made: Table = dict(cast(Table, base))
    for name, value in cast(Table, change).items():
        if value == ABSENT:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


def response_of(case: Table, *, usual: Table) -> Table:
    """Return the response that a case expects, where its request has this one."""
    own: Table = case.get("response", {})
    if "error" not in case:
        return {"status": 200, **(own or usual)}
    name, text = error_of(case)
    row = read_toml(FOLDER / "errors.toml")[name]
    text = text or row.get("text")
    if text is None or any(name in own for name in RESPONSE_BODIES):
        return {"status": row["status"], **own}
    message = {"message": text} if row.get("nested") else text
    return {"status": row["status"], "body": {"status": "error", "message": message}, **own}


def error_of(case: Table) -> tuple[str, str | None]:
    """Return the row of a case's error, and its text where the case has one."""
    error: str | Table = case["error"]
    if isinstance(error, str):
        return error, None
    [(name, text)] = error.items()
    return name, text


def as_sent(request: Table) -> Table:
    """Return a request with its tables written as JSON, its fields in order, and its parts as a list."""
    made = {name: value for name, value in request.items() if name not in ("response", "form_order")}
    if isinstance(made.get("body"), dict):
        made["body"] = compact_json(made["body"])
    parts: Table | list[Table] = made.get("parts", [])
    if isinstance(parts, dict):
        made["parts"] = [{"name": name, **part} for name, part in parts.items()]
    elif parts:
        made["parts"] = [one for part in parts for one in repeated(part)]
    if "form" in made:
        names = request.get("form_order", list(made["form"]))
        form = {name: made["form"][name] for name in (*names, *made["form"]) if name in made["form"]}
        made["form"] = {
            name: compact_json(cast(Table, one)) if isinstance(one, dict) else one for name, one in form.items()
        }
    return made


def repeated(part: Table) -> list[Table]:
    """Return a part of a multipart form as many `times` as it says."""
    return [{name: value for name, value in part.items() if name != "times"}] * part.get("times", 1)


def compact_json(value: Mapping[str, Any]) -> str:
    """Return JSON without blanks, letters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@cache
def read_case_file(path: Path) -> CaseFile:
    """Read a file of cases, or the shared one."""
    return msgspec.convert(read_toml(path), CaseFile)


@cache
def read_toml(path: Path) -> Table:
    """Read a file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))
