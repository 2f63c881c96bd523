"""Steps for apps and their subscriptions."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from waypost.admin.apps import AppConnection, AppRatesChange, NewApp, add_app, check_app_rates, connect_app, set_rates
from waypost.admin.callbacks import check_subscription
from waypost.admin.provisioning import AdminContext, partner_with_email
from waypost.admin.setup.document import AppSetup, SubscriptionSetup
from waypost.admin.setup.steps import Step, change_or_keep, create
from waypost.domain.app import App
from waypost.domain.callbacks import MAX_SUBSCRIPTIONS_PER_APP, Subscription, check_single_voice, resume_subscription
from waypost.domain.errors import ApiError, ErrorCode, resource_not_found
from waypost.domain.partner import Partner
from waypost.domain.phone_number import read_phone_number
from waypost.store.accounts.partners import business_account_by_id, partner_by_email
from waypost.store.apps.apps import app_by_name, change_app
from waypost.store.callbacks.subscriptions import add_subscription, change_subscription, list_app_subscriptions
from waypost.wire.forms import Form
from waypost.wire.subscriptions import SubscriptionForm, read_subscription

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
    found = [] if existing_app is None else await _stored_subscriptions(context, existing_app)
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


async def _stored_subscriptions(context: AdminContext, app: App) -> list[Subscription]:
    return await context.database.read(list_app_subscriptions, app.id, app.partner_id, context.directory.unseal)
