"""The fields of a template's form: the draft that they fill, and a table with a row for each.

Rules are in `rules.py`; the operator's body and the record decide how they show a field.
"""

from collections.abc import Container
from dataclasses import KW_ONLY, dataclass
from enum import Enum, StrEnum
from typing import Final

from waypost.domain.templates.buttons import Card, TemplateButton
from waypost.domain.templates.types import HeaderFormat, TemplateType, TemplateTypeRow


@dataclass(frozen=True, slots=True)
class TemplateDraft:
    """A template as submitted: decoded, not yet checked. Absent texts are None, others as sent."""

    element_name: str | None = None
    language_code: str = "en_US"
    category: str | None = None
    template_type: str | None = None
    vertical: str | None = None
    content: str | None = None
    example: str | None = None
    header: str | None = None
    example_header: str | None = None
    footer: str | None = None
    buttons: tuple[TemplateButton, ...] = ()  # of the message itself, including those that the service adds
    enable_sample: bool = False
    example_media: str | None = None  # a handle id; may contain line breaks
    media_id: str | None = None  # of an upload for sending, accepted instead of a handle (facts 3.1)
    media_url: str | None = None  # of the sample; fetched at creation, accepted instead of a handle
    allow_template_category_change: bool = False
    is_lto: bool = False
    limited_offer_text: str | None = None
    has_expiration: bool | None = None  # None: not sent
    cards: tuple[Card, ...] | None = None  # of a carousel; None: not sent
    add_security_recommendation: bool = False
    code_expiration_minutes: int | None = None
    message_validity_s: int | None = None  # duration in which the operator tries to deliver; seconds
    is_call_permission_request: bool = False
    parameter_format: str | None = None  # POSITIONAL or NAMED, as sent in upper case


class FieldFormat(Enum):
    """The format of a field's text; `wire/templates/drafts.py` has a reader for each."""

    TEXT = "as it is"
    OPTIONAL = "empty is none"
    UPPER = "in upper case; empty is none"
    LANGUAGE = "the operator's code of a language, in any case; en_US where it is missing"
    FLAG = "a boolean; false where it is missing"
    OPTIONAL_FLAG = "a boolean; none where it is missing"
    WHOLE = "a whole number"
    BUTTONS = "a JSON array of buttons"
    CARDS = "a JSON array of cards"


class TemplatePart(StrEnum):
    """The part of a template that a field belongs to; the editor shows only the parts that a template has."""

    ANY = "every template"
    MAY_OFFER = "what may be a limited-time offer"
    HEADER = "TEXT, but no one-time code"
    MEDIA = "IMAGE, VIDEO, DOCUMENT and GIF"
    FOOTER = "all but one-time codes"
    OFFER = "a limited-time offer"
    CODE = "a one-time code"


def has_part(part: TemplatePart, row: TemplateTypeRow, flags: Container[str], *, is_code: bool) -> bool:
    """True if a template has a part.

    Args:
        flags: the names of its boolean fields that are true.
        is_code: true if it contains a one-time code.
    """
    match part:
        case TemplatePart.ANY:
            return True
        case TemplatePart.MAY_OFFER:
            return row.may_be_offer and not is_code
        case TemplatePart.OFFER:
            return row.may_be_offer and not is_code and "isLTO" in flags
        case TemplatePart.HEADER:
            return row.header is HeaderFormat.TEXT and not is_code
        case TemplatePart.MEDIA:
            return row.medium is not None and not is_code
        case TemplatePart.FOOTER:
            return not is_code
        case TemplatePart.CODE:
            return is_code


@dataclass(frozen=True, slots=True)
class TemplateField:
    """A row of the table of fields."""

    name: str  # on the wire
    attribute: str  # of `TemplateDraft`
    format: FieldFormat
    meaning: str  # one sentence, for the reference
    example: str = ""  # as in a form
    _: KW_ONLY
    part: TemplatePart = TemplatePart.ANY
    required: bool = False
    changeable: bool = False  # true if an edit may change it. Source: facts 3.6; operator's facts 2.6.
    has_input: bool = True  # true if the editor has an input for it; the editor sets the others itself, or not at all
    label: str = ""  # in the editor, under More; empty: it is elsewhere in the editor, or absent
    is_recorded: bool = False  # true if the record's `containerMeta` repeats it unchanged under its own name


_T, _O, _U, _L, _F, _OF, _W, _B, _C = (
    FieldFormat.TEXT, FieldFormat.OPTIONAL, FieldFormat.UPPER, FieldFormat.LANGUAGE, FieldFormat.FLAG,
    FieldFormat.OPTIONAL_FLAG, FieldFormat.WHOLE, FieldFormat.BUTTONS, FieldFormat.CARDS,
)  # fmt: skip
_P: Final = TemplatePart
_TYPE_NAMES: Final = ", ".join(list(TemplateType)[:-1])
_LAST_TYPE: Final = list(TemplateType)[-1]
_ORDER_READY: Final = "Hi {{1}}, your order is ready."
_CARDS: Final = (
    '[{"headerType":"IMAGE","mediaUrl":"https://shop.example/a.png","body":"A coat",'
    '"buttons":[{"type":"QUICK_REPLY","text":"More"}]}]'
)

TEMPLATE_FIELDS: Final = (  # Source: spec, "Create template"; facts 3.1, 3.6
    TemplateField(
        "elementName",
        "element_name",
        _T,
        "The template's name: lower-case letters, digits and underscores, at most 180 characters.",
        "order_packed",
        required=True,
    ),
    TemplateField(
        "languageCode", "language_code", _L, "The operator's code of its language, in upper or lower case.", "en_US"
    ),
    TemplateField(
        "category", "category", _T, "MARKETING, UTILITY or AUTHENTICATION.", "UTILITY", required=True, changeable=True
    ),
    TemplateField(
        "templateType", "template_type", _T, f"{_TYPE_NAMES} or {_LAST_TYPE}.", "TEXT", required=True, changeable=True
    ),
    TemplateField("vertical", "vertical", _T, "Its subject; at most 180 characters.", "Orders", required=True),
    TemplateField(
        "content",
        "content",
        _T,
        "The body, at most 1024 characters; variables are {{1}}, {{2}} and so on.",
        _ORDER_READY,
        required=True,
        changeable=True,
    ),
    TemplateField(
        "example",
        "example",
        _T,
        "The body with each variable replaced by a value.",
        "Hi Ann, your order is ready.",
        required=True,
        changeable=True,
        has_input=False,
    ),
    TemplateField(
        "header",
        "header",
        _O,
        "For TEXT: at most 60 characters and one variable.",
        "Order {{1}}",
        part=_P.HEADER,
        changeable=True,
    ),
    TemplateField(
        "exampleHeader",
        "example_header",
        _O,
        "The header with its variable replaced by a value.",
        "Order 4711",
        part=_P.HEADER,
        changeable=True,
        has_input=False,
    ),
    TemplateField(
        "footer",
        "footer",
        _O,
        "At most 60 characters; not for AUTHENTICATION.",
        "Acme",
        part=_P.FOOTER,
        changeable=True,
    ),
    TemplateField(
        "buttons",
        "buttons",
        _B,
        "The buttons, as a JSON array.",
        '[{"type":"QUICK_REPLY","text":"Yes"}]',
        changeable=True,
        has_input=False,
    ),
    TemplateField(
        "enableSample",
        "enable_sample",
        _F,
        "If true, media types require a sample.",
        "true",
        changeable=True,
        has_input=False,
    ),
    TemplateField(
        "exampleMedia",
        "example_media",
        _O,
        "The handle id of the sample. DOCUMENT requires this, mediaId or mediaUrl.",
        part=_P.MEDIA,
        changeable=True,
    ),
    TemplateField(
        "mediaId",
        "media_id",
        _O,
        "A media id, instead of a handle id.",
        part=_P.MEDIA,
        changeable=True,
        has_input=False,
        is_recorded=True,
    ),
    TemplateField(
        "mediaUrl",
        "media_url",
        _O,
        "The public URL of the sample, instead of a handle id.",
        part=_P.MEDIA,
        changeable=True,
        is_recorded=True,
    ),
    TemplateField(
        "allowTemplateCategoryChange",
        "allow_template_category_change",
        _F,
        "If true, the operator may assign another category.",
        "false",
        label="The operator may assign another category",
    ),
    TemplateField(
        "isLTO", "is_lto", _F, "If true, a TEXT template is a limited-time offer.", "false", part=_P.MAY_OFFER
    ),
    TemplateField(
        "limitedOfferText",
        "limited_offer_text",
        _O,
        "For limited-time offers: the offer text, at most 16 characters.",
        part=_P.OFFER,
    ),
    TemplateField(
        "hasExpiration",
        "has_expiration",
        _OF,
        "For limited-time offers: true if the offer expires; a COPY_CODE button is then required.",
        part=_P.OFFER,
    ),
    TemplateField(
        "cards", "cards", _C, "For CAROUSEL: the cards, as a JSON array.", _CARDS, changeable=True, has_input=False
    ),
    TemplateField(
        "addSecurityRecommendation",
        "add_security_recommendation",
        _F,
        "For AUTHENTICATION: if true, the body contains a warning not to share the code.",
        part=_P.CODE,
    ),
    TemplateField(
        "codeExpirationMinutes",
        "code_expiration_minutes",
        _W,
        "For AUTHENTICATION: minutes until the code expires, 1 to 90; shown as the footer.",
        part=_P.CODE,
    ),
    TemplateField(
        "messageValidity",
        "message_validity_s",
        _W,
        "How long the operator tries to deliver, in seconds; the range depends on the category.",
    ),
    TemplateField(
        "isCPR",
        "is_call_permission_request",
        _F,
        "If true, it requests permission to call.",
        label="It requests permission to call",
    ),
    TemplateField("parameterFormat", "parameter_format", _U, "POSITIONAL, or NAMED for variables such as {{order}}."),
)
DRAFT_ATTRIBUTES: Final = {field.name: field.attribute for field in TEMPLATE_FIELDS}
"""The attribute of `TemplateDraft` for each field name."""
CHANGEABLE_FIELDS: Final = tuple(field.name for field in TEMPLATE_FIELDS if field.changeable)


def input_fields(*formats: FieldFormat) -> tuple[TemplateField, ...]:
    """Return the fields with an input in the editor, of some formats."""
    return tuple(field for field in TEMPLATE_FIELDS if field.has_input and field.format in formats)
