"""The end of the signup window behind an app's onboarding link: the app gets the number, and its onboarding begins.

Source: operator's facts 14.2, 14.4; decision 0128.
"""

import json
from typing import Any, Final
from urllib.parse import urlencode

from waypost.admin.apps import AppConnection, connect_app, onboard_app
from waypost.admin.operator_accounts import NewBusinessAccount, put_business_account
from waypost.admin.provisioning import AdminContext, put_operator_account
from waypost.base.json_values import list_of, object_of, objects_in, text_or_none
from waypost.domain.app import App, OperatorAccount
from waypost.domain.errors import ApiError
from waypost.operators.contract import GraphRequest
from waypost.store.accounts.partners import all_apps

_VERSION: Final = "v25.0"
_WINDOW_HOSTS: Final = {"https://graph.facebook.com": "https://business.facebook.com"}
"""Where the hosted signup window of an operator is, if its Graph API is elsewhere. Source: decision 0128."""
_OF_ACCOUNTS: Final = "whatsapp_"
_NUMBER_FIELDS: Final = "id,display_phone_number,last_onboarded_time"


class SignupNotFinished(Exception):
    """A signup has not connected the app; the argument is the reason, in a sentence."""


def signup_url(account: OperatorAccount, app: App, return_url: str) -> str:
    """Return the URL of the operator's signup window; empty if the operator account names no app.

    At an operator whose windows are elsewhere it is the hosted window, which returns to nobody: its dialog needs a
    login configuration, which the service does not know.
    """
    app_id = account.fields.get("app_id", "")
    if not app_id:
        return ""
    if account.base_url in _WINDOW_HOSTS:
        return f"{_WINDOW_HOSTS[account.base_url]}/messaging/whatsapp/onboard/?{urlencode({'app_id': app_id})}"
    given = app.preferences.prefilled
    business = {"name": given.get("businessName") or app.name}
    business |= {name: given[name] for name in ("email", "website") if given.get(name)}
    phone = {"displayName": given.get("phoneDisplayName") or app.name, "category": given.get("phoneCategory", "")}
    query = {
        "client_id": app_id,
        "redirect_uri": return_url,
        "response_type": "code",
        "extras": json.dumps({"version": "v4", "setup": {"business": business, "phone": phone}}),
    }
    return f"{account.base_url}/{_VERSION}/dialog/oauth?{urlencode(query)}"


async def finish_signup(
    context: AdminContext, account: OperatorAccount, app: App, *, code: str, return_url: str
) -> None:
    """Exchange the code of a finished window, connect the app to the number that it names, and begin its onboarding.

    The business's accounts are reached with the token of the business, by an operator account of their own.

    Args:
        account: the operator account whose app opened the window.
        return_url: the same as in the URL of the window.

    Raises:
        SignupNotFinished: the code is no good any more, or the app cannot be connected.
    """
    if app.phone_number_id:
        raise SignupNotFinished("The app has a number already.")
    secrets = {"client_id": account["app_id"], "client_secret": account["app_secret"]}
    exchange = {**secrets, "code": code, "redirect_uri": return_url}
    token = text_or_none((await _request(context, account, "oauth/access_token", exchange)).get("access_token")) or ""
    of_business = account.replace_fields(token=token)
    waba_id, number = await _find_number(context, of_business, account)
    known = await context.directory.business_account(waba_id)
    if known is not None and known.partner_id != app.partner_id:
        raise SignupNotFinished("Another partner has this business account.")
    try:
        if known is None:
            fields = {**of_business.fields, "verify_token": context.ids.secret()}
            own = OperatorAccount(f"signup-{waba_id}", account.kind, account.base_url, fields)
            await put_operator_account(context, own)
            await put_business_account(context, NewBusinessAccount(waba_id, app.partner_id, own.id))
        target = AppConnection(str(number["display_phone_number"]), str(number["id"]), waba_id, live=False)
        await connect_app(context, target, app.id)
        await onboard_app(context, app.id)
    except ApiError as error:
        raise SignupNotFinished(error.explanation) from error


async def _find_number(
    context: AdminContext, of_business: OperatorAccount, account: OperatorAccount
) -> tuple[str, dict[str, Any]]:
    """Return the newest number that no app has yet, and its business account: the token may open several of both."""
    inspector = account.replace_fields(token=f"{account['app_id']}|{account['app_secret']}")
    data = object_of(
        (await _request(context, inspector, "debug_token", {"input_token": of_business["token"]})).get("data")
    )
    scopes = [
        scope for scope in objects_in(data.get("granular_scopes")) if str(scope.get("scope")).startswith(_OF_ACCOUNTS)
    ]
    waba_ids = dict.fromkeys(str(target) for scope in scopes for target in list_of(scope.get("target_ids")))
    taken = {app.phone_number_id for app in await context.database.read(all_apps)}
    found: list[tuple[str, str, dict[str, Any]]] = []
    for waba_id in waba_ids:
        listed = await _request(context, of_business, f"{waba_id}/phone_numbers", {"fields": _NUMBER_FIELDS})
        found += [
            (str(number.get("last_onboarded_time", "")), waba_id, number)
            for number in objects_in(listed.get("data"))
            if number.get("id") not in taken
        ]
    if not found:
        raise SignupNotFinished("The signup gave no new number.")
    _, waba_id, number = max(found, key=lambda each: each[0])
    return waba_id, number


async def _request(context: AdminContext, account: OperatorAccount, path: str, query: dict[str, str]) -> dict[str, Any]:
    graph = context.operators.adapter(account).graph
    if graph is None:
        raise SignupNotFinished("The operator has no signup window.")
    response = await graph.request(account, GraphRequest("GET", path, query=query))
    if not isinstance(response, dict):
        raise SignupNotFinished(f"The operator returned an error: {response.text}")
    return response
