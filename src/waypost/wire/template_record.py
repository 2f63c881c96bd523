"""A template as its record: the documented fields, with `data`, `meta` and `containerMeta`."""

import json
from typing import Any

from waypost.domain.buttons import button_supported
from waypost.domain.rendering import flattened
from waypost.domain.template import PRIORITY, Template
from waypost.wire.drafts import submitted_buttons


def template_record(template: Template) -> dict[str, Any]:
    """The record of creation and of the list.

    Source: spec, "Template record"; values and order from facts 3.2.
    """
    draft = template.draft
    record: dict[str, Any] = {
        "appId": template.app_id,
        "buttonSupported": button_supported(draft.buttons),
        "category": template.category.value,
        "containerMeta": _json(_container_meta(template)),
        "createdOn": template.created_on_ms,
        "data": flattened(draft),
        "elementName": draft.element_name,
        "id": template.id,
        "languageCode": draft.language_code,
        "languagePolicy": "deterministic",
        "meta": _json({"example": draft.example or ""}),
        "modifiedOn": template.modified_on_ms,
        "namespace": template.namespace,
        "priority": PRIORITY[template.category],
        "quality": template.quality,
        "retry": template.retry,
        "stage": template.stage,
        "status": template.status.value,
        "templateType": draft.template_type,
        "vertical": draft.vertical,
        "wabaId": template.business_account_id,
        "oldCategory": template.old_category,
        "externalId": template.operator_template_id,
        "reason": template.reason,
    }
    return {name: value for name, value in record.items() if value is not None}


def _container_meta(template: Template) -> dict[str, Any]:
    """A copy of the components; `enableSample` is true whatever was sent. Source: facts 3.1, 3.2."""
    draft = template.draft
    parts: dict[str, Any] = {
        "appId": template.app_id,
        "data": draft.content,
        "buttons": submitted_buttons(draft.buttons) or None,
        "header": draft.header,
        "footer": draft.footer,
        "sampleText": draft.example,
        "sampleHeader": draft.example_header,
        "enableSample": True,
        "editTemplate": False,
        "allowTemplateCategoryChange": draft.allow_template_category_change,
        "addSecurityRecommendation": False,
    }
    return {name: value for name, value in parts.items() if value is not None}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
