"""The people with phones, and the people at the operator who review templates: through the control API."""

import asyncio
from typing import Any, Final

from simulation.accounts import PartnerAccount
from simulation.choices import Choices, declare
from simulation.client import Response, call
from simulation.partners import PHONES
from waypost.simulator import Simulator

TURNS: Final = 5
TURN_EVERY_S: Final = 6
_ACTIONS: Final = {  # kind: its words; share of the turns
    "phone writes first": "a phone wrote before it got a message",
    "phone writes": "a phone wrote",
    "phone sends an image": "a phone sent an image",
    "phone taps": "a phone tapped a button",
    "phone reads": "a phone read its chats",
    "phone blocks": "a phone blocked a business for a while",
    "phone reads by itself": "a phone read each message as it came",
    "phone is offline": "a phone was offline for a while",
    "operator pauses a template": "the operator paused a template for a while",
}
JPEG: Final = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////"

declare(_ACTIONS)


class Phone:
    """One phone, and who holds it."""

    def __init__(self, number: str, simulator: Simulator, partners: list[PartnerAccount], choices: Choices) -> None:
        self._number, self._simulator, self._choices = number, simulator, choices
        self._sources = [app.source for partner in partners for app in partner.apps]
        self._name = f"phone {PHONES.index(number) + 1}"

    async def use(self) -> None:
        """Do what people do, in a few turns."""
        happens = self._choices.happens
        if happens("phone reads by itself", 0.5):
            await self._control("PUT", "", {"read_after_ms": 30})
        if happens("phone writes first", 0.4):
            await self._write()
        for _ in range(TURNS):
            await asyncio.sleep(self._choices.between(f"{self._name} pause", 0.1, TURN_EVERY_S))
            if happens("phone writes", 0.3):
                await self._write()
            if happens("phone taps", 0.4):
                index = self._choices.pick("button", (0, 1), of="phone taps")
                await self._control("POST", "/tap", {"index": index})
            if happens("phone reads", 0.3):
                await self._control("POST", "/read", {})
            if happens("phone is offline", 0.1):
                await self._control("PUT", "", {"is_offline": True})
                await asyncio.sleep(self._choices.between("seconds", 1, 10, of="phone is offline"))
                await self._control("PUT", "", {"is_offline": False})
            if happens("phone blocks", 0.1):
                source = self._choices.pick("source", self._sources, of="phone blocks")
                await self._control("POST", "/block", {"to": source, "blocks": True})
                await asyncio.sleep(self._choices.between("seconds", 1, 10, of="phone blocks"))
                await self._control("POST", "/block", {"to": source, "blocks": False})

    async def _write(self) -> None:
        to = self._choices.pick(f"{self._name} writes to", self._sources)
        body: dict[str, Any] = {"to": to, "type": "text", "text": "Where are you?"}
        if self._choices.happens("phone sends an image", 0.2):
            body = {"to": to, "type": "image", "media": {"content": JPEG, "mime_type": "image/jpeg"}}
        await self._control("POST", "/messages", body)

    async def _control(self, method: str, path: str, body: dict[str, Any]) -> Response:
        return await call(self._simulator.application, method, f"/control/phones/{self._number}{path}", body)


class Reviewer:
    """The operator's own people: they pause a template for a while."""

    def __init__(self, simulator: Simulator, choices: Choices) -> None:
        self._simulator, self._choices = simulator, choices

    async def work(self) -> None:
        """Pause templates."""
        await asyncio.sleep(self._choices.between("review pause", 1, 15))
        if self._choices.happens("operator pauses a template", 0.5):
            number = self._choices.pick("template", (1, 2), of="operator pauses a template")
            path = f"/control/templates/100000000000040{number}"
            await call(self._simulator.application, "POST", f"{path}/pause", {})
            await asyncio.sleep(self._choices.between("seconds", 1, 10, of="operator pauses a template"))
            await call(self._simulator.application, "POST", f"{path}/unpause", {})
