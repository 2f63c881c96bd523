"""Checks of the webhook: the operator has our URL, and our URL responds to its handshake."""

import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

from waypost.admin.doctor.check_result import CheckResult, failed_call_results, failure, ok, warning
from waypost.admin.doctor.local import is_local
from waypost.admin.operator_accounts import callback_url
from waypost.admin.operator_requests import OperatorCallFailed, call_operator
from waypost.admin.provisioning import AdminContext
from waypost.client.api_client import ApiUnreachable, ClientResponse, HttpTransport
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import GetSubscription, ListMissingFields

HANDSHAKE_TIMEOUT_S: Final = 10


async def check_webhook_subscription(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: tuple[App, ...]
) -> list[CheckResult]:
    """Check that our app at the operator is subscribed to the business account, with our webhook URL."""
    subject = f"{account.id}: webhook of {owner.id}"
    fix_hint = f"waypost account subscribe {owner.id}"
    try:
        subscription = await call_operator(context.operators, account, GetSubscription(owner.id))
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    if not subscription.is_subscribed:
        others = ", ".join(subscription.others) or "none"
        text = f"the operator app {subscription.subscriber} is not subscribed; subscribed: {others}"
        return [failure(subject, text, fix_hint)]
    expected = callback_url(context, account.id)
    urls = {subscription.urls[app.phone_number_id] for app in apps if app.phone_number_id in subscription.urls}
    if not urls and "" in subscription.urls:
        urls = {subscription.urls[""]}
    if not urls:
        text = "subscribed; the operator does not return the address"
        return [warning(subject, text, f"to make sure: {fix_hint}")]
    other_urls = sorted(urls - {expected})
    if other_urls:
        text = f"is sent to {other_urls[0]}, and ours is {expected}"
        return [failure(subject, text, fix_hint)]
    return [ok(subject, f"subscribed at {expected}")]


async def check_webhook_fields(context: AdminContext, account: OperatorAccount) -> list[CheckResult]:
    """Check that our app at the operator is subscribed to every webhook field that we need."""
    subject = f"{account.id}: webhook fields"
    try:
        missing = await call_operator(context.operators, account, ListMissingFields())
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    if not missing:
        return [ok(subject, "all that the service needs are subscribed")]
    text = "not subscribed: " + "; ".join(f"{field.name} ({field.consequence})" for field in missing)
    fix_hint = "subscribe to them in the app's configuration at the operator"
    is_serious = any(field.is_serious for field in missing)
    return [failure(subject, text, fix_hint) if is_serious else warning(subject, text, fix_hint)]


async def check_handshake(context: AdminContext, account: OperatorAccount) -> list[CheckResult]:
    """Check that our public URL returns the challenge, and rejects a wrong verify token."""
    subject, address = f"{account.id}: our address", callback_url(context, account.id)
    fix_hint = "start the service, and set WAYPOST_PUBLIC_URL to where the operator reaches it"
    if urlsplit(address).scheme != "https" and not is_local(account.base_url):
        text = f"{address} is not https, and the operator calls only https"
        return [failure(subject, text, fix_hint)]
    challenge = secrets.token_hex(8)
    query = context.operators.adapter(account).handshake(account, challenge, is_right=True)
    wrong_query = context.operators.adapter(account).handshake(account, challenge, is_right=False)
    if query is None or wrong_query is None:
        return []
    try:
        right_response = await _send_handshake(address, query)
        wrong_response = await _send_handshake(address, wrong_query)
    except ApiUnreachable:
        return [failure(subject, f"{address} cannot be reached", fix_hint)]
    if right_response.status != 200 or right_response.body != challenge.encode():
        text = f"{address} does not return the challenge; its response is {right_response.status}"
        return [failure(subject, text, f"another service may run there; {fix_hint}")]
    if wrong_response.status == 200:
        text = f"{address} accepts a wrong verify token"
        return [failure(subject, text, f"another service may run there; {fix_hint}")]
    return [ok(subject, f"{address} passes the handshake, and rejects a wrong verify token")]


async def _send_handshake(address: str, query: Mapping[str, str]) -> ClientResponse:
    parts = urlsplit(address)
    call = HttpTransport(f"{parts.scheme}://{parts.netloc}", timeout_s=HANDSHAKE_TIMEOUT_S)
    return await call("GET", f"{parts.path}?{urlencode(query)}", {}, None)
