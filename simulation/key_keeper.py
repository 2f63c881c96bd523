"""A person who replaces the instance key while traffic flows, as `docs/how-to/replace-the-secret-key.md` says."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from simulation.choices import Choices, declare
from simulation.client import Response
from simulation.service_settings import ServiceSettings

BEGINS_WITHIN_S: Final = 20
ATTEMPTS: Final = 8
AGAIN_AFTER_S: Final = 3
TOKENS: Final = ("keep", "renew")
_KIND: Final = "instance key is replaced"

declare({_KIND: "the administrator replaced the instance key"})


class KeyKeeper:
    """The person.

    Args:
        call: calls the admin API with method, path and body.
        restart_each: restarts all processes, one after the other.
    """

    def __init__(
        self,
        call: Callable[[str, str, Any], Awaitable[Response | None]],
        settings: ServiceSettings,
        choices: Choices,
        restart_each: Callable[[], Awaitable[None]],
    ) -> None:
        self._call, self._settings, self._choices, self._restart_each = call, settings, choices, restart_each

    async def work(self) -> None:
        """Replace the key once, if the seed says so. A replacement that fails leaves both keys in the settings."""
        await asyncio.sleep(self._choices.between("key is kept for", 0.1, BEGINS_WITHIN_S))
        if not self._choices.happens(_KIND, 0.25):
            return
        tokens = self._choices.pick("app tokens", TOKENS, of=_KIND)
        self._settings.begin_replacement()
        await self._restart_each()
        for _ in range(ATTEMPTS):
            response = await self._call("POST", "/admin/secret/rotate", {"app_tokens": tokens})
            if response is not None and response.status == 200:
                self._settings.end_replacement()
                await self._restart_each()
                return
            await asyncio.sleep(AGAIN_AFTER_S)
