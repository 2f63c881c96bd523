"""Where callbacks go: create, list, delete."""

from dataclasses import replace

from waypost.accept.auth import app_of_app_token
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.base.logs import log
from waypost.domain.app import App
from waypost.domain.refusals import Reason, Refused
from waypost.domain.subscription import MOST_PER_APP, Subscription
from waypost.store.subscriptions import (
    TagTaken,
    TooMany,
    add_subscription,
    delete_subscriptions,
    subscriptions_of,
)
from waypost.wire.callback_v2 import check_body
from waypost.wire.subscriptions import SubscriptionForm, read_subscription, subscription_object

_log = log("accept")


async def create_subscription(services: Services, request: Request) -> Answer:
    """Check the address with one ping, and keep the subscription.

    Refuses in this order: 401 wrong token, 429 sixth in a minute, 400 unreadable or broken fields,
    400 tag taken or too many, 400 an address that does not answer 2xx to the ping.

    Source: facts 4.1, 4.2, 4.5.
    """
    app = await app_of_app_token(services, request)
    request.spend(services.limiter, "create_subscription", app.id)
    form = read_subscription(request.form())
    held = await _held(services, app)
    if any(one.tag == form.tag for one in held):
        raise Refused(Reason.DUPLICATE_TAG, f"tag {form.tag} is taken; choose another.")
    if len(held) >= MOST_PER_APP:
        raise _too_many()
    if form.do_check:
        await _check(services, app, form)
    now_ms = services.clock.now_ms()
    subscription = Subscription(
        id="",
        partner_id=app.partner_id,
        app_id=app.id,
        tag=form.tag,
        url=form.url,
        version=form.version,
        modes=form.modes,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        show_on_ui=form.show_on_ui,
        meta=form.meta,
        headers=form.headers,
    )
    try:
        new_id = await services.database.write(
            add_subscription, subscription, services.directory.seal, MOST_PER_APP
        )
    except TagTaken as error:
        raise Refused(Reason.DUPLICATE_TAG, f"tag {form.tag} is taken; choose another.") from error
    except TooMany as error:
        raise _too_many() from error
    kept = replace(subscription, id=new_id)
    return Answer({"status": "success", "subscription": subscription_object(kept)})


async def list_subscriptions(services: Services, request: Request) -> Answer:
    """The app's subscriptions, oldest first. Source: facts 4.1."""
    app = await app_of_app_token(services, request)
    request.spend(services.limiter, "list_subscriptions", app.id)
    held = await _held(services, app)
    return Answer(
        {"status": "success", "subscriptions": [subscription_object(one) for one in held]}
    )


async def delete_subscription(services: Services, request: Request) -> Answer:
    """Delete one subscription; 204 with no body. Source: facts 4.1."""
    app = await app_of_app_token(services, request)
    request.spend(services.limiter, "delete_subscription", app.id)
    wanted = request.path["subscription_id"]
    usable = wanted.isascii() and wanted.isdecimal() and len(wanted) < 19
    gone = (
        await services.database.write(delete_subscriptions, app.id, app.partner_id, wanted)
        if usable
        else 0
    )
    if not gone:
        raise Refused(
            Reason.SUBSCRIPTION_DOES_NOT_EXIST,
            "The path must name one of this app's subscriptions.",
        )
    return Answer(None, 204)


async def delete_all_subscriptions(services: Services, request: Request) -> Answer:
    """Delete every subscription of the app; 204 with no body. Source: facts 4.1."""
    app = await app_of_app_token(services, request)
    request.spend(services.limiter, "delete_subscriptions", app.id)
    await services.database.write(delete_subscriptions, app.id, app.partner_id)
    return Answer(None, 204)


async def _held(services: Services, app: App) -> list[Subscription]:
    return await services.database.read(
        subscriptions_of, app.id, app.partner_id, services.directory.unseal
    )


async def _check(services: Services, app: App, form: SubscriptionForm) -> None:
    """Ping the address. The documented text is misleading, so the reason header tells the rest (facts 14)."""
    body = check_body(app, services.clock.now_ms())
    headers = {**form.headers, "Content-Type": "application/json; charset=utf-8"}
    answer = await services.outbound.post(form.url, body, headers)
    if answer.status is None or not 200 <= answer.status < 300:
        what = answer.error or f"it answered {answer.status}"
        _log.info("an address did not answer its check", what=what)
        raise Refused(
            Reason.INVALID_URL,
            f"url must answer 2xx to a POST within 10 s, or send doCheck=false; {what}.",
        )


def _too_many() -> Refused:
    return Refused(
        Reason.TOO_MANY_SUBSCRIPTIONS,
        f"An app may have at most {MOST_PER_APP} subscriptions; delete one first.",
    )
