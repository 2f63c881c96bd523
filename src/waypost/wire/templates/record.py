"""The record of a template: the documented fields, with `data`, `meta` and `containerMeta`."""

from dataclasses import replace
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from waypost.domain.templates.buttons import button_codes
from waypost.domain.templates.extras import TEMPLATE_EXTRAS
from waypost.domain.templates.fields import TEMPLATE_FIELDS, TemplateDraft
from waypost.domain.templates.rendering import flatten_template, render_body, render_footer
from waypost.domain.templates.template import CATEGORY_PRIORITIES, Category, Template, TemplateEdit
from waypost.domain.templates.types import TemplateType
from waypost.wire.templates.components import copy_buttons, copy_cards


class EditRecord(Struct, rename="camel"):
    """An edit beside the operator's version."""

    status: Literal["PENDING", "REJECTED", "FAILED"]
    modified_on: int
    category: Literal["AUTHENTICATION", "MARKETING", "UTILITY"]
    template_type: str
    data: str
    meta: str
    container_meta: str
    reason: str | UnsetType = UNSET


def _record_name(name: str) -> str:
    """Return the wire name of a record's member; two members have names of another style."""
    first, *rest = name.split("_")
    return name if name in ("new_category", "correct_category") else first + "".join(word.capitalize() for word in rest)


class TemplateRecord(Struct, rename=_record_name):
    """The members of a template's record. Source: spec, "Template record"; facts 3.2."""

    allow_template_category_change: bool
    app_id: str
    category: Literal["AUTHENTICATION", "MARKETING", "UTILITY"]
    container_meta: str
    created_on: int
    data: str
    element_name: str
    id: str
    language_code: str
    language_policy: Literal["deterministic"]
    master: bool
    meta: str
    modified_on: int
    namespace: str
    priority: int
    quality: Literal["UNKNOWN", "HIGH", "MEDIUM", "LOW"]
    retry: int
    stage: str
    status: str
    template_type: str
    vertical: str
    waba_id: str
    button_supported: str | UnsetType = UNSET
    parameter_format: str | UnsetType = UNSET
    old_category: str | UnsetType = UNSET
    new_category: str | UnsetType = UNSET
    correct_category: str | UnsetType = UNSET
    external_id: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    edit: EditRecord | UnsetType = UNSET


def template_record(template: Template) -> dict[str, Any]:
    """Return the record for the response to creation and for the list.

    Source: spec, "Template record"; values and order from facts 3.2; `master` and
    `allowTemplateCategoryChange` always: decision 0018.
    """
    draft = template.draft
    record: dict[str, Any] = {
        "allowTemplateCategoryChange": draft.allow_template_category_change,
        "appId": template.app_id,
        "buttonSupported": button_codes(draft.buttons),
        "category": template.category.value,
        "containerMeta": _json(_container_meta(template)),
        "createdOn": template.created_on_ms,
        "data": flatten_template(draft),
        "elementName": draft.element_name,
        "id": template.id,
        "languageCode": draft.language_code,
        "languagePolicy": "deterministic",
        "master": True,
        "meta": _json(_meta(draft)),
        "modifiedOn": template.modified_on_ms,
        "namespace": template.namespace,
        "parameterFormat": draft.parameter_format,
        "priority": CATEGORY_PRIORITIES[template.category],
        "quality": template.quality,
        "retry": template.retry,
        "stage": template.stage,
        "status": template.status.value,
        "templateType": draft.template_type,
        "vertical": draft.vertical,
        "wabaId": template.business_account_id,
        "oldCategory": template.old_category,
        "new_category": template.new_category,
        "correct_category": template.new_category,  # both names have the announced category (facts 3.2)
        "externalId": template.operator_template_id,
        "reason": template.reason,
        "edit": None if template.edit is None else _edit(template, template.edit),
    }
    return _present(record)


def _edit(template: Template, edit: TemplateEdit) -> dict[str, Any]:
    """Return the edit beside the operator's version: its status, and its text as a record has it (decision 0021)."""
    edited = replace(template, draft=edit.draft, edited=True)
    members = {
        "status": edit.status.value,
        "reason": edit.reason,
        "modifiedOn": edit.at_ms,
        "category": edit.draft.category,
        "templateType": edit.draft.template_type,
        "data": flatten_template(edit.draft),
        "meta": _json(_meta(edit.draft)),
        "containerMeta": _json(_container_meta(edited)),
    }
    return _present(members)


def _meta(draft: TemplateDraft) -> dict[str, Any]:
    meta: dict[str, Any] = {"example": draft.example or ""}
    if draft.category == Category.AUTHENTICATION:
        meta["newAuthTemplate"] = True
    if draft.template_type == TemplateType.GIF:  # Source: ledger C12
        meta |= {"mediaId": draft.media_id, "mediaUrl": draft.media_url}
    return meta


def _container_meta(template: Template) -> dict[str, Any]:
    """Return a copy of the components as submitted.

    The footer of AUTHENTICATION is made from `codeExpirationMinutes`.

    Source: spec, "Template record", containerMeta, and "Create template", footer; facts 3.1, 3.2.
    """
    draft = template.draft
    extras = {name: value for extra in TEMPLATE_EXTRAS for name, value in extra.record_members(draft).items()}
    return _present(
        {
            "appId": template.app_id,
            "data": draft.content or render_body(draft),
            "buttons": copy_buttons(draft.buttons) or None,
            "header": draft.header,
            "footer": render_footer(draft),
            "sampleText": draft.example,
            "sampleHeader": draft.example_header,
            "sampleMedia": draft.example_media,
            "enableSample": draft.enable_sample,
            "editTemplate": template.edited,
            "allowTemplateCategoryChange": draft.allow_template_category_change,
            "addSecurityRecommendation": draft.add_security_recommendation,
            "codeExpirationMinutes": draft.code_expiration_minutes,
            "messageSendTTLSeconds": draft.message_validity_s,
            **extras,
            "isCPR": draft.is_call_permission_request or None,
            **{field.name: getattr(draft, field.attribute) for field in TEMPLATE_FIELDS if field.is_recorded},
            "cards": copy_cards(draft.cards) if draft.cards else None,
            "correctCategory": template.new_category,
        }
    )


def _present(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
