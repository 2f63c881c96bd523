"""Two input methods: a pointer, and the keyboard alone."""

from contextlib import suppress
from typing import Final, Protocol

from playwright.async_api import Locator, Page, expect
from playwright.async_api import TimeoutError as PlaywrightTimeout

MAX_TABS: Final = 150
"""Presses of Tab after which a control of a page counts as unreachable."""
MAX_SHORTCUT_ATTEMPTS: Final = 12
"""Attempts at a shortcut: on a stalled machine, its two keys may count as two single keys."""
SHORTCUT_MS: Final = 10_000
"""Time for a page to react to a shortcut before the next attempt."""


class InputMethod(Protocol):
    """A way to use a page."""

    async def press(self, locator: Locator) -> None:
        """Press a button, or follow a link."""
        ...

    async def write(self, locator: Locator, text: str) -> None:
        """Put a text into a field."""
        ...

    async def go(self, page: Page, page_name: str) -> None:
        """Open a page of the console by its name in the navigation."""
        ...


class Pointer:
    """A mouse, or a finger."""

    async def press(self, locator: Locator) -> None:
        await locator.page.wait_for_load_state()
        await locator.click()

    async def write(self, locator: Locator, text: str) -> None:
        await locator.fill(text)

    async def go(self, page: Page, page_name: str) -> None:
        await page.get_by_role("navigation", name="Pages").get_by_role("link", name=page_name).click()


class Keyboard:
    """The keyboard alone: Tab moves to the control, where the focus must be visible."""

    async def press(self, locator: Locator) -> None:
        await self._focus(locator)
        await locator.page.keyboard.press("Enter")

    async def write(self, locator: Locator, text: str) -> None:
        await self._focus(locator)
        await locator.page.keyboard.press("ControlOrMeta+a")
        await locator.page.keyboard.type(text)

    async def go(self, page: Page, page_name: str) -> None:
        """Press G and the page's letter; they are one shortcut only in quick succession."""
        await page.wait_for_load_state()
        link = page.get_by_role("navigation", name="Pages").get_by_role("link", name=page_name)
        path = await link.get_attribute("href")
        assert path is not None
        for _ in range(MAX_SHORTCUT_ATTEMPTS):
            await page.evaluate("() => document.activeElement?.blur()")
            await page.keyboard.press("g")
            await page.keyboard.press(page_name[0].lower())
            with suppress(PlaywrightTimeout):
                await page.wait_for_url(f"**{path}", timeout=SHORTCUT_MS, wait_until="commit")
                return
        raise AssertionError(f"G {page_name[0]} does not lead to {path}")

    async def _focus(self, locator: Locator) -> None:
        await expect(locator).to_be_visible()
        await locator.page.wait_for_load_state()  # before that, no script handles keys
        for _ in range(MAX_TABS):
            if await locator.evaluate("(one) => one === document.activeElement"):
                outline = await locator.evaluate(
                    "(one) => { const its = getComputedStyle(one); return its.outlineStyle + its.boxShadow }"
                )
                assert outline != "nonenone", f"the focus is not visible on {locator}"
                return
            await locator.page.keyboard.press("Tab")
        raise AssertionError(f"{locator} cannot be reached with Tab")


INPUT_METHODS: Final[dict[str, InputMethod]] = {"pointer": Pointer(), "keyboard": Keyboard()}
"""By name, for tests that are run with each."""
