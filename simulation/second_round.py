"""The second round: everything has healed, each partner sends once more, and nothing may be late or happen twice.

It shows what the faults of the first round have left behind: a lost wake-up, a slot or a pause that was not released, a
circuit that did not close, a job that is in memory twice. The receivers take most of a second for each callback, so that
those that wait for each other take longer than those that do not. A whole round is half of a run: in half of the seeds
it is only one message of each app.
"""

import asyncio
import json
from collections import Counter
from typing import Final

from simulation.accounts import PORTS, SLOW_PER_SECOND, AppAccount, PartnerAccount, Receiver
from simulation.choices import Choices
from simulation.client import call, request
from simulation.observed import Acknowledged, Observed
from simulation.partners import PHONES
from simulation.promises import Promises
from waypost.simulator import Simulator

WITHIN_S: Final = 6.5
"""Four callbacks in a row, two seconds of the slow number's pace, and a second of waiting for a slot."""
RECEIVER_TAKES_S: Final = 0.7
"""Two callbacks to each of five phones, one after the other, take longer than the round may."""
LOOK_EVERY_S: Final = 0.5
NEW_PHONES: Final = tuple(f"1556000010{nth}" for nth in range(2))
SIZES: Final = {"a phone at each app": PHONES[:1], "all phones, and two new ones": (*PHONES, *NEW_PHONES)}


class SecondRound:
    """The messages of the round, and what must be true of them."""

    def __init__(
        self,
        partners: list[PartnerAccount],
        observed: Observed,
        simulator: Simulator,
        promises: Promises,
        choices: Choices,
    ) -> None:
        self._partners, self._observed = partners, observed
        self._simulator, self._promises = simulator, promises
        self._postbacks: dict[str, str] = {}  # of the first button, by message id
        self._phones = SIZES[choices.pick("second round", [*SIZES])]

    async def run(self, receivers: list[Receiver], now_ms: int) -> None:
        """Send, tap, and check; `now_ms` is the service's."""
        before = len(self._observed.exchanges)
        for receiver in receivers:
            receiver.takes_s = RECEIVER_TAKES_S
        await call(self._simulator.application, "PUT", "/control/settings", {"gather_ms": 0})
        await asyncio.gather(
            *(
                self._send(partner, app, to)
                for partner in self._partners
                for app in partner.apps
                for to in (self._phones[: len(PHONES)] if app.per_second <= SLOW_PER_SECOND else self._phones)
            )
        )
        await self._wait_until_done(now_ms, "the messages")
        await asyncio.gather(*(self._tap(phone) for phone in self._phones))
        await self._wait_until_done(now_ms, "the taps")
        for receiver in receivers:
            receiver.takes_s = 0
        bodies: dict[str, bytes] = {}
        counts = Counter[str]()
        for one in self._observed.exchanges[before:]:
            if "waypost-callback-id" in one.headers:
                counts[one.headers["waypost-callback-id"]] += 1
                bodies[one.headers["waypost-callback-id"]] = one.body
        for callback_id, count in counts.items():
            if count > 1:
                self._break(f"callback {callback_id} was sent {count} times although it was received")
        for body in bodies.values():
            self._check_postback(body)

    async def _send(self, partner: PartnerAccount, app: AppAccount, to: str) -> None:
        began_s, name = _now_s(), f"{app.name}-{to}"
        form = {
            "channel": "whatsapp",
            "source": app.source,
            "destination": to,
            "src.name": app.name,
            "template": json.dumps({"id": partner.template_id, "params": ["Ann", "again"]}),
            "postbackTexts": json.dumps([{"index": 0, "text": f"yes-{name}"}, {"index": 1, "text": f"no-{name}"}]),
        }
        headers = {"apikey": partner.api_keys[-1]}
        response = await request(PORTS["service"], "POST", "/wa/api/v1/template/msg", headers, form=form)
        if response is not None and response.status == 200 and response.body is not None:
            message_id = response.body["messageId"]
            self._postbacks[message_id] = f"yes-{name}"
            self._observed.acknowledged.append(Acknowledged(message_id, app.id, to, began_s, _now_s()))

    async def _tap(self, phone: str) -> None:
        await call(self._simulator.application, "POST", f"/control/phones/{phone}/tap", {"index": 0})

    async def _wait_until_done(self, now_ms: int, what: str) -> None:
        began_s = _now_s()
        while _now_s() < began_s + WITHIN_S:
            await asyncio.sleep(LOOK_EVERY_S)
            if await self._promises.check_progress(now_ms):
                return
        self._break(f"in the second round, {what} took longer than {WITHIN_S} s")

    def _check_postback(self, body: bytes) -> None:
        """Each button returns the text that was given for it, not its neighbour's or another message's."""
        members = json.loads(body)
        if members.get("type") != "message":
            return
        expected = self._postbacks.get(members["payload"].get("context", {}).get("gsId", ""))
        returned = members["payload"]["payload"].get("postbackText")
        if expected is not None and returned != expected:
            self._break(f"a tapped button returned {returned!r} and not {expected!r}")

    def _break(self, text: str) -> None:
        self._observed.broken.append(text)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
