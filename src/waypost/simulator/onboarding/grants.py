"""Access that an app gets at the end of a signup, and loses later; webhooks about it go to the app's own business.

Source: facts 14.6.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.object_ids import make_id
from waypost.simulator.onboarding.model import MIGRATION_INTENTS
from waypost.simulator.state.accounts import (
    APP_ACCESSES,
    SUBSCRIPTIONS,
    Account,
    AppAccess,
    GraphSubscription,
    owner_id,
    partner_id,
)
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.tokens import TOKENS
from waypost.simulator.storage.tables.updates import FAULTED_UPDATES, OUTBOX
from waypost.simulator.webhooks.webhooks import start_loops

_FIELD: Final = "account_update"


async def open_partner_webhooks(state: SimulatorState, app_id: str) -> None:
    """Let an app get the webhooks about its own business, which need no subscription to an account."""
    business_id = partner_id(app_id)
    if state.accounts.subscription(business_id, app_id) is None:
        await state.cached(SUBSCRIPTIONS).save(GraphSubscription(business_id, app_id), app_id, business_id)
    start_loops(state, business_id)


def notify_partner(transaction: Transaction, event: str, account: Account, access: AppAccess, **members: Any) -> None:
    """Send an event about an account to the app that has access to it."""
    info: dict[str, Any] = {"waba_id": account.waba_id, "owner_business_id": owner_id(account), **members}
    if access.solution_id and event == "PARTNER_ADDED":
        partners = [partner_id(access.app_id)]
        info |= {"solution_id": access.solution_id, "solution_partner_business_ids": partners}
    transaction.notify(partner_id(access.app_id), _FIELD, {"event": event, "waba_info": info})


def give_access(transaction: Transaction, account: Account, app_id: str, solution_id: str = "") -> AppAccess:
    """Give an app access to an account, and tell it; one that has it keeps its system user.

    If the account was to leave the partner of another app for this one, that partner loses its access.
    """
    known = transaction.find(APP_ACCESSES, app_id, account.waba_id)
    now_ms = transaction.state.clock.now_ms()
    system_user_id = known.system_user_id if known else make_id(transaction.state.ids, "system user")
    access = AppAccess(account.waba_id, app_id, system_user_id, known.given_ms if known else now_ms, solution_id)
    transaction.save(APP_ACCESSES, access, app_id, account.waba_id)
    if known is None:
        notify_partner(transaction, "PARTNER_ADDED", account, access)
    notify_partner(transaction, "PARTNER_APP_INSTALLED", account, access, partner_app_id=app_id)
    intent = transaction.find(MIGRATION_INTENTS, account.waba_id)
    if intent is not None and (intent.app_id == app_id or (solution_id and intent.solution_id == solution_id)):
        transaction.delete(MIGRATION_INTENTS, account.waba_id)
        for other in list(transaction.values(APP_ACCESSES, account.waba_id).values()):
            if other.app_id != app_id:
                remove_access(transaction, account, other)
    return access


def remove_access(transaction: Transaction, account: Account, access: AppAccess, **members: Any) -> None:
    """Take the access to an account from an app: its tokens and its webhooks end, and it is told.

    Args:
        members: further members of the event, such as those of a disconnection.
    """
    waba_id, app_id = account.waba_id, access.app_id
    transaction.delete(APP_ACCESSES, app_id, waba_id)
    transaction.delete(SUBSCRIPTIONS, app_id, waba_id)
    transaction.follow(transaction.state.accounts.clear_tokens)
    for table in (OUTBOX, FAULTED_UPDATES):
        transaction.run(table.delete(waba_id=waba_id, app_id=app_id))
    for token in transaction.values(TOKENS).values():
        if token.app_id == app_id and waba_id in token.waba_ids:
            others = _remove_id(token.waba_ids, waba_id)
            transaction.save(TOKENS, replace(token, waba_ids=others, is_revoked=not others), token.token)
    notify_partner(transaction, "PARTNER_APP_UNINSTALLED", account, access, partner_app_id=app_id)
    value = {"event": "PARTNER_REMOVED", "waba_info": {"waba_id": waba_id, "owner_business_id": owner_id(account)}}
    transaction.notify(partner_id(app_id), _FIELD, {**value, **members})


def _remove_id(waba_ids: Sequence[str], waba_id: str) -> tuple[str, ...]:
    return tuple(other for other in waba_ids if other != waba_id)
