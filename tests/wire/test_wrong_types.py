"""Every field of every operation with values of wrong types: no response has a text of a library."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.support.case_files import CASES, DEFAULT, encode_request, read_case_file, request_named
from tests.support.library_texts import LIBRARY_TEXTS
from tests.support.wire_cases import Step, read_cases

if TYPE_CHECKING:
    from tests.wire.conftest import WireService, WireServices

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")
WITHOUT_RATES: Final = replace(next(iter(read_cases().values())), settings={"rates": 0})
STEMS: Final = [path.stem for path in sorted(CASES.glob("*.toml")) if DEFAULT in read_case_file(path).requests]
WRONG_VALUES: Final[tuple[Any, ...]] = (7, 1.5, "x", True, None, [7], {"x": 7}, ["x", {"y": []}])
WRONG_TEXTS: Final = ("{", '["\\ud800"]', '{"a":1,}', "[" * 40, '"\\x"', "NaN", "1e999", "9" * 40)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(services: "WireServices") -> AsyncIterator["WireService"]:
    """Return a service without rates, which would hide every other error."""
    async with services.service_for(WITHOUT_RATES) as opened:
        yield opened


@pytest.mark.parametrize("stem", STEMS)
async def test_wrong_types_are_explained_in_our_words(stem: str, service: "WireService") -> None:
    encoded = encode_request(request_named(read_case_file(CASES / f"{stem}.toml"), DEFAULT))
    values = await service.values(with_other=True)
    values["universal_token"] = await service.add_universal_token(values["partner_id"])
    values = dict.fromkeys(PLACEHOLDER.findall(json.dumps(encoded)), "7") | values  # what other requests would create
    for step in changed_steps(msgspec.convert(encoded, Step)):
        response = await service.send_request(step, values)

        texts = response.raw.decode() + "".join(f"\n{name}: {text}" for name, text in response.headers.items())
        assert response.status < 500 or response.status == 503, texts
        assert not LIBRARY_TEXTS.search(texts), (step, texts)


def changed_steps(step: Step) -> Iterator[Step]:
    """Yield the request with one value after the other of a wrong type."""
    form = {name: text for name, text in (step.form or {}).items() if isinstance(text, str)}
    for name, text in form.items():
        for wrong in (*changed_jsons(text), *WRONG_TEXTS):
            yield replace(step, form=cast("dict[str, str | list[str]]", {**form, name: wrong}))
    if step.body is not None:
        for wrong in (*changed_jsons(step.body), *WRONG_TEXTS):
            yield replace(step, body=wrong)
    path, _, query = step.path.partition("?")
    fields = query.split("&") if query else []
    for index, field in enumerate(fields):
        for wrong in ("x", "-1", *WRONG_TEXTS):
            changed = f"{field.partition('=')[0]}={quote(wrong)}"
            yield replace(step, path=f"{path}?{'&'.join((*fields[:index], changed, *fields[index + 1 :]))}")


def changed_jsons(text: str) -> Iterator[str]:
    """Yield a JSON text with each of its values replaced; another text is replaced as a whole."""
    try:
        value = json.loads(re.sub(r":\{(\w+)\}", r':"{\1}"', text))  # placeholders of numbers
    except ValueError:
        value = text
    for changed in changed_values(value):
        yield changed if isinstance(changed, str) else json.dumps(changed)


def changed_values(value: Any) -> Iterator[Any]:
    """Yield a JSON value with each of the values in it replaced by those of another type."""
    yield from (wrong for wrong in WRONG_VALUES if type(wrong) is not type(value))
    match value:
        case dict():
            members = cast("dict[str, Any]", value)
            for name, inner in members.items():
                yield from ({**members, name: changed} for changed in changed_values(inner))
            yield {**members, "unknown_member": 1}
            for name in members:
                yield {other: inner for other, inner in members.items() if other != name}
        case [first, *others]:
            yield from ([changed, *others] for changed in changed_values(first))
        case _:
            pass
