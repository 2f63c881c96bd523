"""The table of rates, and a moving window over our own clock."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import Clock
from waypost.domain.refusals import Reason, Refused


@dataclass(frozen=True, slots=True)
class Rate:
    """How many requests within how long, per what."""

    at_most: int
    within_ms: int
    per: str
    source: str


# fmt: off
RATES: Final = {  # Source: spec, "Limits"; facts 11; design, section 5. One window per route, never shared between routes.
    # name                   at most  within        per                 source
    "login":            Rate(10,          60_000,  "e-mail",           "facts 1.2, 11"),
    "login_address":    Rate(60,          60_000,  "client address",   "design, section 9"),
    "app_token":        Rate(10,          60_000,  "app",              "facts 11, with health and capping"),
    "templates":        Rate(10,          60_000,  "app",              "spec, Limits; facts 11: create, list, edit"),
    "send_template":    Rate(10,          60_000,  "app",              "spec, Limits"),
    "session":          Rate(20,           1_000,  "source",           "facts 11; design, section 5"),
    "subscription":     Rate(5,           60_000,  "app",              "facts 4.1, 11"),
    "create_app":       Rate(10,          60_000,  "partner",          "facts 11, `/partner/app`"),
    "delete_app":       Rate(20,          60_000,  "partner",          "facts 11"),
    "analytics":        Rate(10,          60_000,  "app",              "facts 11, template/analytics"),
    "template_sync":    Rate(1,        3_600_000,  "app",              "facts 11"),
    "ratings":          Rate(10,          60_000,  "app",              "facts 11: the refresh is ours, the answer what we know"),
    "upload":           Rate(10,           1_000,  "app",              "facts 11"),
    "download":         Rate(5,        3_600_000,  "app",              "facts 11"),
    "mmlite":           Rate(2,        3_600_000,  "app",              "facts 11"),
    "partner_call":     Rate(10,           1_000,  "app or partner",   "facts 11, every other partner API"),
}
# fmt: on

SWEEP_EVERY_MS: Final = 60_000
"""How often windows that hold nothing any more are forgotten."""


class Limiter:
    """Moving windows in memory. Refused requests do not spend: what was spent for one is given back.

    Args:
        on: the one switch; off lets everything through.
    """

    def __init__(self, clock: Clock, *, on: bool = True) -> None:
        self._clock = clock
        self._on = on
        self._windows: dict[tuple[str, str], deque[int]] = {}
        self._swept_ms = clock.now_ms()

    def spend(self, name: str, of: str) -> None:
        """Spend one request of a rate.

        Args:
            name: the row of the table.
            of: whose window, and of which route.

        Raises:
            Refused: none is left; with the seconds until one is.
        """
        if not self._on:
            return
        rate = RATES[name]
        now_ms = self._clock.now_ms()
        if now_ms - self._swept_ms >= SWEEP_EVERY_MS:
            self._sweep(now_ms)
        window = self._windows.setdefault((name, of), deque())
        while window and window[0] <= now_ms - rate.within_ms:
            window.popleft()
        if len(window) >= rate.at_most:
            wait_s = max(1, -(-(window[0] + rate.within_ms - now_ms) // 1000))
            raise Refused(
                Reason.TOO_MANY_REQUESTS,
                f"At most {rate.at_most} requests in {rate.within_ms // 1000} s per {rate.per}; "
                f"try again in {wait_s} s.",
                retry_after_s=wait_s,
            )
        window.append(now_ms)

    def give_back(self, name: str, of: str) -> None:
        """Take back what the last `spend` took: the request was refused for another reason."""
        window = self._windows.get((name, of))
        if window:
            window.pop()

    def _sweep(self, now_ms: int) -> None:
        self._swept_ms = now_ms
        for key in [
            key
            for key, window in self._windows.items()
            if not window or window[-1] <= now_ms - RATES[key[0]].within_ms
        ]:
            del self._windows[key]
