"""QR codes of a number: created, listed, shown, changed and deleted."""

from typing import Any

import pytest

from tests.simulator.conftest import NUMBER_ID, Bench, SimulatorResponse
from tests.support.manual_clock import ManualClock

CODES = f"{NUMBER_ID}/message_qrdls"


async def create(bench: Bench, message: str = "Hi, hats?", **more: Any) -> dict[str, Any]:
    response = await bench.graph("POST", CODES, json={"prefilled_message": message, **more})
    assert response.status == 200, response.body
    return response.body


async def codes_of(bench: Bench, query: str = "") -> list[dict[str, Any]]:
    response = await bench.graph("GET", CODES + query)
    assert response.status == 200, response.body
    return response.body["data"]


def error_of(response: SimulatorResponse) -> tuple[int, int]:
    return response.status, response.error["code"]


@pytest.mark.parametrize(("image_format", "ending"), [("SVG", ".svg"), ("png", ".png")])
async def test_created_code_has_a_short_link_and_the_requested_image(
    bench: Bench, image_format: str, ending: str
) -> None:
    created = await create(bench, generate_qr_image=image_format)

    code = created["code"]
    assert (len(code), code.isalnum(), code.isupper()) == (14, True, True)
    assert created.pop("qr_image_url").endswith(ending)
    assert created == {"code": code, "prefilled_message": "Hi, hats?", "deep_link_url": f"https://wa.me/message/{code}"}


async def test_codes_are_listed_newest_first_on_pages_also_after_a_restart(slow: Bench, clock: ManualClock) -> None:
    first = await create(slow, "One")
    clock.advance(ms=1000)
    second = await create(slow, "Two")
    await slow.restart()

    page = await slow.graph("GET", f"{CODES}?limit=1")
    after = page.body["paging"]["cursors"]["after"]

    assert page.body["data"] == [second]
    assert await codes_of(slow, f"?limit=1&after={after}") == [first]
    assert await codes_of(slow) == [second, first]
    assert await codes_of(slow, f"?code={first['code']}") == [first]


async def test_requested_fields_are_added_to_those_that_are_always_shown(slow: Bench) -> None:
    created = await create(slow)
    path = f"{CODES}/{created['code']}"

    shown = await slow.graph("GET", path)
    more = await slow.graph("GET", f"{path}?fields=code,creation_time,qr_image_url.format(SVG)")

    [with_image] = more.body["data"]
    assert shown.body["data"] == [created]
    assert with_image.pop("qr_image_url").endswith(".svg")
    assert with_image == {**created, "creation_time": slow.clock.now_ms() // 1000}


@pytest.mark.parametrize("names_code_in_path", [True, False])
async def test_changed_message_keeps_code_and_link(bench: Bench, names_code_in_path: bool) -> None:
    created = await create(bench)
    code = created["code"]
    changes = {"prefilled_message": "Caps?"}

    if names_code_in_path:
        changed = await bench.graph("POST", f"{CODES}/{code}", json=changes)
    else:
        changed = await bench.graph("POST", CODES, json={"code": code, **changes})

    assert changed.body == {**created, **changes}
    assert await codes_of(bench) == [changed.body]


async def test_deleted_code_is_gone(bench: Bench) -> None:
    created = await create(bench)
    kept = await create(bench, "Kept")

    deleted = await bench.graph("DELETE", f"{CODES}/{created['code']}")

    assert deleted.body == {"success": True}
    assert await codes_of(bench) == [kept]
    assert await codes_of(bench, f"/{created['code']}") == []
    assert error_of(await bench.graph("DELETE", f"{CODES}/{created['code']}")) == (400, 100)


async def test_code_of_another_number_is_unknown(bench: Bench) -> None:
    created = await create(bench)
    other = {"waba_id": "1000000000000001", "phone_number": "15550001119", "name": "Two"}
    await bench.control("PUT", "numbers/2000000000000009", other)
    path = f"2000000000000009/message_qrdls/{created['code']}"

    shown = await bench.graph("GET", path)
    changed = await bench.graph("POST", path, json={"prefilled_message": "Caps?"})
    deleted = await bench.graph("DELETE", path)

    assert shown.body == {"data": []}
    assert (error_of(changed), error_of(deleted)) == ((400, 100), (400, 100))
    assert await codes_of(bench) == [created]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prefilled_message": " "},
        {"prefilled_message": 7},
        {"prefilled_message": "x" * 141},
        {"prefilled_message": "x", "generate_qr_image": "GIF"},
        {"prefilled_message": "x", "generate_qr_image": ["SVG"]},
        {"prefilled_message": "x", "code": "UNKNOWN1234561"},
    ],
    ids=str,
)
async def test_invalid_code_is_rejected(bench: Bench, body: dict[str, Any]) -> None:
    assert error_of(await bench.graph("POST", CODES, json=body)) == (400, 100)
    assert await codes_of(bench) == []


@pytest.mark.parametrize("field", ["qr_image_url", "qr_image_url.format(GIF)", "id"])
async def test_unknown_field_of_a_code_is_rejected(bench: Bench, field: str) -> None:
    assert error_of(await bench.graph("GET", f"{CODES}?fields={field}")) == (400, 100)


async def test_number_has_at_most_2000_codes(bench: Bench) -> None:
    created = [await create(bench, "x" * 140) for _ in range(2000)]

    refused = await bench.graph("POST", CODES, json={"prefilled_message": "x"})
    await bench.graph("DELETE", f"{CODES}/{created[0]['code']}")

    assert error_of(refused) == (400, 100)
    assert len({code["code"] for code in created}) == 2000
    await create(bench)
