"""What is done with a subscription: by the partner API where it has the call, else by the administration."""

from typing import Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import answer, api_path, base_of, named_subscription
from waypost.console.callbacks.subscription_form import fields_of, form_for_api, read_fields
from waypost.console.callbacks.subscriptions import new_page, subscription_page
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import duration
from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest
from waypost.domain.callbacks.subscription import Subscription

KEEP_OLD: Final = {  # how long the old key may sign beside the new one
    "86400": "for a day",
    "3600": "for an hour",
    "604800": "for a week",
    "0": "not at all; it ends now",
}


async def create(desk: PageTools, visit: PageRequest) -> Response:
    """Make a subscription; its address is pinged first, unless the form says not to."""
    given = await read_fields(visit)
    door = desk.parts.apis.app(visit.app)
    try:
        made = await door.form("POST", f"/partner/app/{visit.app.id}/subscription", form_for_api(given))
    except ApiResponseError as refused:
        given.refuse(refused)
    except NotMeant as error:
        given.wrong["headers"] = f"{error.what} {error.remedy}"
    else:
        came = "Its address has answered the ping." if given.do_check else "It was not pinged."
        path = f"{base_of(visit)}/subscriptions/{made['subscription']['id']}"
        return desk.go(path, f"{given.tag} is told from now on. {came}")
    return await new_page(desk, visit, given, 400)


async def change(desk: PageTools, visit: PageRequest) -> Response:
    """Change it; another address is pinged first, unless the form says not to."""
    held = await named_subscription(desk, visit)
    given = await read_fields(visit, held)
    try:
        await desk.parts.apis.app(visit.app).form("PUT", api_path(held), form_for_api(given, held))
    except ApiResponseError as refused:
        given.refuse(refused)
    except NotMeant as error:
        given.wrong["headers"] = f"{error.what} {error.remedy}"
    else:
        moved = given.url != held.url
        came = " Its new address has answered the ping." if moved and given.do_check else ""
        return desk.go(_page(visit, held), f"{given.tag} was changed.{came}")
    return await subscription_page(desk, visit, held, given, status=400)


async def check(desk: PageTools, visit: PageRequest) -> Response:
    """Send the ping now, and say what came."""
    held = await named_subscription(desk, visit)
    told = await desk.parts.apis.admin.json("POST", f"/admin/subscriptions/{held.id}/check", {})
    took = duration(told["duration_ms"])
    if told["taken"]:
        return answer(desk, visit, _page(visit, held), f"{held.tag} answered {told['status']} in {took}.")
    if told["status"] is None:
        said = f"{held.tag} gave no answer in {took}: {told['error']}."
    else:
        begin = " ".join(told["answer"].split())[:120]
        said = f"{held.tag} answered {told['status']} in {took}" + (f": {begin}" if begin else ".")
    remedy = "A receiver answers any 2xx within 10 s, and only then does its work."
    return answer(desk, visit, _page(visit, held), said, remedy=remedy, kind="bad")


async def pause(desk: PageTools, visit: PageRequest) -> Response:
    """Tell it nothing for a while: what was on its way waits."""
    held = await named_subscription(desk, visit)
    await desk.parts.apis.app(visit.app).form("PUT", api_path(held), {"active": "false"})
    return answer(
        desk, visit, _page(visit, held), f"{held.tag} is paused.",
        remedy="What was on its way waits. What happens meanwhile is not told to it.", kind="info",
    )  # fmt: skip


async def resume(desk: PageTools, visit: PageRequest) -> Response:
    """Let it go on, whoever paused it."""
    held = await named_subscription(desk, visit)
    await desk.parts.apis.app(visit.app).form("PUT", api_path(held), {"active": "true"})
    return answer(desk, visit, _page(visit, held), f"{held.tag} goes on. What waits comes now, in order.")


async def show_key(desk: PageTools, visit: PageRequest) -> Response:
    """Show the key that signs, on this answer only."""
    held = await named_subscription(desk, visit)
    keys = await desk.parts.apis.admin.json("GET", f"/admin/subscriptions/{held.id}/key")
    return await subscription_page(desk, visit, held, fields_of(held), keys=keys)


async def rotate_key(desk: PageTools, visit: PageRequest) -> Response:
    """Give it a new key, and show both."""
    held = await named_subscription(desk, visit)
    keep = await visit.field("keep_old_for_s")
    if keep not in KEEP_OLD:
        raise NotMeant("The form does not say how long the old key is to sign.")
    keys = await desk.parts.apis.admin.json(
        "POST", f"/admin/subscriptions/{held.id}/key/rotate", {"keep_old_for_s": int(keep)}
    )
    return await subscription_page(desk, visit, held, fields_of(held), keys={**keys, "rotated": True})


async def delete(desk: PageTools, visit: PageRequest) -> Response:
    """End it; what waits for it is not delivered."""
    held = await named_subscription(desk, visit)
    await desk.parts.apis.app(visit.app).json("DELETE", api_path(held))
    return desk.go(base_of(visit), f"{held.tag} is deleted. What waited for it is not delivered any more.")


def _page(visit: PageRequest, held: Subscription) -> str:
    return f"{base_of(visit)}/subscriptions/{held.id}"
