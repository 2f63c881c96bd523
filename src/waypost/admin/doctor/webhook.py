"""The way back: the operator knows our address, and our address answers as the operator expects."""

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
    """Whether our app at the operator hears of the business account, at our address."""
    about = f"{account.id}: webhook of {owner.id}"
    remedy = f"waypost account subscribe {owner.id}"
    try:
        found = await ask(context.operators, account, GetSubscription(owner.id))
    except NotTold as error:
        return refused(about, account.id, error)
    if not found.is_subscribed:
        text = f"the operator app {found.subscriber} is not subscribed; {', '.join(found.others) or 'nobody'} is"
        return [wrong(about, text, remedy)]
    expected = callback_url(context, account.id)
    known = {found.urls[app.phone_number_id] for app in apps if app.phone_number_id in found.urls}
    if not known and "" in found.urls:
        known = {found.urls[""]}
    if not known:
        text = "subscribed; the operator does not tell at which address"
        return [warning(about, text, f"to be sure of it: {remedy}")]
    elsewhere = sorted(known - {expected})
    if elsewhere:
        text = f"goes to {elsewhere[0]}, and ours is {expected}"
        return [wrong(about, text, remedy)]
    return [ok(about, f"subscribed at {expected}")]


async def look_at_handshake(context: AdminContext, account: OperatorAccount) -> list[Finding]:
    """Whether our public address gives the right challenge, and a wrong token none."""
    about, address = f"{account.id}: our address", callback_url(context, account.id)
    remedy = "start the service, and set WAYPOST_PUBLIC_URL to where the operator reaches it"
    if urlsplit(address).scheme != "https" and not is_local(account.base_url):
        text = f"{address} is not https, and the operator calls nothing else"
        return [wrong(about, text, remedy)]
    challenge = secrets.token_hex(8)
    query = context.operators.of(account).handshake(account, challenge, is_right=True)
    wrong_query = context.operators.of(account).handshake(account, challenge, is_right=False)
    if query is None or wrong_query is None:
        return []
    try:
        right = await _shake(address, query)
        false = await _shake(address, wrong_query)
    except NotReached:
        return [wrong(about, f"nobody answers at {address}", remedy)]
    if right.status != 200 or right.body != challenge.encode():
        text = f"{address} does not answer the challenge; it answers {right.status}"
        return [wrong(about, text, f"another service may stand there; {remedy}")]
    if false.status == 200:
        text = f"{address} takes a wrong verify token"
        return [wrong(about, text, f"another service may stand there; {remedy}")]
    return [ok(about, f"{address} answers the handshake, and refuses a wrong verify token")]


async def _shake(address: str, query: Mapping[str, str]) -> Reply:
    parts = urlsplit(address)
    call = OverHttp(f"{parts.scheme}://{parts.netloc}", timeout_s=WITHIN_S)
    return await call("GET", f"{parts.path}?{urlencode(query)}", {}, None)
