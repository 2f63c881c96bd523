"""On a phone: tabs are one line, filters fold, and the button of a long form stays in sight."""

import pytest
from playwright.async_api import expect

from tests.console.conftest import LOOP, Tabs
from tests.console.support.addresses import fill_path, format_problems, list_routes
from tests.console.support.scene import Scene
from waypost.console.route import RouteKind

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

LISTS = (  # path, and its rows
    ("/apps/{app_id}/messages", ".msg-list > div"),
    ("/apps/{app_id}/messages/received", ".msg-list > div"),
    ("/apps/{app_id}/conversations", ".msg-list > div"),
    ("/requests", ".msg-list > div"),
    ("/apps/{app_id}/callbacks/deliveries", ".msg-list > div"),
    ("/apps/{app_id}/templates", ".gallery li"),
    ("/settings/audit", ".msg-list > div"),
)
FIRST_SCREEN = 440
"""Pixels: half of a small phone's screen, so that some rows are in it."""
LONG_FORMS = (
    "/apps/{app_id}/templates/new",
    "/apps/{app_id}/callbacks/new",
    "/simulator/rules",
    "/simulator/faults/new/call/error",
    "/phones/15550002001/script?preset=customers",
)
COVERED = """() => {
  const LINE = 40, bar = document.querySelector(".submit-bar"), form = bar.closest("form");
  const fields = [...form.querySelectorAll("input:not([type=hidden]), select, textarea, button:not(.hidden), summary")];
  return fields.filter((field) => !bar.contains(field) && field.checkVisibility() && !field.disabled).filter((field) => {
    field.focus();
    const { top, bottom } = field.getBoundingClientRect();
    return top < 0 || Math.min(bottom, top + LINE) > bar.getBoundingClientRect().top;
  }).map((field) => field.id || field.name || field.textContent);
}"""
"""The fields whose first line the bar of a long form covers while they have the focus."""
OVERLAPS = """() => {
  const cards = [...document.querySelectorAll("main :is(.card, .list, h1, h2)")].filter((one) => one.checkVisibility());
  const boxes = cards.map((one) => [one, one.getBoundingClientRect()]);
  const isApart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  return boxes.flatMap(([one, box], at) => boxes.slice(at + 1)
    .filter(([other, its]) => !one.contains(other) && !other.contains(one) && !isApart(box, its))
    .map(([other]) => `${one.textContent.trim().slice(0, 30)} and ${other.textContent.trim().slice(0, 30)}`));
}"""
TAB_LINES = """() => new Set([...document.querySelectorAll('.tabs a')].map((tab) => tab.offsetTop)).size"""


@pytest.mark.parametrize(("path", "rows"), LISTS)
async def test_list_begins_in_the_first_screen_of_a_phone(scene: Scene, scene_tabs: Tabs, path: str, rows: str) -> None:
    tab = await scene_tabs(path.format(**scene.values), width=390, height=844)
    page = tab.page

    box = await page.locator(rows).first.bounding_box()

    assert box is not None
    assert box["y"] < FIRST_SCREEN
    assert await page.evaluate(TAB_LINES) <= 1
    current = page.locator(".tabs [aria-current]")
    if await current.count():
        await expect(current).to_be_in_viewport(ratio=0.95)


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("path", LONG_FORMS)
async def test_bar_of_a_long_form_stays_in_sight_and_covers_no_focus(
    scene: Scene, scene_tabs: Tabs, path: str, width: int
) -> None:
    tab = await scene_tabs(path.format(**scene.values), width=width, height=844)

    await expect(tab.page.locator(".submit-bar .primary")).to_be_in_viewport(ratio=0.9)
    assert await tab.page.evaluate(COVERED) == []


async def test_no_card_lies_over_another(scene: Scene, scene_tabs: Tabs) -> None:
    tab = await scene_tabs("/", width=390, height=844)
    overlaps: list[tuple[str, str]] = []
    for row in list_routes(RouteKind.PAGE):
        path = fill_path(row, scene.values)
        await tab.go(path)
        for width in (390, 800, 1440):
            await tab.page.set_viewport_size({"width": width, "height": 844})
            overlaps += [(f"{path} {width}", text) for text in await tab.page.evaluate(OVERLAPS)]

    assert not overlaps, format_problems(overlaps)


async def test_filters_unfold_with_the_keyboard(scene: Scene, scene_tabs: Tabs) -> None:
    tab = await scene_tabs("/requests", width=390, height=844)
    status = tab.page.get_by_label("Status")
    await expect(status).to_be_hidden()

    await tab.page.get_by_role("checkbox", name="Filters").focus()
    await tab.page.keyboard.press("Space")
    await status.select_option("4xx")
    await tab.page.get_by_role("button", name="Search", exact=True).click()

    await tab.page.wait_for_url("**status=4xx**")
    await expect(tab.page.get_by_text("Filters(set)")).to_be_visible()
