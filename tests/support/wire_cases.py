"""Wire cases: their fields, how placeholders are filled, and how responses are compared.

A case is one request and the response that the spec or the facts give to it. `case_files.py` assembles it
from a file; a complete case has:

    source    the source of the statement
    why       the statement, in a sentence
    error_code  of an error response: its row in `wire/errors.py`, whose status and text the response must have
    holds     the statements of the spec that this case tests, by their keys in docs/sources/statements.toml
    strict    the service checks templates against the operator's rules at once
    settings  of a separate service for this case
    before    earlier requests; each is sent `times` times, and its response has `status` (200);
              `keep` names values in the last response that become placeholders; with `hangs_up_at`, a
              path of `{files}`, the client disconnects once that path is requested, and gets no response
    request   `method`, `path`, `headers`, and one of `form` (a list repeats its field), `parts` (of a
              multipart form: `name`, and `text`, or a `sample` filled up to `size_bytes`, perhaps with
              `file_name` and `content_type`), `body` (text as it is) and `hex` (bytes as they are);
              `after_ms` advances the clock first
    response  `status`; `body` is the complete JSON, `text` the complete body as text; `body_has` is a
              part of the JSON: other members are ignored, lists must be complete;
              `json_texts` are complete JSON texts inside the JSON, by path;
              `headers` must be present, `absent_headers` must not

Placeholders are names in braces, such as `{app_id}`; `{chars:61}` is a text of 61 letters. In a
response a text that begins with `~` is a regular expression for the complete text; `<integer>`,
`<boolean>` and `<text>` match any value of their type.
"""

import io
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast

import aiohttp
import msgspec
from multidict import CIMultiDict

from tests.support.case_files import complete_cases
from tests.support.media_samples import sample

Filled = TypeVar("Filled")

_PLACEHOLDER: Final = re.compile(r"(?<!\{)\{(chars:\d+|[a-z_]+)\}(?!\})")
_KINDS: Final = {"<integer>": int, "<boolean>": bool, "<text>": str, "<null>": type(None)}


class FormPart(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A part of a multipart form."""

    name: str
    text: str | None = None
    sample: str | None = None
    size_bytes: int = 0
    file_name: str | None = None
    content_type: str | None = None


class Step(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A request."""

    method: str
    path: str
    headers: dict[str, str] = {}
    form: dict[str, str | list[str]] | None = None
    parts: list[FormPart] | None = None
    body: str | None = None
    hex: str | None = None
    after_ms: int = 0


class SetupStep(Step, forbid_unknown_fields=True, kw_only=True):
    """A request that is sent before the case's own."""

    times: int = 1
    status: int = 200
    keep: dict[str, str] = {}
    hangs_up_at: str | None = None


class ExpectedResponse(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The expected response."""

    status: int
    body: dict[str, Any] | list[Any] | None = None
    text: str | None = None
    body_has: dict[str, Any] | None = None
    json_texts: dict[str, dict[str, Any]] = {}
    headers: dict[str, str] = {}
    absent_headers: list[str] = []


class Case(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One case."""

    source: str
    why: str
    error_code: str | None = None
    strict: bool = False
    settings: dict[str, int] = {}
    holds: list[str] = []
    before: list[SetupStep] = []
    request: Step
    response: ExpectedResponse


@cache
def read_cases() -> dict[str, Case]:
    """Return every case by its id, such as `login/password`."""
    return {name: msgspec.convert(case, Case) for name, case in complete_cases()}


def uses_another_partner(case: Case) -> bool:
    """True if a case uses another partner, whose placeholders begin with `other_`."""
    return b"{other_" in msgspec.json.encode(case)


def filled(value: Filled, values: Mapping[str, str]) -> Filled:
    """Return the value with the placeholders in all its texts filled."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        return "x" * int(name.partition(":")[2]) if name.startswith("chars:") else values[name]

    def walk(node: Any) -> Any:
        match node:
            case str():
                return _PLACEHOLDER.sub(fill, node)
            case dict():
                return {walk(name): walk(member) for name, member in cast(dict[Any, Any], node).items()}
            case list():
                return [walk(item) for item in cast(list[Any], node)]
            case _:
                return node

    return walk(value)


def multipart(parts: list[FormPart], values: Mapping[str, str]) -> aiohttp.MultipartWriter:
    """Return the parts as a multipart form."""
    writer = aiohttp.MultipartWriter("form-data")
    for part in parts:
        content = filled(part.text, values).encode() if part.text is not None else b""
        if part.sample is not None:
            content = sample(part.sample, part.size_bytes)
        headers = {"Content-Type": part.content_type} if part.content_type else {}
        payload = aiohttp.BytesIOPayload(io.BytesIO(content), headers=CIMultiDict(headers))
        if not part.content_type:
            del payload.headers["Content-Type"]
        names = {"name": part.name}
        if part.file_name is not None:
            names["filename"] = part.file_name
        payload.set_content_disposition("form-data", quote_fields=False, **names)
        writer.append_payload(payload)
    return writer


def form_pairs(form: Mapping[str, str | list[str]]) -> list[tuple[str, str]]:
    """Return a form's fields; each value of a list is a separate field."""
    return [
        (name, value) for name, values in form.items() for value in ([values] if isinstance(values, str) else values)
    ]


def differences(expected: Any, actual: Any, *, whole: bool, at: str = "body") -> list[str]:
    """Describe the differences between an actual and the expected value; empty if there are none."""
    match expected:
        case dict():
            if not isinstance(actual, dict):
                return [f"{at}: {actual!r} is not an object"]
            required = cast(dict[str, Any], expected)
            present = cast(dict[str, Any], actual)
            problems = [f"{at}.{name} is missing" for name in required.keys() - present.keys()]
            if whole:
                problems += [
                    f"{at}.{name} is unexpected: {present[name]!r}" for name in present.keys() - required.keys()
                ]
            for name in required.keys() & present.keys():
                problems += differences(required[name], present[name], whole=whole, at=f"{at}.{name}")
            return problems
        case list():
            items = cast(list[Any], expected)
            if not isinstance(actual, list) or len(cast(list[Any], actual)) != len(items):
                return [f"{at}: {actual!r} is not a list of {len(items)}"]
            pairs = zip(items, cast(list[Any], actual), strict=True)
            return [
                problem
                for index, (expected_item, actual_item) in enumerate(pairs)
                for problem in differences(expected_item, actual_item, whole=whole, at=f"{at}[{index}]")
            ]
        case _:
            return [] if _matches(expected, actual) else [f"{at}: {actual!r} is not {expected!r}"]


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path such as `template.id`."""
    for name in path.split("."):
        value = value[int(name) if name.isdecimal() else name]
    return value


def text_differences(expected: Mapping[str, Any], body: Any) -> list[str]:
    """Describe the differences of JSON texts inside a response."""
    return [
        problem
        for path, content in expected.items()
        for problem in differences(content, json.loads(value_at(body, path)), whole=True, at=path)
    ]


def _matches(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str) and expected in _KINDS:
        return type(actual) is _KINDS[expected]
    if isinstance(expected, str) and expected.startswith("~"):
        return isinstance(actual, str) and re.fullmatch(expected[1:], actual) is not None
    return type(actual) is type(expected) and actual == expected
