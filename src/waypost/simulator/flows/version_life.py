"""The life of versions of Flow JSON by the clock: current, frozen, expired.

No source has the dates of a version's life, so the table of `flow_json` has the states of November 2026, and a test sets
the dates that it wants to live through.

Source: public page "Flows changelog"; decision 0131.
"""

import datetime
from typing import Final

from msgspec import Struct

from waypost.base.clock import DAY_MS
from waypost.flow_json.versions import FLOW_VERSIONS, VersionState, find_version
from waypost.simulator.flows.model import Flow, content_of
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

NOTICE_DAYS: Final = 90
"""Days before a date from which the operator warns of it."""


class VersionDates(Struct, frozen=True):
    """Dates of the life of a version: when it is frozen and when it expires, in milliseconds; None: never."""

    frozen_ms: int | None
    expired_ms: int | None


VERSION_DATES: Final = StoredKind("flow_version", VersionDates)


def version_states(state: SimulatorState) -> dict[str, VersionState]:
    """Return the state of every version, by its text, at the simulator's time."""
    now_ms, dates = state.clock.now_ms(), state.values(VERSION_DATES)
    states = {"{}.{}".format(*one.number): one.state for one in FLOW_VERSIONS}
    for text, one in dates.items():
        is_frozen = one.frozen_ms is not None and one.frozen_ms <= now_ms
        states[text] = VersionState.FROZEN if is_frozen else VersionState.CURRENT
        if one.expired_ms is not None and one.expired_ms <= now_ms:
            states[text] = VersionState.EXPIRED
    return states


def list_expired(state: SimulatorState) -> frozenset[str]:
    """Return the versions that have expired."""
    return frozenset(text for text, one in version_states(state).items() if one is VersionState.EXPIRED)


def find_expired_version(state: SimulatorState, asset: str) -> str | None:
    """Return the version of a text of Flow JSON if it has expired; None if not."""
    expired = list_expired(state)  # first: without any, a large text need not be read
    version = str(content_of(asset).get("version")) if expired else ""
    return version if version in expired else None


def is_publishable_version(state: SimulatorState, flow: Flow) -> bool:
    """True if the version of a flow's text is current."""
    return version_states(state).get(str(flow.content.get("version"))) is VersionState.CURRENT


def warn_of_version(transaction: Transaction, flow: Flow) -> None:
    """Warn by a webhook that a flow's version is frozen or has expired, or will within the notice.

    The names of the events are ours.
    """
    state, text = transaction.state, str(flow.content.get("version"))
    if find_version(text) is None:
        return
    now, dates = version_states(state)[text], state.values(VERSION_DATES).get(text)
    frozen_ms, expired_ms = (dates.frozen_ms, dates.expired_ms) if dates is not None else (None, None)
    coming = {"FREEZE": _coming(state, frozen_ms, "frozen"), "EXPIRY": _coming(state, expired_ms, "expired")}
    if now is VersionState.FROZEN:
        coming["FREEZE"] = "is frozen"
    warnings = {kind: what for kind, what in coming.items() if what}
    for kind, what in warnings.items():
        warning = f"Flow JSON {text} {what}. Migrate the flow to a newer version."
        value = {"event": f"FLOW_VERSION_{kind}_WARNING", "warning": warning, "flow_id": flow.flow_id}
        transaction.notify(flow.waba_id, "flows", value)


def _coming(state: SimulatorState, at_ms: int | None, what: str) -> str:
    """Return that a version will be frozen or expired, if that is within the notice; else nothing."""
    left_ms = at_ms - state.clock.now_ms() if at_ms is not None else 0
    if at_ms is None or not 0 < left_ms <= NOTICE_DAYS * DAY_MS:
        return ""
    return f"will be {what} on {datetime.datetime.fromtimestamp(at_ms / 1000, tz=datetime.UTC):%Y-%m-%d}"
