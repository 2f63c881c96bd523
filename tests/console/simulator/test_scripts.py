"""Scripts of phones and fleets as forms: rows, their JSON, and errors at a step."""

import json
from typing import Any, Final

import pytest
from playwright.async_api import Page

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from waypost.assembly.dev import demo
from waypost.console.simulator.scripts import SCRIPT_PRESETS, describe_step, format_rows, parse_rows
from waypost.simulator.serving.declarations import declare_steps

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

ANN = demo.DESTINATION
PAGE = f"/phones/{ANN}/script"
FIELD_COLUMNS: Final = """(step) => [...step.querySelectorAll(".field")].filter((one) => one.checkVisibility())
  .map((one) => Math.round(one.getBoundingClientRect().left))"""


async def read_script(console: ConsoleClient) -> list[dict[str, Any]]:
    return (await console.control.json("GET", f"/control/phones/{ANN}?limit=0"))["script"]


async def test_every_step_is_the_same_after_the_form() -> None:
    steps = [step for preset in SCRIPT_PRESETS for step in preset.steps] + [
        {"on": "template", "do": "tap", "text": "Yes please", "index": 1, "card": 2, "times": 3},
        {"on": "form", "do": "respond", "after_ms": 1500, "response": {"name": "Ann", "guests": 4}},
        {"on": "session", "do": "react", "text": "❤️", "probability": 0.25},
    ]

    declared = declare_steps()

    returned = parse_rows(format_rows(steps, declared), declared)

    assert [{**step, "after_ms": step.get("after_ms", 0)} for step in returned] == [
        {**step, "after_ms": step.get("after_ms", 0)} for step in steps
    ]
    assert describe_step(steps[-3], declared) == (
        "When a template arrives, tap a button (text Yes please, index 1, card 2), at most 3 times."
    )


async def test_script_is_written_edited_and_removed_as_a_form(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(f"/phones?show={ANN}")
    page = tab.page
    await page.get_by_role("button", name="Details and settings").click()
    await page.get_by_role("link", name="Write a script").click()

    await page.get_by_role("button", name="Add step").click()
    await page.get_by_role("button", name="Add step").click()
    await _step(page, 2).get_by_label("When").select_option("a message with a button arrives")
    await _step(page, 2).get_by_label("Then").select_option("tap a button")
    await _step(page, 2).get_by_label("Button index, from 0").fill("0")
    await _step(page, 2).get_by_label("After, in seconds").fill("0.5")
    assert await _step(page, 1).get_by_label("Button index, from 0").is_hidden()
    columns = [set(await _step(page, n).evaluate(FIELD_COLUMNS)) for n in (1, 2)]
    assert columns[0] < columns[1]  # the fields of all steps are in the same five columns
    assert len(columns[1]) == 5
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/phones?show=*")
    written = await read_script(console)

    await tab.go(PAGE)
    await page.get_by_role("button", name="Remove step 1").click()
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/phones?show=*")
    edited = await read_script(console)

    await tab.go(PAGE)
    await page.get_by_role("button", name="Remove step 1").click()
    await page.get_by_text("No steps: the phone only receives.").wait_for()
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/phones?show=*")

    assert written == [
        {"on": "message", "do": "read", "after_ms": 1000},
        {"on": "button", "do": "tap", "after_ms": 500, "index": 0},
    ]
    assert edited == written[1:]
    assert await read_script(console) == []


def _step(page: Page, number: int) -> Any:
    return page.get_by_role("group", name=f"Step {number}", exact=True)


async def test_imported_json_becomes_rows_and_is_saved_only_with_save(tabs: Tabs, console: ConsoleClient) -> None:
    steps = [{"on": "session", "do": "reply", "text": "Thank you", "after_ms": [2000, 9000], "probability": 0.2}]
    tab = await tabs(PAGE)
    page = tab.page

    await page.get_by_text("As JSON").click()
    await page.get_by_label("Steps, as the control API").fill(json.dumps(steps))
    await page.get_by_role("button", name="Replace the steps by this JSON").click()
    assert await _step(page, 1).get_by_label("Text", exact=True).input_value() == "Thank you"
    before = await read_script(console)
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/phones?show=*")

    assert before == []
    assert await read_script(console) == steps


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"step-0-on": "message", "step-0-do": "dance"}, "Step 1: “Then” is not valid."),
        ({"step-0-times": "3"}, "Step 1: “When” is not valid."),
        ({"step-0-on": "message", "step-0-do": "reply"}, "Step 1: “Text, label or emoji” is not valid."),
        ({"step-0-on": "message", "step-0-do": "read", "step-0-from_s": "soon"}, "is not a number of seconds"),
        ({"step-0-on": "form", "step-0-do": "respond", "step-0-respond-response": "{"}, "is not valid JSON"),
        ({"edit": "import", "json": "[{"}, "The script is not valid JSON"),
        ({"edit": "import", "json": "{}"}, "The script is not a list."),
        ({"edit": "import", "json": '[{"on": "message", "do": "read", "text": "x"}]'}, "text does not go with read"),
        ({"edit": "import", "json": '[{"on": "message", "do": "reply", "text": "\\ud800"}]'}, "not valid JSON"),
        ({"edit": "import", "json": "[" * 5000}, "nested too deeply"),
        ({"edit": "import", "json": f"[{'9' * 4500}]"}, ""),
        ({"edit": "import", "json": f'[{{"on": "message", "do": "read", "times": {"9" * 4500}}}]'}, ""),
    ],
)
async def test_invalid_script_is_explained_and_not_saved(
    console: ConsoleClient, fields: dict[str, str], error: str
) -> None:
    body = {"csrf": await console.csrf(), **fields}

    async with console.http.post(console.base_url + PAGE, data=body) as response:
        page = await response.text()

    assert response.status == 400 if error else response.status in (200, 400)
    assert error in page
    assert await read_script(console) == []


async def test_fleet_gets_a_script_of_its_own_from_the_rows(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/simulator/fleets")
    page = tab.page
    assert await _step(page, 1).is_hidden()
    await page.get_by_role("radio", name="Custom script").check()
    for _ in range(2):
        await page.get_by_role("button", name="Remove step 1").click()
    await _step(page, 1).get_by_label("Text", exact=True).fill("Danke")
    assert await page.get_by_role("radio", name="Custom script").is_checked()
    await page.get_by_role("button", name="Create", exact=True).click()
    await page.get_by_text("reply with a text (text Danke) after 2 to 9 s, with probability 0.2.").wait_for()

    [fleet] = (await console.control.json("GET", "/control/fleets"))["fleets"]

    assert [step["text"] for step in fleet["script"]] == ["Danke"]
