"""The fields of a template's form: the draft that they fill, and a table with a row for each.

Rules are in `rules.py`; the operator's body and the record decide how they show a field.
"""

from collections.abc import Container
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from waypost.domain.templates.buttons import Card, TemplateButton
from waypost.domain.templates.types import HeaderFormat, TemplateType, TemplateTypeRow


@dataclass(frozen=True, slots=True)
class TemplateDraft:
    """A template as submitted: decoded, not yet checked. Absent texts are None, others as sent.

    Attributes:
        buttons: of the message itself, including those that the service adds.
        example_media: a handle id; may contain line breaks.
        media_id: of an upload for sending, accepted instead of a handle (facts 3.1).
        media_url: of the sample; fetched at creation, accepted instead of a handle.
        has_expiration: None: not sent.
        cards: of a carousel; None: not sent.
        message_validity_s: duration in which the operator tries to deliver; seconds.
        parameter_format: POSITIONAL or NAMED, as sent in upper case.
    """

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
    buttons: tuple[TemplateButton, ...] = ()
    enable_sample: bool = False
    example_media: str | None = None
    media_id: str | None = None
    media_url: str | None = None
    allow_template_category_change: bool = False
    is_lto: bool = False
    limited_offer_text: str | None = None
    has_expiration: bool | None = None
    cards: tuple[Card, ...] | None = None
    add_security_recommendation: bool = False
    code_expiration_minutes: int | None = None
    message_validity_s: int | None = None
    is_call_permission_request: bool = False
    parameter_format: str | None = None


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
        part: of a field.
        row: of its type.
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
    """A row of the table of fields.

    Attributes:
        name: on the wire.
        attribute: of `TemplateDraft`.
        changeable: true if an edit may change it. Source: facts 3.6; operator's facts 2.6.
        has_input: true if the editor has an input for it; the editor sets the others itself, or not at all.
        meaning: one sentence, for the reference.
        example: as in a form.
        label: in the editor, under More; empty: it is elsewhere in the editor, or absent.
        is_recorded: true if the record's `containerMeta` repeats it unchanged under its own name.
    """

    name: str
    attribute: str
    format: FieldFormat
    part: TemplatePart
    required: bool
    changeable: bool
    has_input: bool
    meaning: str
    example: str = ""
    label: str = ""
    is_recorded: bool = False


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
    # name, attribute, format part, required changeable input, meaning
    TemplateField(
        "elementName",
        attribute="element_name",
        format=_T,
        part=_P.ANY,
        required=True,
        changeable=False,
        has_input=True,
        meaning="The template's name: lower-case letters, digits and underscores, at most 180 characters.",
        example="order_packed",
    ),
    TemplateField(
        "languageCode",
        attribute="language_code",
        format=_L,
        part=_P.ANY,
        required=False,
        changeable=False,
        has_input=True,
        meaning="The operator's code of its language, in upper or lower case.",
        example="en_US",
    ),
    TemplateField(
        "category",
        attribute="category",
        format=_T,
        part=_P.ANY,
        required=True,
        changeable=True,
        has_input=True,
        meaning="MARKETING, UTILITY or AUTHENTICATION.",
        example="UTILITY",
    ),
    TemplateField(
        "templateType",
        attribute="template_type",
        format=_T,
        part=_P.ANY,
        required=True,
        changeable=True,
        has_input=True,
        meaning=f"{_TYPE_NAMES} or {_LAST_TYPE}.",
        example="TEXT",
    ),
    TemplateField(
        "vertical",
        attribute="vertical",
        format=_T,
        part=_P.ANY,
        required=True,
        changeable=False,
        has_input=True,
        meaning="Its subject; at most 180 characters.",
        example="Orders",
    ),
    TemplateField(
        "content",
        attribute="content",
        format=_T,
        part=_P.ANY,
        required=True,
        changeable=True,
        has_input=True,
        meaning="The body, at most 1024 characters; variables are {{1}}, {{2}} and so on.",
        example=_ORDER_READY,
    ),
    TemplateField(
        "example",
        attribute="example",
        format=_T,
        part=_P.ANY,
        required=True,
        changeable=True,
        has_input=False,
        meaning="The body with each variable replaced by a value.",
        example="Hi Ann, your order is ready.",
    ),
    TemplateField(
        "header",
        attribute="header",
        format=_O,
        part=_P.HEADER,
        required=False,
        changeable=True,
        has_input=True,
        meaning="For TEXT: at most 60 characters and one variable.",
        example="Order {{1}}",
    ),
    TemplateField(
        "exampleHeader",
        attribute="example_header",
        format=_O,
        part=_P.HEADER,
        required=False,
        changeable=True,
        has_input=False,
        meaning="The header with its variable replaced by a value.",
        example="Order 4711",
    ),
    TemplateField(
        "footer",
        attribute="footer",
        format=_O,
        part=_P.FOOTER,
        required=False,
        changeable=True,
        has_input=True,
        meaning="At most 60 characters; not for AUTHENTICATION.",
        example="Acme",
    ),
    TemplateField(
        "buttons",
        attribute="buttons",
        format=_B,
        part=_P.ANY,
        required=False,
        changeable=True,
        has_input=False,
        meaning="The buttons, as a JSON array.",
        example='[{"type":"QUICK_REPLY","text":"Yes"}]',
    ),
    TemplateField(
        "enableSample",
        attribute="enable_sample",
        format=_F,
        part=_P.ANY,
        required=False,
        changeable=True,
        has_input=False,
        meaning="If true, media types require a sample.",
        example="true",
    ),
    TemplateField(
        "exampleMedia",
        attribute="example_media",
        format=_O,
        part=_P.MEDIA,
        required=False,
        changeable=True,
        has_input=True,
        meaning="The handle id of the sample. DOCUMENT requires this, mediaId or mediaUrl.",
    ),
    TemplateField(
        "mediaId",
        attribute="media_id",
        format=_O,
        part=_P.MEDIA,
        required=False,
        changeable=True,
        has_input=False,
        meaning="A media id, instead of a handle id.",
        is_recorded=True,
    ),
    TemplateField(
        "mediaUrl",
        attribute="media_url",
        format=_O,
        part=_P.MEDIA,
        required=False,
        changeable=True,
        has_input=True,
        meaning="The public URL of the sample, instead of a handle id.",
        is_recorded=True,
    ),
    TemplateField(
        "allowTemplateCategoryChange",
        attribute="allow_template_category_change",
        format=_F,
        part=_P.ANY,
        required=False,
        changeable=False,
        has_input=True,
        meaning="If true, the operator may assign another category.",
        example="false",
        label="The operator may assign another category",
    ),
    TemplateField(
        "isLTO",
        attribute="is_lto",
        format=_F,
        part=_P.MAY_OFFER,
        required=False,
        changeable=False,
        has_input=True,
        meaning="If true, a TEXT template is a limited-time offer.",
        example="false",
    ),
    TemplateField(
        "limitedOfferText",
        attribute="limited_offer_text",
        format=_O,
        part=_P.OFFER,
        required=False,
        changeable=False,
        has_input=True,
        meaning="For limited-time offers: the offer text, at most 16 characters.",
    ),
    TemplateField(
        "hasExpiration",
        attribute="has_expiration",
        format=_OF,
        part=_P.OFFER,
        required=False,
        changeable=False,
        has_input=True,
        meaning="For limited-time offers: true if the offer expires; a COPY_CODE button is then required.",
    ),
    TemplateField(
        "cards",
        attribute="cards",
        format=_C,
        part=_P.ANY,
        required=False,
        changeable=True,
        has_input=False,
        meaning="For CAROUSEL: the cards, as a JSON array.",
        example=_CARDS,
    ),
    TemplateField(
        "addSecurityRecommendation",
        attribute="add_security_recommendation",
        format=_F,
        part=_P.CODE,
        required=False,
        changeable=False,
        has_input=True,
        meaning="For AUTHENTICATION: if true, the body contains a warning not to share the code.",
    ),
    TemplateField(
        "codeExpirationMinutes",
        attribute="code_expiration_minutes",
        format=_W,
        part=_P.CODE,
        required=False,
        changeable=False,
        has_input=True,
        meaning="For AUTHENTICATION: minutes until the code expires, 1 to 90; shown as the footer.",
    ),
    TemplateField(
        "messageValidity",
        attribute="message_validity_s",
        format=_W,
        part=_P.ANY,
        required=False,
        changeable=False,
        has_input=True,
        meaning="How long the operator tries to deliver, in seconds; the range depends on the category.",
    ),
    TemplateField(
        "isCPR",
        attribute="is_call_permission_request",
        format=_F,
        part=_P.ANY,
        required=False,
        changeable=False,
        has_input=True,
        meaning="If true, it requests permission to call.",
        label="It requests permission to call",
    ),
    TemplateField(
        "parameterFormat",
        attribute="parameter_format",
        format=_U,
        part=_P.ANY,
        required=False,
        changeable=False,
        has_input=True,
        meaning="POSITIONAL, or NAMED for variables such as {{order}}.",
    ),
)
DRAFT_ATTRIBUTES: Final = {field.name: field.attribute for field in TEMPLATE_FIELDS}
"""The attribute of `TemplateDraft` for each field name."""
CHANGEABLE_FIELDS: Final = tuple(field.name for field in TEMPLATE_FIELDS if field.changeable)


def input_fields(*formats: FieldFormat) -> tuple[TemplateField, ...]:
    """Return the fields with an input in the editor, of some formats."""
    return tuple(field for field in TEMPLATE_FIELDS if field.has_input and field.format in formats)
