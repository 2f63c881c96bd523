"""Graph API calls for the template library, template analytics and comparison, and AUTHENTICATION templates in many languages."""

from typing import Any, Final

from waypost.base.json_values import integer_or_none, list_or_none, objects_in
from waypost.simulator.accounts.accounts import Account
from waypost.simulator.accounts.records import INSIGHTS
from waypost.simulator.errors import bad_parameter, template_error
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.languages import LANGUAGES
from waypost.simulator.lists import page
from waypost.simulator.messages.analytics import (
    DAY_S,
    TEMPLATE_METRICS,
    count_data_points,
    count_sends,
    data_point_view,
)
from waypost.simulator.requests import Call, parse_parameter
from waypost.simulator.services import SimulatorServices
from waypost.simulator.templates.checks import check_draft
from waypost.simulator.templates.library import draft_from_library, find_library_templates, library_view
from waypost.simulator.templates.preset_texts import fill_preset_texts
from waypost.simulator.templates.template import SimulatedTemplate, TemplateDecision

operation = GraphOperations()


_MAX_ANALYTICS_DAYS: Final = 90  # Source: the operator's page "Analytics"
_MAX_ANALYTICS_TEMPLATES: Final = 10
_COMPARISON_SPANS_S: Final = (7 * DAY_S, 30 * DAY_S, 60 * DAY_S, 90 * DAY_S)
_MIN_COMPARED_SENDS: Final = 1000  # Source: the operator's page "Template Comparison"


@operation("library.list", "GET", Account, "message_template_library")
@operation("library.list", "GET", "message_template_library")
async def list_library(_parts: SimulatorServices, call: Call, _account: Account | None = None) -> dict[str, Any]:
    """Return the library's templates, filtered. Source: the operator's page "Template library"."""
    return page(call, find_library_templates(call.query), lambda template: template.id, library_view)


async def create_from_library(services: SimulatorServices, call: Call, account: Account) -> SimulatedTemplate:
    """Create a template from the library; it is approved at once, because its text is known."""
    draft = draft_from_library(call.fields)
    template = await services.templates.create(account.waba_id, draft)
    return await services.templates.decide(template, TemplateDecision("APPROVED")) or template


@operation("accounts.change", "POST", Account)
async def change_account(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Enable template analytics. Source: the operator's page "Analytics"."""
    if "is_enabled_for_insights" not in call.fields:
        raise bad_parameter("The parameter is_enabled_for_insights is required.")
    if str(call.fields["is_enabled_for_insights"]).lower() != "true":
        raise bad_parameter("Param is_enabled_for_insights must be true: it cannot be taken back.")
    await services.records.save(account.waba_id, INSIGHTS, {"is_enabled": True})
    return {"id": account.waba_id}


@operation("analytics.read", "GET", Account, "template_analytics")
async def show_analytics(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Return the daily metrics of templates. Source: the operator's page "Analytics"."""
    start_s, end_s = _query_time(call, "start"), _query_time(call, "end")
    now_s = services.clock.now_ms() // 1000
    if start_s < now_s - (_MAX_ANALYTICS_DAYS + 1) * DAY_S:
        raise bad_parameter(f"Param start can be at most {_MAX_ANALYTICS_DAYS} days ago.")
    if end_s < start_s or end_s > now_s + 2 * DAY_S:
        raise bad_parameter("Param end must lie after start and not in the future.")
    granularity = call.query.get("granularity", "DAILY").upper()
    if granularity != "DAILY":
        raise bad_parameter("Param granularity must be one of {DAILY}.")
    points = await count_data_points(services, _templates(services, call, account), start_s=start_s, end_s=end_s)
    metrics = _metrics(call)
    data = {
        "granularity": granularity,
        "product_type": "cloud_api",
        "data_points": [data_point_view(*point, metrics) for point in points],
    }
    return page(call, [data], lambda _: "1", lambda data: data)


@operation("templates.compare", "GET", SimulatedTemplate, "compare")
async def compare_templates(services: SimulatorServices, call: Call, template: SimulatedTemplate) -> dict[str, Any]:
    """Compare the sends and blocks of two templates. Source: the operator's page "Template Comparison".

    A phone blocks a business, not a template, so the block rates are the same and the reasons unknown.
    """
    start_s, end_s = _query_time(call, "start"), _query_time(call, "end")
    now_s = services.clock.now_ms() // 1000
    if start_s >= end_s:
        raise bad_parameter("Param start must lie before end.")
    if end_s - start_s not in _COMPARISON_SPANS_S or start_s < now_s - _COMPARISON_SPANS_S[-1] - DAY_S:
        spans = ", ".join(str(span_s) for span_s in _COMPARISON_SPANS_S)
        raise bad_parameter(f"Param end must be now, and start one of {{{spans}}} seconds before it.")
    if end_s > now_s + DAY_S:
        raise bad_parameter("Param end must not lie in the future.")
    others = [services.templates.by_id.get(template_id) for template_id in _query_list(call, "template_ids")]
    other = others[0] if len(others) == 1 else None
    if other is None or other.waba_id != template.waba_id or other.template_id == template.template_id:
        raise bad_parameter("Param template_ids must be the id of one other template of the same account.")
    sends = await count_sends(services, start_s=start_s, end_s=end_s)
    ids = (template.template_id, other.template_id)
    if services.settings.value.limits and any(sends[template_id] < _MIN_COMPARED_SENDS for template_id in ids):
        rule = f"Templates must have been sent at least {_MIN_COMPARED_SENDS:,} times in the specified time frame."
        raise template_error(None, rule, "Templates not eligible for comparison")
    counts = [{"key": template_id, "value": sends[template_id]} for template_id in ids]
    reasons = [{"key": template_id, "value": "UNKNOWN_BLOCK_REASON"} for template_id in ids]
    return {
        "data": [
            {"metric": "BLOCK_RATE", "type": "RELATIVE", "order_by_relative_metric": ids},
            {"metric": "MESSAGE_SENDS", "type": "NUMBER_VALUES", "number_values": counts},
            {"metric": "TOP_BLOCK_REASON", "type": "STRING_VALUES", "string_values": reasons},
        ]
    }


def _query_time(call: Call, name: str) -> int:
    text = call.query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise bad_parameter(f"Param {name} must be a time in Unix seconds.")
    return int(text)


def _query_list(call: Call, name: str) -> list[str]:
    return _split_list(call.query.get(name, ""))


def _metrics(call: Call) -> frozenset[str]:
    metrics = [metric.upper() for metric in _query_list(call, "metric_types")] or list(TEMPLATE_METRICS)
    if unknown := set(metrics) - set(TEMPLATE_METRICS):
        raise bad_parameter(f"Param metric_types must be of {{{', '.join(TEMPLATE_METRICS)}}} - got {min(unknown)!r}.")
    return frozenset(metrics)


def _templates(services: SimulatorServices, call: Call, account: Account) -> list[SimulatedTemplate]:
    ids = list(dict.fromkeys(_query_list(call, "template_ids")))
    templates = [services.templates.by_id.get(template_id) for template_id in ids]
    own = [template for template in templates if template is not None and template.waba_id == account.waba_id]
    if not ids or len(ids) > _MAX_ANALYTICS_TEMPLATES or len(own) != len(ids):
        raise bad_parameter(
            f"Param template_ids must be 1 to {_MAX_ANALYTICS_TEMPLATES} ids of this account's templates."
        )
    return own


_CATEGORY: Final = "AUTHENTICATION"
_DEFAULT_LANGUAGES: Final = ("en_US",)
_PRESET_TEXT_MEMBERS: Final = ("text", "autofill_text")


@operation("templates.upsert", "POST", Account, "upsert_message_templates")
async def upsert_templates(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Create or update a template in each of the given languages, with the operator's texts.

    Every language is checked before the first is written.

    Source: facts 2.1, "upsert_message_templates".
    """
    fields = dict(call.fields)
    languages = _languages(fields.pop("languages", None))
    if not languages:
        raise bad_parameter("The parameter languages is required.")
    if str(fields.get("category", "")).upper() != _CATEGORY:
        raise bad_parameter(f"Param category must be one of {{{_CATEGORY}}}.")
    for component in objects_in(fields.get("components")):
        for button in objects_in(component.get("buttons")):
            if any(button.get(member) for member in _PRESET_TEXT_MEMBERS):
                raise bad_parameter("Param text and autofill_text are the operator's own here.")
    for language in languages:
        check_draft({**fields, "language": language})
    templates = [await _upsert(services, account, {**fields, "language": language}) for language in languages]
    return {
        "data": [
            {
                "id": template.template_id,
                "status": template.status,
                "language": template.language,
                "category": template.category,  # not documented; a public client reads it
            }
            for template in templates
        ]
    }


@operation("templates.preview", "GET", Account, "message_template_previews")
async def preview_templates(_parts: SimulatorServices, call: Call, _account: Account) -> dict[str, Any]:
    """Return the operator's texts of each language; they are English for all languages here.

    Source: facts 2.1, "message_template_previews".
    """
    query = call.query
    if query.get("category", "").upper() != _CATEGORY:
        raise bad_parameter(f"Param category must be one of {{{_CATEGORY}}}.")
    kinds = _split_list(query.get("button_types", "OTP"))
    if any(kind.upper() != "OTP" for kind in kinds):
        raise bad_parameter("Param button_types must be one of {OTP}.")
    recommends = query.get("add_security_recommendation", "").lower() in ("true", "1")
    body = {"type": "BODY", "add_security_recommendation": recommends}
    minutes = query.get("code_expiration_minutes")
    footer: list[dict[str, Any]] = []
    if minutes is not None:
        expiry = integer_or_none(minutes)
        if expiry is None or not 1 <= expiry <= 90:
            raise bad_parameter("Param code_expiration_minutes must be from 1 to 90.")
        footer = [{"type": "FOOTER", "code_expiration_minutes": expiry}]
    components = fill_preset_texts(_CATEGORY, [body, *footer])
    texts = {component["type"]: component["text"] for component in components}
    preview = {"body": texts["BODY"].replace("*", "")}
    preview |= {"footer": texts["FOOTER"]} if footer else {}
    buttons = [{"text": "Copy code", "autofill_text": "Autofill"}]
    languages = _languages(query.get("languages")) or list(_DEFAULT_LANGUAGES)
    return {"data": [{**preview, "buttons": buttons, "language": language} for language in languages]}


async def _upsert(services: SimulatorServices, account: Account, fields: dict[str, Any]) -> SimulatedTemplate:
    key = (account.waba_id, str(fields.get("name")), str(fields["language"]))
    known = services.templates.by_key.get(key)
    if known is None:
        return await services.templates.create(account.waba_id, fields)
    changes = {name: fields[name] for name in ("components", "message_send_ttl_seconds") if name in fields}
    return await services.templates.edit(known, changes)


def _languages(value: object) -> list[str]:
    languages = _split_list(value) if isinstance(value, str) else [str(item) for item in list_or_none(value) or ()]
    for language in languages:
        if language not in LANGUAGES:
            raise bad_parameter(f"Param languages must be supported language codes - got {language!r}.")
    return list(dict.fromkeys(languages))


def _split_list(value: str) -> list[str]:
    """Return a list of the query: a JSON array, or texts separated by commas."""
    items = list_or_none(parse_parameter(value))
    texts = value.strip("[]").split(",") if items is None else map(str, items)
    return [item for item in (raw.strip().strip("'\"") for raw in texts) if item]
