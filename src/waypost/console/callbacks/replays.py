"""Replay of many callbacks: the selection is counted first, then confirmed."""

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
"""Callbacks in one replay; the admin API has the same limit."""

# fmt: off
WHICH: Final = (  # value in the form, label, `delivered` in the admin API
    ("given_up",  "Not delivered: all retries failed", False),
    ("delivered", "Delivered",                         True),
    ("both",      "Both",                              None),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class _Chosen:
    subscription: str
    recipient: str
    event: str
    which: str
    from_ms: int | None
    to_ms: int | None


async def show_replay(desk: PageTools, visit: PageRequest) -> Response:
    """Return the form and, for a selection in the query, its count."""
    subscriptions = await standing_of_all(desk, visit)
    query = visit.request.query_params
    chosen = _chosen({name: visit.query(name) for name in query})
    counted: dict[str, Any] | None = None
    if "which" in query:
        body = _wanted(visit, chosen, subscriptions, desk.parts.clock.now_ms())
        response = await desk.parts.apis.admin.json("POST", "/admin/callbacks/replay", {**body, "dry_run": True})
        counted = {**response, "to_ms": body["to_ms"]}
    return await desk.page(
        visit, "callbacks/replay.html",
        subscriptions=subscriptions, chosen=chosen, which=WHICH, events=NEWS, counted=counted, most=MOST,
        from_text=typed(chosen.from_ms), to_text=typed(chosen.to_ms), root=base_of(visit),
    )  # fmt: skip


async def replay(desk: PageTools, visit: PageRequest) -> Response:
    """Replay the selected callbacks."""
    form = await visit.form()
    chosen = _chosen({name: await visit.field(name) for name in form})
    subscriptions = await standing_of_all(desk, visit)
    body = _wanted(visit, chosen, subscriptions, desk.parts.clock.now_ms())
    try:
        response = await desk.parts.apis.admin.json("POST", "/admin/callbacks/replay", body)
    except ApiResponseError as error:
        return desk.go(f"{base_of(visit)}/replay", error.message, kind="bad")
    count = response["replayed"]
    if not count:
        return desk.go(f"{base_of(visit)}/replay", "No callback matches, so nothing was replayed.", kind="warn")
    callbacks = "1 callback" if count == 1 else f"{plain(count)} callbacks"
    return desk.go(
        f"{base_of(visit)}/deliveries",
        f"Replaying {callbacks}.",
        remedy="Each keeps its id and sequence number, so a receiver that deduplicates by id ignores it.",
    )


def _chosen(given: dict[str, str]) -> _Chosen:
    which = given.get("which") or "given_up"
    if which not in {name for name, _, _ in WHICH}:
        raise NotMeant("Choose which callbacks to replay.")
    to_ms = given.get("to_ms", "")
    return _Chosen(
        subscription=given.get("subscription", ""),
        recipient=given.get("recipient", "").strip(),
        event=given.get("event", "").strip(),
        which=which,
        from_ms=typed_ms(given.get("from", ""), "The start time"),
        to_ms=min(int(to_ms), LAST_MS)
        if to_ms.isdecimal() and len(to_ms) < 16
        else typed_ms(given.get("to", ""), "The end time"),
    )


def _wanted(visit: PageRequest, chosen: _Chosen, standing: list[dict[str, Any]], now_ms: int) -> dict[str, Any]:
    """Return the body of the admin API's call, limited to the partner and this app.

    It always has an end time, so that exactly the counted callbacks are replayed.
    """
    body: dict[str, Any] = {"partner_id": visit.partner.id, "app_id": visit.app.id}
    if chosen.subscription:
        if chosen.subscription not in {str(subscription["id"]) for subscription in standing}:
            raise NotMeant("This app has no such subscription.")
        body["subscription_id"] = int(chosen.subscription)
    if chosen.recipient:
        body["recipient"] = recipient_in(chosen.recipient)
    if chosen.event:
        body["news"] = chosen.event
    delivered = {name: value for name, _, value in WHICH}[chosen.which]
    if delivered is not None:
        body["delivered"] = delivered
    if chosen.from_ms is not None:
        body["from_ms"] = max(chosen.from_ms, 0)
    return {**body, "to_ms": now_ms + 1 if chosen.to_ms is None else max(chosen.to_ms, 0)}
