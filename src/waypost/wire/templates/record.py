"""Templates in responses with their components, and the filters of their lists."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from waypost.domain.errors import invalid_field
from waypost.domain.lifecycle import SENDABLE
from waypost.domain.templates.buttons import ButtonKind, Card, TemplateButton, button_codes
from waypost.domain.templates.fields import TEMPLATE_FIELDS, TemplateDraft
from waypost.domain.templates.offers import offer_members
from waypost.domain.templates.rendering import flatten_template, render_body, render_footer
from waypost.domain.templates.template import (
    CATEGORY_PRIORITIES,
    Category,
    Template,
    TemplateEdit,
    TemplateFilter,
    TemplateStatus,
)
from waypost.domain.templates.types import TemplateType, canonical_language
from waypost.wire.requests import QueryReader, read_query_number

_CARD_MEDIA: Final = ("headerType", "mediaUrl", "mediaId", "exampleMedia")
_NO_TEXT: Final = msgspec.Raw(b"null")
_EMPTY_TEXTS: Final = (_NO_TEXT, msgspec.Raw(b'""'))
_read_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def copy_buttons(buttons: tuple[TemplateButton, ...]) -> list[Any]:
    """Return the copy in `containerMeta`: buttons as they were sent; those that nobody sent, from the draft."""
    return [
        msgspec.Raw(button.submitted.encode()) if button.submitted else _present(_button_members(button))
        for button in buttons
    ]


def _copy_card(card: Card) -> dict[str, Any]:
    """Return the copy in `containerMeta`: a card as it was sent, with the handles that were made of its media."""
    [made] = submitted_cards((card,))
    if not card.submitted:
        return made
    sent = _read_members(card.submitted)
    media = {name: made[name] for name in _CARD_MEDIA if name in made and sent.get(name, _NO_TEXT) in _EMPTY_TEXTS}
    return {**sent, **media}


def submitted_buttons(buttons: tuple[TemplateButton, ...]) -> list[dict[str, Any]]:
    """Return buttons of a draft in the partner's format."""
    return [_present(_button_members(button)) for button in buttons]


def submitted_cards(cards: tuple[Card, ...]) -> list[dict[str, Any]]:
    """Return cards of a draft in the partner's format."""
    return [
        _present(
            {
                "headerType": card.header_type,
                "mediaUrl": card.media_url,
                "mediaId": card.media_id,
                "exampleMedia": card.example_media,
                "body": card.body,
                "sampleText": card.sample_text,
                "buttons": submitted_buttons(card.buttons),
            }
        )
        for card in cards
    ]


def _button_members(button: TemplateButton) -> dict[str, Any]:
    members: dict[str, Any] = {"type": button.kind.value, "text": button.text}
    match button.kind:
        case ButtonKind.URL:
            members |= {
                "url": button.url,
                "buttonValue": button.button_value,
                "suffix": button.suffix,
                "example": list(button.example),
                "paymentLinkPreview": button.payment_link_preview,
            }
        case ButtonKind.PHONE_NUMBER:
            members["phone_number"] = button.phone_number
        case ButtonKind.COPY_CODE:
            members["example"] = next(iter(button.example), "")
        case ButtonKind.OTP:
            members = {"type": button.kind.value, "otp_type": button.otp_type, "text": button.text}
            members["autofill_text"] = button.autofill_text
            members["zero_tap_terms_accepted"] = button.zero_tap_terms_accepted
            apps = [asdict(app) for app in button.supported_apps]
            members |= apps[0] if button.is_flat else {"supported_apps": apps}
        case ButtonKind.FLOW:
            members |= {name: getattr(button, name) for name in ("flow_id", "flow_action", "navigate_screen", "icon")}
        case ButtonKind.QUICK_REPLY | ButtonKind.MPM | ButtonKind.CATALOG:
            pass
    return members


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in members.items() if value not in (None, "", [])}


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
    return _drop_none(record)


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
    return _drop_none(members)


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
    return _drop_none(
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
            **offer_members(draft),
            "isCPR": draft.is_call_permission_request or None,
            **{field.name: getattr(draft, field.attribute) for field in TEMPLATE_FIELDS if field.is_recorded},
            "cards": [_copy_card(card) for card in draft.cards] if draft.cards else None,
            "correctCategory": template.new_category,
        }
    )


def _drop_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


DEFAULT_PAGE_SIZE: Final = 20
"""The page size when only a page number is given."""
MAX_PAGE_SIZE: Final = 1_000
MAX_TIME_MS: Final = 2**53
"""The latest time; larger numbers are not exact in every JSON reader."""

_LISTED_STATUSES: Final = frozenset(status.value for status in TemplateStatus) - {"DELETED"}
# fmt: off
_SYNONYMS: Final = {  # Source: facts 3.4
    "SUBMITTED":    TemplateStatus.PENDING.value,
    "IN_REVIEW":    TemplateStatus.PENDING.value,
    "APPEALED":     TemplateStatus.IN_APPEAL.value,
    "REINSTATED":   TemplateStatus.APPROVED.value,
    "DESACTIVATED": TemplateStatus.DISABLED.value,
}
# fmt: on


def read_partner_filter(query: QueryReader) -> TemplateFilter:
    """Read the query of the partner API's list.

    Raises:
        ApiError: a number or a boolean cannot be read.
    """
    statuses = _statuses(query("status"))
    useable = _flag(query, "useable")
    if useable is not None:
        sendable = frozenset(status.value for status in SENDABLE)
        allowed = sendable if useable else _LISTED_STATUSES - sendable
        statuses = allowed if statuses is None else statuses & allowed
    template_filter = TemplateFilter(
        template_id=query("id") or None,
        element_name=query("elementName") or None,
        template_types=_split_list(query("templateType")),
        statuses=statuses,
        stages=_split_list(query("stages")) or _split_list(query("stage")),
        from_ms=read_query_number(query, "startTime", minimum=0, maximum=MAX_TIME_MS),
        until_ms=read_query_number(query, "endTime", minimum=0, maximum=MAX_TIME_MS),
    )
    return _add_page(query, template_filter)


def read_self_serve_filter(query: QueryReader) -> TemplateFilter:
    """Read the query of the self-serve API's list. Source: facts 3.5.

    Raises:
        ApiError: a number cannot be read.
    """
    template_filter = TemplateFilter(
        template_types=_split_list(query("templateType")),
        statuses=_statuses(query("templateStatus")),
        categories=_split_list(query("templateCategory")),
        qualities=_split_list(query("quality")),
        language_code=canonical_language(query("languageCode") or "") or None,
    )
    return _add_page(query, template_filter)


def _add_page(query: QueryReader, template_filter: TemplateFilter) -> TemplateFilter:
    """Return the filter with its page. Pages are numbered from 1; 0 is ignored, because many clients send it."""
    size = read_query_number(query, "pageSize", minimum=0, maximum=MAX_PAGE_SIZE) or None
    number = read_query_number(query, "pageNo", minimum=0, maximum=10**9) or None
    if size is None and number is None:
        return template_filter
    size = size or DEFAULT_PAGE_SIZE
    return replace(template_filter, at_most=size, skipped=((number or 1) - 1) * size)


def _split_list(text: str | None) -> frozenset[str] | None:
    """Return the items of a comma-separated list in upper case; None without any."""
    items = frozenset(item.strip().upper() for item in (text or "").split(","))
    return (items - {""}) or None


def _statuses(text: str | None) -> frozenset[str] | None:
    names = _split_list(text)
    return None if names is None else frozenset(_SYNONYMS.get(name, name) for name in names)


def _flag(query: QueryReader, name: str) -> bool | None:
    text = (query(name) or "").strip().lower()
    if not text:
        return None
    if text not in ("true", "false"):
        raise invalid_field(name, "true or false")
    return text == "true"
