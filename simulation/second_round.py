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
from simulation.meanwhile import Meanwhile
from simulation.observed import Acknowledged, Observed, SentRequest
from simulation.partners import LONG_TEXT, PHONES, write_postbacks
from simulation.promises import Promises
from simulation.received import lost_template_update, read_webhooks
from simulation.timing import SLOWEST_CLOCK
from waypost.assembly.dev import demo
from waypost.simulator import Simulator

WITHIN_S: Final = 6.5
"""Four callbacks in a row, two seconds of the slow number's pace, and a second of waiting for a slot."""
RECEIVER_TAKES_S: Final = 0.7
"""Two callbacks to each of five phones, one after the other, take longer than the round may."""
LOOK_EVERY_S: Final = 0.5
LATER_EVERY_S: Final = 5
"""Once it takes longer, as it may after some of what is done meanwhile."""
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
        meanwhile: Meanwhile,
    ) -> None:
        self._partners, self._observed = partners, observed
        self._simulator, self._promises = simulator, promises
        self._meanwhile = meanwhile
        phones = SIZES[choices.pick("second round", [*SIZES])]
        self._phones = max(SIZES.values(), key=len) if meanwhile.needs_neighbours else phones

    async def run(self, receivers: list[Receiver], now_ms: int) -> None:
        """Send, tap, and check; `now_ms` is the service's."""
        before = len(self._observed.exchanges)
        for receiver in receivers:
            receiver.takes_s, receiver.rejects_nth = RECEIVER_TAKES_S, None
        await call(self._simulator.application, "PUT", "/control/settings", {"gather_ms": 0})
        self._observed.limits_until_s = _now_s()
        for partner in self._partners:
            for app in partner.apps:
                await self._raise_rate(app)
        for partner in self._partners:
            await self._set_quota(partner)
            await self._meanwhile.prepare(partner)
        await asyncio.gather(
            *(self._send(partner, app, to) for partner in self._partners for app in partner.apps for to in self._phones)
        )
        more_s = await self._meanwhile.act()
        if self._meanwhile.cuts_calls and await self._promises.has_uncertain():
            # "A job that was in flight may have been sent": no status comes if it was not, and it fails after that time
            more_s += max(self._observed.uncertain_for_s) * SLOWEST_CLOCK
        await self._wait_until_done(now_ms, "the messages", WITHIN_S + more_s)
        unread = self._most_unread()
        await asyncio.gather(*(self._tap(phone, nth % 2) for nth, phone in enumerate(self._phones)))
        await self._wait_until_done(now_ms, "the taps", WITHIN_S + unread * RECEIVER_TAKES_S)
        for receiver in receivers:
            receiver.takes_s = 0
        received = set[str]()
        for one in self._observed.exchanges[before:]:
            callback_id = one.headers.get("waypost-callback-id")
            if callback_id in received and not self._meanwhile.cuts_calls:
                self._break(f"callback {callback_id} was sent again although it was received")
            if callback_id is not None and one.status == 200:
                received.add(callback_id)

    async def _set_quota(self, partner: PartnerAccount) -> None:
        """Let a partner have exactly as much waiting as it is about to send at once: nothing else waits."""
        headers = {"Authorization": f"Bearer {demo.ADMIN_TOKEN}"}
        quotas = {"message_quota": len(partner.apps) * len(self._phones), "callback_quota": 1000}
        path = f"/admin/partners/{partner.number}/quotas"
        await request(PORTS["service"], "PUT", path, headers, json_body=quotas)

    async def _raise_rate(self, app: AppAccount) -> None:
        """Let an administrator give an app a rate of its own; it applies at once."""
        headers = {"Authorization": f"Bearer {demo.ADMIN_TOKEN}"}
        rates = {"rates": {"send_template": "1000/60s", "subscription": "1000/60s"}}
        await request(PORTS["service"], "PUT", f"/admin/apps/{app.id}/rates", headers, json_body=rates)

    async def _send(self, partner: PartnerAccount, app: AppAccount, to: str) -> None:
        began_s, more = _now_s(), "" if app.per_second == SLOW_PER_SECOND else LONG_TEXT
        texts = [f"yes-{app.name}-{to}{more}", f"no-{app.name}-{to}{more}"]
        form = {
            "channel": "whatsapp",
            "source": app.source,
            "destination": to,
            "src.name": app.name,
            "template": json.dumps({"id": partner.template_id, "params": ["Ann", "again"]}),
            "postbackTexts": write_postbacks(texts),
        }
        headers = {"apikey": partner.api_keys[-1]}
        sent = SentRequest(app.id, to, "")
        self._observed.sent.append(sent)
        response = await request(PORTS["service"], "POST", "/wa/api/v1/template/msg", headers, form=form)
        sent.statuses.append(None if response is None else response.status)
        if response is None or response.status != 200 or response.body is None:
            if not lost_template_update(self._observed.exchanges):  # else the template may be paused here
                self._break(f"in the second round, {app.name} could not send a message: {response}")
        else:
            message_id = response.body["messageId"]
            self._observed.postbacks[message_id] = texts
            self._observed.acknowledged.append(Acknowledged(message_id, app.id, to, began_s, _now_s()))

    def _most_unread(self) -> int:
        """Return of how many messages of an app a phone may report now that it reads them: each callback follows another."""
        statuses, _ = read_webhooks(self._observed.exchanges)
        unread = Counter(
            (one.app_id, one.to)
            for one in self._observed.acknowledged
            if all(status.name != "read" for status in statuses[one.id])
        )
        unread.update(
            (one.app_id, one.to)
            for one in self._observed.sent  # that may have been stored
            if 200 not in one.statuses and any(status is None or status >= 500 for status in one.statuses)
        )
        return max(unread.values(), default=0)

    async def _tap(self, phone: str, index: int) -> None:
        await call(self._simulator.application, "POST", f"/control/phones/{phone}/tap", {"index": index})

    async def _wait_until_done(self, now_ms: int, what: str, within_s: float) -> None:
        began_s = _now_s()
        while _now_s() < began_s + within_s:
            await asyncio.sleep(LOOK_EVERY_S if _now_s() < began_s + WITHIN_S else LATER_EVERY_S)
            if await self._promises.check_progress(now_ms):
                return
        self._break(f"in the second round, {what} took longer than {within_s} s")

    def _break(self, text: str) -> None:
        self._observed.broken.append(text)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
