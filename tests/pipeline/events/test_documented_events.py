"""The documented sample events, one by one: the callback that follows what the operator posts, whole."""

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import pytest

from tests.support.builders import ACCOUNT, ANN, APP
from tests.support.callback_sink import Callback, CallbackSink
from tests.support.operator_webhook import post_change, post_messages_change
from tests.support.pipeline import PipelineHarness

pytestmark = pytest.mark.content_only

CASES: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "documented_events.toml").read_text(encoding="utf-8")
)["cases"]
TEMPLATE_NAME: Final = "greeting"
STATUS: Final = {"id": "{wamid}", "recipient_id": "{ann}", "timestamp": "1776944126"}
CONTACT: Final = {"profile": {"name": "Smit"}, "wa_id": "{ann}"}
_PLACEHOLDER: Final = re.compile(r"\{(\w+)(:int)?\}")


class Recent:
    """Equals every time of the last minute, in one unit and type."""

    def __init__(self, now_ms: int, unit_ms: int, type: Callable[[Any], Any]) -> None:
        self._now_ms, self._unit_ms, self._type = now_ms, unit_ms, type

    def __eq__(self, other: object) -> bool:
        return self._type(other) == other and abs(int(cast(Any, other)) * self._unit_ms - self._now_ms) < 60_000

    def __hash__(self) -> int:
        return self._now_ms

    def __repr__(self) -> str:
        return f"a time near {self._now_ms // self._unit_ms}"


class AnyText:
    """Equals every text that is not empty."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and bool(other)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "a text"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_documented_event_is_called_back(proxied_pipeline: PipelineHarness, case: dict[str, Any]) -> None:
    pipeline, as_received = proxied_pipeline, cast(list[dict[str, Any]], case.get("as_received", []))
    expected = [
        *case.get("callbacks", []),
        *({"entry": {"id": "{waba}", "changes": [change]}} for change in as_received),
    ]
    values = await _prepare(pipeline, case)
    sink = CallbackSink()
    await sink.open()
    try:
        version = "3" if "entry" in expected[0] else "2"
        await pipeline.subscribe(tag="documented", url=sink.url, version=version, modes=case["modes"])
        values |= await _send(pipeline, case.get("sends"), values.get("template_id", ""))
        await _post(pipeline, case, values)
        bodies = await sink.wait_for(lambda _: True, count=len(expected))
    finally:
        await sink.close()
    whole = [_whole_body(_fill(callback, values), pipeline.clock.now_ms()) for callback in expected]
    if case.get("in_any_order"):
        assert [body for body in whole if body not in bodies] == []
    else:
        assert bodies == whole


async def _prepare(pipeline: PipelineHarness, case: Mapping[str, Any]) -> dict[str, Any]:
    """Open Ann's window, create the template if the case needs one, and return the values that its texts may name."""
    now_ms = pipeline.clock.now_ms()
    today = datetime.fromtimestamp(now_ms / 1000, UTC)
    values: dict[str, Any] = {
        "ann": ANN,
        "ann_national": ANN[1:],
        "phone": APP.phone_number,
        "phone_number_id": APP.phone_number_id,
        "waba": ACCOUNT.id,
        "template_name": TEMPLATE_NAME,
        "today": f"{today:%B} {today.day},{today.year}",
        "recent_ms": Recent(now_ms, 1, int),
        "recent_s": Recent(now_ms, 1000, str),
        "future_s": now_ms // 1000 + 60,
        "reason": AnyText(),
    }
    await pipeline.open_window()
    if case.get("enables"):
        path, headers = f"/partner/app/{APP.id}/config/bsuid", {"Authorization": pipeline.app_token}
        response = await pipeline.send_request("PUT", path, case["enables"], headers)
        assert response.body == {"status": "success"}
    if case.get("needs_template"):
        values["template_id"] = await pipeline.approved_template(elementName=TEMPLATE_NAME)
        [template] = (await pipeline.control("GET", "templates"))["templates"]
        values["operator_template_id"] = template["id"]
    if case.get("sends") == "refused template":
        values["template_id"] = await pipeline.approved_template()
    return values


async def _send(pipeline: PipelineHarness, what: str | None, template_id: str = "") -> dict[str, Any]:
    """Send what the case is about, with the webhooks of the simulator held back; return its ids."""
    if what is None:
        return {}
    assert pipeline.operator_proxy is not None
    pipeline.operator_proxy.let_webhooks_pass = False
    if what == "refused template":
        message_id = await pipeline.send(template_id, params=["Ann", "one too many"])
        await pipeline.wait_for_state(message_id, "failed")
        return {"message_id": message_id}
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "enqueued")
    [delivery] = await pipeline.deliveries(message_id)
    return {"message_id": message_id, "wamid": delivery["wamid"]}


async def _post(pipeline: PipelineHarness, case: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Post what the operator posts, one after the other."""
    own_contacts = {"contacts": _fill(case["contacts"], values)} if "contacts" in case else {}
    for status in case.get("statuses", ()):
        await post_messages_change(pipeline, **own_contacts, statuses=[_fill({**STATUS, **status}, values)])
    for message in case.get("messages", ()):
        contacts = {"contacts": [_fill(CONTACT, values)]} | own_contacts
        await post_messages_change(pipeline, **contacts, messages=[_fill(message, values)])
    for change in (*case.get("webhooks", ()), *case.get("as_received", ())):
        filled = _fill(change, values)
        await post_change(pipeline, filled.pop("field"), filled.pop("value"), **filled)


def _whole_body(callback: Callback, now_ms: int) -> Callback:
    """Return a callback with the members that every one of its version has."""
    if "entry" in callback:
        return {"entry": [callback["entry"]], "gs_app_id": APP.id, "object": "whatsapp_business_account"}
    is_of_account = callback["type"] in ("account-event", "preference-event")
    names = {"app": APP.name, "phone": APP.phone_number} | ({"appId": APP.id} if is_of_account else {})
    return {**names, "timestamp": Recent(now_ms, 1, int), "version": 2, **callback}


def _fill(value: Any, values: Mapping[str, Any]) -> Any:
    """Return a value of the file with the texts that name values replaced."""
    match value:
        case dict():
            members = cast(dict[str, Any], value)
            return {name: _fill(member, values) for name, member in members.items()}
        case list():
            return [_fill(item, values) for item in cast(list[Any], value)]
        case str():
            named = _PLACEHOLDER.fullmatch(value)
            if named is None:
                return value
            found = values[named[1]]
            return int(found) if named[2] else found
        case _:
            return value
