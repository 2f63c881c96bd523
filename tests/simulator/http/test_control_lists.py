"""Lists of the control API: fault kinds, filtered templates, settings, and accepted values in errors."""

from collections.abc import Iterator
from inspect import signature
from typing import Any, get_args

import pytest
from msgspec import Meta, Struct
from msgspec.structs import fields
from starlette.responses import Response

from tests.simulator.conftest import ANN, WABA, Bench
from waypost.base.invalid_values import accepted_by
from waypost.simulator.apis.control_operations import Endpoint, declared_struct, response_type
from waypost.simulator.faults.fault_kinds import FAULT_KINDS, FAULT_TRIGGERS, WEBHOOKS
from waypost.simulator.serving.control_api import CALLS
from waypost.simulator.serving.declarations import SETTING_TITLES
from waypost.simulator.state.graph_operations import call_names
from waypost.simulator.state.settings import ChangeableSettings

BODY = [{"type": "BODY", "text": "Hello there"}]


async def test_fault_kinds_match_the_table(bench: Bench) -> None:
    shown = (await bench.control("GET", "faults/kinds")).body

    assert [(kind["on"], kind["name"], kind["sees"]) for kind in shown["kinds"]] == [
        (kind.target, kind.name, kind.effect) for kind in FAULT_KINDS
    ]
    assert [one["name"] for one in shown["when"]] == [parameter.name for parameter, _ in FAULT_TRIGGERS]
    assert set(shown["call"]) == {"*", *call_names()}
    assert set(shown["webhook"]) == {"*", *WEBHOOKS}
    assert set(shown["filters"]) == {"app", "waba_id", "number", "phone", "template", "flow"}


async def test_fault_kind_shows_its_accepted_values_and_extra_parameters(bench: Bench) -> None:
    kinds = (await bench.control("GET", "faults/kinds")).body["kinds"]

    [garbage] = [kind for kind in kinds if (kind["on"], kind["name"]) == ("call", "garbage")]
    assert garbage["value"] == {
        "name": "garbage",
        "type": "choice",
        "accepted": "html, truncated, empty or not_json",
        "choices": ["html", "truncated", "empty", "not_json"],
    }
    assert garbage["parameters"][0] == {
        "name": "status",
        "type": "whole",
        "accepted": "a whole number from 200 to 599",
        "at_least": 200,
        "at_most": 599,
    }
    [fail] = [kind for kind in kinds if kind["name"] == "fail"]
    assert fail["only"] == "messages.send"


async def test_templates_are_filtered_counted_and_limited_to_the_newest(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"review_delay_ms": None})
    for name in ("spring_sale", "summer_sale", "order_ready"):
        await bench.create_template(BODY, name=name)
    [order] = await list_templates(bench, "name=order")
    await bench.control("POST", f"templates/{order['id']}/approve")

    assert await template_names(bench, "") == ["spring_sale", "summer_sale", "order_ready"]
    assert await template_names(bench, "name=SALE") == ["spring_sale", "summer_sale"]
    assert await template_names(bench, "status=PENDING&status=IN_APPEAL") == ["spring_sale", "summer_sale"]
    assert await template_names(bench, "not_status=PENDING") == ["order_ready"]
    assert await template_names(bench, f"waba_id={WABA}&id={order['id']}") == ["order_ready"]
    assert await template_names(bench, "waba_id=4") == []
    assert await template_names(bench, "limit=1") == ["order_ready"]
    assert (await bench.control("GET", "templates?limit=0")).body["count"] == 3
    assert (await bench.control("GET", "templates?limit=few")).status == 400


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "accepted"),
    [
        ("PUT", "settings", {"throttle_status": 430}, "throttle_status", "400 or 429"),
        ("PUT", "settings", {"marketing_words": [""]}, "marketing_words[0]", "1 to 100 characters"),
        ("PUT", f"phones/{ANN}", {"read_after_ms": -1}, "read_after_ms", "0 to 604800000, or null: only by a call that reads"),
        ("POST", "tokens/expire", {}, "token", "one that GET /control/tokens shows"),
        ("POST", "reset", {"now": True}, "now", "an object without members"),
        ("GET", "chats?limit=501", None, "limit", "0 to 500"),
        ("GET", "deliveries?after=x", None, "after", "0 to 4611686018427387904"),
    ],
)  # fmt: skip
async def test_error_names_what_the_field_accepts(
    bench: Bench, method: str, path: str, body: Any, field: str, accepted: str
) -> None:
    response = await bench.control(method, path, body)

    assert (response.status, response.body["field"], response.body["accepted"]) == (400, field, accepted)


async def test_rejection_reasons_are_shown_with_the_templates(bench: Bench) -> None:
    shown = (await bench.control("GET", "templates")).body

    assert "INVALID_FORMAT" in shown["reasons"]


async def test_settings_show_their_current_values(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"read_after_ms": 300})

    shown = (await bench.control("GET", "settings")).body

    assert shown["read_after_ms"] == 300
    assert shown == (await bench.control("GET", "state")).body["settings"]


def test_every_setting_has_a_description_and_is_shown_in_the_console() -> None:
    described = {
        field.name: [meta.description for meta in get_args(field.type)[1:]] for field in fields(ChangeableSettings)
    }

    assert [name for name, texts in described.items() if not any(texts)] == []
    assert {name for titles in SETTING_TITLES.values() for name in titles} == set(described)


@pytest.mark.parametrize(("method", "path", "function"), CALLS)
def test_every_call_documents_its_purpose_and_accepted_fields(method: str, path: str, function: Endpoint) -> None:
    struct = declared_struct(function)

    assert function.__doc__, (method, path)
    assert struct is None or "{" in accepted_by(struct)
    assert [pattern for pattern in undocumented_patterns(struct) if struct] == []


def undocumented_patterns(type_: Any) -> Iterator[Any]:
    """Yield the types that have a pattern without a description: their error would describe any text."""
    metas = [meta for meta in get_args(type_) if isinstance(meta, Meta)]
    if any(meta.pattern for meta in metas) and not any(meta.extra for meta in metas):
        yield type_
    structs: list[type[Struct]] = [type_] if isinstance(type_, type) and issubclass(type_, Struct) else []
    inner = [field.type for struct in structs for field in fields(struct)] or get_args(type_)
    for inner_type in inner:
        yield from undocumented_patterns(inner_type)


async def list_templates(bench: Bench, query: str) -> list[dict[str, Any]]:
    return (await bench.control("GET", f"templates?{query}")).body["templates"]


async def template_names(bench: Bench, query: str) -> list[str]:
    return [template["name"] for template in await list_templates(bench, query)]


def test_every_call_declares_its_response_or_responds_with_a_file() -> None:
    without = {
        call.path: signature(call.function).return_annotation for call in CALLS if not response_type(call.function)
    }

    assert without == {"/control/snapshots/{name}/content": Response, "/control/media/{media_id}/content": Response}
