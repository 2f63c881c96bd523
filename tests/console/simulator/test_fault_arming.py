"""Faults cannot be armed twice by mistake: presets, forms and JSON show what is armed."""

import asyncio
import json
from typing import Any

import pytest
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from waypost.console.simulator.faults import FAULT_PRESETS

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

THROTTLED = "Every third message throttled"


async def list_faults(console: ConsoleClient) -> list[dict[str, Any]]:
    return (await console.control.json("GET", "/control/faults"))["faults"]


async def test_armed_preset_can_only_be_disarmed(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/simulator/faults")
    other = await tabs("/simulator/faults")
    preset = tab.page.locator("article").filter(has_text=THROTTLED)
    other_preset = other.page.locator("article").filter(has_text=THROTTLED)

    await preset.get_by_role("button", name="Arm").click()
    await expect(preset.get_by_role("button")).to_have_text(["Disarm"])
    await expect(other_preset.get_by_text("armed", exact=True)).to_be_visible()
    await other_preset.get_by_role("button", name="Disarm").click()
    await expect(preset.get_by_role("button", name="Arm", exact=True)).to_be_visible()

    assert await list_faults(console) == []


@pytest.mark.parametrize("key", [preset.key for preset in FAULT_PRESETS])
async def test_every_preset_is_armed_once_however_often_it_is_sent(console: ConsoleClient, key: str) -> None:
    path = f"/simulator/faults/presets/{key}"
    [preset] = [preset for preset in FAULT_PRESETS if preset.key == key]

    await asyncio.gather(*(console.post(path) for _ in range(4)))

    assert len(await list_faults(console)) == len(preset.faults)
    assert f"Already armed: {preset.name}." in await console.get("/simulator/faults")
    await console.post(f"{path}/disarm")
    assert await list_faults(console) == []


async def test_each_break_of_a_signup_is_one_click(console: ConsoleClient, tabs: Tabs) -> None:
    choices = await console.control.json("GET", "/control/onboarding/choices")
    page = (await tabs("/simulator/faults")).page
    rows = page.locator("#signups li")
    assert await rows.count() == len(choices["breaks"])

    for name in choices["breaks"]:
        row = rows.filter(has=page.locator(f"#preset-signup-{name}"))
        await row.get_by_role("button", name="Arm").click()
        await expect(row.get_by_role("button")).to_have_text(["Disarm"])
    await page.get_by_label("Error in the signup window").select_option("2655076")
    await page.get_by_role("button", name="Arm error").click()
    await expect(page.locator("#armed")).to_contain_text("2655076")

    armed = [(fault["what"], fault["when"]) for fault in await list_faults(console)]
    expected = [{"break": name} for name in choices["breaks"]] + [{"window_error": 2655076}]
    assert armed == [(what, {"next": 1}) for what in expected]


async def test_same_form_and_json_are_armed_once(console: ConsoleClient) -> None:
    form = {"what.error": "131000", "call": "messages.send", "when": "every", "when.every": "3", "for_s": "60"}
    fault = {"on": "webhook", "what": {"drop": True}}

    for _ in range(2):
        await console.post("/simulator/faults/new/call/error", form)
        await console.post("/simulator/faults/json", {"json": json.dumps(fault)})
    notice = await console.get("/simulator/faults")
    page = await console.get("/simulator/faults/new/call/error")

    assert len(await list_faults(console)) == 2
    assert "Already armed: Each update is dropped" in notice
    assert "Armed already" in page
    assert "messages.send fails with error 131000" in page


async def test_different_fault_of_the_same_kind_is_armed_too(console: ConsoleClient) -> None:
    for every in ("3", "4"):
        form = {"what.error": "131000", "call": "messages.send", "when": "every", "when.every": every}
        await console.post("/simulator/faults/new/call/error", form)

    assert [fault["when"]["every"] for fault in await list_faults(console)] == [3, 4]
