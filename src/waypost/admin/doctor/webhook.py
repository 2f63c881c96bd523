"""The way back: the operator knows our address, and our address answers as the operator expects."""

import secrets
from typing import Any, Final, cast
from urllib.parse import urlencode, urlsplit

from waypost.admin.actions import Office
from waypost.admin.asking import NotTold, ask_list
from waypost.admin.doctor.finding import Finding, ok, warning, wrong
from waypost.admin.doctor.local import is_local
from waypost.admin.doctor.refusals import refused
from waypost.admin.operator_accounts import callback_url
from waypost.client.door import NotReached, OverHttp, Reply
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.operators.contract import Ask

WITHIN_S: Final = 10
FIELDS: Final = "id,webhook_configuration"
_PRECEDENCE: Final = ("phone_number", "whatsapp_business_account", "application")
"""Of the addresses that a number can have. Source: operator's facts 7.1, "One callback per app"."""


async def look_at_subscription(
    office: Office, account: OperatorAccount, owner: BusinessAccount, apps: tuple[App, ...]
) -> list[Finding]:
    """Whether our app at the operator hears of the business account, at our address."""
    about = f"{account.id}: webhook of {owner.id}"
    remedy = f"waypost account subscribe {owner.id}"
    try:
        listed = await ask_list(office.operator, account, Ask.SUBSCRIBED_APPS, owner.id)
        query = {"fields": FIELDS}
        numbers = await ask_list(office.operator, account, Ask.PHONE_NUMBERS, owner.id, query=query)
    except NotTold as error:
        return [refused(about, account.id, error)]
    ours = next((one for one in listed if _app_id(one) == account.app_id), None)
    if ours is None:
        others = ", ".join(filter(None, map(_app_id, listed))) or "nobody"
        text = f"the operator app {account.app_id} is not subscribed; {others} is"
        return [wrong(about, text, remedy)]
    expected = callback_url(office, account.id)
    override = str(ours.get("override_callback_uri") or "")
    addresses = {_address_of(one) for one in numbers if one.get("id") in _ids(apps)} or {""}
    known = {override or address for address in addresses} - {""}
    if not known:
        text = "subscribed; the operator does not tell at which address"
        return [warning(about, text, f"to be sure of it: {remedy}")]
    elsewhere = sorted(known - {expected})
    if elsewhere:
        text = f"goes to {elsewhere[0]}, and ours is {expected}"
        return [wrong(about, text, remedy)]
    return [ok(about, f"subscribed at {expected}")]


async def look_at_handshake(office: Office, account: OperatorAccount) -> list[Finding]:
    """Whether our public address gives the right challenge, and a wrong token none. Source: operator's facts 7.1."""
    about, address = f"{account.id}: our address", callback_url(office, account.id)
    remedy = "start the service, and set WAYPOST_PUBLIC_URL to where the operator reaches it"
    if urlsplit(address).scheme != "https" and not is_local(account.base_url):
        text = f"{address} is not https, and the operator calls nothing else"
        return [wrong(about, text, remedy)]
    challenge = secrets.token_hex(8)
    try:
        right = await _shake(address, account.verify_token, challenge)
        false = await _shake(address, secrets.token_hex(8), challenge)
    except NotReached:
        return [wrong(about, f"nobody answers at {address}", remedy)]
    if right.status != 200 or right.body != challenge.encode():
        text = f"{address} does not answer the challenge; it answers {right.status}"
        return [wrong(about, text, f"another service may stand there; {remedy}")]
    if false.status == 200:
        text = f"{address} takes a wrong verify token"
        return [wrong(about, text, f"another service may stand there; {remedy}")]
    return [ok(about, f"{address} answers the handshake, and refuses a wrong verify token")]


async def _shake(address: str, verify_token: str, challenge: str) -> Reply:
    query = {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": verify_token}
    parts = urlsplit(address)
    call = OverHttp(f"{parts.scheme}://{parts.netloc}", timeout_s=WITHIN_S)
    return await call("GET", f"{parts.path}?{urlencode(query)}", {}, None)


def _app_id(one: dict[str, Any]) -> str:
    app = one.get("whatsapp_business_api_data")
    return str(cast(dict[str, Any], app).get("id") or "") if isinstance(app, dict) else ""


def _address_of(number: dict[str, Any]) -> str:
    given = number.get("webhook_configuration")
    addresses = cast(dict[str, Any], given) if isinstance(given, dict) else {}
    return next((str(addresses[name]) for name in _PRECEDENCE if addresses.get(name)), "")


def _ids(apps: tuple[App, ...]) -> set[str]:
    return {app.phone_number_id for app in apps}
