"""The admin API's operations on partners: list, add, change the password, show and set quotas and retention periods."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from sqlalchemy import Connection

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext, partner_of
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.partner import MAX_PASSWORD_CHARS, MAX_QUOTA, Partner
from waypost.store.accounts import partners as stored
from waypost.store.accounts.credentials import delete_sessions
from waypost.store.queue.depths import change_own_quotas, count_backlog, read_own_quotas
from waypost.store.retention.columns import RetentionPeriods
from waypost.store.retention.partner_rules import apply_own_periods, change_own_periods, read_own_periods
from waypost.wire.responses import response

operation = AdminOperations()


class NewPartner(msgspec.Struct, forbid_unknown_fields=True):
    """A partner to add; without a password, only client secrets log in."""

    email: Annotated[str, Meta(description="By which it logs in; unique.")]
    name: Annotated[str, Meta(description="As the console shows it.")]
    password: Annotated[
        str | None,
        Meta(
            description="8 characters or more: upper case, lower case, a digit, a symbol; without one only client "
            "secrets log in."
        ),
    ] = None
    contact_name: Annotated[str, Meta(description="Of a person there.")] = ""
    phone_number: Annotated[str, Meta(description="Of that person.")] = ""

    def __post_init__(self) -> None:
        """Check the password, then the e-mail address."""
        if self.password is not None:
            _check_password(self.password)
        if self.email.count("@") != 1 or " " in self.email:
            raise invalid_field("email", "an e-mail address")


class NewPassword(msgspec.Struct, forbid_unknown_fields=True):
    """A new password."""

    password: Annotated[str, Meta(description="8 characters or more: upper case, lower case, a digit, a symbol.")]
    end_tokens: Annotated[
        bool, Meta(description="Revoke the partner's tokens too, which otherwise live up to a day.")
    ] = True
    keep_session: Annotated[str, Meta(description="The hash of the one console session that stays: the caller's.")] = ""

    def __post_init__(self) -> None:
        """Check the password."""
        _check_password(self.password)


class NewQuotas(msgspec.Struct, forbid_unknown_fields=True):
    """Quotas to set; one that is left out stays, null removes the partner's own, and 0 is no limit."""

    message_quota: Annotated[
        int | msgspec.UnsetType | None, Meta(description="Messages that wait for the operator.")
    ] = msgspec.UNSET
    callback_quota: Annotated[
        int | msgspec.UnsetType | None, Meta(description="Callbacks that wait for the partner's receivers.")
    ] = msgspec.UNSET

    def __post_init__(self) -> None:
        """Check both numbers."""
        for name, value in _sent_values(self).items():
            if value is not None and not 0 <= value <= MAX_QUOTA:
                raise invalid_field(
                    name, f"a number of 0 to {MAX_QUOTA}, where 0 is no limit; or null for the setting's"
                )


class ChangedPassword(msgspec.Struct, kw_only=True):
    """The effects of a changed password."""

    changed: bool = True
    sessions_ended: int
    tokens_ended: int | msgspec.UnsetType = msgspec.UNSET
    next: str


class Quota(msgspec.Struct):
    """A quota: what is waiting, what applies, the partner's own, and the service's."""

    waiting: int
    quota: int
    own_quota: int | None
    service_quota: int


class Quotas(msgspec.Struct):
    """The quotas of a partner."""

    messages: Quota
    callbacks: Quota


@operation("GET", "/admin/partners", response(partners=list[Partner]))
async def list_partners(context: AdminContext) -> dict[str, Any]:
    """Return every partner."""
    return {"partners": await context.database.read(stored.all_partners)}


@operation("POST", "/admin/partners", response(id=int))
async def add_partner(context: AdminContext, new_partner: NewPartner) -> dict[str, Any]:
    """Store a partner and return its id.

    Raises:
        ApiError: the e-mail address is in use.
    """
    partner = Partner(
        id=0,
        name=new_partner.name,
        email=new_partner.email,
        contact_name=new_partner.contact_name,
        phone_number=new_partner.phone_number,
    )
    password_hash = await context.passwords.hash(new_partner.password) if new_partner.password else ""
    partner_id = await context.database.write(stored.add_partner, partner, password_hash, context.clock.now_ms())
    if partner_id is None:
        raise ApiError(ErrorCode.ALREADY_EXISTS, "email is taken by another partner.", field="email")
    return {"id": partner_id}


@operation("POST", "/admin/partners/{partner_id}/password")
async def change_password(context: AdminContext, new_password: NewPassword, partner_id: int) -> ChangedPassword:
    """Set a partner's password and end its sessions. From then on the API accepts only client secrets.

    Source: spec, "Authentication", rule 2; decision 0058.

    Raises:
        ApiError: there is no such partner.
    """

    def change(connection: Connection) -> tuple[int, int]:
        stored.change_password(connection, partner_id, password_hash)
        tokens = stored.delete_partner_tokens(connection, partner_id) if new_password.end_tokens else 0
        return tokens, delete_sessions(connection, partner_id, new_password.keep_session)

    password_hash = await context.passwords.hash(new_password.password)
    await partner_of(context, partner_id)
    tokens_ended, sessions_ended = await context.database.write(change)
    if new_password.end_tokens:
        context.directory.invalidate()
    return ChangedPassword(
        sessions_ended=sessions_ended,
        tokens_ended=tokens_ended if new_password.end_tokens else msgspec.UNSET,
        next="The API accepts only client secrets from now on.",
    )


@operation("GET", "/admin/partners/{partner_id}/quotas")
async def show_quotas(context: AdminContext, partner_id: int) -> Quotas:
    """Return the quotas of a partner, its own and those that apply, and what it has waiting.

    Raises:
        ApiError: there is no such partner.
    """
    await partner_of(context, partner_id)
    own = await context.database.read(read_own_quotas, partner_id)
    service = context.default_quotas
    backlog = await context.database.read(count_backlog, partner_id, service)
    quotas = backlog.quotas
    return Quotas(
        Quota(backlog.messages, quotas.messages, own.messages, service.messages),
        Quota(backlog.callbacks, quotas.callbacks, own.callbacks, service.callbacks),
    )


@operation("PUT", "/admin/partners/{partner_id}/quotas")
async def change_quotas(context: AdminContext, new_quotas: NewQuotas, partner_id: int) -> Quotas:
    """Set quotas of a partner; every process applies them at once.

    Raises:
        ApiError: there is no such partner.
    """
    await partner_of(context, partner_id)
    await context.database.write(change_own_quotas, partner_id, _sent_values(new_quotas))
    context.apply_quotas(partner_id)
    return await show_quotas(context, partner_id)


def _sent_values(struct: msgspec.Struct) -> dict[str, int | None]:
    """Return the numbers that were sent, by name; null removes the partner's own."""
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value is not msgspec.UNSET}


def _check_password(password: str) -> None:
    """Check that a password satisfies the portal's rules.

    Source: facts 1.3.
    """
    kinds: tuple[Callable[[str], bool], ...] = (
        str.isupper,
        str.islower,
        str.isdigit,
        lambda char: not char.isalnum() and not char.isspace(),
    )
    if not 8 <= len(password) <= MAX_PASSWORD_CHARS or not all(any(kind(char) for char in password) for kind in kinds):
        accepted = (
            f"8 to {MAX_PASSWORD_CHARS} characters, among them an upper-case letter, a lower-case letter, a digit "
            "and a symbol"
        )
        raise ApiError(ErrorCode.FIELD_BROKEN, f"password must have {accepted}.", field="password", accepted=accepted)


class NewPeriods(msgspec.Struct, forbid_unknown_fields=True):
    """Periods to set, in days; one that is left out stays, and null removes the partner's own."""

    keep_bodies_days: Annotated[
        int | msgspec.UnsetType | None, Meta(description="Content: texts, callbacks, webhooks and files.")
    ] = msgspec.UNSET
    keep_messages_days: Annotated[
        int | msgspec.UnsetType | None, Meta(description="Messages: their states and traces, without the content.")
    ] = msgspec.UNSET


class RetentionPeriod(msgspec.Struct):
    """A period in days: the one that applies, the partner's own, and the service's."""

    days: int
    own_days: int | None
    service_days: int


class PartnerRetention(msgspec.Struct):
    """The retention periods of a partner."""

    keep_bodies_days: RetentionPeriod
    keep_messages_days: RetentionPeriod


@operation("GET", "/admin/partners/{partner_id}/retention")
async def show_periods(context: AdminContext, partner_id: int) -> PartnerRetention:
    """Return the retention periods of a partner: those that apply, its own, and the service's.

    Raises:
        ApiError: there is no such partner.
    """
    await partner_of(context, partner_id)
    own = await context.database.read(read_own_periods, partner_id)
    effective, service = _service_days(apply_own_periods(context.retention, own)), _service_days(context.retention)
    return PartnerRetention(*(RetentionPeriod(effective[name], getattr(own, name), service[name]) for name in service))


@operation("PUT", "/admin/partners/{partner_id}/retention")
async def change_periods(context: AdminContext, new_periods: NewPeriods, partner_id: int) -> PartnerRetention:
    """Set retention periods of a partner; the next run of retention applies them.

    Raises:
        ApiError: there is no such partner, or a period is longer than the service's.
    """
    await partner_of(context, partner_id)
    values = _sent_values(new_periods)
    check_periods(context.retention, values)
    await context.database.write(change_own_periods, partner_id, values)
    return await show_periods(context, partner_id)


def check_periods(keep: RetentionPeriods, values: dict[str, int | None]) -> None:
    """Check that periods of a partner are not longer than the service's.

    PostgreSQL drops callbacks and webhooks by the week, of all partners at once, so nobody can keep them longer.

    Raises:
        ApiError: one is.
    """
    service = _service_days(keep)
    for name, value in values.items():
        if value is not None and not 1 <= value <= service[name]:
            accepted = f"1 to {service[name]}, the setting {name} of the service, or null for that setting"
            raise invalid_field(name, accepted)


def _service_days(keep: RetentionPeriods) -> dict[str, int]:
    return {"keep_bodies_days": keep.bodies_days, "keep_messages_days": keep.messages_days}
