"""Template analytics: counted from our own messages, their statuses, and the taps on them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from waypost.accept.apps import keep
from waypost.accept.auth import admitted_app
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.accept.template_list import template_of
from waypost.domain.app import App
from waypost.domain.event import InboundEvent
from waypost.domain.message import MessageState
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template_wish import TemplateWish
from waypost.store.template_analytics import state_counts, taps, templates_of_messages
from waypost.store.templates import find_templates
from waypost.wire.template_analytics import (
    DAY_S,
    LEAST_SENDS,
    AnalyticsWish,
    Point,
    read_comparison,
    read_wish,
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
        every = await services.database.read(
            find_templates, app.partner_id, app.business_account_id, TemplateWish()
        )
        ids = [template.id for template in every]
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
        raise Refused(Reason.BAD_REQUEST, "enable or enableOnUi must be true or false.")
    if enable is False:
        raise Refused(Reason.BAD_REQUEST, "enable must be true: analytics cannot be switched off.")
    kept = app.preferences
    changed = replace(
        kept,
        analytics=kept.analytics or enable is True,
        analytics_on_ui=kept.analytics_on_ui if on_ui is None else on_ui,
    )
    await keep(services, replace(app, preferences=changed))
    return Answer({"status": "success"})


async def set_button_clicks(services: Services, request: Request) -> Answer:
    """Leave one template's taps out of its analytics, or take them in again. Source: facts 3.6."""
    app = await admitted_app(services, request)
    form = request.form()
    template_id = form.required("templateId", "the id of a template")
    template = await template_of(services, app, template_id)
    kept = app.preferences
    without = tuple(one for one in kept.unclicked_templates if one != template.id)
    if form.flag("disable"):
        without = (*without, template.id)
    await keep(services, replace(app, preferences=replace(kept, unclicked_templates=without)))
    return Answer({"status": "success"})


async def compare_templates(services: Services, request: Request) -> Answer:
    """Two templates of one business account side by side.

    Source: facts 3.6: windows of 7, 30, 60 and 90 days, at least 1,000 sends each, which is a
    rule of the operator's and so of strict services; its answer is not public, so the points are those
    of the analytics.
    """
    app = await admitted_app(services, request)
    _check_on(app)
    wish = read_comparison(request.query, services.clock.now_ms() // 1000)
    one = await template_of(services, app, request.path["template_id"])
    other = await template_of(services, app, wish.template_id or "")
    points = await _points(services, app, [one.id, other.id], wish)
    if services.strict and any(point.sent < LEAST_SENDS for point in points):
        raise Refused(
            Reason.TOO_FEW_SENDS, f"Each of the two templates needs at least {LEAST_SENDS} sends."
        )
    shown = [shown_point(point, wish.metrics) for point in points]
    return Answer({"status": "success", "template_analytics": shown})


async def _points(
    services: Services, app: App, template_ids: Sequence[str], wish: AnalyticsWish
) -> list[Point]:
    """A point for each template, and for each day of UTC where they are wished for by day."""
    first_s = wish.start_s - wish.start_s % DAY_S if wish.daily else wish.start_s
    starts = range(first_s, wish.end_s + 1, DAY_S) if wish.daily else [first_s]
    points = {
        (template_id, start_s): Point(
            template_id, start_s, start_s + DAY_S if wish.daily else wish.end_s
        )
        for template_id in dict.fromkeys(template_ids)
        for start_s in starts
    }
    from_ms, until_ms = first_s * 1000, (wish.end_s + 1) * 1000
    counts = await services.database.read(
        state_counts, app.partner_id, template_ids, from_ms, until_ms
    )
    for count in counts:
        start_s = count.day * DAY_S if wish.daily else first_s
        point = points[count.template_id, start_s]
        for name in _COUNTS.get(count.state, ()):
            setattr(point, name, getattr(point, name) + count.messages)
    if "CLICKED" in wish.metrics:
        await _add_taps(services, app, points, from_ms, until_ms, daily=wish.daily)
    return list(points.values())


async def _add_taps(
    services: Services,
    app: App,
    points: dict[tuple[str, int], Point],
    from_ms: int,
    until_ms: int,
    *,
    daily: bool,
) -> None:
    """What recipients tapped is kept as the operator told it, and read here as it is when it comes."""
    tapped: list[tuple[int, InboundEvent]] = []
    for received_on_ms, item in await services.database.read(taps, app.id, from_ms, until_ms):
        event = services.operator.read(item)
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
        raise Refused(
            Reason.ANALYTICS_NOT_SET,
            f"Template Analytics settings for app [{app.id}] does not exist",
        )


def _switch(text: str | None) -> bool | None:
    """A boolean; None where it is absent.

    Raises:
        Refused: neither true nor false.
    """
    if not text:
        return None
    if text.strip().lower() not in ("true", "false"):
        raise Refused(Reason.BAD_REQUEST, "enable and enableOnUi must be true or false.")
    return text.strip().lower() == "true"
