"""The operator's statistics of a marketing template, and the ad that they are of."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Struct, UnsetType

from waypost.api.fields import Field
from waypost.api.messages.marketing import check_enabled
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.route import OperatorObject, StatusFirst, success
from waypost.api.services import Services
from waypost.api.templates.lists import template_of
from waypost.base.json_values import coerced_text
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.templates.template import Category, Template

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


operation = Operations("ledger 1.5, `template/{templateId}/insights`")


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


class TemplateInsights(StatusFirst, kw_only=True):
    """The operator's statistics."""

    template_insights: list[dict[str, Any]]


@operation(
    "GET",
    f"{APP}/template/{{template_id}}/insights",
    TemplateInsights,
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


@operation(
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
    """Return the template.

    Raises:
        ApiError: it does not exist, is no marketing template, or the operator never had it.
    """
    try:
        template = await template_of(services, app, template_id)
    except ApiError as error:
        raise ApiError(ErrorCode.INVALID_TEMPLATE_ID, error.explanation) from error
    if template.category is not Category.MARKETING or not template.operator_template_id:
        raise ApiError(ErrorCode.INVALID_TEMPLATE_ID, "The path must name a MARKETING template that the operator has.")
    return template
