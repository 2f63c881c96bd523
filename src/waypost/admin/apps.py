"""The admin API's operations on apps: list, add, connect, renew the token, list what it has, set rates."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import Connection

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.base.encryption import hash_secret
from waypost.domain.app import CONTACT_PATH, ONBOARDING_LINK_LIFE_MS, App
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, resource_not_found
from waypost.domain.phone_number import read_phone_number
from waypost.domain.rates import APP_RATES, RATES, format_rate, read_app_rates, remove_rates
from waypost.notifications.user_events import emit_live_event
from waypost.store.accounts import partners as stored
from waypost.store.apps.apps import DuplicateApp, change_app
from waypost.store.apps.onboarding import begin_onboarding
from waypost.store.apps.operator_history import record_operator_history
from waypost.store.callbacks.deliveries import DeliveryFilter, list_deliveries
from waypost.store.console.trace import newest_messages, newest_templates
from waypost.store.directory import DIRECTORY_CACHE_MS
from waypost.wire.responses import response

MAX_APP_MESSAGES: Final = 100
MAX_APP_CALLBACKS: Final = 400
MAX_APP_TEMPLATES: Final = 1000

operation = AdminOperations()


class NewApp(msgspec.Struct, forbid_unknown_fields=True):
    """An app to add."""

    partner_id: Annotated[int, Meta(description="The partner that gets it.")]
    name: Annotated[str, Meta(description="1 to 150 characters; unique.")]
    phone_number: Annotated[str, Meta(description="The source number: 8 to 15 digits; unique.")]
    phone_number_id: Annotated[str, Meta(description="The operator's id of the number.")]
    business_account_id: Annotated[str, Meta(description="The operator's id of a business account of the partner.")]
    per_second: Annotated[
        int | None, Meta(description="The operator's throughput for the number. [default: the service's setting]")
    ] = None


class AppConnection(msgspec.Struct, forbid_unknown_fields=True):
    """The number and the business account of an app."""

    phone_number: Annotated[str, Meta(description="The source number: 8 to 15 digits; unique.")]
    phone_number_id: Annotated[str, Meta(description="The operator's id of the number.")]
    business_account_id: Annotated[str, Meta(description="The operator's id of a business account of the partner.")]
    live: Annotated[bool, Meta(description="Live, or still a sandbox app.")] = True


class AppRatesChange(msgspec.Struct, forbid_unknown_fields=True):
    """Rates that an app gets of its own."""

    rates: Annotated[
        Mapping[str, str | None],
        Meta(
            description=(
                'By row, such as `{"templates": "20/60s"}`, or null to remove its own; those of other rows stay.'
            )
        ),
    ] = {}
    reset: Annotated[bool, Meta(description="True if all rates of its own are removed first.")] = False


@dataclass(frozen=True, slots=True)
class AddedApp(App):
    """An app with its token."""

    app_token: str = ""


class ListedMessage(msgspec.Struct):
    """A message that an app has sent, without its content."""

    id: str
    destination: str
    kind: str
    state: str
    code: int | None
    reason: str | None
    operator_message_id: str | None
    accepted_on_ms: int


class ListedCallback(msgspec.Struct):
    """A callback, delivered or not, without its body."""

    id: str
    subscription_id: int
    subject: str
    sequence: int
    message_id: str | None
    event: str
    created_on_ms: int
    ended_on_ms: int | None
    delivered: bool | None


class TemplateOfApp(msgspec.Struct):
    """A template, without its content."""

    id: str
    element_name: str
    language_code: str
    category: str
    status: str
    quality: str
    reason: str | None
    operator_template_id: str | None
    created_on_ms: int


class AppRate(msgspec.Struct):
    """A rate: the documented one, the service's, the app's own, and the one in force."""

    rate: str
    per: str
    documented: str
    service: str
    app: str | None
    source: Literal["app", "documented", "setting"]
    in_force: str | None


_APP_RATES: Final = response(app_id=str, limits_requests=bool, rates=list[AppRate])


@operation("GET", "/admin/apps", response(apps=list[App]))
async def list_apps(context: AdminContext) -> dict[str, Any]:
    """Return every app."""
    return {"apps": await context.database.read(stored.all_apps)}


@operation("POST", "/admin/apps")
async def add_app(context: AdminContext, new_app: NewApp) -> AddedApp:
    """Store an app with its source number, and return it with its app token.

    Raises:
        ApiError: a field is invalid, its name or its source number is in use, or its business account
            is not the partner's.
    """
    digits = read_phone_number(new_app.phone_number)
    if digits is None:
        raise invalid_field("phone_number", "8 to 15 digits")
    if not 1 <= len(new_app.name) <= 150:
        raise invalid_field("name", "1 to 150 characters")
    if new_app.per_second is not None and not 1 <= new_app.per_second <= 1000:
        raise invalid_field("per_second", "1 to 1000, or null")
    await _check_owner(context, new_app.business_account_id, new_app.partner_id)
    now_ms = context.clock.now_ms()
    app = App(
        id=context.ids.new(),
        partner_id=new_app.partner_id,
        name=new_app.name,
        phone_number=digits,
        phone_number_id=new_app.phone_number_id,
        business_account_id=new_app.business_account_id,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        per_second=new_app.per_second,
    )
    token = context.secret_box.app_token(app.id, app.token_serial)
    if not await context.database.write(stored.add_app, app, hash_secret(token)):
        raise ApiError(ErrorCode.ALREADY_EXISTS, "name or phone_number is taken by another app.", field="name")
    return AddedApp(**{each.name: getattr(app, each.name) for each in fields(app)}, app_token=token)


@operation("POST", "/admin/apps/{app_id}/connect")
async def connect_app(context: AdminContext, target: AppConnection, app_id: str) -> App:
    """Connect an app, such as one that its partner has created, to its number and business account.

    Late events of messages sent before still count, also from the previous operator.

    Raises:
        ApiError: there is no such app, a field is invalid, the number is another app's, or the business
            account is not the partner's.
    """
    app = await _find_app(context, app_id)
    digits = read_phone_number(target.phone_number)
    if digits is None or not target.phone_number_id:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            "phone_number must be 8 to 15 digits, and phone_number_id the operator's id of it.",
            field="phone_number" if digits is None else "phone_number_id",
        )
    await _check_owner(context, target.business_account_id, app.partner_id)
    now_ms = context.clock.now_ms()

    def connect(connection: Connection) -> App | None:
        def apply(current: App) -> App:
            record_operator_history(connection, current, now_ms + DIRECTORY_CACHE_MS)
            since_ms = current.preferences.live_since_ms if current.live else now_ms
            return replace(
                current,
                phone_number=digits,
                phone_number_id=target.phone_number_id,
                business_account_id=target.business_account_id,
                live=target.live,
                modified_on_ms=now_ms,
                preferences=replace(
                    current.preferences,
                    live_since_ms=since_ms if target.live else 0,
                    onboarding=None if target.live else current.preferences.onboarding,
                ),
            )

        before = stored.app_by_id(connection, app_id)
        changed = change_app(connection, app_id, apply)
        if changed is not None and changed.live and before is not None and not before.live:
            emit_live_event(connection, context.ids, changed, now_ms)
        return changed

    try:
        changed = await context.database.write(connect)
    except DuplicateApp as error:
        text = "phone_number is taken by another app."
        raise ApiError(ErrorCode.ALREADY_EXISTS, text, field="phone_number") from error
    context.directory.invalidate()
    if changed is None:
        raise resource_not_found("app", "app_id", app_id)
    return changed


@operation("POST", "/admin/apps/{app_id}/onboard")
async def onboard_app(context: AdminContext, app_id: str) -> App:
    """Begin the onboarding of an app that has a number and is not live, or begin it again after an error.

    The number is checked at the operator, the business account subscribed, and the number registered; then the app is
    live. `waypost doctor` shows why a step has failed.

    Raises:
        ApiError: there is no such app, it has no number, or it is live.
    """
    app = await _find_app(context, app_id)
    if app.live or not app.phone_number_id:
        text = "app_id must name an app that has a number and is not live."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field="app_id")
    now_ms = context.clock.now_ms()
    begun = await context.database.write(partial(begin_onboarding, app_id=app_id, at_ms=now_ms, due_ms=now_ms))
    context.directory.invalidate()
    if begun is None:
        raise resource_not_found("app", "app_id", app_id)
    return begun


@operation(
    "GET",
    "/admin/apps/{app_id}/contact-email",
    response(email=str, verified=bool, sent_on_ms=int, expires_on_ms=int, url=str),
)
async def show_contact_email(context: AdminContext, app_id: str) -> dict[str, Any]:
    """Return the e-mail address of an app's contact, and the link that confirms it: this service sends no mail.

    The link is empty if there is no address, or it is verified.

    Raises:
        ApiError: there is no such app.
    """
    app = await _find_app(context, app_id)
    email, sent_ms = app.preferences.contact_email, app.preferences.verification_sent_ms
    is_open = bool(email) and sent_ms > 0 and not app.preferences.contact_verified
    code = context.secret_box.contact_codes(app.id, email, sent_ms)[0] if is_open else ""
    return {
        "email": email,
        "verified": app.preferences.contact_verified,
        "sent_on_ms": sent_ms,
        "expires_on_ms": sent_ms + ONBOARDING_LINK_LIFE_MS if is_open else 0,
        "url": f"{context.public_url}{CONTACT_PATH}/{code}" if is_open else "",
    }


@operation("POST", "/admin/apps/{app_id}/token/revoke", response(app_token=str))
async def renew_token(context: AdminContext, app_id: str) -> dict[str, Any]:
    """Revoke an app's token and return the next one.

    Raises:
        ApiError: there is no such app.
    """
    serial = (await _find_app(context, app_id)).token_serial + 1
    token = context.secret_box.app_token(app_id, serial)
    await context.database.write(stored.renew_app_token, app_id, serial, hash_secret(token), context.clock.now_ms())
    context.directory.invalidate()
    return {"app_token": token}


@operation("GET", "/admin/apps/{app_id}/messages", response(messages=list[ListedMessage]))
async def list_messages(context: AdminContext, app_id: str) -> dict[str, Any]:
    """Return an app's newest messages."""
    await _find_app(context, app_id)
    return {"messages": await context.database.read(newest_messages, app_id, MAX_APP_MESSAGES)}


@operation("GET", "/admin/apps/{app_id}/callbacks", response(callbacks=list[ListedCallback]))
async def list_callbacks(context: AdminContext, app_id: str) -> dict[str, Any]:
    """Return an app's newest callbacks, delivered or not, without their bodies."""
    app = await _find_app(context, app_id)
    newest = partial(list_deliveries, at_most=MAX_APP_CALLBACKS)
    page = await context.database.read(newest, app.partner_id, app_id, DeliveryFilter())
    return {"callbacks": page.rows}


@operation("GET", "/admin/apps/{app_id}/templates", response(templates=list[TemplateOfApp]))
async def list_templates(context: AdminContext, app_id: str) -> dict[str, Any]:
    """Return an app's newest templates."""
    await _find_app(context, app_id)
    return {"templates": await context.database.read(newest_templates, app_id, MAX_APP_TEMPLATES)}


@operation("GET", "/admin/apps/{app_id}/rates", _APP_RATES)
async def show_rates(context: AdminContext, app_id: str) -> dict[str, Any]:
    """Return an app's rates: the documented ones, the service's, its own, and those in force."""
    return _rates_view(context, await _find_app(context, app_id))


@operation("PUT", "/admin/apps/{app_id}/rates", _APP_RATES)
async def set_rates(context: AdminContext, change: AppRatesChange, app_id: str) -> dict[str, Any]:
    """Give an app rates of its own, or remove them; they apply in every process at once.

    Raises:
        ApiError: a rate is invalid or is not one of an app; there is no such app.
    """
    rates = check_app_rates({name: text for name, text in change.rates.items() if text is not None})
    removed = [name for name, text in change.rates.items() if text is None]
    with _rate_errors():
        remove_rates({}, removed)
    now_ms = context.clock.now_ms()

    def set_own(app: App) -> App:
        kept = {} if change.reset else remove_rates(app.rates, removed)
        return replace(app, rates={**kept, **rates}, modified_on_ms=now_ms)

    app = await context.database.write(change_app, app_id, set_own)
    context.directory.invalidate()
    if app is None:
        raise resource_not_found("app", "app_id", app_id)
    return _rates_view(context, app)


def check_app_rates(rates: Mapping[str, str]) -> dict[str, str]:
    """Return an app's own rates in the form in which they are stored.

    Raises:
        ApiError: one is invalid; the text names it.
    """
    with _rate_errors():
        return read_app_rates(rates)


@contextmanager
def _rate_errors() -> Generator[None]:
    try:
        yield
    except ValueError as error:
        accepted = 'rows of the table of rates, such as {"templates": "20/60s"}'
        raise ApiError(ErrorCode.FIELD_BROKEN, f"rates: {error}.", field="rates", accepted=accepted) from error


async def _find_app(context: AdminContext, app_id: str) -> App:
    app = await context.database.read(stored.app_by_id, app_id)
    if app is None:
        raise resource_not_found("app", "app_id", app_id)
    return app


async def _check_owner(context: AdminContext, business_account_id: str, partner_id: int) -> None:
    account = await context.directory.business_account(business_account_id)
    if account is None or account.partner_id != partner_id:
        text = "business_account_id must name a business account of the partner."
        raise ApiError(ErrorCode.NOT_FOUND, text, field="business_account_id")


def _rates_view(context: AdminContext, app: App) -> dict[str, Any]:
    rates: list[AppRate] = []
    for name in APP_RATES:
        documented, service = format_rate(RATES[name]), format_rate(context.rates[name])
        own = app.rates.get(name)
        rates.append(
            AppRate(
                rate=name,
                per=RATES[name].per,
                documented=documented,
                service=service,
                app=own,
                source="app" if own else "documented" if service == documented else "setting",
                in_force=(own or service) if context.rates_on else None,
            )
        )
    return {"app_id": app.id, "limits_requests": context.rates_on, "rates": rates}
