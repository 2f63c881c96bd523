"""The table of request fields: every name in a form, a JSON body or a query. For the OpenAPI document and the pages."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class FieldType(StrEnum):
    """The type that a field's text is parsed as."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    JSON = "JSON text"
    FILE = "file"
    OBJECT = "object"  # of a JSON body


@dataclass(frozen=True, slots=True)
class RequestField:
    """One row. Its key is the wire name; if one name has two meanings, `@` and a suffix follow it.

    Attributes:
        required: True if every route that reads it returns an error without it.
        meaning: one sentence.
        example: a value as it is sent in a form.
        json_type: of JSON text, the msgspec type that decodes it; its JSON Schema goes into the document.
    """

    type: FieldType
    required: bool
    meaning: str
    example: str
    json_type: Any = None


_T, _I, _B = FieldType.TEXT, FieldType.INTEGER, FieldType.BOOLEAN
_J, _F, _O = FieldType.JSON, FieldType.FILE, FieldType.OBJECT

# fmt: off
REQUEST_FIELDS: Final = {  # Source: spec, "Endpoints"; facts 1 to 4, 8, 9, 13

# Sending. Source: spec, "Endpoints", 2 to 4 and 6; facts 9

    # Media. Source: spec, "Upload media"; facts 8



    # Apps and their credentials. Source: facts 1.4, 1.5, 2

    # Account and number. Source: facts 13


    # Flows. Source: facts 9.4


}
# fmt: on


def wire_name(name: str) -> str:
    """Return the wire name of a key of the table."""
    return name.partition("@")[0]
