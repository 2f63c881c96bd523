"""Encoding of domain values as columns, and decoding of rows.

Message contents are canonical JSON; `CONTENT_KINDS` lists their kinds. Texts that mostly repeat each other are stored
as raw deflate, with a dictionary of what they have in common. A compressor that has read the dictionary is copied for
each text, which takes less than half the time of a new one (decision 0093).

Source: RFC 1950, section 2.3, "FDICT"; RFC 1951.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

import msgspec
from sqlalchemy import Row

from waypost.domain.app import App, AppPreferences, BusinessAccount, OperatorAccount
from waypost.domain.message import Content, Passthrough, TemplateSend
from waypost.domain.partner import Partner
from waypost.domain.session_messages import SESSION_KINDS
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Template, TemplateEdit
from waypost.store.sql import RowReader, row_values
from waypost.store.tables import apps, operator_accounts, templates

_read_app: Final = RowReader(App)
decode_business_account: Final = RowReader(BusinessAccount)  # return a business account from its row
_read_operator_account: Final = RowReader(OperatorAccount)
_read_template: Final = RowReader(Template)

_encode_json = msgspec.json.Encoder().encode
decode_template_draft = msgspec.json.Decoder(TemplateDraft).decode
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
    preferences = _decode_preferences(row.preferences)
    if '"user_ids_v3":' not in row.preferences:  # version 3 has user ids as before (decision 0105)
        preferences = replace(preferences, user_ids_v3=True)
    return _read_app(row, phone_number=row.phone_number or "", preferences=preferences, rates=_decode_fields(row.rates))


def app_columns(app: App, token_hash: str) -> dict[str, Any]:
    """Return the columns of an app."""
    return row_values(
        apps,
        app,
        phone_number=app.phone_number or None,
        hosting=app.hosting.value,
        token_hash=token_hash,
        preferences=_encode_json(app.preferences).decode(),
        rates=_encode_json(dict(app.rates)).decode(),
    )


def decode_operator_account(row: Row[Any], unseal: Callable[[bytes, str], str]) -> OperatorAccount:
    """Return an operator account from its row, with its secrets decrypted."""
    return _read_operator_account(row, fields=_decode_fields(unseal(row.encrypted_fields, row.id)))


def operator_account_columns(account: OperatorAccount, seal: Callable[[str, str], bytes]) -> dict[str, Any]:
    """Return the columns of an operator account, with its secrets encrypted."""
    sealed = seal(_encode_json(dict(account.fields)).decode(), account.id)
    return row_values(operator_accounts, account, encrypted_fields=sealed)


def template_columns(template: Template) -> dict[str, Any]:
    """Return the columns of a template."""
    return row_values(
        templates,
        template,
        element_name=template.draft.element_name,
        language_code=template.draft.language_code,
        template_type=template.draft.template_type or "",
        category=template.category.value,
        status=template.status.value,
        draft=_encode_json(template.draft),
        edit=encode_template_edit(template.edit),
    )


def encode_template_edit(edit: TemplateEdit | None) -> bytes | None:
    """Return an edit as JSON."""
    return None if edit is None else _encode_json(edit)


def decode_template(row: Row[Any]) -> Template:
    """Return a template from its row."""
    edit = None if row.edit is None else _decode_edit(row.edit)
    return _read_template(row, draft=decode_template_draft(row.draft), edit=edit)


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

_DECODE: Final[dict[str, Callable[[bytes], Content]]] = {
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


_DEFAULT_MEMBERS: Final = [
    b"," + _encode_json({name: value})[1:-1] for name, value in msgspec.to_builtins(TemplateSend("")).items()
]
_DEFAULT_TAILS: Final[dict[type[Content], tuple[bytes, ...]]] = {
    # The ends of its JSON with only defaults after its first member, longest first. No text within a content contains
    # one: each begins with the comma before a member, and a text's quotes are escaped.
    TemplateSend: tuple(b"".join(_DEFAULT_MEMBERS[n:]) + b"}" for n in range(1, len(_DEFAULT_MEMBERS)))
}


def decode_retained_content(kind: str, content: bytes) -> Content | None:
    """Return the content of a message; None once retention has cleared it."""
    return decode_content(kind, content) if content else None


def decode_content(kind: str, stored: bytes) -> Content:
    """Return the content of a message from its columns."""
    return _DECODE[kind](stored)


_LEVEL: Final = 6
_WINDOW_BITS: Final = -11  # 2 KiB, more than a dictionary and a usual text; negative: without a header and a checksum
_MEMORY_LEVEL: Final = 3


class TextCompressor:
    r"""Compresses the texts of one kind. Stored texts depend on it: it is never changed, but replaced by another.

    Args:
        mark: first byte of compressed texts; one that a text of this kind hardly ever begins with.
        dictionary: what most texts contain, the most frequent at its end.
    """

    def __init__(self, mark: bytes, dictionary: bytes) -> None:
        self.mark: Final = mark
        self.dictionary: Final = dictionary
        self._unused = zlib.compressobj(
            _LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, dictionary
        )

    def compress(self, text: bytes) -> bytes:
        """Return a text as stored; one that would not become shorter is stored as it is."""
        compressor = self._unused.copy()
        stored = b"".join((self.mark, compressor.compress(text), compressor.flush()))
        return stored if len(stored) < len(text) or text.startswith(self.mark) else text

    def decompress(self, stored: bytes) -> bytes:
        """Return a text from what `compress` returned for it; one from before revision 8 as it is."""
        if not stored.startswith(self.mark):
            return stored
        return zlib.decompressobj(_WINDOW_BITS, self.dictionary).decompress(stored[1:])


CALLBACK_BODIES: Final = TextCompressor(
    b"\x01",
    b'"origin":{"type":"marketing"authentication"service"},"conversation":{"id":""expiration_timestamp":"'
    b'"errors":[{"code":,"title":""message":"Message undeliverable"messages":[{"from":""type":"text","text":{"body":"'
    b'{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{'
    b'"messaging_product":"whatsapp","metadata":{"display_phone_number":"1","phone_number_id":"1"},'
    b'"contacts":[{"profile":{"name":""},"wa_id":"1"}],'
    b'"statuses":[{"id":"wamid.HBgL","status":"enqueued"sent"delivered"read"failed","timestamp":"17",'
    b'"recipient_id":"1",'
    b'"gs_id":"\0","conversation":{"id":"","origin":{"type":"utility"}},'
    b'"pricing":{"billable":true,"pricing_model":"PMP","category":"utility","type":"regular"}}]}}]}],"gs_app_id":"01"}'
    b'"payload":{"code":,"reason":""whatsappMessageId":"wamid.HBgL","type":"session"}}}","type":"template"}}}'
    b'"type":"failed","destination":"1","type":"read","destination":"1","type":"enqueued","destination":"1'
    b'},"conversation":{"id":"","expiresAt":17,"type":"utility"},"pricing":{"policy":"PMP","category":"utility",'
    b'"type":"regular"}}}'
    b'"type":"sent","destination":"1{"app":"","phone":"1","timestamp":17,"version":2,"type":"message-event","payload":'
    b'{"id":"wamid.HBgL","gsId":"\0","type":"delivered","destination":"1","payload":{"ts":17}}}',
)
"""Of both versions; the bodies of version 2 at the end."""

REQUESTS: Final = TextCompressor(
    b"\x01",
    b"https%3A%2F%2F&postbackTexts=%5B%7B%22index%22%3A0%2C%22text%22%3A%22%22%7D%2C%7B%22index%22%3A1%2C%22text"
    b"%22%3A%22"
    b"%22%7D%5D&disablePreview=false&message=%7B%22type%22%3A%22image%22%2C%22originalUrl%22%3A%22%22%2C"
    b"%22caption%22%3A%22"
    b"&message=%7B%22type%22%3A%22text%22%2C%22text%22%3A%22%22%7D"
    b"&src.name=&template=%7B%22id%22%3A%220%22%2C%22params%22%3A%5B%22%22%2C%22%22%5D%7D"
    b"channel=whatsapp&source=1&destination=1&src.name=&template=%7B%22id%22%3A%220",
)
"""Forms as partners send them."""


NON_TEXT_MEMBERS: Final = frozenset({  # members of a content that identify or classify something, and hold no text
    "template_id", "kind", "media_kind", "card_media_kind", "type", "sub_type", "reply_to", "sender_id",
    "catalog_id", "product_id", "product_ids", "product_retailer_id", "thumbnail_id", "media", "id",
    "messaging_product", "recipient_type", "message_id", "code", "policy", "format", "index",
})  # fmt: skip
_LEADING_MEMBERS: Final = ("text", "body", "caption", "params", "title", "name", "file_name", "emoji")
MIN_WORD_CHARS: Final = 4
"""Shorter words are not searched for in hidden texts: a phrase would be read word by word, an amount digit by digit."""
_WORD: Final = re.compile(r"[^\W_](?:\S*[^\W_])?")
"""What stands between spaces, without punctuation around it: an amount, an address and a link are one word each."""
_decode_content = msgspec.json.Decoder().decode


def content_texts(content: bytes) -> list[str]:
    """Return every text of a content that people read: texts, captions, titles, values of template variables.

    Args:
        content: as stored; empty once retention has cleared it.
    """
    return list(_texts(_decode_content(content))) if content else []


def json_values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a decoded JSON value and all values in it, each with the name of the member that has it; empty in a list.

    Raises:
        RecursionError: it is nested too deep.
    """
    yield name, value
    if isinstance(value, Mapping):
        for member_name, member in cast("Mapping[str, Any]", value).items():
            yield from json_values(member, member_name)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from json_values(member)


def has_part(text: str, part: str, *, whole_words: bool) -> bool:
    """Return True if a text has this part, in any case; with `whole_words` only as consecutive whole words."""
    text, part = text.casefold(), part.casefold()
    if not whole_words:
        return part in text
    words = _WORD.findall(part)
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(_WORD.findall(text))} "


def can_be_searched_hidden(text: str) -> bool:
    """Return True if each word of a text is long enough to be searched for in hidden texts."""
    words = _WORD.findall(text)
    return bool(words) and all(len(word) >= MIN_WORD_CHARS for word in words)


def short_text(content: bytes, at_most: int = 120) -> str:
    """Return a message's texts as one line; empty if it has none, or retention has cleared them."""
    line = " · ".join(
        text for content_text in content_texts(content) if (text := " ".join(content_text[: at_most * 2].split()))
    )
    return line if len(line) <= at_most else line[: at_most - 1].rstrip() + "…"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        leading = [name for name in _LEADING_MEMBERS if name in members]
        for name in (*leading, *(member for member in members if member not in leading)):
            if name not in NON_TEXT_MEMBERS:
                yield from _texts(members[name])
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from _texts(member)
