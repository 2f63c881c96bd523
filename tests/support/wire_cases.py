"""Wire cases: what a case says, how its placeholders are filled, and how answers are compared.

A case is one request and the answer that the spec or the facts give to it. `case_files.py` says how it
is put together from a file; whole, it has:

    source    where the statement stands
    why       the statement, in a sentence
    reason    of a refusal: its row in `wire/errors.py`, whose status and text must be the answer's
    holds     the statements of the spec that this case holds, by their keys in docs/statements.toml
    strict    the service holds templates to the operator's rules at once
    settings  of a service of the case's own
    before    requests that come first; `times` of them, each answered with `status` (200);
              `add` names places in the last answer that become placeholders; where `hangs_up_at` names
              a path of `{files}`, the client hangs up once that is asked for, and has no answer
    request   `method`, `path`, `headers`, and one of `form` (a list repeats its field), `parts` (of a
              multipart form: `name`, and `text`, or a `sample` filled up to `size_bytes`, perhaps with
              `file_name` and `content_type`), `body` (text as it is) and `hex` (bytes as they are);
              `after_ms` moves the clock first
    response  `status`; `body` is the whole JSON, `text` the whole body as text; `body_has` is a
              part of the JSON: members that are not named do not matter, lists count whole;
              `json_texts` are JSON texts inside the JSON, by place, whole;
              `headers` must be there, `absent_headers` must not

Placeholders are names in braces, such as `{app_id}`; `{chars:61}` is a text of so many letters. In a
response a text that begins with `~` is a regular expression for the whole text; `<integer>`,
`<boolean>` and `<text>` stand for any value of their kind.
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

from tests.support.case_files import whole_cases
from tests.support.media_samples import sample

Filled = TypeVar("Filled")

_PLACEHOLDER: Final = re.compile(r"(?<!\{)\{(chars:\d+|[a-z_]+)\}(?!\})")
_KINDS: Final = {"<integer>": int, "<boolean>": bool, "<text>": str}


class Part(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One part of a multipart form."""

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
    parts: list[Part] | None = None
    body: str | None = None
    hex: str | None = None
    after_ms: int = 0


class Before(Step, forbid_unknown_fields=True, kw_only=True):
    """A request that comes first."""

    times: int = 1
    status: int = 200
    keep: dict[str, str] = {}
    hangs_up_at: str | None = None


class Response(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is expected."""

    status: int
    body: dict[str, Any] | None = None
    text: str | None = None
    body_has: dict[str, Any] | None = None
    json_texts: dict[str, dict[str, Any]] = {}
    headers: dict[str, str] = {}
    absent_headers: list[str] = []


class Case(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One case."""

    source: str
    why: str
    reason: str | None = None
    strict: bool = False
    settings: dict[str, int] = {}
    holds: list[str] = []
    before: list[Before] = []
    request: Step
    response: Response


@cache
def read_cases() -> dict[str, Case]:
    """Every case by its id, such as `login/password`."""
    return {name: msgspec.convert(case, Case) for name, case in whole_cases()}


def names_another(case: Case) -> bool:
    """Whether a case has to do with another partner, whose placeholders begin with `other_`."""
    return b"{other_" in msgspec.json.encode(case)


def filled(value: Filled, values: Mapping[str, str]) -> Filled:
    """The value with every placeholder in every text filled."""

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        return "x" * int(name.partition(":")[2]) if name.startswith("chars:") else values[name]

    def walk(one: Any) -> Any:
        match one:
            case str():
                return _PLACEHOLDER.sub(fill, one)
            case dict():
                return {walk(name): walk(member) for name, member in cast(dict[Any, Any], one).items()}
            case list():
                return [walk(item) for item in cast(list[Any], one)]
            case _:
                return one

    return walk(value)


def multipart(parts: list[Part], values: Mapping[str, str]) -> aiohttp.MultipartWriter:
    """The parts as a multipart form."""
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
    """A form's fields, each of a list's values as a field of its own."""
    return [(name, value) for name, given in form.items() for value in ([given] if isinstance(given, str) else given)]


def differences(expected: Any, given: Any, *, whole: bool, at: str = "body") -> list[str]:
    """Where an answer is not as expected; empty when it is."""
    match expected:
        case dict():
            if not isinstance(given, dict):
                return [f"{at}: {given!r} is no object"]
            wanted = cast(dict[str, Any], expected)
            found = cast(dict[str, Any], given)
            told = [f"{at}.{name} is missing" for name in wanted.keys() - found.keys()]
            if whole:
                told += [f"{at}.{name} is there: {found[name]!r}" for name in found.keys() - wanted.keys()]
            for name in wanted.keys() & found.keys():
                told += differences(wanted[name], found[name], whole=whole, at=f"{at}.{name}")
            return told
        case list():
            items = cast(list[Any], expected)
            if not isinstance(given, list) or len(cast(list[Any], given)) != len(items):
                return [f"{at}: {given!r} is not a list of {len(items)}"]
            pairs = zip(items, cast(list[Any], given), strict=True)
            return [
                one
                for nth, (want, have) in enumerate(pairs)
                for one in differences(want, have, whole=whole, at=f"{at}[{nth}]")
            ]
        case _:
            return [] if _is_as(expected, given) else [f"{at}: {given!r} is not {expected!r}"]


def at_place(value: Any, place: str) -> Any:
    """What stands at a place such as `template.id`."""
    for name in place.split("."):
        value = value[int(name) if name.isdecimal() else name]
    return value


def differing_texts(expected: Mapping[str, Any], body: Any) -> list[str]:
    """Where JSON texts inside an answer are not as expected."""
    return [
        one
        for place, want in expected.items()
        for one in differences(want, json.loads(at_place(body, place)), whole=True, at=place)
    ]


def _is_as(expected: Any, given: Any) -> bool:
    if isinstance(expected, str) and expected in _KINDS:
        return type(given) is _KINDS[expected]
    if isinstance(expected, str) and expected.startswith("~"):
        return isinstance(given, str) and re.fullmatch(expected[1:], given) is not None
    return type(given) is type(expected) and given == expected
