"""Checks of the webhook: the operator has our URL, and our URL responds to its handshake."""

import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

from waypost.admin.doctor.check_result import Finding, ok, warning, wrong
from waypost.admin.doctor.error_explanations import refused
from waypost.admin.doctor.local import is_local
from waypost.admin.operator_accounts import callback_url
from waypost.admin.operator_requests import NotTold, ask
from waypost.admin.provisioning import AdminContext
from waypost.client.api_client import NotReached, OverHttp, Reply
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import GetSubscription

WITHIN_S: Final = 10


async def look_at_subscription(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: tuple[App, ...]
) -> list[Finding]:
    """Check that our app at the operator is subscribed to the business account, with our webhook URL."""
    about = f"{account.id}: webhook of {owner.id}"
    fix_hint = f"waypost account subscribe {owner.id}"
    try:
        subscription = await ask(context.operators, account, GetSubscription(owner.id))
    except NotTold as error:
        return refused(about, account.id, error)
    if not subscription.is_subscribed:
        others = ", ".join(subscription.others) or "none"
        text = f"the operator app {subscription.subscriber} is not subscribed; subscribed: {others}"
        return [wrong(about, text, fix_hint)]
    expected = callback_url(context, account.id)
    urls = {subscription.urls[app.phone_number_id] for app in apps if app.phone_number_id in subscription.urls}
    if not urls and "" in subscription.urls:
        urls = {subscription.urls[""]}
    if not urls:
        text = "subscribed; the operator does not return the address"
        return [warning(about, text, f"to make sure: {fix_hint}")]
    other_urls = sorted(urls - {expected})
    if other_urls:
        text = f"is sent to {other_urls[0]}, and ours is {expected}"
        return [wrong(about, text, fix_hint)]
    return [ok(about, f"subscribed at {expected}")]


async def look_at_handshake(context: AdminContext, account: OperatorAccount) -> list[Finding]:
    """Check that our public URL returns the challenge, and rejects a wrong verify token."""
    about, address = f"{account.id}: our address", callback_url(context, account.id)
    fix_hint = "start the service, and set WAYPOST_PUBLIC_URL to where the operator reaches it"
    if urlsplit(address).scheme != "https" and not is_local(account.base_url):
        text = f"{address} is not https, and the operator calls only https"
        return [wrong(about, text, fix_hint)]
    challenge = secrets.token_hex(8)
    query = context.operators.of(account).handshake(account, challenge, is_right=True)
    wrong_query = context.operators.of(account).handshake(account, challenge, is_right=False)
    if query is None or wrong_query is None:
        return []
    try:
        right_response = await _shake(address, query)
        wrong_response = await _shake(address, wrong_query)
    except NotReached:
        return [wrong(about, f"{address} cannot be reached", fix_hint)]
    if right_response.status != 200 or right_response.body != challenge.encode():
        text = f"{address} does not return the challenge; its response is {right_response.status}"
        return [wrong(about, text, f"another service may run there; {fix_hint}")]
    if wrong_response.status == 200:
        text = f"{address} accepts a wrong verify token"
        return [wrong(about, text, f"another service may run there; {fix_hint}")]
    return [ok(about, f"{address} passes the handshake, and rejects a wrong verify token")]


async def _shake(address: str, query: Mapping[str, str]) -> Reply:
    parts = urlsplit(address)
    call = OverHttp(f"{parts.scheme}://{parts.netloc}", timeout_s=WITHIN_S)
    return await call("GET", f"{parts.path}?{urlencode(query)}", {}, None)
