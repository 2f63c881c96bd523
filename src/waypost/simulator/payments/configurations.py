"""Payment configurations: a business account's connections to payment gateways, active once their link is opened."""

import asyncio
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import HOUR_MS, Clock
from waypost.base.ids import Ids
from waypost.simulator.errors import GraphApiError, bad_parameter
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.outbox import Outbox
from waypost.simulator.store import Store
from waypost.simulator.tables.updates import add_update

NEEDS_CONNECTING: Final = "Needs_Connecting"
ACTIVE: Final = "Active"
CONFIGURATION_STATUSES: Final = (NEEDS_CONNECTING, "Needs_Testing", ACTIVE)
"""The statuses of a configuration. Source: the operator's page "Payments onboarding APIs"."""
LINK_LIFETIME_MS: Final = HOUR_MS  # ours; the operator documents an expiry without its length
CONFIGURATION_UPDATE: Final = "payment_configuration_update"
_MAX_NAME_CHARS: Final = 60


class PaymentConfiguration(msgspec.Struct, frozen=True, omit_defaults=True):
    """One configuration.

    Args:
        name: unique within the account.
        provider_mid: of the merchant at the gateway; empty until it is connected.
        redirect_url: where the gateway sends the merchant after the connection; may be empty.
    """

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
        """Return the configuration as the operator shows it; times in seconds."""
        return {
            "configuration_name": self.name,
            "merchant_category_code": {"code": self.merchant_category_code, "description": ""},
            "purpose_code": {"code": self.purpose_code, "description": ""},
            "status": self.status,
            "provider_mid": self.provider_mid,
            "provider_name": self.provider_name,
            "created_timestamp": self.created_ms // 1000,
            "updated_timestamp": self.updated_ms // 1000,
            **({"merchant_vpa": self.merchant_vpa} if self.merchant_vpa else {}),
        }


def unknown_configuration() -> GraphApiError:
    """Return the error for a configuration that an account does not have. Source: ledger 1.10."""
    return GraphApiError(
        400, {"message": "(#134009) Payment configuration id is invalid", "type": "OAuthException", "code": 134009}
    )


class PaymentConfigurations:
    """Every configuration of every account; in memory, and written through to the file."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, outbox: Outbox) -> None:
        self._clock = clock
        self._ids = ids
        self._outbox = outbox
        self._changes = asyncio.Lock()
        self._configurations = CachedKeyedValues(store, "payment_configuration", PaymentConfiguration)

    def list_all(self, waba_id: str) -> list[PaymentConfiguration]:
        """Return an account's configurations, oldest first."""
        return list(self._configurations.values_of(waba_id).values())

    def find(self, waba_id: str, name: object) -> PaymentConfiguration:
        """Return an account's configuration.

        Raises:
            GraphApiError: 134009, it has none of this name.
        """
        known = self._configurations.values_of(waba_id).get(name) if isinstance(name, str) else None
        if known is None:
            raise unknown_configuration()
        return known

    async def create(self, waba_id: str, fields: dict[str, Any]) -> PaymentConfiguration:
        """Create a configuration that is not connected yet.

        Raises:
            GraphApiError: 100, a parameter is missing, invalid, or a name in use.
        """
        name = read_name(fields)
        if "/" in name or len(name) > _MAX_NAME_CHARS:
            raise bad_parameter(f"Param configuration_name must have at most {_MAX_NAME_CHARS} characters, without /.")
        now_ms = self._clock.now_ms()
        configuration = PaymentConfiguration(
            waba_id=waba_id,
            name=name,
            provider_name=_read_text(fields, "provider_name", is_required=True),
            created_ms=now_ms,
            updated_ms=now_ms,
            merchant_category_code=_read_text(fields, "merchant_category_code"),
            purpose_code=_read_text(fields, "purpose_code"),
            merchant_vpa=_read_text(fields, "merchant_vpa"),
            redirect_url=_read_text(fields, "redirect_url"),
        )
        async with self._changes:
            if name in self._configurations.values_of(waba_id):
                raise bad_parameter("Param configuration_name is in use in this account.")
            await self._configurations.save(configuration, name, waba_id)
        return configuration

    async def set_redirect_url(self, waba_id: str, fields: dict[str, Any]) -> PaymentConfiguration:
        """Set the URL of a new link of a configuration.

        Raises:
            GraphApiError: 100, a parameter is missing; 134009, the account has no such configuration.
        """
        name, redirect_url = read_name(fields), _read_text(fields, "redirect_url", is_required=True)
        async with self._changes:
            changed = replace(self.find(waba_id, name), redirect_url=redirect_url)
            await self._configurations.save(changed, name, waba_id)
        return changed

    async def set_status(self, waba_id: str, name: str, status: str) -> PaymentConfiguration:
        """Set a configuration's status, and send the webhook about it.

        Raises:
            GraphApiError: 134009, the account has no such configuration.

        Source: the operator's page "payment_configuration_update webhook".
        """
        async with self._changes:
            known = self.find(waba_id, name)
            changed = replace(
                known,
                status=status,
                provider_mid=known.provider_mid or f"mid_{self._ids.digits(12)}",
                updated_ms=self._clock.now_ms(),
            )
            value = {
                member: shown
                for member, shown in changed.view().items()
                if member not in ("merchant_category_code", "purpose_code", "merchant_vpa")
            }
            has_receivers = self._outbox.has_subscribers(waba_id)
            update = self._outbox.account_update(waba_id, changed.updated_ms, CONFIGURATION_UPDATE, value)
            also = [add_update(update)] if has_receivers else []
            await self._configurations.save(changed, name, waba_id, also=also)
        self._outbox.wake_events(waba_id).set()
        return changed

    async def remove(self, waba_id: str, fields: dict[str, Any]) -> None:
        """Remove a configuration.

        Raises:
            GraphApiError: 100, the name is missing; 134009, the account has no such configuration.
        """
        async with self._changes:
            name = self.find(waba_id, read_name(fields)).name
            await self._configurations.delete(name, waba_id)


def read_name(fields: dict[str, Any]) -> str:
    """Return the name of the configuration that a request names.

    Raises:
        GraphApiError: 100, it is missing.
    """
    return _read_text(fields, "configuration_name", is_required=True)


def _read_text(fields: dict[str, Any], name: str, *, is_required: bool = False) -> str:
    value = fields.get(name)
    if value is None and not is_required:
        return ""
    if not isinstance(value, str) or (is_required and not value.strip()):
        rule = (
            f"The parameter {name} is required." if value is None or value == "" else f"Param {name} must be a string."
        )
        raise bad_parameter(rule)
    return value
