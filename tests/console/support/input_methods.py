"""Two ways to use a page: with a pointer, and with nothing but the keyboard."""

from contextlib import suppress
from typing import Final, Protocol

from playwright.async_api import Locator, Page, expect
from playwright.async_api import TimeoutError as WaitedTooLong

MOST_TABS: Final = 150
"""So many presses of Tab lead to any control of a page, or it cannot be reached."""
MOST_SHORTCUTS: Final = 12
"""So often a shortcut is typed again: a machine that stands still between its two keys makes it two single keys."""
SHORTCUT_MS: Final = 10_000
"""How long a page may take to answer a shortcut before it is typed again."""


class Hands(Protocol):
    """How somebody uses a page."""

    async def press(self, what: Locator) -> None:
        """Press a button, or follow a link."""
        ...

    async def write(self, what: Locator, text: str) -> None:
        """Put a text into a field."""
        ...

    async def go(self, page: Page, place: str) -> None:
        """Go to one of the console's pages, by its name in the navigation."""
        ...


class Pointer:
    """A mouse, or a finger."""

    async def press(self, what: Locator) -> None:
        await what.page.wait_for_load_state()
        await what.click()

    async def write(self, what: Locator, text: str) -> None:
        await what.fill(text)

    async def go(self, page: Page, place: str) -> None:
        await page.get_by_role("navigation", name="Pages").get_by_role("link", name=place).click()


class Keys:
    """The keyboard alone: Tab leads to what is meant, and the focus is seen there."""

    async def press(self, what: Locator) -> None:
        await self._reach(what)
        await what.page.keyboard.press("Enter")

    async def write(self, what: Locator, text: str) -> None:
        await self._reach(what)
        await what.page.keyboard.press("ControlOrMeta+a")
        await what.page.keyboard.type(text)

    async def go(self, page: Page, place: str) -> None:
        """By G and the page's letter: the two count as one shortcut only if they follow each other soon enough."""
        await page.wait_for_load_state()
        link = page.get_by_role("navigation", name="Pages").get_by_role("link", name=place)
        path = await link.get_attribute("href")
        assert path is not None
        for _ in range(MOST_SHORTCUTS):
            await page.evaluate("() => document.activeElement?.blur()")
            await page.keyboard.press("g")
            await page.keyboard.press(place[0].lower())
            with suppress(WaitedTooLong):
                await page.wait_for_url(f"**{path}", timeout=SHORTCUT_MS, wait_until="commit")
                return
        raise AssertionError(f"G {place[0]} does not lead to {path}")

    async def _reach(self, what: Locator) -> None:
        await expect(what).to_be_visible()
        await what.page.wait_for_load_state()  # before that, no script hears a key
        for _ in range(MOST_TABS):
            if await what.evaluate("(one) => one === document.activeElement"):
                outline = await what.evaluate(
                    "(one) => { const its = getComputedStyle(one); return its.outlineStyle + its.boxShadow }"
                )
                assert outline != "nonenone", f"the focus is not seen on {what}"
                return
            await what.page.keyboard.press("Tab")
        raise AssertionError(f"{what} cannot be reached with Tab")
