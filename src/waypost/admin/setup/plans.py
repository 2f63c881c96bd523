"""The steps of a plan: one for each part of the document."""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection

from waypost.admin.apps import AppConnection, AppRatesChange, NewApp, add_app, check_app_rates, connect_app, set_rates
from waypost.admin.callbacks import check_subscription
from waypost.admin.operator_accounts import (
    NewBusinessAccount,
    OperatorCallFailed,
    build_operator_account,
    call_operator,
    callback_url,
    put_account,
    put_business_account,
    subscribe_account,
)
from waypost.admin.partners import NewPartner, add_partner, check_periods
from waypost.admin.provisioning import AdminContext, partner_with_email
from waypost.admin.setup.document import AppSetup, BusinessAccountSetup, PartnerSetup, SubscriptionSetup
from waypost.base.encryption import hash_secret
from waypost.domain.app import App, BusinessAccount
from waypost.domain.callbacks import MAX_SUBSCRIPTIONS_PER_APP, Subscription, check_single_voice, resume_subscription
from waypost.domain.direct_calls import GetSubscription
from waypost.domain.errors import ApiError, ErrorCode, resource_not_found
from waypost.domain.partner import Partner
from waypost.domain.phone_number import read_phone_number
from waypost.store.accounts.credentials import CredentialKind, add_credential, list_credentials, partner_of_credential
from waypost.store.accounts.partners import business_account_by_id, change_partner, partner_by_email
from waypost.store.apps.apps import app_by_name, change_app
from waypost.store.callbacks.subscriptions import add_subscription, change_subscription, list_app_subscriptions
from waypost.store.retention.partner_rules import OwnPeriods, change_own_periods, read_own_periods
from waypost.wire.forms import Form
from waypost.wire.subscriptions import SubscriptionForm, read_subscription

Action = Literal["create", "change", "keep"]
Run = Callable[[], Awaitable[Mapping[str, Any]]]
"""Carries out a step; returns what is to be shown once, such as a generated key."""


@dataclass(frozen=True, slots=True)
class Step:
    """The work on one part of the document."""

    kind: str  # of the part, as named to people
    name: str  # of the part, within its kind
    action: Action
    fields: tuple[str, ...] = ()  # the fields that change; empty unless the action is `change`
    run: Run | None = field(default=None, repr=False)  # carries it out; None for `keep`


def create(kind: str, name: str, run: Run) -> Step:
    """Return the step that creates a part."""
    return Step(kind, name, "create", run=run)


def change_or_keep(kind: str, name: str, current: Mapping[str, Any], wanted: Mapping[str, Any], run: Run) -> Step:
    """Return the step that gives an existing part the wanted values, or leaves it if it has them.

    Args:
        kind: of the part.
        name: of the part.
        current: its values by field; more than the wanted ones may be there.
        wanted: the values that it must have, by field.
        run: gives it the values.
    """
    fields = tuple(name for name, value in wanted.items() if current[name] != value)
    return Step(kind, name, "change", fields, run) if fields else Step(kind, name, "keep")


OPERATOR_ACCOUNT = "operator account"
BUSINESS_ACCOUNT = "business account"
WEBHOOK = "webhook subscription"


async def plan_operator_account(context: AdminContext, account_id: str, members: Mapping[str, str]) -> Step:
    """Return the step for an operator account; its secrets are compared too.

    Raises:
        ApiError: a field is missing, invalid or not the adapter's.
    """
    existing = await context.directory.operator_account(account_id)
    account, _ = await build_operator_account(context, account_id, members)

    async def run() -> Mapping[str, Any]:
        put = await put_account(context, dict(members), account_id)
        return {name: value for name, value in put.items() if name not in ("id", "webhook_path")}

    if existing is None:
        return create(OPERATOR_ACCOUNT, account_id, run)
    fields = members.keys() - {"kind", "base_url"}
    wanted = {"base_url": account.base_url, **{name: account[name] for name in fields}}
    current = {"base_url": existing.base_url, **{name: existing[name] for name in fields}}
    return change_or_keep(OPERATOR_ACCOUNT, account_id, current, wanted, run)


async def plan_business_account(
    context: AdminContext, email: str, wanted: BusinessAccountSetup, new_operator_accounts: Collection[str]
) -> list[Step]:
    """Return the steps for a business account, and for its webhooks if the document says so.

    Args:
        context: of the admin API.
        email: of its partner, who may be new.
        wanted: the account.
        new_operator_accounts: ids of operator accounts that earlier steps create.

    Raises:
        ApiError: it is another partner's or at another operator account, or has another namespace; there is no such
            operator account; the operator does not return its webhook subscriptions.
    """
    operator_account = await context.directory.operator_account(wanted.operator_account)
    if operator_account is None and wanted.operator_account not in new_operator_accounts:
        text = f"operator_account of the business account {wanted.id} must name an operator account."
        raise ApiError(ErrorCode.NOT_FOUND, text, field="operator_account")
    existing = await context.database.read(business_account_by_id, wanted.id)

    async def add() -> Mapping[str, Any]:
        partner_id = (await partner_with_email(context, email)).id
        new_account = NewBusinessAccount(wanted.id, partner_id, wanted.operator_account, wanted.namespace)
        return {"namespace": (await put_business_account(context, new_account))["namespace"]}

    async def subscribe() -> Mapping[str, Any]:
        return {"callback_url": (await subscribe_account(context, wanted.id))["callback_url"]}

    if existing is None:
        steps = [create(BUSINESS_ACCOUNT, wanted.id, add)]
    else:
        await _check_same(context, email, wanted, existing)
        steps = [Step(BUSINESS_ACCOUNT, wanted.id, "keep")]
    if wanted.subscribe:
        if existing is not None and await _is_subscribed(context, existing):
            steps.append(Step(WEBHOOK, wanted.id, "keep"))
        else:
            steps.append(create(WEBHOOK, wanted.id, subscribe))
    return steps


async def _check_same(
    context: AdminContext, email: str, wanted: BusinessAccountSetup, existing: BusinessAccount
) -> None:
    """Check that an existing account is what the document says; neither owner nor namespace of one can change."""
    partner = await context.database.read(partner_by_email, email)
    if partner is None or existing.partner_id != partner.id:
        text = f"id {wanted.id} is taken by a business account of another partner."
        raise ApiError(ErrorCode.ALREADY_EXISTS, text, field="id")
    if existing.operator_account_id != wanted.operator_account:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            f"operator_account of the business account {wanted.id} is {existing.operator_account_id}; "
            "`waypost app operator` moves its apps, with their templates, to another one.",
            field="operator_account",
            accepted=existing.operator_account_id,
        )
    if wanted.namespace not in (None, existing.namespace):
        text = f"namespace of the business account {wanted.id} is {existing.namespace} and cannot be changed."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field="namespace", accepted=existing.namespace)


async def _is_subscribed(context: AdminContext, account: BusinessAccount) -> bool:
    operator_account = await context.directory.operator_account(account.operator_account_id)
    if operator_account is None:
        return False
    try:
        found = await call_operator(context.operators, operator_account, GetSubscription(account.id))
    except OperatorCallFailed as error:
        raise error.api_error() from error
    expected = callback_url(context, operator_account.id)
    return found.is_subscribed and all(url == expected for url in found.urls.values())


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
        check_periods(context.retention, periods._asdict())

    def write_change(connection: Connection) -> None:
        change_partner(connection, wanted.email, values)
        partner = partner_by_email(connection, wanted.email)
        if partner is not None and periods is not None:
            change_own_periods(connection, partner.id, periods._asdict())

    async def change() -> Mapping[str, Any]:
        await context.database.write(write_change)
        return {}

    async def add() -> Mapping[str, Any]:
        added = await add_partner(context, new_partner)
        if periods is not None:
            await context.database.write(change_own_periods, added["id"], periods._asdict())
        return added

    if existing is None:
        steps = [create(PARTNER, wanted.email, add)]
    else:
        current: dict[str, Any] = {name: getattr(existing, name) for name in _CHANGEABLE}
        wanted_values: dict[str, Any] = dict(values)
        if periods is not None:
            current["retention"] = await context.database.read(read_own_periods, existing.id)
            wanted_values["retention"] = periods
        steps = [change_or_keep(PARTNER, wanted.email, current, wanted_values, change)]
    secrets = [
        (CredentialKind.CLIENT_SECRET, str(n), secret.value) for n, secret in enumerate(wanted.client_secrets, 1)
    ]
    keys = [(CredentialKind.API_KEY, key.name, key.value) for key in wanted.api_keys]
    return steps + [await _plan_credential(context, wanted.email, existing, *each) for each in (*secrets, *keys)]


async def _plan_credential(
    context: AdminContext, email: str, partner: Partner | None, kind: CredentialKind, name: str, value: str | None
) -> Step:
    title, partner_id = f"{name} of {email}", None if partner is None else partner.id
    if value is not None:
        owner = await context.database.read(partner_of_credential, kind, hash_secret(value))
        if owner not in (None, partner_id):
            raise _taken_error(kind)
        is_there = owner is not None
    else:
        found = [] if partner_id is None else await context.database.read(list_credentials, kind, partner_id)
        is_there = any(credential.name == name for credential in found)
    if is_there:
        return Step(kind, title, "keep")
    return create(kind, title, partial(_add_credential, context, email, kind, name, value))


async def _add_credential(
    context: AdminContext, email: str, kind: CredentialKind, name: str, value: str | None
) -> Mapping[str, Any]:
    partner = await partner_with_email(context, email)
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


APP = "app"
SUBSCRIPTION = "subscription"
_CONNECTION = ("phone_number", "phone_number_id", "business_account_id", "live")


async def plan_app(
    context: AdminContext, email: str, wanted: AppSetup, new_business_accounts: Collection[str]
) -> list[Step]:
    """Return the steps for an app and its subscriptions.

    Args:
        context: of the admin API.
        email: of its partner, who may be new.
        wanted: the app.
        new_business_accounts: ids of the partner's business accounts that earlier steps create.

    Raises:
        ApiError: the business account is not the partner's; a subscription is invalid.
    """
    partner = await context.database.read(partner_by_email, email)
    await _check_business_account(context, partner, wanted, new_business_accounts)
    existing = None if partner is None else await context.database.read(app_by_name, partner.id, wanted.name)
    name = f"{wanted.name} of {email}"
    values = {
        "phone_number": read_phone_number(wanted.phone_number),
        "phone_number_id": wanted.phone_number_id,
        "business_account_id": wanted.business_account,
        "live": wanted.live,
        "per_second": wanted.per_second,
        **({} if wanted.rates is None else {"rates": check_app_rates(wanted.rates)}),
    }
    if existing is None:
        step = create(APP, name, partial(_add, context, email, wanted))
    else:
        current = {field: getattr(existing, field) for field in values}
        step = change_or_keep(APP, name, current, values, partial(_change, context, existing, values))
    return [step, *await _plan_subscriptions(context, email, wanted, existing)]


async def _add(context: AdminContext, email: str, wanted: AppSetup) -> Mapping[str, Any]:
    partner = await partner_with_email(context, email)
    app = await add_app(
        context,
        NewApp(
            partner_id=partner.id,
            name=wanted.name,
            phone_number=wanted.phone_number,
            phone_number_id=wanted.phone_number_id,
            business_account_id=wanted.business_account,
            per_second=wanted.per_second,
        ),
    )
    if not wanted.live:
        await _connect(context, app.id, asdict(app) | {"live": False})
    if wanted.rates:
        await set_rates(context, AppRatesChange(wanted.rates), app.id)
    return {"id": app.id, "app_token": app.app_token}


async def _change(context: AdminContext, app: App, values: Mapping[str, Any]) -> Mapping[str, Any]:
    now_ms = context.clock.now_ms()

    def set_throughput(stored: App) -> App:
        return replace(stored, per_second=values["per_second"], modified_on_ms=now_ms)

    if any(getattr(app, field) != values[field] for field in _CONNECTION):
        await _connect(context, app.id, values)
    if app.per_second != values["per_second"]:
        await context.database.write(change_app, app.id, set_throughput)
        context.directory.invalidate()
    if app.rates != values.get("rates", app.rates):
        await set_rates(context, AppRatesChange(values["rates"], reset=True), app.id)
    return {}


async def _connect(context: AdminContext, app_id: str, values: Mapping[str, Any]) -> None:
    await connect_app(context, AppConnection(**{field: values[field] for field in _CONNECTION}), app_id)


async def _check_business_account(
    context: AdminContext, partner: Partner | None, wanted: AppSetup, new_business_accounts: Collection[str]
) -> None:
    if wanted.business_account in new_business_accounts:
        return
    account = await context.database.read(business_account_by_id, wanted.business_account)
    if account is None or partner is None or account.partner_id != partner.id:
        text = f"business_account of the app {wanted.name} must name a business account of its partner."
        raise ApiError(ErrorCode.NOT_FOUND, text, field="business_account")


async def _plan_subscriptions(context: AdminContext, email: str, app: AppSetup, existing_app: App | None) -> list[Step]:
    unseal = context.directory.unseal
    found: list[Subscription] = []
    if existing_app is not None:
        found = await context.database.read(list_app_subscriptions, existing_app.id, existing_app.partner_id, unseal)
    by_tag = {subscription.tag: subscription for subscription in found}
    forms = [await _read_form(context, wanted) for wanted in app.subscriptions]
    if len({*by_tag, *(form.tag for form in forms)}) > MAX_SUBSCRIPTIONS_PER_APP:
        text = f"subscriptions of the app {app.name} must be at most {MAX_SUBSCRIPTIONS_PER_APP} with those it has."
        raise ApiError(ErrorCode.TOO_MANY_SUBSCRIPTIONS, text, field="subscriptions")
    steps: list[Step] = []
    for wanted, form in zip(app.subscriptions, forms, strict=True):
        kept = [other.modes for tag, other in by_tag.items() if all(tag != planned.tag for planned in forms)]
        check_single_voice(form.modes, [*kept, *(other.modes for other in forms if other is not form)])
        current, name = by_tag.get(form.tag), f"{form.tag} of {app.name}"
        if current is None:
            steps.append(create(SUBSCRIPTION, name, partial(_subscribe, context, email, app.name, form, wanted)))
        else:
            values = _values(form, wanted)
            now = {field: getattr(current, field) for field in values}
            run = partial(_change_subscription, context, current, values, wanted)
            steps.append(change_or_keep(SUBSCRIPTION, name, now, values, run))
    return steps


async def _read_form(context: AdminContext, wanted: SubscriptionSetup) -> SubscriptionForm:
    """Return a subscription as the partner API would read it, so that the same rules hold."""
    pairs = [
        ("tag", wanted.tag),
        ("url", wanted.url),
        ("version", str(wanted.version)),
        ("modes", ",".join(wanted.modes)),
        ("showOnUI", str(wanted.show_on_ui).lower()),
    ]
    if wanted.headers:
        pairs.append(("meta", json.dumps({"headers": wanted.headers})))
    form = read_subscription(Form(pairs))
    reason = await context.outbound.check_url(form.url)
    if reason is not None:
        text = f"url of the subscription {wanted.tag} must lead to public addresses only; {reason}."
        raise ApiError(ErrorCode.INVALID_URL, text, field="url")
    return form


def _values(form: SubscriptionForm, wanted: SubscriptionSetup) -> dict[str, Any]:
    return {
        "url": form.url,
        "version": form.version,
        "modes": form.modes,
        "headers": form.headers,
        "show_on_ui": form.show_on_ui,
        "active": wanted.active,
    }


async def _subscribe(
    context: AdminContext, email: str, app_name: str, form: SubscriptionForm, wanted: SubscriptionSetup
) -> Mapping[str, Any]:
    partner = await partner_with_email(context, email)
    app = await context.database.read(app_by_name, partner.id, app_name)
    if app is None:
        raise resource_not_found("app", "name", app_name)
    now_ms = context.clock.now_ms()
    subscription = Subscription(
        id="",
        partner_id=partner.id,
        app_id=app.id,
        tag=form.tag,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        meta=form.meta,
        **_values(form, wanted),
    )
    new_id = await context.database.write(
        add_subscription, subscription, context.directory.seal, MAX_SUBSCRIPTIONS_PER_APP
    )
    return {"id": new_id, **await _ping(context, int(new_id), wanted)}


async def _change_subscription(
    context: AdminContext, current: Subscription, values: Mapping[str, Any], wanted: SubscriptionSetup
) -> Mapping[str, Any]:
    now_ms = context.clock.now_ms()
    meta = json.dumps({"headers": wanted.headers}) if values["headers"] != current.headers else current.meta

    def change(stored: Subscription) -> Subscription:
        if wanted.active and (stored.url != wanted.url or not stored.active):
            stored = resume_subscription(stored)
        return replace(stored, **values, meta=meta, modified_on_ms=now_ms)

    directory = context.directory
    await context.database.write(change_subscription, current, change, directory.seal, directory.unseal)
    return await _ping(context, int(current.id), wanted) if wanted.url != current.url else {}


async def _ping(context: AdminContext, subscription_id: int, wanted: SubscriptionSetup) -> Mapping[str, Any]:
    """Return the result of a ping, if the document wants one; a URL that does not respond yet is no error."""
    if not wanted.check:
        return {}
    result = await check_subscription(context, subscription_id)
    return {"ping": "delivered" if result.delivered else result.error or f"status {result.status}"}
