"""Sending many again: what is chosen is counted first, and goes out once the person has seen the number."""

from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.deliveries import NEWS, recipient_in
from waypost.console.callbacks.lookup import base_of, standing_of_all
from waypost.console.callbacks.times import LAST_MS, typed, typed_ms
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import plain
from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest

MOST: Final = 100_000
"""In one go; the door says so too."""

# fmt: off
WHICH: Final = (  # which of them, as the form says it, and as the door does
    ("given_up",  "Given up: the receiver never took them", False),
    ("delivered", "Delivered: the receiver took them",      True),
    ("both",      "Both",                                   None),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class _Chosen:
    subscription: str
    recipient: str
    news: str
    which: str
    from_ms: int | None
    to_ms: int | None


async def show_replay(desk: PageTools, visit: PageRequest) -> Response:
    """The form; and where something is chosen, how many they are."""
    standing = await standing_of_all(desk, visit)
    query = visit.request.query_params
    is_asked = "which" in query
    chosen = _chosen({name: visit.query(name) for name in query})
    counted: dict[str, Any] | None = None
    if is_asked:
        body = _wanted(visit, chosen, standing, desk.parts.clock.now_ms())
        told = await desk.parts.apis.admin.json("POST", "/admin/callbacks/replay", {**body, "dry_run": True})
        counted = {**told, "to_ms": body["to_ms"]}
    return await desk.page(
        visit, "callbacks/replay.html",
        subscriptions=standing, chosen=chosen, which=WHICH, news=NEWS, counted=counted, most=MOST,
        from_text=typed(chosen.from_ms), to_text=typed(chosen.to_ms), root=base_of(visit),
    )  # fmt: skip


async def replay(desk: PageTools, visit: PageRequest) -> Response:
    """Send them again."""
    form = await visit.form()
    chosen = _chosen({name: await visit.field(name) for name in form})
    standing = await standing_of_all(desk, visit)
    body = _wanted(visit, chosen, standing, desk.parts.clock.now_ms())
    try:
        told = await desk.parts.apis.admin.json("POST", "/admin/callbacks/replay", body)
    except ApiResponseError as refused:
        return desk.go(f"{base_of(visit)}/replay", refused.message, kind="bad")
    count = told["replayed"]
    if not count:
        return desk.go(f"{base_of(visit)}/replay", "Nothing was to be sent again.", kind="warn")
    many = "1 callback goes" if count == 1 else f"{plain(count)} callbacks go"
    return desk.go(
        f"{base_of(visit)}/deliveries",
        f"{many} out again, beside what is told now.",
        remedy="Each has its old id and sequence number, so a receiver that drops repeats drops these too.",
    )


def _chosen(given: dict[str, str]) -> _Chosen:
    which = given.get("which") or "given_up"
    if which not in {name for name, _, _ in WHICH}:
        raise NotMeant("The form does not say which callbacks are meant.")
    to_ms = given.get("to_ms", "")
    return _Chosen(
        subscription=given.get("subscription", ""),
        recipient=given.get("recipient", "").strip(),
        news=given.get("news", "").strip(),
        which=which,
        from_ms=typed_ms(given.get("from", ""), "The time from which on"),
        to_ms=min(int(to_ms), LAST_MS)
        if to_ms.isdecimal() and len(to_ms) < 16
        else typed_ms(given.get("to", ""), "The time before which"),
    )


def _wanted(visit: PageRequest, chosen: _Chosen, standing: list[dict[str, Any]], now_ms: int) -> dict[str, Any]:
    """What the door is asked for: always the partner's own and this app's only.

    The end of the time is written down, so that what is sent is what was counted.
    """
    body: dict[str, Any] = {"partner_id": visit.partner.id, "app_id": visit.app.id}
    if chosen.subscription:
        if chosen.subscription not in {str(one["id"]) for one in standing}:
            raise NotMeant("This app has no such subscription.")
        body["subscription_id"] = int(chosen.subscription)
    if chosen.recipient:
        body["recipient"] = recipient_in(chosen.recipient)
    if chosen.news:
        body["news"] = chosen.news
    delivered = {name: value for name, _, value in WHICH}[chosen.which]
    if delivered is not None:
        body["delivered"] = delivered
    if chosen.from_ms is not None:
        body["from_ms"] = max(chosen.from_ms, 0)
    return {**body, "to_ms": now_ms + 1 if chosen.to_ms is None else max(chosen.to_ms, 0)}
