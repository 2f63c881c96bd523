"""Encoding of domain values as columns, and decoding of rows.

Message contents are canonical JSON; `CONTENT_KINDS` lists their kinds.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec
from sqlalchemy import Row

from waypost.domain.app import App, AppPreferences, BusinessAccount, OperatorAccount
from waypost.domain.message import Content, Passthrough, TemplateSend
from waypost.domain.partner import Partner
from waypost.domain.session_messages import SESSION_KINDS
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Template, TemplateEdit
from waypost.store.typed_rows import RowReader

_read_app: Final = RowReader(App)
decode_business_account: Final = RowReader(BusinessAccount)
"""Return a business account from its row."""
_read_operator_account: Final = RowReader(OperatorAccount)
_read_template: Final = RowReader(Template)

_encode_json = msgspec.json.Encoder().encode
_decode_draft = msgspec.json.Decoder(TemplateDraft).decode
_decode_edit = msgspec.json.Decoder(TemplateEdit).decode
_decode_preferences = msgspec.json.Decoder(AppPreferences).decode
_decode_fields = msgspec.json.Decoder(dict[str, str]).decode
_decode_profile = msgspec.json.Decoder(dict[str, Any]).decode


def partner_columns(partner: Partner) -> dict[str, Any]:
    """Return the columns of a partner except its id and password."""
    profile = msgspec.to_builtins(partner)
    del profile["id"], profile["email"]
    return {"email": partner.email.lower(), "profile": _encode_json(profile).decode()}


def decode_partner(row: Row[Any]) -> Partner:
    """Return a partner from its row."""
    return Partner(id=row.id, email=row.email, **_decode_profile(row.profile))


def decode_app(row: Any) -> App:
    """Return an app from its row: SQLAlchemy's, or a named tuple."""
    return _read_app(
        row,
        phone_number=row.phone_number or "",
        preferences=_read_preferences(row.preferences),
        rates=_decode_fields(row.rates),
    )


def _read_preferences(text: str) -> AppPreferences:
    """Return preferences; of an app that was stored before revision 9, version 3 has user ids as before (decision 0105)."""
    preferences = _decode_preferences(text)
    return preferences if '"user_ids_v3":' in text else replace(preferences, user_ids_v3=True)


def app_columns(app: App, token_hash: str) -> dict[str, Any]:
    """Return the columns of an app."""
    return {
        "id": app.id,
        "partner_id": app.partner_id,
        "name": app.name,
        "phone_number": app.phone_number or None,
        "phone_number_id": app.phone_number_id,
        "business_account_id": app.business_account_id,
        "live": app.live,
        "hosting": app.hosting.value,
        "token_serial": app.token_serial,
        "token_hash": token_hash,
        "per_second": app.per_second,
        "preferences": _encode_json(app.preferences).decode(),
        "rates": _encode_json(dict(app.rates)).decode(),
        "created_on_ms": app.created_on_ms,
        "modified_on_ms": app.modified_on_ms,
    }


def decode_operator_account(row: Row[Any], unseal: Callable[[bytes, str], str]) -> OperatorAccount:
    """Return an operator account from its row, with its secrets decrypted."""
    return _read_operator_account(row, fields=_decode_fields(unseal(row.encrypted_fields, row.id)))


def operator_account_columns(account: OperatorAccount, seal: Callable[[str, str], bytes]) -> dict[str, Any]:
    """Return the columns of an operator account, with its secrets encrypted."""
    return {
        "id": account.id,
        "kind": account.kind,
        "base_url": account.base_url,
        "encrypted_fields": seal(_encode_json(dict(account.fields)).decode(), account.id),
    }


def template_columns(template: Template) -> dict[str, Any]:
    """Return the columns of a template."""
    return {
        "id": template.id,
        "partner_id": template.partner_id,
        "app_id": template.app_id,
        "business_account_id": template.business_account_id,
        "namespace": template.namespace,
        "element_name": template.draft.element_name,
        "language_code": template.draft.language_code,
        "template_type": template.draft.template_type or "",
        "category": template.category.value,
        "old_category": template.old_category,
        "new_category": template.new_category,
        "edited": template.edited,
        "status": template.status.value,
        "quality": template.quality,
        "stage": template.stage,
        "retry": template.retry,
        "reason": template.reason,
        "operator_template_id": template.operator_template_id,
        "decided_on_s": template.decided_on_s,
        "draft": _encode_json(template.draft),
        "edit": encode_template_edit(template.edit),
        "created_on_ms": template.created_on_ms,
        "modified_on_ms": template.modified_on_ms,
    }


def encode_template_draft(draft: TemplateDraft) -> str:
    """Return a draft as JSON."""
    return _encode_json(draft).decode()


def encode_template_edit(edit: TemplateEdit | None) -> bytes | None:
    """Return an edit as JSON."""
    return None if edit is None else _encode_json(edit)


def decode_template_draft(stored: str) -> TemplateDraft:
    """Return a draft from its JSON."""
    return _decode_draft(stored)


def decode_template(row: Row[Any]) -> Template:
    """Return a template from its row."""
    edit = None if row.edit is None else _decode_edit(row.edit)
    return _read_template(row, draft=_decode_draft(row.draft), edit=edit)


CONTENT_KINDS: Final[dict[type[Content], str]] = {  # the names are stored
    **{kind: kind.stored_as for kind in SESSION_KINDS},
    TemplateSend: "template",
    Passthrough: "passthrough",
}
TEMPLATE_PASSTHROUGH: Final = "template_passthrough"
MARKETING_TEMPLATE: Final = "marketing_template"
MARKETING_PASSTHROUGH: Final = "marketing_passthrough"
MARKETING_MESSAGE_KINDS: Final = {MARKETING_TEMPLATE, MARKETING_PASSTHROUGH}
"""Kinds that are sent through the operator's API for marketing messages."""
TEMPLATE_MESSAGE_KINDS: Final = {CONTENT_KINDS[TemplateSend], TEMPLATE_PASSTHROUGH, *MARKETING_MESSAGE_KINDS}
"""Kinds that a callback reports as a template message."""

_DECODE: Final = {
    TEMPLATE_PASSTHROUGH: msgspec.json.Decoder(Passthrough).decode,
    MARKETING_PASSTHROUGH: msgspec.json.Decoder(Passthrough).decode,
    MARKETING_TEMPLATE: msgspec.json.Decoder(TemplateSend).decode,
    **{name: msgspec.json.Decoder(kind).decode for kind, name in CONTENT_KINDS.items()},
}


def content_kind(content: Content) -> str:
    """Return the kind of a content, as in the column `kind`; a template passthrough and marketing have their own."""
    match content:
        case TemplateSend(is_marketing=True):
            return MARKETING_TEMPLATE
        case Passthrough(is_marketing=True):
            return MARKETING_PASSTHROUGH
        case Passthrough(type="template"):
            return TEMPLATE_PASSTHROUGH
        case _:
            pass
    return CONTENT_KINDS[type(content)]


def encode_content(content: Content) -> bytes:
    """Return the content of a message as stored: canonical JSON, without its last members if they have their defaults.

    Stored contents depend on these defaults: one that has to change gets another member.
    """
    stored = _encode_json(content)
    for tail in _DEFAULT_TAILS.get(type(content), ()):
        if stored.endswith(tail):
            return stored[: -len(tail)] + b"}"
    return stored


def _default_tails(content: Content) -> tuple[bytes, ...]:
    """Return the ends of the JSON of a content that has only defaults after its first member, longest first.

    Each begins with the comma before a member. A text within a content contains no such end: its quotes are escaped.
    """
    members = [b"," + _encode_json({name: value})[1:-1] for name, value in msgspec.to_builtins(content).items()]
    return tuple(b"".join(members[n:]) + b"}" for n in range(1, len(members)))


_DEFAULT_TAILS: Final[dict[type[Content], tuple[bytes, ...]]] = {TemplateSend: _default_tails(TemplateSend(""))}
"""Contents with many members that most messages leave at their defaults."""


def decode_retained_content(kind: str, content: bytes) -> Content | None:
    """Return the content of a message; None once retention has cleared it."""
    return decode_content(kind, content) if content else None


def decode_content(kind: str, stored: bytes) -> Content:
    """Return the content of a message from its columns."""
    content: Content = _DECODE[kind](stored)
    return content
