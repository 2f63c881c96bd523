"""Saving accounts, apps, numbers and subscriptions."""

from msgspec.structs import replace

from waypost.simulator.state.accounts import (
    ACCOUNTS,
    APPS,
    NUMBER_WEBHOOKS,
    SUBSCRIPTIONS,
    Account,
    GraphApp,
    GraphSubscription,
    Number,
)
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.updates import FAULTED_UPDATES, OUTBOX
from waypost.simulator.webhooks.webhooks import delete_retries


async def save_app(state: SimulatorState, app: GraphApp) -> None:
    """Create or update an app."""
    await state.cached(APPS).save(app, app.app_id)


async def save_account(state: SimulatorState, account: Account) -> None:
    """Create an account with a subscription of its app, or update it; a new app takes over the subscription."""
    waba_id, app_id = account.waba_id, account.app_id

    def write(transaction: Transaction) -> None:
        previous = transaction.find(ACCOUNTS, waba_id)
        if previous is None:
            transaction.save(SUBSCRIPTIONS, GraphSubscription(waba_id, app_id), app_id, waba_id)
        elif previous.app_id != app_id:
            for table in (OUTBOX, FAULTED_UPDATES):
                transaction.run(table.update({"app_id": app_id}, waba_id=waba_id, app_id=previous.app_id))
            subscription = transaction.find(SUBSCRIPTIONS, previous.app_id, waba_id)
            if subscription is not None:
                transaction.delete(SUBSCRIPTIONS, previous.app_id, waba_id)
                transaction.save(SUBSCRIPTIONS, replace(subscription, app_id=app_id), app_id, waba_id)
        transaction.save(ACCOUNTS, account, waba_id)
        transaction.follow(state.accounts.clear_tokens)

    await state.transact(write)


async def set_number_webhook(state: SimulatorState, app_id: str, number: Number, uri: str) -> None:
    """Set the callback URI of a number's own with an app; an empty one removes it."""
    webhooks = state.cached(NUMBER_WEBHOOKS)
    if uri:
        await webhooks.save(uri, number.phone_number_id, app_id)
    else:
        await webhooks.delete(number.phone_number_id, app_id)


async def unsubscribe(state: SimulatorState, waba_id: str, app_id: str) -> None:
    """Delete a subscription, with its undelivered webhooks."""

    def write(transaction: Transaction) -> None:
        transaction.delete(SUBSCRIPTIONS, app_id, waba_id)
        for table in (OUTBOX, FAULTED_UPDATES):
            transaction.run(table.delete(waba_id=waba_id, app_id=app_id))
        delete_retries(transaction, waba_id, app_id)

    await state.transact(write)
