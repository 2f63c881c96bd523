"""Whatever is posted in the operator's own words reaches the operator equal, or is refused by name.

Over real HTTP: bodies built from the documented grammar plus members that nobody knows go in at the
partner's end, and what comes out at the operator's end is compared with them.
"""

import asyncio
import itertools
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.builders import APP
from tests.support.callback_sink import CallbackSink
from tests.support.pipeline import PipelineHarness
from tests.support.recorded_sends import RecordedSends
from tests.support.waiting import patiently
from waypost.wire.messages.passthrough import PASSTHROUGH_TYPES

IN_TESTS, IN_FUZZING = 100, 10_000
EXAMPLES: Final = IN_FUZZING if "WAYPOST_FUZZ_EXAMPLES" in os.environ else IN_TESTS
PATH: Final = f"/partner/app/{APP.id}/v3/message"
FORM: Final = "application/x-www-form-urlencoded"
OURS: Final = "biz_opaque_callback_data"
GIVEN: Final = {
    "messaging_product", "recipient_type", "to", "recipient", "type", "context", "category",
    "ttl_seconds", OURS, "status", *PASSTHROUGH_TYPES,
}  # fmt: skip
Body = dict[str, Any]
Result = TypeVar("Result")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
names = texts | st.sampled_from(["id", "type", "parameters", "payload", "ttl", "category", "to", "odd-member"])
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
strangers = st.dictionaries(
    words.filter(lambda name: name not in GIVEN) | st.sampled_from(["Category", "ttl", "pin", "hologram"]),
    values,
    max_size=3,
)


def shape(needed: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Body]:
    """An object of a documented shape, sometimes with members that no page names."""
    documented = st.fixed_dictionaries(needed, optional=optional)
    more = st.just(Body()) | st.dictionaries(names, values, max_size=2)
    return st.builds(_both, more, documented)


def _both(more: Body, documented: Body) -> Body:
    return {**more, **documented}


def one_of(*choices: str) -> st.SearchStrategy[str]:
    """One of some words."""
    return st.sampled_from(choices)


media = shape({}, link=words, caption=words, filename=words) | shape({"id": words}, caption=words)
parameters = st.lists(
    shape({"type": one_of("text"), "text": texts}, parameter_name=words)
    | shape({"type": one_of("image"), "image": media})
    | shape({"type": one_of("payload"), "payload": texts})
    | shape({"type": one_of("action"), "action": shape({}, flow_token=words, flow_action_data=values)}),
    max_size=3,
)
components = st.lists(
    shape({"type": one_of("header", "body"), "parameters": parameters})
    | shape({"type": one_of("button"), "sub_type": one_of("flow", "url", "quick_reply", "copy_code"), "index": one_of("0", "1"), "parameters": parameters})
    | shape({"type": one_of("carousel"), "cards": st.lists(shape({"card_index": st.integers(0, 9), "components": st.lists(shape({"type": one_of("body"), "parameters": parameters}), max_size=2)}), max_size=2)}),
    max_size=3,
)  # fmt: skip
# fmt: off
OBJECTS: Final[dict[str, Any]] = {  # the documented grammar. Source: facts 9.3; operator's facts 4.1, 4.2
    "text":        shape({"body": texts}, preview_url=st.booleans()),
    "image":       media,
    "audio":       shape({"id": words}, voice=st.booleans()),
    "video":       media,
    "document":    media,
    "sticker":     media,
    "location":    shape({"latitude": numbers, "longitude": numbers}, name=texts, address=texts),
    "contacts":    st.lists(shape({"name": shape({"formatted_name": words})}, phones=st.lists(shape({"phone": words}), max_size=2)), min_size=1, max_size=2),
    "reaction":    shape({"message_id": words, "emoji": texts}),
    "interactive": shape({"type": one_of("button", "list", "cta_url", "flow", "order_details", "location_request_message"), "action": shape({}, name=words, parameters=values, buttons=st.lists(values, max_size=2))}, body=shape({"text": texts}), footer=shape({"text": texts}), header=shape({"type": one_of("image"), "image": media})),
    "template":    shape({"name": words.filter(lambda name: bool(name.strip())), "language": shape({"code": words}, policy=one_of("deterministic"))}, components=components),
}
# fmt: on
SPELLINGS: Final[dict[str, Callable[[str], str | int]]] = {  # of a phone number
    "digits": str,
    "number": int,
    "plus": "+{}".format,
    "spaces": lambda digits: f" {digits[:1]} {digits[1:4]} {digits[4:]} ",
    "hyphens": lambda digits: f"+{digits[:1]} ({digits[1:4]}) {digits[4:7]}-{digits[7:]}",
}
numbers_used = itertools.count(15_550_000_000)  # the operator lets one person have few messages at once
envelope = st.fixed_dictionaries(
    {},
    optional={
        "messaging_product": one_of("whatsapp"),
        "context": shape({"message_id": words}) | shape({}),
        "category": one_of("utility", "authentication", "Utility", "MARKETING"),
        "ttl_seconds": st.integers(0, 100_000),
        OURS: words | st.sampled_from(["x" * 475, "x" * 476, 7]),
    },
)


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """One body: an envelope, an object, and members that nobody knows, in any order."""
    kind = draw(st.sampled_from(sorted(OBJECTS)))
    body = {**draw(strangers), **draw(envelope), "type": kind, kind: draw(OBJECTS[kind])}
    match draw(one_of("individual", "group", "user", "unsaid")):
        case "group":
            body |= {"recipient_type": "group", "to": draw(words)}
        case "user":
            body |= {"recipient_type": "individual", "recipient": "US."}
        case "individual":
            body |= {"recipient_type": "individual", "to": draw(st.sampled_from(sorted(SPELLINGS)))}
        case _:
            body |= {"to": draw(st.sampled_from(sorted(SPELLINGS)))}
    return dict(draw(st.permutations(list(body.items()))))


def to_somebody_new(body: Body) -> Body:
    """The same to a recipient who has got nothing yet."""
    digits = str(next(numbers_used))
    if "recipient" in body:
        return body | {"recipient": f"US.{digits}"}
    if body.get("recipient_type") == "group":
        return body | {"to": f"{body['to']}{digits}"}
    return body | {"to": SPELLINGS[body["to"]](digits)}


def as_form(body: Body) -> bytes:
    """The same as a form: objects and lists as JSON text, everything else as text."""
    return urlencode([(name, one if isinstance(one, str) else json.dumps(one)) for name, one in body.items()]).encode()


def fits_a_form(body: Body) -> bool:
    """Whether a form says the same: it has texts and JSON texts only, no empty ones, and names without brackets."""
    return all(
        (isinstance(one, dict | list) or (isinstance(one, str) and one[:1] not in ("", "[", "{")) or name == "ttl_seconds")
        and name and "[" not in name
        for name, one in body.items()
    )  # fmt: skip


def expected(body: Body, message_id: str) -> Body:
    """What the operator has to get: what was sent, and what is ours (decision 0061)."""
    theirs = body.get(OURS)
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        **body,
        OURS: f"{message_id} {theirs}" if theirs else message_id,
    }


def canonical(body: Any) -> str:
    """JSON in which equal values are equal texts, and 1, 1.0 and true are three."""
    return json.dumps(body, sort_keys=True, ensure_ascii=False)


@dataclass
class Line:
    """A pipeline on a loop of its own in a thread, for a property that blocks."""

    loop: asyncio.AbstractEventLoop
    pipeline: PipelineHarness
    sends: RecordedSends
    seen: Counter[str] = field(default_factory=Counter[str])

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def post(self, raw: bytes, content_type: str) -> tuple[int, Any, str]:
        headers = {"Authorization": self.pipeline.app_token, "Content-Type": content_type}
        url = self.pipeline.service_url + PATH
        async with self.pipeline.http.post(url, data=raw, headers=headers) as answer:
            return answer.status, await answer.json(), answer.headers.get("Waypost-Reason", "")

    async def got(self, message_id: str) -> Body:
        async def look() -> Body | None:
            return self.sends.bodies.pop(message_id, None)

        found = await patiently(look)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Generator[Line]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="line", daemon=True)
    thread.start()

    async def open_all(folder: Path) -> Line:
        sends, sink = RecordedSends(answers=True), CallbackSink()
        await sink.open()
        pipeline = PipelineHarness(folder, sink, aiohttp.ClientSession(), between=sends)
        await pipeline.open_on_filled()
        await pipeline.make_partner()
        return Line(loop, pipeline, sends)

    line = asyncio.run_coroutine_threadsafe(open_all(tmp_path_factory.mktemp("line")), loop).result(60)
    yield line
    line.run(line.pipeline.close())
    line.run(line.pipeline.http.close())
    line.run(line.pipeline.sink.close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()
    refused = sum(count for word, count in line.seen.items() if word.endswith("400"))
    print(f"\n{line.seen['equal']} equal, {refused} refused by name: {dict(line.seen)}")  # noqa: T201
    assert line.seen["equal"] > 3 * refused  # else the property would say little


@pytest.mark.timeout(1800)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(body=bodies(), way=one_of("json", "json under the form's header", "form", "object as text"))
def test_operator_gets_what_was_sent_less_what_was_refused(line: Line, body: Body, way: str) -> None:
    body, kind = to_somebody_new(body), body["type"]
    if way == "form" and fits_a_form(body):
        raw, content_type = as_form(body), FORM
    elif way == "object as text":
        raw = json.dumps({**body, kind: json.dumps(body[kind])}).encode()
        content_type = "application/json"
    else:
        raw = json.dumps(body).encode()
        content_type = FORM if way.startswith("json under") else "application/json"

    status, answer, reason = line.run(line.post(raw, content_type))

    line.seen[f"{way}: {status}"] += 1
    if status == 400:  # the name of what is wrong, and nothing is sent
        told = f"{answer['message']} {reason}"
        assert any(name in told for name in body), (told, body)
        return
    assert status == 200, answer
    message_id = answer["messages"][0]["id"]
    got = line.run(line.got(message_id))
    assert canonical(got) == canonical(expected(body, message_id))
    line.seen["equal"] += 1
