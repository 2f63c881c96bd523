"""Every page of the route table: it loads at every width and in both themes, and asks for nothing elsewhere."""

from typing import Any, Final

import pytest
from playwright.async_api import ViewportSize

from docs.make_screenshots import ELSEWHERE, FOLDER, NAMES, THEMES
from tests.console.conftest import LOOP, Tab, Tabs
from tests.console.support.addresses import NoSample, addresses, filled, rows, told
from tests.console.support.scene import Scene
from waypost.console.route import RouteKind

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NARROW: Final = 360
WIDE: Final = 1440
WIDEST: Final = 2560
ON_THE_WIDEST: Final = (  # where much stands side by side
    "/apps/{app_id}", "/phones", "/apps/{app_id}/messages", "/apps/{app_id}/templates",
    "/apps/{app_id}/templates/new", "/simulator/faults",
)  # fmt: skip
LOOK: Final = """async () => {
  await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));  // it has its size
  const shown = (one) => one.checkVisibility();
  const name = (one) => (one.getAttribute("aria-label") ?? "") + one.textContent + (one.title ?? "")
    + [...one.querySelectorAll("img")].map((image) => image.alt).join("");
  const nameless = [...document.querySelectorAll("a[href], button")].filter(shown)
    .filter((one) => !name(one).trim()).map((one) => one.outerHTML.slice(0, 200));
  const room = document.documentElement;
  const wide = [...document.querySelectorAll("body *")].filter(shown)
    .filter((one) => one.getBoundingClientRect().right > room.clientWidth + 1)
    .map((one) => `${one.tagName} ${one.id} ${one.className}`).slice(0, 5);
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  return {
    title: document.title, nameless,
    headings: document.querySelectorAll("h1").length,
    sideways: room.scrollWidth > room.clientWidth ? [room.scrollWidth, room.clientWidth, ...wide] : null,
    twice: [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))],
    unanswered: [...document.images].filter((one) => one.complete && !one.naturalWidth).map((one) => one.src),
  };
}"""


async def test_scene_names_whatever_a_path_of_the_route_table_asks_for(scene: Scene) -> None:
    missing: list[str] = []

    for row in rows(*RouteKind):
        try:
            filled(row, scene.values)
        except NoSample as none:
            missing.append(str(none))

    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(("theme", "width", "then_width"), [("light", WIDE, NARROW), ("dark", NARROW, WIDE)])
async def test_every_page_is_whole(scene: Scene, scene_tabs: Tabs, theme: str, width: int, then_width: int) -> None:
    """No error in the browser's console, no request elsewhere, no scrolling sideways; a title, one heading, named links.

    Each page is loaded at one width and drawn to the other one, so that each theme is looked at in both.
    """
    stranger = await scene_tabs("/sign-in", width=width, theme=theme, signed_in=False)
    complaints = await _complaints(stranger, "/sign-in", width, then_width)
    tab = await scene_tabs("/", width=width, theme=theme)
    walked = addresses(scene.values, RouteKind.PAGE)

    for address in walked:
        complaints += await _complaints(tab, address.path, width, then_width)

    if width == WIDE:
        for address in walked:
            if address.row.path in ON_THE_WIDEST:
                complaints += await _complaints(tab, address.path, WIDEST)
    assert not complaints, told(complaints)


async def test_every_page_has_its_picture_in_the_docs() -> None:
    pages = [row.path for row in rows(RouteKind.PAGE) if row.path not in ELSEWHERE]

    missing = [path for path in pages if path not in NAMES]
    files = {f"{NAMES[path][0]}-{theme}.png" for path in pages if path in NAMES for theme in THEMES}

    assert missing == []
    assert files <= {file.name for file in FOLDER.glob("*.png")}


async def _complaints(tab: Tab, path: str, *widths: int) -> list[tuple[str, str]]:
    """What is wrong with one page: loaded at the first width, and drawn to the others."""
    wrong: list[str] = []
    await tab.page.set_viewport_size(_room(widths[0]))
    answer = await tab.page.goto(tab.desk.base_url + path, wait_until="load")
    if answer is None or answer.status != 200:
        wrong.append(f"answers {answer and answer.status}")
    for width in widths:
        await tab.page.set_viewport_size(_room(width))
        wrong += [f"at {width} {one}" for one in _found(await tab.page.evaluate(LOOK))]
    wrong += [f"has an error: {one}" for one in tab.wrong]
    wrong += [f"asks elsewhere: {one}" for one in tab.elsewhere]
    tab.wrong.clear()
    tab.elsewhere.clear()
    return [(path, one) for one in wrong]


def _room(width: int) -> ViewportSize:
    return {"width": width, "height": 1300 if width == WIDEST else 900}


def _found(look: dict[str, Any]) -> list[str]:
    wrong: list[str] = []
    if not look["title"].removesuffix("· Waypost").strip():
        wrong.append("has no title")
    if look["headings"] != 1:
        wrong.append(f"has {look['headings']} headings of the first rank")
    if look["sideways"]:
        wrong.append(f"scrolls sideways: {look['sideways']}")
    wrong += [f"has an unnamed control: {one}" for one in look["nameless"]]
    wrong += [f"has the id {one} more than once" for one in look["twice"]]
    wrong += [f"shows a picture that is none: {one}" for one in look["unanswered"]]
    return wrong
