"""Statistics of templates: analytics, comparisons and clicks, and those of marketing messages with their ad."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from waypost.api.apps.apps import update_app
from waypost.api.apps.settings import set_preferences
from waypost.api.fields import Field
from waypost.api.messages.passthrough import check_enabled
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.api.route import BodyFormat
from waypost.api.services import Services
from waypost.api.templates.lists import template_of
from waypost.base.json_values import coerced_text
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.event import InboundEvent
from waypost.domain.message import MessageState
from waypost.domain.templates.template import Category, Template, TemplateFilter, TemplateStatus
from waypost.store.templates.events import list_template_taps, state_counts, templates_of_messages
from waypost.store.templates.templates import find_templates, template_by_id
from waypost.wire.responses import OperatorObject, Success, success
from waypost.wire.templates.analytics import (
    DAY_S,
    MIN_SENDS,
    MM_LITE,
    AnalyticsPoint,
    AnalyticsQuery,
    comparison_metrics,
    point_object,
    read_analytics_query,
    read_comparison,
)

# fmt: off
_COUNTERS_OF_STATE: Final = {  # the counters of a message in a state; other states have none. Source: facts 3.6
    MessageState.SENT.value:      ("sent",),
    MessageState.DELIVERED.value: ("sent", "delivered"),
    MessageState.READ.value:      ("sent", "delivered", "read"),
}
# fmt: on


operation = Operations("facts 3.6", at_operator=False)


class AnalyticsParameters(Struct):
    """The time, the templates and the statistics."""

    start: Annotated[
        str,
        Field(
            "A date as YYYY-MM-DD, or seconds since the epoch, at most 90 days ago; 30 days before the end when absent."
        ),
    ] = ""
    end: Annotated[str, Field("A date as YYYY-MM-DD, or seconds since the epoch; now when absent.")] = ""
    granularity: Annotated[str, Field("DAILY or AGGREGATED; AGGREGATED when absent.", "AGGREGATED")] = ""
    metric_types: Annotated[
        str,
        Field(
            "SENT, DELIVERED, READ, CLICKED, COST or conversions of MM Lite, separated by commas; the first four when "
            "absent.",
            "SENT,READ",
        ),
    ] = ""
    template_ids: Annotated[str, Field("The id of one template; all when absent.")] = ""
    limit: Annotated[int, Field("The maximum number of points, 1 to 30.", "30")] = 30
    product_type: Annotated[
        str, Field("CLOUD_API or MARKETING_MESSAGES_LITE_API; all messages when absent.", "CLOUD_API")
    ] = ""
    use_waba_timezone: Annotated[
        bool,
        Field(
            "true counts by the days of the business account, which are those of UTC here; start and end must be dates."
        ),
    ] = False


def _read_switch(text: str, _name: str) -> bool | None:
    """Return a boolean; None for an empty text."""
    if not text:
        return None
    if text.strip().lower() not in ("true", "false"):
        raise ApiError(ErrorCode.BAD_REQUEST, "enable and enableOnUi must be true or false.")
    return text.strip().lower() == "true"


class AnalyticsSwitch(Struct, rename="camel"):
    """The switch of analytics."""

    enable: Annotated[
        bool | None,
        Field(
            "true enables analytics; they cannot be disabled.",
            "true",
            read=_read_switch,
            errors=(ErrorCode.BAD_REQUEST,),
        ),
    ] = None
    enable_on_ui: Annotated[
        bool | None,
        Field("Stored and shown in the console.", "true", read=_read_switch, errors=(ErrorCode.BAD_REQUEST,)),
    ] = None


class ClickSwitch(Struct, rename="camel"):
    """The switch of the button taps of a template."""

    template_id: Annotated[
        str, Field("The template whose button taps to exclude or include.", "01990000-0000-7000-8000-0000000000b1")
    ]
    disable: Annotated[bool, Field("true excludes its button taps from analytics.", "true")] = False


class ComparisonParameters(Struct, rename={"template_list": "templateList"}):
    """The other template, and the time."""

    template_list: Annotated[
        str,
        Field(
            "The id of the template to compare with; required unless `template_ids` is there.",
            "01990000-0000-7000-8000-0000000000b1",
        ),
    ] = ""
    template_ids: Annotated[str, Field("Another name of `templateList`.", "01990000-0000-7000-8000-0000000000b1")] = ""
    start: Annotated[int, Field("Seconds since the epoch, exactly 7, 30, 60 or 90 days before the end.")] = 0
    end: Annotated[int, Field("Seconds since the epoch; now when absent.")] = 0
    days: Annotated[int, Field("The length of the window when `start` is absent: 7, 30, 60 or 90 days.", "7")] = 0


class TapCount(Struct):
    """The taps on one button."""

    type: str
    button_content: str
    count: int


class PointCost(Struct):
    """The cost of messages."""

    type: str
    value: float


class AnalyticsPointRecord(Struct):
    """The statistics of a template in a time range, in seconds since the epoch; those of the request."""

    template_id: str
    start: int
    end: int
    sent: int | UnsetType = UNSET
    delivered: int | UnsetType = UNSET
    read: int | UnsetType = UNSET
    clicked: list[TapCount] | UnsetType = UNSET
    cost: list[PointCost] | UnsetType = UNSET


_PRODUCT_TYPE: Final = Literal["CLOUD_API", "MARKETING_MESSAGES_LITE_API"] | UnsetType


class NumberValue(Struct):
    """A number of one template."""

    key: str
    value: int


class TextValue(Struct):
    """A text of one template."""

    key: str
    value: str


class ComparedMetric(Struct):
    """One metric of both templates."""

    metric: Literal["BLOCK_RATE", "MESSAGE_SENDS", "TOP_BLOCK_REASON"]
    type: Literal["RELATIVE", "NUMBER_VALUES", "STRING_VALUES"]
    order_by_relative_metric: list[str] | UnsetType = UNSET
    number_values: list[NumberValue] | UnsetType = UNSET
    string_values: list[TextValue] | UnsetType = UNSET


@operation(
    "GET",
    f"{APP}/template/analytics",
    success(template_analytics=list[AnalyticsPointRecord], product_type=_PRODUCT_TYPE),
    rate="analytics",
    query=AnalyticsParameters,
    errors=(
        ErrorCode.FIELD_BROKEN,
        ErrorCode.TEMPLATE_NOT_FOUND,
        ErrorCode.ANALYTICS_TOO_OLD,
        ErrorCode.ANALYTICS_NOT_SET,
    ),
)
async def show_analytics(call: AppCall) -> ApiResponse:
    """Return the analytics of the app's templates.

    None of our messages is sent through MM Lite, so its list is empty.

    Errors in this order: 401 wrong token, 429 sixth in a minute, 404 analytics are disabled, 400 a
    start of more than 90 days ago or an unreadable value, 400 unknown template.
    """
    services, request, app = call
    _check_enabled(app)
    query = read_analytics_query(request.query, services.clock.now_ms() // 1000)
    if query.template_id is not None:
        ids = [(await template_of(services, app, query.template_id)).id]
    else:
        templates = await services.database.read(
            find_templates, app.partner_id, app.business_account_id, TemplateFilter()
        )
        ids = [template.id for template in templates[: query.limit]]  # each has one point at least
    points = await _count_points(services, app, ids, query)
    if query.product_type == MM_LITE:
        points = []
    items = [point_object(point, query.metrics) for point in points[: query.limit]]
    product = {"product_type": query.product_type} if query.product_type else {}
    return ApiResponse({**product, "status": "success", "template_analytics": items})


@operation(
    "POST",
    f"{APP}/template/analytics",
    Success,
    rate="analytics_settings",
    body_format=BodyFormat.FORM,
    errors=(ErrorCode.BAD_REQUEST,),
)
async def set_analytics(call: AppCall, fields: AnalyticsSwitch) -> None:
    """Enable analytics; they cannot be disabled, as at the operator."""
    enable, on_ui = fields.enable, fields.enable_on_ui
    if enable is None and on_ui is None:
        raise ApiError(ErrorCode.BAD_REQUEST, "enable or enableOnUi must be true or false.")
    if enable is False:
        raise ApiError(ErrorCode.BAD_REQUEST, "enable must be true: analytics cannot be switched off.")
    changes = {"analytics": enable, "analytics_on_ui": on_ui}
    changes = {name: value for name, value in changes.items() if value is not None}
    await set_preferences(call.services, call.app, **changes)


@operation(
    "POST",
    f"{APP}/template/analytics/buttonclick",
    Success,
    rate="analytics_settings",
    body=ClickSwitch,
    body_format=BodyFormat.FORM,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.TEMPLATE_NOT_FOUND),
)
async def include_or_exclude_button_taps(call: AppCall) -> None:
    """Exclude one template's button taps from its analytics, or include them again."""
    services, request, app = call
    form = request.form()
    template_id = form.required("templateId", "the id of a template")
    template = await template_of(services, app, template_id)
    disabled = form.flag("disable")

    def apply(stored: App) -> App:
        preferences = stored.preferences
        without = tuple(unclicked_id for unclicked_id in preferences.unclicked_templates if unclicked_id != template.id)
        if disabled:
            without = (*without, template.id)
        return replace(stored, preferences=replace(preferences, unclicked_templates=without))

    await update_app(services, app, apply)


@operation(
    "GET",
    f"{APP}/template/analytics/{{template_id}}/compare",
    success(data=list[ComparedMetric]),
    source="facts 3.6, compare",
    rate="compare",
    query=ComparisonParameters,
    errors=(
        ErrorCode.FIELD_BROKEN,
        ErrorCode.TEMPLATE_NOT_FOUND,
        ErrorCode.ANALYTICS_NOT_SET,
        ErrorCode.COMPARISON_WINDOW,
        ErrorCode.COMPARISON_ENDS_FIRST,
        ErrorCode.NOT_TEMPLATE_OWNER,
        ErrorCode.TEMPLATE_NOT_APPROVED,
        ErrorCode.TOO_FEW_SENDS,
        ErrorCode.COMPARISON_LIST_MISSING,
    ),
)
async def compare_templates(call: AppCall) -> ApiResponse:
    """Compare two templates of one business account.

    Errors in this order: 401 wrong token, 429 eleventh in an hour, 404 analytics are disabled, 400 an
    invalid window or list, 400 an unknown template, 400 one of another business account, 400 one that
    is not approved, and, if the service is strict, 400 one with fewer than 1,000 sends.

    Source: public page "Compare templates"; facts 3.6.
    """
    services, request, app = call
    _check_enabled(app)
    query = read_comparison(request.query, services.clock.now_ms() // 1000)
    ids = (request.path["template_id"], query.template_id or "")
    compared = [await _compared_template(services, app, template_id) for template_id in ids]
    if any(template.status is not TemplateStatus.APPROVED for template in compared):
        raise ApiError(ErrorCode.TEMPLATE_NOT_APPROVED, "Only approved templates can be compared.")
    points = await _count_points(services, app, [template.id for template in compared], query)
    if services.strict and any(point.sent < MIN_SENDS for point in points):
        raise ApiError(ErrorCode.TOO_FEW_SENDS, f"Each of the two templates needs at least {MIN_SENDS} sends.")
    return ApiResponse({"status": "success", "data": comparison_metrics(points)})


async def _compared_template(services: Services, app: App, template_id: str) -> Template:
    """Return one of the two templates to compare."""
    template = await services.database.read(template_by_id, template_id)
    if template is None or template.partner_id != app.partner_id:
        return await template_of(services, app, template_id)
    if template.business_account_id != app.business_account_id:
        raise ApiError(ErrorCode.NOT_TEMPLATE_OWNER, "Both templates must be of the app's business account.")
    return await template_of(services, app, template_id)


async def _count_points(
    services: Services, app: App, template_ids: Sequence[str], query: AnalyticsQuery
) -> list[AnalyticsPoint]:
    """Return a point for each template, or, if the query is daily, for each template and day of UTC."""
    first_s = query.start_s - query.start_s % DAY_S if query.daily else query.start_s
    starts = range(first_s, query.end_s + 1, DAY_S) if query.daily else [first_s]
    points = {
        (template_id, start_s): AnalyticsPoint(template_id, start_s, start_s + DAY_S if query.daily else query.end_s)
        for template_id in dict.fromkeys(template_ids)
        for start_s in starts
    }
    from_ms, until_ms = first_s * 1000, (query.end_s + 1) * 1000
    counts = await services.database.read(state_counts, app.partner_id, template_ids, from_ms, until_ms)
    for count in counts:
        start_s = count.day * DAY_S if query.daily else first_s
        point = points[count.template_id, start_s]
        for name in _COUNTERS_OF_STATE.get(count.state, ()):
            setattr(point, name, getattr(point, name) + count.messages)
    if "CLICKED" in query.metrics:
        await _add_taps(services, app, points, from_ms, until_ms, daily=query.daily)
    return list(points.values())


async def _add_taps(
    services: Services,
    app: App,
    points: dict[tuple[str, int], AnalyticsPoint],
    from_ms: int,
    until_ms: int,
    *,
    daily: bool,
) -> None:
    """Count button taps; they are stored as the operator posted them and parsed here like a new webhook item."""
    tapped: list[tuple[int, InboundEvent]] = []
    for received_on_ms, kind, item in await services.database.read(list_template_taps, app.id, from_ms, until_ms):
        event = services.operators.adapter_of_kind(kind).read(item)
        if isinstance(event, InboundEvent) and event.is_tap and event.reply_to:
            tapped.append((received_on_ms // 1000, event))
    message_ids = {event.reply_to for _, event in tapped if event.reply_to}
    template_by_message = await services.database.read(templates_of_messages, app.partner_id, message_ids)
    for at_s, event in tapped:
        template_id = template_by_message.get(event.reply_to or "", "")
        start_s = at_s - at_s % DAY_S if daily else from_ms // 1000
        point = points.get((template_id, start_s))
        if point is not None and template_id not in app.preferences.unclicked_templates:
            point.clicked[event.text("text")] += 1


def _check_enabled(app: App) -> None:
    if not app.preferences.analytics:
        raise ApiError(ErrorCode.ANALYTICS_NOT_SET, f"Template Analytics settings for app [{app.id}] does not exist")


_PREFIX: Final = "marketing_messages_"
_DEFAULT_PRESET: Final = "last_30d"
DATE_PRESETS: Final = (  # Source: the operator's page "Insights API"
    "today",
    "yesterday",
    "this_month",
    "last_month",
    "this_quarter",
    "maximum",
    "data_maximum",
    "last_3d",
    "last_7d",
    "last_14d",
    "last_28d",
    "last_30d",
    "last_90d",
    "last_week_mon_sun",
    "last_week_sun_sat",
    "last_quarter",
    "last_year",
    "this_week_mon_today",
    "this_week_sun_today",
    "this_year",
)
INSIGHT_FIELDS: Final = tuple(  # Source: the operator's page "Viewing metrics"
    f"{_PREFIX}{name}"
    for name in (
        "sent", "delivered", "delivery_rate", "read", "read_rate", "link_btn_click", "link_btn_click_rate", "spend",
        "cost_per_delivered", "cost_per_link_btn_click", "read_rate_benchmark", "link_btn_click_rate_benchmark",
        "website_add_to_cart", "website_initiate_checkout", "website_purchase", "website_purchase_values",
        "app_add_to_cart", "app_initiate_checkout", "app_purchase", "app_purchase_values",
    )
)  # fmt: skip
_DEFAULT_FIELDS: Final = INSIGHT_FIELDS[:10]


insights_operation = Operations("ledger 1.5, `template/{templateId}/insights`")


class InsightsQuery(Struct):
    """The period and the statistics."""

    date_preset: Annotated[str, Field("The operator's name of the period; last_30d when absent.", "last_7d")] = (
        _DEFAULT_PRESET
    )
    fields: Annotated[
        str,
        Field(
            "The operator's names of the statistics, separated by commas; ten when absent.", "marketing_messages_sent"
        ),
    ] = ""


@insights_operation(
    "GET",
    f"{APP}/template/{{template_id}}/insights",
    success(template_insights=list[dict[str, Any]]),
    query=InsightsQuery,
    errors=(ErrorCode.MM_LITE_OFF, ErrorCode.INVALID_TEMPLATE_ID, ErrorCode.FIELD_BROKEN),
)
async def show_template_insights(call: AppCall) -> dict[str, Any]:
    """Return the operator's statistics of a template that was sent through its API for marketing messages.

    They are those of the ad that the operator links to the template, if it has one.

    Errors in this order: 401 wrong token, 429 too many, 400 the app is not enabled, 400 no such marketing template at
    the operator, 400 an unknown period or field, 400 the operator's error, 503 it does not respond.

    Source: ledger 1.5, `template/{templateId}/insights`; the operator's page "Viewing metrics".
    """
    services, request, app = call
    check_enabled(app)
    template = await _find_template(services, app, request.path["template_id"])
    preset = request.query("date_preset") or _DEFAULT_PRESET
    if preset not in DATE_PRESETS:
        raise invalid_field("date_preset", f"one of {', '.join(DATE_PRESETS)}")
    fields = [name.strip() for name in (request.query("fields") or "").split(",") if name.strip()]
    if any(field not in INSIGHT_FIELDS for field in fields):
        raise invalid_field("fields", f"a list, separated by commas, of {', '.join(INSIGHT_FIELDS)}")
    link = await call.graph("GET", template.operator_template_id or "", query={"fields": "ad_id"})
    ad_id, insights = coerced_text(link.get("ad_id")), []
    if ad_id:
        query = {"date_preset": preset, "fields": ",".join(fields or _DEFAULT_FIELDS)}
        insights = (await call.graph_page(f"{ad_id}/insights", query))["data"]
    return {"status": "success", "template_insights": insights}


class TemplateAd(OperatorObject, kw_only=True):
    """The ad that the operator has linked to a template; it may have none."""

    id: str
    category: str
    ad_account_id: str | UnsetType = UNSET
    ad_campaign_id: str | UnsetType = UNSET
    ad_adset_id: str | UnsetType = UNSET
    ad_id: str | UnsetType = UNSET


@insights_operation(
    "GET",
    f"{APP}/template/{{template_id}}/ads",
    success(template_ad_details=TemplateAd),
    source="ledger 1.5",
    errors=(ErrorCode.MM_LITE_OFF, ErrorCode.INVALID_TEMPLATE_ID),
)
async def show_template_ad(call: AppCall) -> dict[str, Any]:
    """Return the ad that the operator has linked to a template for its API for marketing messages.

    Errors in this order: 401 wrong token, 429 too many, 400 the app is not enabled, 400 no such marketing template at
    the operator, 400 the operator's error, 503 it does not respond.

    Source: ledger 1.5; the operator's page "Onboard".
    """
    check_enabled(call.app)
    template = await _find_template(call.services, call.app, call.request.path["template_id"])
    query = {"fields": ",".join(TemplateAd.__struct_fields__)}
    ad = await call.graph("GET", template.operator_template_id or "", query=query)
    return {"status": "success", "template_ad_details": ad}


async def _find_template(services: Services, app: App, template_id: str) -> Template:
    """Return the template."""
    try:
        template = await template_of(services, app, template_id)
    except ApiError as error:
        raise ApiError(ErrorCode.INVALID_TEMPLATE_ID, error.explanation) from error
    if template.category is not Category.MARKETING or not template.operator_template_id:
        raise ApiError(ErrorCode.INVALID_TEMPLATE_ID, "The path must name a MARKETING template that the operator has.")
    return template
