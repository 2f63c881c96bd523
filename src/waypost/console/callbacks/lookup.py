"""Lookups of the callbacks pages: a subscription by id, the list of an app, and commands that print its callbacks."""

import re
import shlex
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from waypost.console.page_request import PageRequest
from waypost.console.web.errors import NotFound
from waypost.console.web.forms import parse_number
from waypost.domain.callbacks import Subscription
from waypost.store.callbacks.subscriptions import subscription_of_partner

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
_TOKEN_HINT: Final = "paste the app token here"  # noqa: S105  no token


def listen_commands(public_url: str, app_id: str, app_name: str, *, app_token: str = _TOKEN_HINT) -> str:
    """Return shell commands that write an app's variables to a file of mode 0600, and run `waypost listen` with it.

    Args:
        public_url: of this service.
        app_name: names the file.
        app_token: of the app; without it the file says where it belongs.
    """
    file = f"{_NOT_IN_NAMES.sub('-', app_name.lower()).strip('-')[:40] or 'app'}.env"
    lines = (f"PARTNER_URL={public_url}", f"APP_ID={app_id}", f"APP_TOKEN={app_token}")
    texts = " ".join(shlex.quote(line) for line in lines)
    return f"(umask 077 && printf '%s\\n' {texts} > {file})\nwaypost listen --env-file {file}"


def callbacks_path(request: PageRequest) -> str:
    """Return the path of the callbacks pages of the app in the URL."""
    return f"/apps/{request.app.id}/callbacks"


async def get_subscription(request: PageRequest) -> Subscription:
    """Return the subscription in the path. Raises NotFound: the app has no such subscription."""
    subscription_id, subscription = parse_number(request.path_params["subscription_id"]), None
    if subscription_id is not None:
        subscription = await request.read(
            subscription_of_partner, request.partner.id, subscription_id, request.services.directory.unseal
        )
    if subscription is None or subscription.app_id != request.app.id:
        raise NotFound("This app has no such subscription.")
    return subscription


async def list_subscriptions(request: PageRequest) -> list[dict[str, Any]]:
    """Return the app's subscriptions as the admin API shows them: state, circuit, and waiting callbacks."""
    scope = {"app_id": request.app.id, "partner_id": request.partner.id}
    return (await request.admin("GET /admin/subscriptions", **scope))["subscriptions"]


async def replay_callbacks(request: PageRequest, **conditions: Any) -> dict[str, Any]:
    """Replay callbacks of the app through the admin API, or with `dry_run` count them."""
    scope = {"app_id": request.app.id, "partner_id": request.partner.id}
    return await request.admin("POST /admin/callbacks/replay", **scope, **conditions)


def api_path(subscription: Subscription) -> str:
    """Return the path of a subscription in the partner API."""
    return f"/partner/app/{subscription.app_id}/subscription/{subscription.id}"


def respond(request: PageRequest, path: str, notice: str, *, hint: str = "", kind: str = "good") -> Response:
    """Return the result of an action: a notice on the open page, or on the page it redirects to."""
    if request.is_quiet:
        return JSONResponse({"notice": notice, "hint": hint, "kind": kind})
    return request.redirect(path, notice, hint=hint, kind=kind)
