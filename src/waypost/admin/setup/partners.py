"""Steps for partners, their client secrets and their API keys."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec
from sqlalchemy import Connection

from waypost.admin.partners import NewPartner, add_partner
from waypost.admin.personal.retention import check_periods
from waypost.admin.provisioning import AdminContext, partner_with_email
from waypost.admin.setup.document import PartnerSetup
from waypost.admin.setup.steps import Step, change_or_keep, create
from waypost.base.encryption import hash_secret
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.partner import Partner
from waypost.store.accounts.credentials import CredentialKind, add_credential, list_credentials, partner_of_credential
from waypost.store.accounts.partners import change_partner, partner_by_email
from waypost.store.retention.partner_rules import OwnPeriods, change_own_periods, read_own_periods

PARTNER = "partner"
_CHANGEABLE = ("name", "contact_name", "phone_number")


async def plan_partner(context: AdminContext, wanted: PartnerSetup) -> list[Step]:
    """Return the steps for a partner and its credentials.

    Raises:
        ApiError: a field is invalid, or the text of a credential is taken by another partner's.
    """
    existing = await context.database.read(partner_by_email, wanted.email)
    values = {name: getattr(wanted, name) for name in _CHANGEABLE}
    new_partner = NewPartner(email=wanted.email, password=wanted.password, **values)  # checks the fields
    periods = None if wanted.retention is None else OwnPeriods(**msgspec.structs.asdict(wanted.retention))
    if periods is not None:
        check_periods(context.retention, asdict(periods))

    def write_change(connection: Connection) -> None:
        change_partner(connection, wanted.email, values)
        partner = partner_by_email(connection, wanted.email)
        if partner is not None and periods is not None:
            change_own_periods(connection, partner.id, asdict(periods))

    async def change() -> Mapping[str, Any]:
        await context.database.write(write_change)
        return {}

    async def add() -> Mapping[str, Any]:
        added = await add_partner(context, new_partner)
        if periods is not None:
            await context.database.write(change_own_periods, added.id, asdict(periods))
        return {"id": added.id}

    if existing is None:
        steps = [create(PARTNER, wanted.email, add)]
    else:
        current: dict[str, Any] = {name: getattr(existing, name) for name in _CHANGEABLE}
        wanted_values: dict[str, Any] = dict(values)
        if periods is not None:
            current["retention"] = await context.database.read(read_own_periods, existing.id)
            wanted_values["retention"] = periods
        steps = [change_or_keep(PARTNER, wanted.email, current, wanted_values, change)]
    credentials = _Credentials(context, wanted.email, existing)
    for number, secret in enumerate(wanted.client_secrets, 1):
        steps.append(await credentials.plan(CredentialKind.CLIENT_SECRET, str(number), secret.value))
    for key in wanted.api_keys:
        steps.append(await credentials.plan(CredentialKind.API_KEY, key.name, key.value))
    return steps


class _Credentials:
    """Plans the credentials of one partner, who may be new."""

    def __init__(self, context: AdminContext, email: str, partner: Partner | None) -> None:
        self._context = context
        self._email = email
        self._partner_id = None if partner is None else partner.id

    async def plan(self, kind: CredentialKind, name: str, value: str | None) -> Step:
        title = f"{name} of {self._email}"
        if await (self._has_name(kind, name) if value is None else self._has_text(kind, value)):
            return Step(kind, title, "keep")

        async def run() -> Mapping[str, Any]:
            return await self._add(kind, name, value)

        return create(kind, title, run)

    async def _has_name(self, kind: CredentialKind, name: str) -> bool:
        if self._partner_id is None:
            return False
        found = await self._context.database.read(list_credentials, kind, self._partner_id)
        return any(credential.name == name for credential in found)

    async def _has_text(self, kind: CredentialKind, value: str) -> bool:
        owner = await self._context.database.read(partner_of_credential, kind, hash_secret(value))
        if owner not in (None, self._partner_id):
            raise _taken_error(kind)
        return owner is not None

    async def _add(self, kind: CredentialKind, name: str, value: str | None) -> Mapping[str, Any]:
        context = self._context
        partner = await partner_with_email(context, self._email)
        text = context.ids.secret() if value is None else value
        key_name = name if kind is CredentialKind.API_KEY else ""
        if not await context.database.write(
            add_credential, kind, partner.id, hash_secret(text), context.clock.now_ms(), key_name
        ):  # stored meanwhile: by another process with the same document, or for another partner
            owner = await context.database.read(partner_of_credential, kind, hash_secret(text))
            if owner != partner.id:
                raise _taken_error(kind)
        return {"api_key": text} if value is None else {}


def _taken_error(kind: CredentialKind) -> ApiError:
    return ApiError(ErrorCode.ALREADY_EXISTS, f"The text of the {kind} is taken by another partner's; choose another.")
