"""Accessibility: axe finds no violation on any page, wide and narrow, in both themes."""

from importlib import resources
from typing import Any, Final

import pytest

from tests.console.conftest import LOOP, Tab, Tabs
from tests.console.support.addresses import addresses, format_problems
from tests.console.support.scene import Scene
from waypost.console.route import RouteKind

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

AXE: Final = resources.files("axe_playwright_python") / "axe.min.js"
AXE_TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOUR_RULES: Final = ["color-contrast", "link-in-text-block"]  # what another theme may change
ALL: Final = {"type": "tag", "values": AXE_TAGS}
COLOURS: Final = {"type": "rule", "values": COLOUR_RULES}
VARIANTS: Final[tuple[tuple[Any, int, dict[str, Any]], ...]] = (  # theme, width, rules
    ("light", 1440, ALL),
    ("light", 390, COLOURS),
    ("dark", 390, ALL),
    ("dark", 1440, COLOURS),
)
RUN_AXE: Final = """async ([runOnly, isOnlyAfterResize]) => {
  await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));  // colours have changed
  // What a bar at the bottom covers comes into sight with the focus: test_narrow_lists.py checks it.
  const still = new CSSStyleSheet();
  still.replaceSync(".submit-bar, .try-send { position: static !important; }");
  document.adoptedStyleSheets = [still];
  const look = (one) => {
    const style = getComputedStyle(one);
    return [one.checkVisibility(), style.color, style.backgroundColor, style.backgroundImage, style.opacity].join();
  };
  const before = window.looks;
  window.looks = new Map([...document.querySelectorAll("body, body *")].map((one) => [one, look(one)]));
  const include = isOnlyAfterResize
    ? [...window.looks].filter(([one, now]) => one.checkVisibility() && before.get(one) !== now).map(([one]) => one)
    : [document.documentElement];
  if (!include.length) return [];
  const found = await axe.run({ include }, { runOnly, resultTypes: ["violations"], preload: { assets: ["media"] } });
  return found.violations.map((one) => ({
    rule: one.id, help: one.help,
    where: one.nodes.slice(0, 4).map((node) => `${node.target.join(" ")} ${node.html.slice(0, 160)} ${node.any.map((any) => any.message).join("; ").slice(0, 160)}`),
  }));
}"""


async def test_no_page_has_an_axe_violation_at_any_width_in_either_theme(scene: Scene, scene_tabs: Tabs) -> None:
    tab = await scene_tabs("/")
    signed_out = await scene_tabs("/sign-in", signed_in=False)
    for each_tab in (tab, signed_out):  # before the page loads, whose policy allows no other scripts
        await each_tab.page.add_init_script(path=str(AXE))

    violations = await _find_violations(signed_out, "/sign-in")
    for address in addresses(scene.values, RouteKind.PAGE):
        violations += await _find_violations(tab, address.path)

    assert not violations, format_problems(violations)


async def _find_violations(tab: Tab, path: str) -> list[tuple[str, str]]:
    """Return the axe violations of a page: loaded once, checked wide and narrow, in both themes.

    All rules run on the wide page in one theme and on the narrow one in the other. In between, the colours of those
    elements are checked that the other width shows or colours otherwise: checking all of them took a third of the time.
    """
    page = tab.page
    violations: list[tuple[str, str]] = []
    for theme, width, rules in VARIANTS:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        await page.set_viewport_size({"width": width, "height": 900})
        if (theme, width) == VARIANTS[0][:2]:
            await tab.go(path)
        for violation in await page.evaluate(RUN_AXE, [rules, rules is COLOURS]):
            nodes = "".join(f"\n      {node}" for node in violation["where"])
            violations.append((f"{path} {theme} {width}", f"{violation['rule']}: {violation['help']}{nodes}"))
    return violations
