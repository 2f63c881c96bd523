"""Payment configurations: a business account's connections to payment gateways, active once their link is opened."""

from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import asdict, replace

from waypost.base.clock import HOUR_MS
from waypost.simulator.errors import bad_parameter, coded_error
from waypost.simulator.keyed_store import StoredKind
from waypost.simulator.parameters import check_filled_text
from waypost.simulator.simulator_state import SimulatorState, Transaction

NEEDS_CONNECTING: Final = "Needs_Connecting"
ACTIVE: Final = "Active"
CONFIGURATION_STATUSES: Final = (NEEDS_CONNECTING, "Needs_Testing", ACTIVE)
"""The statuses of a configuration. Source: the operator's page "Payments onboarding APIs"."""
LINK_LIFETIME_MS: Final = HOUR_MS  # ours; the operator documents an expiry without its length
_MAX_NAME_CHARS: Final = 60


def _check_new_name(name: str, value: Any) -> str:
    text = check_filled_text(name, value)
    if "/" in text or len(text) > _MAX_NAME_CHARS:
        raise bad_parameter(f"Param {name} must have at most {_MAX_NAME_CHARS} characters, without /.")
    return text


class ConfigurationParameters(msgspec.Struct, frozen=True):
    """The parameters of a configuration; the gateway sends its merchant to `redirect_url` after the connection."""

    configuration_name: Annotated[str, _check_new_name]
    provider_name: str
    merchant_category_code: str = ""
    purpose_code: str = ""
    merchant_vpa: str = ""
    redirect_url: str = ""


class PaymentConfiguration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A configuration; `provider_mid`, of the merchant at the gateway, is empty until it is connected."""

    waba_id: str
    name: str
    provider_name: str
    created_ms: int
    updated_ms: int
    status: str = NEEDS_CONNECTING
    provider_mid: str = ""
    merchant_category_code: str = ""
    purpose_code: str = ""
    merchant_vpa: str = ""
    redirect_url: str = ""

    def view(self) -> dict[str, Any]:
        """Return the configuration as the operator shows it."""
        return {
            "configuration_name": self.name,
            "merchant_category_code": {"code": self.merchant_category_code, "description": ""},
            "purpose_code": {"code": self.purpose_code, "description": ""},
            **self.connection(),
            **({"merchant_vpa": self.merchant_vpa} if self.merchant_vpa else {}),
        }

    def connection(self) -> dict[str, Any]:
        """Return the state of the connection, which is also the webhook about a change; times in seconds."""
        return {
            "status": self.status,
            "provider_mid": self.provider_mid,
            "provider_name": self.provider_name,
            "created_timestamp": self.created_ms // 1000,
            "updated_timestamp": self.updated_ms // 1000,
        }


CONFIGURATIONS: Final = StoredKind("payment_configuration", PaymentConfiguration)
"""By name, of an account."""


def find_configuration(reader: SimulatorState | Transaction, waba_id: str, name: str) -> PaymentConfiguration:
    """Return an account's configuration.

    Raises GraphApiError: 134009, it has none of this name. Source: ledger 1.10.
    """
    known = reader.values(CONFIGURATIONS, waba_id).get(name)
    if known is None:
        raise coded_error(134009, "Payment configuration id is invalid")
    return known


async def create_configuration(state: SimulatorState, waba_id: str, new: ConfigurationParameters) -> None:
    """Create a configuration that is not connected yet. Raises GraphApiError: 100, its name is in use."""
    name, now_ms = new.configuration_name, state.clock.now_ms()
    members = {member: value for member, value in asdict(new).items() if member != "configuration_name"}
    configuration = PaymentConfiguration(waba_id, name, created_ms=now_ms, updated_ms=now_ms, **members)

    def write(transaction: Transaction) -> None:
        if transaction.find(CONFIGURATIONS, name, waba_id) is not None:
            raise bad_parameter("Param configuration_name is in use in this account.")
        transaction.save(CONFIGURATIONS, configuration, name, waba_id)

    await state.transact(write)


async def set_redirect_url(state: SimulatorState, waba_id: str, name: str, redirect_url: str) -> None:
    """Set where the gateway sends the merchant."""

    def write(transaction: Transaction) -> None:
        known = find_configuration(transaction, waba_id, name)
        transaction.save(CONFIGURATIONS, replace(known, redirect_url=redirect_url), name, waba_id)

    await state.transact(write)


async def set_status(state: SimulatorState, waba_id: str, name: str, status: str) -> PaymentConfiguration:
    """Set a configuration's status, send the webhook about it, and return the configuration.

    Source: the operator's page "payment_configuration_update webhook".
    """
    now_ms, new_mid = state.clock.now_ms(), f"mid_{state.ids.digits(12)}"

    def write(transaction: Transaction) -> PaymentConfiguration:
        known = find_configuration(transaction, waba_id, name)
        changed = replace(known, status=status, provider_mid=known.provider_mid or new_mid, updated_ms=now_ms)
        transaction.save(CONFIGURATIONS, changed, name, waba_id)
        value = {"configuration_name": name, **changed.connection()}
        transaction.send(state.outbox.account_update(waba_id, now_ms, "payment_configuration_update", value))
        return changed

    return await state.transact(write)


async def remove_configuration(state: SimulatorState, waba_id: str, name: str) -> None:
    """Remove a configuration."""

    def write(transaction: Transaction) -> None:
        find_configuration(transaction, waba_id, name)
        transaction.delete(CONFIGURATIONS, name, waba_id)

    await state.transact(write)
