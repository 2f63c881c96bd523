"""What somebody does in the middle of the second round, when nothing else goes wrong: so what must follow is known exactly.

A partner pauses a subscription whose callbacks wait, at times because its receiver fails; an administrator restarts the
service, or starts it with `hold`; or a process stands still for longer than its leases last; or each receiver rejects one callback, which
blocks what follows it until the order is not held any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from simulation.accounts import MODES, PORTS, AppAccount, PartnerAccount, Receiver
from simulation.agreement import Change, ExpectedTerms
from simulation.choices import Choices, declare
from simulation.client import Response, request
from simulation.observed import Observed, SubscriptionTerms
from simulation.service_settings import ORDER_HOLD_S
from simulation.story import tell

ACTS: Final = ("nothing else", "pause", "restart", "hold", "suspension", "rejection")
PAUSED_FOR_S: Final = 3
NOTICED_S: Final = 0.2
"""A callback that left before the pause was acknowledged may arrive so much later."""
HELD_FOR_S: Final = 3
SUSPENDED_FOR_S: Final = 20
"""Longer than a lease lasts."""
REJECTED_FOR_S: Final = 200
"""Longer than the shortest time for which the order is held, and than the retry after that takes."""
MORE_S: Final = {"nothing else": 0, "pause": 9, "restart": 25, "hold": 25, "suspension": 45, "rejection": 1400}
"""How much longer everything may take than without it: a retry of a callback, one of a webhook, or until a lease has
expired and another process has noticed."""

declare({"receiver fails before a pause": "a receiver failed, and its partner paused the subscription for a while"})


class Meanwhile:
    """One act, which the seed chooses.

    Args:
        receivers: by their site.
        restart: stops and starts a process; for so many seconds it then runs with `hold`.
        suspend: lets a process stand still for so many seconds.
    """

    def __init__(
        self,
        observed: Observed,
        receivers: Mapping[str, Receiver],
        choices: Choices,
        restart: Callable[[float | None], Awaitable[None]],
        suspend: Callable[[float], Awaitable[None]],
    ) -> None:
        self._observed, self._receivers, self._choices = observed, receivers, choices
        self._restart, self._suspend = restart, suspend
        self._act = choices.pick("in the second round", ACTS)
        self._paused: list[tuple[PartnerAccount, AppAccount, str, str]] = []

    @property
    def cuts_calls(self) -> bool:
        """True if the service may not see the response of a receiver."""
        return self._act == "suspension"

    @property
    def needs_neighbours(self) -> bool:
        """True if each app must send to several phones."""
        return self._act == "rejection"

    async def prepare(self, partner: PartnerAccount) -> None:
        """Add what is paused later: a subscription of each app."""
        for app in partner.apps if self._act == "pause" else ():
            path = f"/{app.name}/second-round"
            url = f"http://127.0.0.1:{partner.receiver_port}{path}"
            form = {"modes": ",".join(MODES[0]), "tag": path, "url": url, "version": "2", "doCheck": "false"}
            response = await self._call(app, "POST", "subscription", form)
            if response is None or response.status != 200:
                continue  # the app has as many as it may have
            self._observed.subscriptions[path] = SubscriptionTerms(app.id, MODES[0], is_steady=False)
            partner.expected_terms[path] = ExpectedTerms((frozenset(MODES[0]), True))
            self._paused.append((partner, app, path, response.body["subscription"]["id"]))
        if self._act == "rejection" and max(self._observed.order_hold_s) == min(ORDER_HOLD_S):
            self._receivers[f"receiver {partner.number}"].reject_next(REJECTED_FOR_S)
        if self._act == "pause" and self._choices.happens("receiver fails before a pause", 0.5):
            for other, _, path, _ in self._paused[-1:]:
                self._receivers[f"receiver {other.number}"].fails_at = path

    async def act(self) -> float:
        """Do it; return how much longer the round may take."""
        await asyncio.sleep(self._choices.between("then waits", 0, 0.6))
        tell(f"in the second round: {self._act}")
        match self._act:
            case "pause":
                await asyncio.sleep(0.75)  # one callback has failed, or the second of three is on its way
                await asyncio.gather(*(self._pause(*one) for one in self._paused))
            case "restart":
                await self._restart(None)
            case "hold":
                await self._restart(HELD_FOR_S)
            case "suspension":
                await self._suspend(SUSPENDED_FOR_S)
            case _:
                pass
        return MORE_S[self._act]

    async def _pause(self, partner: PartnerAccount, app: AppAccount, path: str, number: str) -> None:
        await self._set_active(partner, app, path, number, active=False)
        paused_s = _now_s()
        await asyncio.sleep(PAUSED_FOR_S)
        self._receivers[f"receiver {partner.number}"].fails_at = ""
        calls = [one for one in self._observed.exchanges if one.path == path and one.began_s > paused_s + NOTICED_S]
        self._observed.broken += [
            f"{path} was called at {one.began_s:.2f} s, paused at {paused_s:.2f} s" for one in calls
        ]
        self._observed.subscriptions[path].paused.append((paused_s, _now_s()))
        await self._set_active(partner, app, path, number, active=True)

    async def _set_active(
        self, partner: PartnerAccount, app: AppAccount, path: str, number: str, *, active: bool
    ) -> None:
        form = {"active": str(active).lower()}
        response = await self._call(app, "PUT", f"subscription/{number}", form)
        partner.expected_terms[path].note(Change(active=active), response)
        if response is None or response.status != 200:
            self._observed.broken.append(f"in the second round, {path} could not be changed: {response}")

    async def _call(self, app: AppAccount, method: str, path: str, form: dict[str, str]) -> Response | None:
        headers = {"Authorization": app.token}
        return await request(PORTS["service"], method, f"/partner/app/{app.id}/{path}", headers, form=form)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
