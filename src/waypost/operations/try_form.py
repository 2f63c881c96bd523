"""The inputs of "Try it": one for each part of the path, of the query and of the body, filled in as in the sample."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from waypost.api.authorisation import Credential
from waypost.api.fields import FieldType, RequestField
from waypost.api.route import BodyFormat, RouteRow
from waypost.operations import openapi
from waypost.operations.samples import is_prefilled

# fmt: off
APP_VALUES: Final = {  # inputs that get a value of the app that is chosen, and which
    "app_id":   "id",
    "app_name": "name",
    "src.name": "name",
    "source":   "phone_number",
}
_CONTROLS: Final = {  # the control of a type; of others a line of text
    FieldType.JSON:    "textarea",
    FieldType.OBJECT:  "textarea",
    FieldType.BOOLEAN: "select",
    FieldType.FILE:    "file",
}
_ENCODINGS: Final = {  # the encoding of a body, by its format
    BodyFormat.FORM:         "form",
    BodyFormat.FORM_OR_JSON: "form",
    BodyFormat.JSON:         "json",
    BodyFormat.MULTIPART:    "multipart",
}
# fmt: on


class TryInput(NamedTuple):
    """An input."""

    part: str  # `path`, `query` or `body`
    name: str
    control: str  # `text`, `textarea`, `select` or `file`
    required: bool
    value: str  # that it begins with; empty: the field is left out
    example: str  # shown while it is empty
    app_value: str  # the value of the chosen app that it gets; empty: none
    is_object: bool  # True for JSON within a JSON body; a form has it as text

    @property
    def id(self) -> str:
        """Return its id in the page."""
        return f"try-{self.part}-{self.name}"


class TryForm(NamedTuple):
    """The form of one operation."""

    encoding: str  # of the body: `form`, `json` or `multipart`; empty: it has none
    header: str  # the header of the credential; empty: it needs none
    credential: str  # its kind, as people read it
    needs_partner: bool  # True if the credential is a partner token, and not a token of an app
    inputs: tuple[TryInput, ...]


def make_try_form(row: RouteRow) -> TryForm:
    """Return the form of a route."""
    return TryForm(
        _ENCODINGS.get(row.body_format, ""),
        openapi.credential_header(row),
        row.credential.value,
        row.credential is Credential.PARTNER_TOKEN,
        tuple(_inputs(row)),
    )


def _inputs(row: RouteRow) -> Iterator[TryInput]:
    for name in openapi.path_parts(row):
        value = openapi.PATH_PARTS[name][1]
        yield TryInput("path", name, "text", True, value, value, APP_VALUES.get(name, ""), False)
    for field in row.query:
        yield _field_input("query", field, is_json=False)
    for field in row.fields:
        yield _field_input("body", field, is_json=row.body_format is BodyFormat.JSON)


def _field_input(part: str, field: RequestField, *, is_json: bool) -> TryInput:
    control = _CONTROLS.get(field.type, "text")
    shows = field.required if part == "query" else is_prefilled(field)
    value = field.example if shows and control != "file" else ""
    is_object = is_json and field.type in (FieldType.JSON, FieldType.OBJECT)
    app_value = APP_VALUES.get(field.name, "")
    return TryInput(part, field.name, control, field.required, value, field.example, app_value, is_object)
