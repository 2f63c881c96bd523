"""Connects a number's WhatsApp Business app to the API and ends the connection: `connect_number` is the entry.

The signup window calls it when it ends with FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING, the control API when a test wants
a shared number at once. PARTNER_ADDED and PARTNER_APP_INSTALLED are the signup's own.

Source: the operator's pages "Onboard WhatsApp Business app users" and "account_update"; decision 0124.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from waypost.base.clock import MINUTE_MS
from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.simulator.numbers.model import UNREGISTERED
from waypost.simulator.state.accounts import NUMBERS, Number
from waypost.simulator.state.business_apps import (
    BUSINESS_APPS,
    DEFAULT_APP_VERSION,
    MIN_APP_VERSION,
    BusinessApp,
    Disconnection,
    DisconnectReason,
    Initiator,
    find_business_app,
    read_version,
)
from waypost.simulator.state.records import SENDING_RESTRICTION, SYNCS
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

RECONNECT_AFTER_MS: Final = 15 * MINUTE_MS  # Source: the operator's page "Embedded Signup Flow Errors"
_IDLE_WAIT_MS: Final = 3_600_000
_APPS_LOG = log("simulator")


class DisconnectRule(NamedTuple):
    """One row: who can cause a reason, and what follows for the number."""

    initiators: tuple[Initiator, ...]
    leaves_app: bool = False  # the number is no longer in the app
    is_offboarding: bool = False  # the account is offboarded, and reconnected by the next signup


# fmt: off
DISCONNECT_RULES: Final[dict[DisconnectReason | None, DisconnectRule]] = {  # Source: the operator's page "account_update"
    None:                   DisconnectRule(("USER",)),
    "ACCOUNT_DISCONNECTED": DisconnectRule(("USER", "SYSTEM"), leaves_app=True),
    "BUSINESS_DOWNGRADE":   DisconnectRule(("USER",), leaves_app=True),
    "CHANGE_NUMBER":        DisconnectRule(("USER",), leaves_app=True, is_offboarding=True),
    "COMPANION_INACTIVITY": DisconnectRule(("SYSTEM",)),
    "PRIMARY_INACTIVITY":   DisconnectRule(("SYSTEM",)),
    "USER_RE_REGISTERED":   DisconnectRule(("USER",), is_offboarding=True),
}
# fmt: on


class NumberNotConnectable(Exception):
    """Raised if a number cannot become shared now; `code` is that of the signup window."""

    def __init__(self, code: int, field: str, rule: str, accepted: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.code = code
        self.field = field
        self.rule = rule
        self.accepted = accepted


def check_connectable(app: BusinessApp | None, app_version: str, now_ms: int) -> None:
    """Check that a number with this app, or without one, may become shared now.

    Raises:
        NumberNotConnectable: 4563015, the app is too old; 2655093, it is shared already; 3441049, it was disconnected
            less than 15 minutes ago.

    Source: the operator's page "Embedded Signup Flow Errors".
    """
    if read_version(app_version) < MIN_APP_VERSION:
        oldest = ".".join(map(str, MIN_APP_VERSION))
        raise NumberNotConnectable(4563015, "app_version", "the app is too old", f"{oldest} or a later version")
    if app is None:
        return
    if app.disconnection is None:
        rule = "is shared with a partner already"
        raise NumberNotConnectable(2655093, "phone_number_id", rule, "a number that is not, or disconnect it first")
    left_ms = app.disconnection.at_ms + RECONNECT_AFTER_MS - now_ms
    if left_ms > 0:
        rule = "was disconnected less than 15 minutes ago"
        raise NumberNotConnectable(3441049, "phone_number_id", rule, f"the same in {-(-left_ms // 1000)} seconds")


def connect_number(
    transaction: Transaction, number: Number, *, app_version: str = DEFAULT_APP_VERSION, shares_history: bool = True
) -> BusinessApp:
    """Make a number shared between its WhatsApp Business app and the API, and return the app.

    Its linked devices are unlinked, contacts and history may be requested anew for 24 hours, and it can send at once:
    nobody registers it. The options of its sync stay. A number that was offboarded is announced as reconnected.

    Args:
        shares_history: the choice of the business in the app.

    Raises:
        NumberNotConnectable: see `check_connectable`.
    """
    state, number_id = transaction.state, number.phone_number_id
    known, now_ms = transaction.find(BUSINESS_APPS, number_id), state.clock.now_ms()
    check_connectable(known, app_version, now_ms)
    options = known or BusinessApp()
    app = BusinessApp(app_version=app_version, onboarded_ms=now_ms, shares_history=shares_history, sync=options.sync)
    _save(transaction, number, app, is_on_app=True)
    transaction.save_record(number_id, SYNCS, {})
    if transaction.record(number_id, SENDING_RESTRICTION).get("name") == UNREGISTERED:
        transaction.save_record(number_id, SENDING_RESTRICTION, {})
    last = options.disconnection
    if last is not None and DISCONNECT_RULES[last.reason].is_offboarding:
        transaction.notify(number.waba_id, "account_update", {"event": "ACCOUNT_RECONNECTED"})
    return app


def disconnect_number(
    transaction: Transaction, number: Number, app: BusinessApp, reason: DisconnectReason | None, initiated_by: Initiator
) -> BusinessApp:
    """End a connection: the API sends no more for the number, and `account_update` says why."""
    rule, now_ms = DISCONNECT_RULES[reason], transaction.state.clock.now_ms()
    changed = replace(app, disconnection=Disconnection(now_ms, reason, initiated_by), companions=(), waiting_syncs=())
    _save(transaction, number, changed, is_on_app=not rule.leaves_app)
    transaction.save_record(number.phone_number_id, SENDING_RESTRICTION, {"name": UNREGISTERED})
    if rule.is_offboarding:
        transaction.notify(number.waba_id, "account_update", {"event": "ACCOUNT_OFFBOARDED"})
    removed: dict[str, Any] = {"phone_number": number.phone_number, "event": "PARTNER_REMOVED"}
    if reason is not None:
        removed["disconnection_info"] = {"reason": reason, "initiated_by": initiated_by}
    transaction.notify(number.waba_id, "account_update", removed)
    return changed


def save_business_app(transaction: Transaction, number: Number, app: BusinessApp) -> None:
    """Store a change of an app."""
    transaction.save(BUSINESS_APPS, app, number.phone_number_id)
    transaction.follow(transaction.state.business_apps_changed.set)


def _save(transaction: Transaction, number: Number, app: BusinessApp, *, is_on_app: bool) -> None:
    known = transaction.find(NUMBERS, number.phone_number_id) or number
    transaction.save(NUMBERS, replace(known, is_on_business_app=is_on_app), number.phone_number_id)
    save_business_app(transaction, number, app)


def start_business_apps(state: SimulatorState) -> None:
    """Start the loop that disconnects the apps of phones that were offline for too long."""

    async def run_once() -> int:
        state.business_apps_changed.clear()
        return await _disconnect_inactive(state)

    async def next_due_ms() -> int | None:
        return min((due_ms for due_ms, _, _ in _planned_disconnections(state)), default=None)

    loop = Loop("business apps", run_once, partial(state.wait, state.business_apps_changed), log=_APPS_LOG)
    state.start_loop(loop, next_due_ms)


async def _disconnect_inactive(state: SimulatorState) -> int:
    """Disconnect what is due; return the time of the next."""
    now_ms = state.clock.now_ms()
    for due_ms, number, reason in sorted(_planned_disconnections(state), key=lambda planned: planned[0]):
        if due_ms <= now_ms:
            await state.transact(partial(_disconnect_if_due, number, reason, now_ms))
    return min((due_ms for due_ms, _, _ in _planned_disconnections(state)), default=now_ms + _IDLE_WAIT_MS)


def _disconnect_if_due(number: Number, reason: DisconnectReason, now_ms: int, transaction: Transaction) -> None:
    app = find_business_app(transaction, number)
    if app is None or not app.is_connected:
        return
    if any(due_ms <= now_ms and known == reason for due_ms, known in app.inactivities()):
        disconnect_number(transaction, number, app, reason, "SYSTEM")


def _planned_disconnections(state: SimulatorState) -> Iterator[tuple[int, Number, DisconnectReason]]:
    for number_id, app in state.values(BUSINESS_APPS).items():
        number = state.accounts.numbers.get(number_id)
        if number is not None and app.is_connected:
            for due_ms, reason in app.inactivities():
                yield due_ms, number, reason
