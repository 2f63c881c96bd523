"""The control door's calls about accounts, numbers and where webhooks go."""

from typing import Any

from msgspec.structs import replace
from starlette.requests import Request

from waypost.simulator.accounts.accounts import Account, App, Number
from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.shapes import AccountShape, AppShape, NothingShape, NumberShape, WebhookShape, read_shape
from waypost.simulator.parts import Parts
from waypost.simulator.tables.updates import Outlet
from waypost.simulator.webhooks.webhooks import HandshakeFailed


async def put_account(parts: Parts, request: Request) -> dict[str, Any]:
    """Make a business account and its app, or change them; webhooks go on as before."""
    waba_id = _id_of(request, "waba_id")
    wish = read_shape(AccountShape, await request.body())
    before = parts.accounts.by_id.get(waba_id)
    app = parts.accounts.apps.get(wish.app_id) or App(wish.app_id, wish.app_secret)
    await parts.accounts.keep_app(replace(app, app_secret=wish.app_secret))
    namespace = wish.namespace or (before.namespace if before else "")
    account = Account(
        waba_id=waba_id,
        name=wish.name,
        namespace=namespace or parts.ids.new().replace("-", "_"),
        token=wish.token,
        app_id=wish.app_id,
    )
    await parts.accounts.keep_account(account)
    parts.webhooks.serve(waba_id)
    return account_view(parts, account, 0)


async def put_number(parts: Parts, request: Request) -> dict[str, Any]:
    """Make a business number, or change it."""
    phone_number_id = _id_of(request, "phone_number_id")
    wish = read_shape(NumberShape, await request.body())
    digits = wish.phone_number.lstrip("+")
    if wish.waba_id not in parts.accounts.by_id:
        known = ", ".join(parts.accounts.by_id) or "none yet"
        raise ControlRefused(404, field="waba_id", rule="is no account", accepted=known)
    holder = parts.accounts.numbers_by_digits.get(digits)
    if holder is not None and holder.phone_number_id != phone_number_id:
        raise ControlRefused(
            409,
            field="phone_number",
            rule=f"belongs to {holder.phone_number_id}",
            accepted="a number that is not in use",
        )
    number = Number(phone_number_id, wish.waba_id, digits, wish.name, wish.throughput)
    await parts.accounts.keep_number(number)
    return _number_view(parts, number)


async def put_app(parts: Parts, request: Request) -> dict[str, Any]:
    """Make an app, which hears of an account when it subscribes to it, or give it another secret."""
    app_id = _id_of(request, "app_id")
    wish = read_shape(AppShape, await request.body())
    app = replace(parts.accounts.apps.get(app_id) or App(app_id, ""), app_secret=wish.app_secret)
    await parts.accounts.keep_app(app)
    return {"app_id": app_id, "callback_uri": app.callback_uri}


async def put_webhook(parts: Parts, request: Request) -> dict[str, Any]:
    """Send an app's webhooks to an address that has shaken hands; an empty one means nowhere."""
    app = parts.accounts.apps.get(_id_of(request, "app_id"))
    wish = read_shape(WebhookShape, await request.body())
    if app is None:
        known = ", ".join(parts.accounts.apps) or "none yet"
        raise ControlRefused(404, field="app_id", rule="is no app", accepted=known)
    if wish.callback_uri:
        try:
            await parts.webhooks.shake_hands(wish.callback_uri, wish.verify_token)
        except HandshakeFailed as failed:
            raise ControlRefused(
                422,
                field="callback_uri",
                rule=str(failed),
                accepted="an address that answers 200 and the bare hub.challenge when hub.verify_token is right",
            ) from failed
    await parts.accounts.keep_app(replace(app, callback_uri=wish.callback_uri, verify_token=wish.verify_token))
    for account in parts.accounts.of_app(app.app_id):
        await parts.webhooks.retry_now(account.waba_id)
    return {"app_id": app.app_id, "callback_uri": wish.callback_uri}


async def retry_webhooks(parts: Parts, request: Request) -> dict[str, Any]:
    """Forget the failures of an account's webhook and deliver what is due now."""
    waba_id = _id_of(request, "waba_id")
    account = parts.accounts.by_id.get(waba_id)
    read_shape(NothingShape, await request.body())
    if account is None:
        known = ", ".join(parts.accounts.by_id) or "none yet"
        raise ControlRefused(404, field="waba_id", rule="is no account", accepted=known)
    await parts.webhooks.retry_now(waba_id)
    return {"retried": True}


def account_view(parts: Parts, account: Account, waiting: int) -> dict[str, Any]:
    """An account as the door shows it, with how its delivery is doing.

    Args:
        parts: the simulator's parts.
        account: the account.
        waiting: how many updates wait for its webhook.
    """
    destination = parts.accounts.destination(Outlet(account.waba_id, account.app_id))
    retry = parts.webhooks.worst_retry(account.waba_id)
    return {
        "waba_id": account.waba_id,
        "name": account.name,
        "namespace": account.namespace,
        "app_id": account.app_id,
        "callback_uri": destination.uri if destination else None,
        "updates_waiting": waiting,
        "calls_this_hour": parts.usage.count(account.waba_id),
        "failed_attempts": retry.attempts if retry else 0,
        "next_attempt_ms": retry.next_ms if retry else None,
        "last_failure": retry.reason if retry else None,
        "webhooks": [_outlet_view(parts, one) for one in parts.accounts.outlets((account.waba_id,))],
        "numbers": [_number_view(parts, one) for one in parts.accounts.numbers_of(account.waba_id)],
    }


def _outlet_view(parts: Parts, outlet: Outlet) -> dict[str, Any]:
    """Where webhooks of an account go: to which app, at which address, and how that is doing."""
    destination = parts.accounts.destination(outlet)
    retry = parts.webhooks.retries.get(outlet)
    return {
        "app_id": outlet.app_id,
        "phone_number_id": outlet.phone_number_id or None,
        "callback_uri": destination.uri if destination else None,
        "failed_attempts": retry.attempts if retry else 0,
        "next_attempt_ms": retry.next_ms if retry else None,
        "last_failure": retry.reason if retry else None,
    }


def _number_view(parts: Parts, number: Number) -> dict[str, Any]:
    hindrance = parts.standings.name_of(number.phone_number_id)
    app_id = parts.accounts.by_id[number.waba_id].app_id
    return {
        "phone_number_id": number.phone_number_id,
        "waba_id": number.waba_id,
        "phone_number": number.phone_number,
        "name": number.name,
        "throughput": number.throughput,
        "hindrance": hindrance,
        "callback_uri": parts.accounts.override_of(app_id, number.phone_number_id),
    }


def _id_of(request: Request, name: str) -> str:
    value: str = request.path_params[name]
    if not (value.isascii() and value.isdigit() and len(value) <= 32):
        raise ControlRefused(400, field=name, rule="is no id", accepted="1 to 32 digits")
    return value
