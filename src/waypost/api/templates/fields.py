"""The fields of the forms of templates, from the table of fields."""

from typing import Annotated, Any, Final, cast

from msgspec import Struct, defstruct

from waypost.api.fields import Field
from waypost.domain.templates.fields import TEMPLATE_FIELDS, FieldFormat, TemplateField
from waypost.wire.templates.drafts import SentButton, SentCard

_TYPES: Final[dict[FieldFormat, Any]] = {  # all others are texts
    FieldFormat.FLAG: bool,
    FieldFormat.OPTIONAL_FLAG: bool,
    FieldFormat.WHOLE: int,
    FieldFormat.BUTTONS: list[SentButton],
    FieldFormat.CARDS: list[SentCard],
}
_Member = tuple[str, Any] | tuple[str, Any, None]


def _define(name: str, fields: list[TemplateField], meanings: dict[str, Field], *, optional: bool) -> type[Struct]:
    """Return a struct of fields for the reference; the operation reads them itself.

    Args:
        name: of the struct.
        fields: of the form.
        meanings: of those that mean something else in it, and of fields that are in no draft.
        optional: True if the form needs none of them.
    """
    described = {
        field.name: (
            _TYPES.get(field.format, str),
            meanings.get(field.name) or Field(field.meaning, field.example),
            field.required and not optional,
        )
        for field in fields
    }
    described |= {other: (str, meaning, False) for other, meaning in meanings.items() if other not in described}
    members: list[_Member] = [
        (wire_name, Annotated[type_, meaning]) if is_required else (wire_name, Annotated[type_ | None, meaning], None)
        for wire_name, (type_, meaning, is_required) in described.items()
    ]
    return defstruct(name, cast("Any", members), kw_only=True)


NEW_TEMPLATE: Final = _define("NewTemplate", list(TEMPLATE_FIELDS), {}, optional=False)
TEMPLATE_CHECK: Final = _define(
    "TemplateCheck",
    list(TEMPLATE_FIELDS),
    {
        "elementName": Field("The template's name, if already chosen.", "order_packed"),
        "category": Field("The category, if already chosen.", "UTILITY"),
        "templateType": Field("The type, if already chosen.", "TEXT"),
        "vertical": Field("The subject of the template.", "Orders"),
        "content": Field("The body, complete or not.", "Hi {{1}}, your order is ready."),
        "example": Field("The body with each variable replaced by a value.", "Hi Ann, your order is ready."),
        "templateId": Field("For an edit: the template that the form changes."),
    },
    optional=True,
)
TEMPLATE_CHANGE: Final = _define(
    "TemplateChange",
    [field for field in TEMPLATE_FIELDS if field.changeable],
    {
        "content": Field("The body; unchanged when absent.", "Hi {{1}}, your parcel is ready."),
        "templateType": Field("Another type; a carousel cannot change its type.", "TEXT"),
        "example": Field(
            "The body with each variable replaced by a value; unchanged when absent.", "Hi Ann, your parcel is ready."
        ),
        "category": Field("Another category; that of an approved template cannot change.", "UTILITY"),
    },
    optional=True,
)
