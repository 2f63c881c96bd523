"""What the control door shows to whoever chooses: kinds of faults, templates that are asked for, settings."""

from typing import Any

from tests.simulator.conftest import WABA, Bench
from waypost.simulator.faults.fault_kinds import KINDS, WEBHOOKS, WHENS
from waypost.simulator.graph.call_names import CALL_NAMES

BODY = [{"type": "BODY", "text": "Hello there"}]


async def test_kinds_of_faults_are_those_of_the_table(bench: Bench) -> None:
    shown = (await bench.control("GET", "faults/kinds")).body

    assert [(one["on"], one["name"], one["sees"]) for one in shown["kinds"]] == [
        (kind.on, kind.name, kind.sees) for kind in KINDS
    ]
    assert [one["name"] for one in shown["when"]] == [parameter.name for parameter, _ in WHENS]
    assert set(shown["call"]) == {"*", *CALL_NAMES}
    assert set(shown["webhook"]) == {"*", *WEBHOOKS}
    assert set(shown["filters"]) == {"app", "waba_id", "number", "phone", "template"}


async def test_kind_shows_what_its_value_may_be_and_what_stands_beside_it(bench: Bench) -> None:
    kinds = (await bench.control("GET", "faults/kinds")).body["kinds"]

    [garbage] = [one for one in kinds if (one["on"], one["name"]) == ("call", "garbage")]
    assert garbage["value"] == {
        "name": "garbage",
        "type": "choice",
        "accepted": "html, truncated, empty or not_json",
        "choices": ["html", "truncated", "empty", "not_json"],
    }
    assert garbage["beside"][0] == {
        "name": "status",
        "type": "whole",
        "accepted": "a whole number from 200 to 599",
        "at_least": 200,
        "at_most": 599,
    }
    [fail] = [one for one in kinds if one["name"] == "fail"]
    assert fail["only"] == "messages.send"


async def test_templates_are_narrowed_counted_and_limited_to_the_newest(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"review_delay_ms": None})
    for name in ("spring_sale", "summer_sale", "order_ready"):
        await bench.create(BODY, name=name)
    [order] = await asked(bench, "name=order")
    await bench.control("POST", f"templates/{order['id']}/approve")

    assert await names(bench, "") == ["spring_sale", "summer_sale", "order_ready"]
    assert await names(bench, "name=SALE") == ["spring_sale", "summer_sale"]
    assert await names(bench, "status=PENDING&status=IN_APPEAL") == ["spring_sale", "summer_sale"]
    assert await names(bench, "not_status=PENDING") == ["order_ready"]
    assert await names(bench, f"waba_id={WABA}&id={order['id']}") == ["order_ready"]
    assert await names(bench, "waba_id=4") == []
    assert await names(bench, "limit=1") == ["order_ready"]
    assert (await bench.control("GET", "templates?limit=0")).body["count"] == 3
    assert (await bench.control("GET", "templates?limit=few")).status == 400


async def test_reasons_of_rejections_are_shown_with_the_templates(bench: Bench) -> None:
    shown = (await bench.control("GET", "templates")).body

    assert "INVALID_FORMAT" in shown["reasons"]


async def test_settings_are_shown_as_they_are_now(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"read_after_ms": 300})

    shown = (await bench.control("GET", "settings")).body

    assert shown["read_after_ms"] == 300
    assert shown == (await bench.control("GET", "state")).body["settings"]


async def asked(bench: Bench, query: str) -> list[dict[str, Any]]:
    return (await bench.control("GET", f"templates?{query}")).body["templates"]


async def names(bench: Bench, query: str) -> list[str]:
    return [one["name"] for one in await asked(bench, query)]
