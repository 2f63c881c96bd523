"""Template analytics: counted from our own messages, their statuses, and the taps on them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from waypost.api.apps.apps import keep
from waypost.api.auth.authorisation import admitted_app
from waypost.api.http.requests import Answer, Request
from waypost.api.services import Services
from waypost.api.templates.lists import template_of
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.event import InboundEvent
from waypost.domain.message import MessageState
from waypost.domain.templates.filter import TemplateWish
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.store.templates.analytics import state_counts, taps, templates_of_messages
from waypost.store.templates.templates import find_templates, template_by_id
from waypost.wire.templates.analytics import (
    DAY_S,
    LEAST_SENDS,
    AnalyticsWish,
    Point,
    read_comparison,
    read_wish,
    shown_comparison,
    shown_point,
)

# fmt: off
_COUNTS: Final = {  # what a message in a state is counted as; others are not. Source: facts 3.6
    MessageState.SENT.value:      ("sent",),
    MessageState.DELIVERED.value: ("sent", "delivered"),
    MessageState.READ.value:      ("sent", "delivered", "read"),
}
# fmt: on


async def show_analytics(services: Services, request: Request) -> Answer:
    """What became of the app's templates.

    Refuses in this order: 401 wrong token, 429 eleventh in a minute, 404 analytics are off, 400 a
    start of more than 90 days ago or a value that cannot be read, 400 unknown template.

    Source: facts 3.6.
    """
    app = await admitted_app(services, request)
    _check_on(app)
    wish = read_wish(request.query, services.clock.now_ms() // 1000)
    if wish.template_id is not None:
        ids = [(await template_of(services, app, wish.template_id)).id]
    else:
        every = await services.database.read(find_templates, app.partner_id, app.business_account_id, TemplateWish())
        ids = [template.id for template in every[: wish.limit]]  # each has one point at least
    points = await _points(services, app, ids, wish)
    shown = [shown_point(point, wish.metrics) for point in points[: wish.limit]]
    return Answer({"status": "success", "template_analytics": shown})


async def set_analytics(services: Services, request: Request) -> Answer:
    """Switch analytics on; there is no way back, as at the operator.

    Source: facts 3.6, 400 `Bad Request`.
    """
    app = await admitted_app(services, request)
    form = request.form()
    enable, on_ui = _switch(form.text("enable")), _switch(form.text("enableOnUi"))
    if enable is None and on_ui is None:
        raise ApiError(ErrorCode.BAD_REQUEST, "enable or enableOnUi must be true or false.")
    if enable is False:
        raise ApiError(ErrorCode.BAD_REQUEST, "enable must be true: analytics cannot be switched off.")

    def switched(held: App) -> App:
        kept = held.preferences
        changed = replace(
            kept,
            analytics=kept.analytics or enable is True,
            analytics_on_ui=kept.analytics_on_ui if on_ui is None else on_ui,
        )
        return replace(held, preferences=changed)

    await keep(services, app, switched)
    return Answer({"status": "success"})


async def set_button_clicks(services: Services, request: Request) -> Answer:
    """Leave one template's taps out of its analytics, or take them in again. Source: facts 3.6."""
    app = await admitted_app(services, request)
    form = request.form()
    template_id = form.required("templateId", "the id of a template")
    template = await template_of(services, app, template_id)
    disabled = form.flag("disable")

    def listed(held: App) -> App:
        kept = held.preferences
        without = tuple(one for one in kept.unclicked_templates if one != template.id)
        if disabled:
            without = (*without, template.id)
        return replace(held, preferences=replace(kept, unclicked_templates=without))

    await keep(services, app, listed)
    return Answer({"status": "success"})


async def compare_templates(services: Services, request: Request) -> Answer:
    """Two templates of one business account side by side.

    Refuses in this order: 401 wrong token, 429 eleventh in a minute, 404 analytics are off, 400 a
    window or list that is not accepted, 400 an unknown template, 400 one of another business account,
    400 one that is not approved, and where the service is strict 400 one of fewer than 1,000 sends.

    Source: public page "Compare templates"; facts 3.6.
    """
    app = await admitted_app(services, request)
    _check_on(app)
    wish = read_comparison(request.query, services.clock.now_ms() // 1000)
    ids = (request.path["template_id"], wish.template_id or "")
    compared = [await _compared(services, app, template_id) for template_id in ids]
    if any(one.status is not TemplateStatus.APPROVED for one in compared):
        raise ApiError(ErrorCode.TEMPLATE_NOT_APPROVED, "Only approved templates can be compared.")
    points = await _points(services, app, [one.id for one in compared], wish)
    if services.strict and any(point.sent < LEAST_SENDS for point in points):
        raise ApiError(ErrorCode.TOO_FEW_SENDS, f"Each of the two templates needs at least {LEAST_SENDS} sends.")
    return Answer({"status": "success", "data": shown_comparison(points)})


async def _compared(services: Services, app: App, template_id: str) -> Template:
    """One of the two.

    Raises:
        Refused: another business account of the same partner has it, or there is none of this id.
    """
    found = await services.database.read(template_by_id, template_id)
    if found is None or found.partner_id != app.partner_id:
        return await template_of(services, app, template_id)
    if found.business_account_id != app.business_account_id:
        raise ApiError(ErrorCode.NOT_TEMPLATE_OWNER, "Both templates must be of the app's business account.")
    return await template_of(services, app, template_id)


async def _points(services: Services, app: App, template_ids: Sequence[str], wish: AnalyticsWish) -> list[Point]:
    """A point for each template, and for each day of UTC where they are wished for by day."""
    first_s = wish.start_s - wish.start_s % DAY_S if wish.daily else wish.start_s
    starts = range(first_s, wish.end_s + 1, DAY_S) if wish.daily else [first_s]
    points = {
        (template_id, start_s): Point(template_id, start_s, start_s + DAY_S if wish.daily else wish.end_s)
        for template_id in dict.fromkeys(template_ids)
        for start_s in starts
    }
    from_ms, until_ms = first_s * 1000, (wish.end_s + 1) * 1000
    counts = await services.database.read(state_counts, app.partner_id, template_ids, from_ms, until_ms)
    for count in counts:
        start_s = count.day * DAY_S if wish.daily else first_s
        point = points[count.template_id, start_s]
        for name in _COUNTS.get(count.state, ()):
            setattr(point, name, getattr(point, name) + count.messages)
    if "CLICKED" in wish.metrics:
        await _add_taps(services, app, points, from_ms, until_ms, daily=wish.daily)
    return list(points.values())


async def _add_taps(
    services: Services, app: App, points: dict[tuple[str, int], Point], from_ms: int, until_ms: int, *, daily: bool
) -> None:
    """What recipients tapped is kept as the operator told it, and read here as it is when it comes."""
    tapped: list[tuple[int, InboundEvent]] = []
    for received_on_ms, kind, item in await services.database.read(taps, app.id, from_ms, until_ms):
        event = services.operators.of_kind(kind).read(item)
        if isinstance(event, InboundEvent) and event.is_tap and event.reply_to:
            tapped.append((received_on_ms // 1000, event))
    answered = {event.reply_to for _, event in tapped if event.reply_to}
    made_of = await services.database.read(templates_of_messages, app.partner_id, answered)
    for at_s, event in tapped:
        template_id = made_of.get(event.reply_to or "", "")
        start_s = at_s - at_s % DAY_S if daily else from_ms // 1000
        point = points.get((template_id, start_s))
        if point is not None and template_id not in app.preferences.unclicked_templates:
            point.clicked[event.text("text")] += 1


def _check_on(app: App) -> None:
    if not app.preferences.analytics:
        raise ApiError(ErrorCode.ANALYTICS_NOT_SET, f"Template Analytics settings for app [{app.id}] does not exist")


def _switch(text: str | None) -> bool | None:
    """A boolean; None where it is absent.

    Raises:
        Refused: neither true nor false.
    """
    if not text:
        return None
    if text.strip().lower() not in ("true", "false"):
        raise ApiError(ErrorCode.BAD_REQUEST, "enable and enableOnUi must be true or false.")
    return text.strip().lower() == "true"
