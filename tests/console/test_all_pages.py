"""Every page of the route table loads at every width, in both themes, without external requests."""

import re
from typing import Any, Final

import pytest
from playwright.async_api import ViewportSize

from docs.make_screenshots import ELSEWHERE, FOLDER, NAMES, THEMES
from tests.console.conftest import LOOP, Tab, Tabs
from tests.console.support.addresses import NoSample, addresses, fill_path, format_problems, list_routes
from tests.console.support.scene import Scene
from waypost.console.route import RouteKind

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NARROW: Final = 360
WIDE: Final = 1440
WIDEST: Final = 2560
WIDEST_PAGES: Final = (  # pages with several columns
    "/apps/{app_id}", "/phones", "/apps/{app_id}/messages", "/apps/{app_id}/templates",
    "/apps/{app_id}/templates/new", "/simulator/faults",
)  # fmt: skip
RELATIVE_SINCE: Final = re.compile(r"\b(?:since|until)\s*<time[^>]*data-at-ms[^>]*>")
INSPECT: Final = """async () => {
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
    brokenImages: [...document.images].filter((one) => one.complete && !one.naturalWidth).map((one) => one.src),
  };
}"""


async def test_scene_has_a_value_for_every_path_parameter(scene: Scene) -> None:
    missing: list[str] = []

    for row in list_routes(*RouteKind):
        try:
            fill_path(row, scene.values)
        except NoSample as error:
            missing.append(str(error))

    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(("theme", "width", "then_width"), [("light", WIDE, NARROW), ("dark", NARROW, WIDE)])
async def test_every_page_is_complete(scene: Scene, scene_tabs: Tabs, theme: str, width: int, then_width: int) -> None:
    """No console error, no external request, no horizontal scrolling; a title, one heading, named links.

    Each page is loaded at one width and resized to the other, so that each theme is checked at both.
    """
    signed_out = await scene_tabs("/sign-in", width=width, theme=theme, signed_in=False)
    problems = await _check_page(signed_out, "/sign-in", width, then_width)
    tab = await scene_tabs("/", width=width, theme=theme)
    pages = addresses(scene.values, RouteKind.PAGE)

    for address in pages:
        problems += await _check_page(tab, address.path, width, then_width)

    if width == WIDE:
        for address in pages:
            if address.row.path in WIDEST_PAGES:
                problems += await _check_page(tab, address.path, WIDEST)
    assert not problems, format_problems(problems)


async def test_every_page_has_its_screenshot_in_the_docs() -> None:
    pages = [row.path for row in list_routes(RouteKind.PAGE) if row.path not in ELSEWHERE]

    missing = [path for path in pages if path not in NAMES]
    files = {f"{NAMES[path][0]}-{theme}.png" for path in pages if path in NAMES for theme in THEMES}

    assert missing == []
    assert files <= {file.name for file in FOLDER.glob("*.png")}


async def _check_page(tab: Tab, path: str, *widths: int) -> list[tuple[str, str]]:
    """Return the problems of a page: loaded at the first width, and resized to the others."""
    problems: list[str] = []
    await tab.page.set_viewport_size(_viewport(widths[0]))
    response = await tab.page.goto(tab.console.base_url + path, wait_until="load")
    if response is None or response.status != 200:
        problems.append(f"returns {response and response.status}")
    for width in widths:
        await tab.page.set_viewport_size(_viewport(width))
        problems += [f"at {width} {problem}" for problem in _list_problems(await tab.page.evaluate(INSPECT))]
    problems += [f"has an error: {error}" for error in tab.errors]
    problems += [f"sends an external request: {url}" for url in tab.external_requests]
    tab.errors.clear()
    tab.external_requests.clear()
    return [(path, problem) for problem in problems]


def _viewport(width: int) -> ViewportSize:
    return {"width": width, "height": 1300 if width == WIDEST else 900}


def _list_problems(inspected: dict[str, Any]) -> list[str]:
    problems: list[str] = []
    if not inspected["title"].removesuffix("· Waypost").strip():
        problems.append("has no title")
    if inspected["headings"] != 1:
        problems.append(f"has {inspected['headings']} headings of level 1")
    if inspected["sideways"]:
        problems.append(f"scrolls horizontally: {inspected['sideways']}")
    problems += [f"has an unnamed control: {control}" for control in inspected["nameless"]]
    problems += [f"has the id {element_id} more than once" for element_id in inspected["twice"]]
    problems += [f"shows a broken image: {image}" for image in inspected["brokenImages"]]
    return problems


async def test_no_page_writes_since_or_until_before_a_relative_time(scene: Scene) -> None:
    """`since 5 min ago` and `until in 5 min` are wrong: what lasts has a time of day."""
    wrong: list[tuple[str, str]] = []
    for address in addresses(scene.values, RouteKind.PAGE):
        page = await scene.console.get(address.path)
        wrong += [(address.path, found) for found in RELATIVE_SINCE.findall(page)]

    assert not wrong, format_problems(wrong)
