"""The address book of the phone with the app, and the webhooks `smb_app_state_sync` about it.

Source: the operator's page "Onboard WhatsApp Business app users", smb_app_state_sync; decision 0124.
"""

from collections.abc import Sequence
from typing import Any, Final

from waypost.simulator.state.accounts import Number
from waypost.simulator.state.business_apps import BUSINESS_CONTACTS, BusinessApp, BusinessContact, SyncStep
from waypost.simulator.state.records import SYNCS
from waypost.simulator.state.simulator_state import Transaction

CONTACTS_FIELD: Final = "smb_app_state_sync"


def save_contact(transaction: Transaction, number: Number, app: BusinessApp, contact: BusinessContact) -> None:
    """Add a contact, or change its names; the partner learns of it once it has requested the contacts."""
    transaction.save(BUSINESS_CONTACTS, contact, contact.phone, number.phone_number_id)
    _announce(transaction, number, app, _added(contact))


def delete_contact(transaction: Transaction, number: Number, app: BusinessApp, contact: BusinessContact) -> None:
    """Delete a contact; the webhook has no names, and the time 0 as in the vendor's sample."""
    transaction.delete(BUSINESS_CONTACTS, contact.phone, number.phone_number_id)
    _announce(transaction, number, app, _change("remove", {"phone_number": contact.phone}, "0"))


def send_contacts(transaction: Transaction, number: Number, app: BusinessApp) -> list[SyncStep]:
    """Send all contacts, in sets."""
    contacts = [_added(contact) for contact in transaction.values(BUSINESS_CONTACTS, number.phone_number_id).values()]
    begins = range(0, len(contacts), app.sync.contacts_per_webhook)
    for begin in begins:
        _send(transaction, number, contacts[begin : begin + app.sync.contacts_per_webhook])
    return [SyncStep("contacts", len(begins), len(contacts))]


def _announce(transaction: Transaction, number: Number, app: BusinessApp, change: dict[str, Any]) -> None:
    is_synced = CONTACTS_FIELD in transaction.record(number.phone_number_id, SYNCS)
    if app.is_connected and is_synced and CONTACTS_FIELD not in app.waiting_syncs:
        _send(transaction, number, [change])


def _send(transaction: Transaction, number: Number, changes: Sequence[dict[str, Any]]) -> None:
    transaction.notify(number.waba_id, CONTACTS_FIELD, number.webhook_value(state_sync=list(changes)))


def _added(contact: BusinessContact) -> dict[str, Any]:
    names = {"full_name": contact.full_name, "first_name": contact.first_name}
    members = {name: value for name, value in names.items() if value}
    return _change("add", {**members, "phone_number": contact.phone}, str(contact.changed_ms // 1000))


def _change(action: str, contact: dict[str, str], timestamp: str) -> dict[str, Any]:
    return {"type": "contact", "contact": contact, "action": action, "metadata": {"timestamp": timestamp}}
