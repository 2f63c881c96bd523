"""The settings of the service: what a seed chooses, and what an administrator changes when it is started again."""

from pathlib import Path
from typing import Any, Final

from simulation.choices import Choices, declare
from simulation.observed import Observed
from waypost.assembly.dev import demo
from waypost.config import Settings
from waypost.queue import plans, shards
from waypost.store.queue import leases

UNCERTAIN_FOR_S: Final = (90, 30, 200)
"""About as long as faults last; shorter than usual, because virtual time has a price too."""
ORDER_HOLD_S: Final = (60, 60, 900)
SLOTS: Final = (64, 2)
SHARD_COUNTS: Final = (leases.SHARD_COUNT, 8)
"""With few of them most have work, and a process that joins gets such ones too."""
RATES: Final = (
    ("send_template=3/60s", "session=2/2s", "subscription=2/10s", "templates=2/10s"),
    ("send_template=1/5s", "session=1/1s", "subscription=1/5s", "templates=1/30s"),
    (),  # the documented ones
)
"""Of a service that limits requests."""

declare(
    {
        "service limits requests": "the service limited how often it may be asked",
        "settings are changed": "the service was started again with other settings",
    }
)


class ServiceSettings:
    """The settings of each start."""

    def __init__(self, choices: Choices, observed: Observed, folder: Path, database_url: str | None) -> None:
        self._choices, self._observed = choices, observed
        self._fixed: dict[str, Any] = {
            "data": folder,
            "database_url": database_url,
            "admin_token": demo.ADMIN_TOKEN,
            "allowed_networks": ("127.0.0.0/8",),
            "max_connections_per_address": 0,
        }
        self._keys = [demo.INSTANCE_KEY]  # the newest last; two while it is being replaced
        self._replacements = 0
        self._slots = choices.pick("slots", SLOTS)
        self._uncertain_for_s = UNCERTAIN_FOR_S[0]
        self._order_hold_s = choices.pick("order is held for", ORDER_HOLD_S)
        self._limits = self._choose_limits()
        if database_url is not None:
            set_shard_count(choices.pick("shards", SHARD_COUNTS))

    def make(self, *, hold: bool) -> Settings:
        """Return the settings of a start."""
        self._observed.uncertain_for_s.append(self._uncertain_for_s)
        self._observed.order_hold_s.append(self._order_hold_s)
        return Settings(
            **self._fixed,
            secret_key=self._keys[-1],
            old_secret_key=self._keys[-2] if len(self._keys) > 1 else None,
            hold=hold,
            rates=self._limits is not None,
            rate_limits=self._limits or (),
            uncertain_for_s=self._uncertain_for_s,
            order_hold_s=self._order_hold_s,
            in_flight=self._slots,
        )

    def change(self) -> None:
        """Let the next start have other settings, if the seed says so."""
        if self._choices.happens("settings are changed", 0.3):
            self._slots = self._choices.pick("slots", SLOTS, of="settings are changed")
            self._uncertain_for_s = self._choices.pick("uncertain for", UNCERTAIN_FOR_S, of="settings are changed")
            self._order_hold_s = self._choices.pick("order held for", ORDER_HOLD_S, of="settings are changed")

    def begin_replacement(self) -> None:
        """Let the next starts have a new instance key and the one before; a replacement that has begun goes on."""
        if len(self._keys) == 1:
            self._replacements += 1
            self._keys.append(f"the instance key number {self._replacements} of this simulation")

    def end_replacement(self) -> None:
        """Let the next starts have the new instance key only."""
        del self._keys[:-1]

    def _choose_limits(self) -> tuple[str, ...] | None:
        if not self._choices.happens("service limits requests", 0.5):
            return None
        limits = self._choices.pick("limits", RATES, of="service limits requests")
        self._observed.limits = limits
        return limits


def set_shard_count(count: int) -> None:
    """Let queues have so many shards, in this process."""
    for module in (leases, plans, shards):
        vars(module)["SHARD_COUNT"] = count
