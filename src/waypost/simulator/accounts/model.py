"""Saving accounts, apps, numbers and subscriptions."""

from msgspec.structs import replace

from waypost.simulator.state.accounts import ACCOUNTS, APPS, SUBSCRIPTIONS, Account, GraphApp, GraphSubscription
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.updates import FAULTED_UPDATES, OUTBOX


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
