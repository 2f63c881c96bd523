"""Graph API calls for an app: its token, and the subscription of its webhooks.

Source: the operator's pages "App access tokens" and "App subscriptions".
"""

from collections.abc import Iterable
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from waypost.base.json_values import list_or_none, object_or_none
from waypost.simulator.accounts.model import save_app
from waypost.simulator.apis.errors import bad_parameter, coded_error
from waypost.simulator.apis.parameters import check_id, is_missing, one_of, read_parameters, read_text
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.messages.marketing import find_marketing_status
from waypost.simulator.numbers.names import check_display_name
from waypost.simulator.numbers.registration import read_pin
from waypost.simulator.onboarding.model import PORTFOLIOS
from waypost.simulator.state.accounts import (
    NUMBER_WEBHOOKS,
    SUBSCRIPTIONS,
    Account,
    Business,
    GraphApp,
    GraphSubscription,
    Number,
    owner_id,
)
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import NodeKind, app_data, health_status, page
from waypost.simulator.state.records import FUNDING, NAMES, REGISTRATION
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.tokens import check_token, debug_view
from waypost.simulator.storage.tables.updates import FAULTED_UPDATES, OUTBOX, WEBHOOK_FIELDS
from waypost.simulator.webhooks.webhooks import EndpointVerificationFailed, delete_retries, retry_now, verify_endpoint

operation = GraphOperations()


_OBJECT: Final = "whatsapp_business_account"


def _check_object(name: str, value: Any) -> str:
    if not value:
        raise is_missing(name)
    return str(one_of(_OBJECT)(name, value))


def _read_fields(name: str, value: Any) -> tuple[str, ...]:
    """Return the webhook fields that a call names, each once: an array, its JSON text, or a text with commas."""
    if isinstance(value, str):
        value = value.strip().removeprefix("[").removesuffix("]").replace('"', "").split(",")
    names = [str(item).strip() for item in list_or_none(value) or []]
    fields = tuple(dict.fromkeys(item for item in names if item))
    for index, item in enumerate(fields):
        if item not in WEBHOOK_FIELDS:
            raise bad_parameter(f"Param {name}[{index}] must be one of {{{', '.join(WEBHOOK_FIELDS)}}} - got {item!r}.")
    return fields


class AppSubscriptionParameters(Struct, frozen=True):
    """The parameters of an app's subscription; `fields` may be empty until the handshake has succeeded."""

    object: Annotated[str, _check_object]
    fields: Annotated[tuple[str, ...], _read_fields]
    callback_url: Annotated[str, check_id]
    verify_token: Annotated[str, read_text] = ""


class EndedSubscriptionParameters(Struct, frozen=True):
    """The fields whose webhooks an app no longer wants; none: all."""

    object: Annotated[str, one_of(_OBJECT)] = _OBJECT
    fields: Annotated[tuple[str, ...], _read_fields] = ()


class OverrideParameters(Struct, frozen=True):
    """The callback URI with which an app overrides that of an account or a number."""

    override_callback_uri: Annotated[str, read_text] = ""
    verify_token: Annotated[str, read_text] = ""


class DebugTokenParameters(Struct, frozen=True):
    """The token to be shown."""

    input_token: Annotated[str, check_id]


@operation("apps.subscriptions", "POST", GraphApp, "subscriptions", permission=None)
async def subscribe_app(state: SimulatorState, call: Call, app: GraphApp) -> dict[str, Any]:
    """Set the app's callback URI after a handshake, and the fields that are sent to it in place of earlier ones.

    Raises:
        GraphApiError: 100, a parameter is missing, or a field is unknown; 2200, the handshake failed.
    """
    new = read_parameters(AppSubscriptionParameters, call.fields)
    await _shake_hands(state, new.callback_url, new.verify_token)
    if not new.fields:
        raise is_missing("fields")
    changes = {"callback_uri": new.callback_url, "verify_token": new.verify_token, "fields": new.fields}
    await _save_app(state, replace(app, **changes))
    return GRAPH_SUCCESS


@operation("apps.delete_subscriptions", "DELETE", GraphApp, "subscriptions", permission=None)
async def unsubscribe_app(state: SimulatorState, call: Call, app: GraphApp) -> dict[str, Any]:
    """Stop the app's webhooks, or those about some fields."""
    ended = read_parameters(EndedSubscriptionParameters, call.fields).fields or app.fields
    kept = tuple(field for field in app.fields if field not in ended)
    without_uri = {} if kept else {"callback_uri": "", "verify_token": ""}
    await _save_app(state, replace(app, fields=kept, **without_uri))
    return GRAPH_SUCCESS


async def _save_app(state: SimulatorState, app: GraphApp) -> None:
    await save_app(state, app)
    for owner in state.accounts.webhook_owners(app.app_id):
        await retry_now(state, owner)


async def read_override(state: SimulatorState, app_id: str, waba_id: str, members: dict[str, Any]) -> str:
    """Return the callback URI with which an app overrides that of an account or a number, after a handshake.

    Returns:
        The URI; empty if the members have none.

    Raises:
        GraphApiError: 100, the app has no subscription that could be overridden: to messages, and to the account; 2200,
            the handshake failed.

    Source: the operator's page "Override webhooks".
    """
    override = read_parameters(OverrideParameters, members)
    uri = override.override_callback_uri
    if not uri:
        return ""
    app = state.accounts.apps.get(app_id)
    if app is None or not app.gets_messages or state.accounts.subscription(waba_id, app_id) is None:
        raise bad_parameter(
            "Before override the current callback uri, your app must be subscribed to receive messages for WhatsApp "
            "Business Account"
        )
    await _shake_hands(state, uri, override.verify_token)
    return uri


async def _shake_hands(state: SimulatorState, uri: str, verify_token: str) -> None:
    """Verify a callback URI by the handshake. Raises GraphApiError: 2200, the handshake failed."""
    try:
        await verify_endpoint(uri, verify_token, state.ids.digits(10))
    except EndpointVerificationFailed as failure:
        raise coded_error(2200, f"Callback verification failed with the following errors: {failure}") from failure


@operation("subscriptions.create", "POST", Account, "subscribed_apps")
async def subscribe(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Subscribe the calling app to the account's webhooks, with an optional callback URI. Source: facts 1."""
    uri = await read_override(state, call.app_id, account.waba_id, call.fields)
    subscription = GraphSubscription(account.waba_id, call.app_id, uri)
    await state.cached(SUBSCRIPTIONS).save(subscription, call.app_id, account.waba_id)
    await retry_now(state, account.waba_id)
    return GRAPH_SUCCESS


@operation("subscriptions.delete", "DELETE", Account, "subscribed_apps")
def unsubscribe(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Stop the account's webhooks to the calling app; those that wait are deleted. Source: facts 1."""
    waba_id, app_id = account.waba_id, call.app_id
    transaction.delete(SUBSCRIPTIONS, app_id, waba_id)
    for table in (OUTBOX, FAULTED_UPDATES):
        transaction.run(table.delete(waba_id=waba_id, app_id=app_id))
    delete_retries(transaction, waba_id, app_id)
    return GRAPH_SUCCESS


@operation("numbers.change", "POST", Number)
async def change_number(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Set the number's PIN, a callback URI of its own, or request a display name; an empty URI removes it.

    Source: facts 7.1, "override"; the operator's page "Display names".
    """
    fields, number_id = call.fields, number.phone_number_id
    webhook, name = fields.get("webhook_configuration"), fields.get("new_display_name")
    if webhook is None and name is None and "pin" not in fields:
        raise bad_parameter("The parameter pin, new_display_name or webhook_configuration is required.")
    requested = {"requested_name": name, "requested_status": "PENDING_REVIEW"}
    if name is not None:
        check_display_name("new_display_name", name)
        await state.transact(lambda transaction: transaction.change_record(number_id, NAMES, **requested))
    if webhook is not None:
        configuration = object_or_none(webhook)
        if configuration is None:
            raise bad_parameter("Param webhook_configuration must be an object.")
        uri = await read_override(state, call.app_id, number.waba_id, configuration)
        if uri:
            await state.cached(NUMBER_WEBHOOKS).save(uri, number_id, call.app_id)
        else:
            await state.cached(NUMBER_WEBHOOKS).delete(number_id, call.app_id)
        await retry_now(state, number.waba_id)
    if "pin" in fields:
        pin = read_pin("pin", fields["pin"])
        await state.transact(lambda transaction: transaction.change_record(number_id, REGISTRATION, pin=pin, guesses=0))
    return GRAPH_SUCCESS


class _AccountView(NamedTuple):
    """An account, and the state that its fields are made of."""

    state: SimulatorState
    account: Account


def list_subscribed_apps(state: SimulatorState, _call: Call | None, account: Account) -> dict[str, Any]:
    """Return the apps subscribed to an account, with their overriding callback URIs. Source: facts 1."""
    return {
        "data": [
            {
                "whatsapp_business_api_data": app_data(account, subscription.app_id),
                **({"override_callback_uri": subscription.override_uri} if subscription.override_uri else {}),
            }
            for subscription in state.accounts.subscriptions_of(account.waba_id)
        ]
    }


def _show_owner(view: _AccountView) -> dict[str, str]:
    owner = owner_id(view.account)
    portfolio = view.state.values(PORTFOLIOS).get(owner)
    return {"id": owner, "name": portfolio.name if portfolio is not None else view.account.name}


def _show_verification(view: _AccountView) -> str:
    portfolio = view.state.values(PORTFOLIOS).get(owner_id(view.account))
    return "verified" if portfolio is None or portfolio.is_verified else "not_verified"


_ACCOUNT_NODE: Final = NodeKind[_AccountView](  # Source: facts 1, "WABA node"
    "WhatsAppBusinessAccount",
    ("id", "name", "timezone_id", "message_template_namespace"),
    {
        "id": lambda view: view.account.waba_id,
        "name": lambda view: view.account.name,
        "timezone_id": "1",
        "message_template_namespace": lambda view: view.account.namespace,
        "account_review_status": "APPROVED",
        "business_verification_status": _show_verification,
        "currency": "USD",
        "country": "US",
        "status": "ACTIVE",
        "ownership_type": "CLIENT_OWNED",
        "health_status": lambda view: health_status("WABA", view.account.waba_id),
        "subscribed_apps": lambda view: list_subscribed_apps(view.state, None, view.account),
        "is_enabled_for_insights": True,
        "owner_business_info": _show_owner,
        "on_behalf_of_business_info": None,
        "primary_funding_id": lambda view: view.state.record(view.account.waba_id, FUNDING).get("credential_id"),
        "purchase_order_number": None,
        "marketing_messages_lite_api_status": lambda view: find_marketing_status(view.state, view.account.waba_id),
        "marketing_messages_onboarding_status": lambda view: find_marketing_status(view.state, view.account.waba_id),
        "disable_marketing_messages_on_cloud_api": False,
    },
)


def show_account(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return a business account as the operator shows it. Source: facts 1, "WABA node"."""
    return _ACCOUNT_NODE.show(_AccountView(state, account), call.query.get("fields"))


def list_owned_accounts(state: SimulatorState, call: Call, business: Business) -> dict[str, Any]:
    """Return the accounts that a business owns. Source: the operator's page "Manage accounts"."""
    return _list_accounts(state, call, business.owned)


def list_shared_accounts(state: SimulatorState, call: Call, business: Business) -> dict[str, Any]:
    """Return the accounts that are shared with a business. Source: the operator's page "Manage accounts"."""
    return _list_accounts(state, call, business.shared)


def _list_accounts(state: SimulatorState, call: Call, accounts: Iterable[Account]) -> dict[str, Any]:
    """Return accounts, as far as the token is for them."""
    for name in ("filtering", "sort"):
        if name in call.query:
            raise bad_parameter(f"Param {name}: simulated accounts have no creation time to filter or sort by.")
    token = check_token(state, call.token)
    return page(
        call,
        [account for account in accounts if account.waba_id in token.waba_ids],
        lambda account: account.waba_id,
        lambda account: show_account(state, call, account),
    )


def list_app_subscriptions(_state: SimulatorState, _call: Call, app: GraphApp) -> dict[str, Any]:
    """Return an app's webhook subscription. Source: the operator's page "App subscriptions"."""
    if not app.callback_uri:
        return {"data": []}
    fields = [{"name": name, "version": "v25.0"} for name in app.fields]
    subscription = {"object": "whatsapp_business_account", "callback_url": app.callback_uri, "active": True}
    return {"data": [{**subscription, "fields": fields}]}


@operation("debug_token.read", "GET", "debug_token")
async def debug_token(state: SimulatorState, call: Call) -> dict[str, Any]:
    """Return the debug data of a token. Source: the operator's page "Debug-Token"."""
    return {"data": debug_view(state, read_parameters(DebugTokenParameters, call.query).input_token)}
