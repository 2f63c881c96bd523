"""Whoever cannot see a page well, or has no mouse, can use it: axe finds nothing on any page, in both themes."""

from importlib import resources
from typing import Any, Final

import pytest

from tests.console.conftest import LOOP, Tab, Tabs
from tests.console.support.addresses import addresses, told
from tests.console.support.scene import Scene
from waypost.console.route import RouteKind

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

AXE: Final = resources.files("axe_playwright_python") / "axe.min.js"
ALL: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OF_COLOURS: Final = ["color-contrast", "link-in-text-block"]  # what another theme may change
OF_ROOM: Final = [  # what another width may change: other things are shown, smaller ones
    "button-name", "color-contrast", "label", "link-name", "page-has-heading-one", "scrollable-region-focusable",
    "summary-name", "target-size",
]  # fmt: skip
LOOKS: Final[tuple[tuple[Any, int, dict[str, Any]], ...]] = (  # theme, width, what is looked at
    ("light", 1440, {"type": "tag", "values": ALL}),
    ("dark", 1440, {"type": "rule", "values": OF_COLOURS}),
    ("light", 360, {"type": "rule", "values": OF_ROOM}),
)
LOOK: Final = """async (runOnly) => {
  await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));  // colours have changed
  const found = await axe.run(document, { runOnly, resultTypes: ["violations"] });
  return found.violations.map((one) => ({
    rule: one.id, help: one.help,
    where: one.nodes.slice(0, 4).map((node) => `${node.target.join(" ")} ${node.html.slice(0, 160)} ${node.any.map((any) => any.message).join("; ").slice(0, 160)}`),
  }));
}"""


async def test_axe_finds_nothing_on_any_page_in_either_theme(scene: Scene, scene_tabs: Tabs) -> None:
    tab = await scene_tabs("/")
    stranger = await scene_tabs("/sign-in", signed_in=False)
    for one in (tab, stranger):  # once: it is large, and pages let no script in
        await one.page.add_init_script(path=str(AXE))

    complaints = await _complaints(stranger, "/sign-in")
    for address in addresses(scene.values, RouteKind.PAGE):
        complaints += await _complaints(tab, address.path)

    assert not complaints, told(complaints)


async def _complaints(tab: Tab, path: str) -> list[tuple[str, str]]:
    """What axe says of one page: loaded once, looked at in light and dark, and narrow in light."""
    page = tab.page
    complaints: list[tuple[str, str]] = []
    for theme, width, only in LOOKS:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        await page.set_viewport_size({"width": width, "height": 900})
        if (theme, width) == LOOKS[0][:2]:
            await tab.go(path)
        for one in await page.evaluate(LOOK, only):
            where = "".join(f"\n      {node}" for node in one["where"])
            complaints.append((f"{path} {theme} {width}", f"{one['rule']}: {one['help']}{where}"))
    return complaints
