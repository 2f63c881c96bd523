"""The OpenAPI document, made from the tables of routes and errors, so that none can drift."""

import inspect
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, cast

import msgspec

from waypost import __version__
from waypost.api.authorisation import Credential
from waypost.api.fields import FieldType, RequestField
from waypost.api.idempotency import MAX_KEY_CHARS
from waypost.api.route import BodyFormat, IdempotencyMode, RouteRow, error_codes_of
from waypost.api.routes import ROUTES
from waypost.domain.rates import RATES, Rate, describe_limit
from waypost.wire.errors import ERRORS, ErrorRow
from waypost.wire.requests import make_operation_id

# fmt: off
SAMPLES_BY_NAME: Final[Mapping[str, Any]] = {  # members whose sample shows more than their type
    "id":           "01990000-0000-7000-8000-0000000000b1",
    "messageId":    "01990000-0000-7000-8000-0000000000c1",
    "appId":        "01990000-0000-7000-8000-0000000000a1",
    "mediaId":      "1000000000000017",
    "elementName":  "order_ready",
    "languageCode": "en_US",
    "createdOn":    1763722800000,
    "modifiedOn":   1763722800000,
    "name":         "WaypostDemo",
    "phone":        "15550001000",
    "wabaId":       "1000000000000001",
}
# fmt: on


def make_sample(schema: Mapping[str, Any], name: str = "") -> Any:
    """Return a value that the schema allows, the same at every call.

    Args:
        schema: of the kinds that the tables use: const, enum, object, array, oneOf, plain types.
        name: of the member it is for.
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "example" in schema:
        return schema["example"]
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return make_sample(schema[key][0], name)
    kind: Any = schema.get("type")
    if isinstance(kind, list):
        kind = next(name_of_type for name_of_type in cast("list[str]", kind) if name_of_type != "null")
    named_sample = SAMPLES_BY_NAME.get(name)
    match kind:
        case "object":
            members: Mapping[str, Any] = schema.get("properties", {})
            return {member: make_sample(inner, member) for member, inner in members.items()}
        case "array":
            return [make_sample(schema.get("items", {}), name.removesuffix("s"))]
        case "string":
            return named_sample if isinstance(named_sample, str) else name or "text"
        case "integer":
            return named_sample if isinstance(named_sample, int) else 1
        case "number":
            return 1.5
        case "boolean":
            return True
        case _:
            return named_sample if named_sample is not None else {}


Document = dict[str, Any]

PATH_PARTS: Final = {  # name: meaning, example
    "app_id": ("The app's id.", "01990000-0000-7000-8000-0000000000a1"),
    "template_id": ("A template's id.", "01990000-0000-7000-8000-0000000000b1"),
    "element_name": ("A template's name.", "order_ready"),
    "subscription_id": ("A subscription's id.", "1"),
    "media_id": ("A media id.", "1000000000000017"),
    "message_id": ("A message's id.", "01990000-0000-7000-8000-0000000000c1"),
    "flow_id": ("A flow's id at the operator.", "1000000000000021"),
    "phone": ("A phone number of 8 to 15 digits.", "15550002001"),
    "group_id": ("The group's id at the operator.", "Y2FwaV9ncm91cDox"),
    "payment_configuration": ("The name of a payment configuration.", "shop-gateway"),
    "configuration_name": ("The name of a payment configuration.", "shop-gateway"),
    "reference_id": ("The reference of an order.", "order-7"),
    "key_id": ("A key's id.", "01990000-0000-7000-8000-0000000000d1"),
    "partner_id": ("The partner's id.", "1"),
    "business_id": ("A business's id at the operator.", "1000000000000031"),
    "user_id": ("The id of a person.", "1"),
    "app_name": ("The name of one of your apps.", "WaypostDemo"),
}
SECURITY: Final[Mapping[Credential, list[dict[str, list[str]]]]] = {  # Source: facts 1.1: either header is accepted
    Credential.NONE: [],
    Credential.PARTNER_TOKEN: [{"partnerToken": []}, {"partnerTokenHeader": []}],
    Credential.UNIVERSAL_TOKEN: [{"universalToken": []}, {"universalTokenHeader": []}],
    Credential.APP_TOKEN: [{"appToken": []}, {"appTokenHeader": []}, {"partnerToken": []}, {"partnerTokenHeader": []}],
    Credential.API_KEY: [{"apiKey": []}],
}
SCHEMES: Final = {
    # header, what it holds
    "partnerToken": ("Authorization", "A partner token from login, as it is or after `Bearer `; valid for 24 hours."),
    "partnerTokenHeader": ("token", "A partner token from login, in the other header that clients use."),
    "universalToken": (
        "Authorization",
        "A universal token, as it is or after `Bearer `; a partner token from login is not accepted.",
    ),
    "universalTokenHeader": ("token", "A universal token, in the other header."),
    "appToken": ("Authorization", "The app token of the app in the path, as it is or after `Bearer `."),
    "appTokenHeader": ("token", "The app token of the app in the path, in the other header."),
    "apiKey": ("apikey", "An API key of the account, or the app token of one app."),
}
IDEMPOTENCY_HEADER: Final = (
    "Idempotency-Key",
    "Optional: a text of your own for this request, best a random UUID. A request that repeats it within 24 hours, "
    "with the same body, gets the first response again and is not carried out again.",
)
COMMON_STATUSES: Final = (413, 429, 500)
"""Statuses that any route may respond with."""

_PART: Final = re.compile(r"\{(\w+)\}")
_CITATION: Final = re.compile(
    r"\s*\bSource: .*?(?=\n\n|\Z)|\s*\((?:decisions?|facts|ledger|spec)\b[^)]*\)", re.DOTALL
)  # ours: they do not concern clients


def make_document(server: str, *, rates: Mapping[str, Rate] = RATES, rates_on: bool = True) -> Document:
    """Return the whole document, OpenAPI 3.1.

    Args:
        server: base URL of the service.
        rates: the rates of the service.
        rates_on: False if the service limits no requests.
    """
    paths: dict[str, dict[str, Any]] = {}
    for row in ROUTES:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(
            row, describe_limit(row.rate, rates, on=rates_on)
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Waypost",
            "version": __version__,
            "description": (
                "Partner API and messaging API. Bodies are forms unless stated otherwise; responses are JSON."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server}],
        "tags": [{"name": name} for name in dict.fromkeys(row.section for row in ROUTES)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                name: {"type": "apiKey", "in": "header", "name": header, "description": meaning}
                for name, (header, meaning) in SCHEMES.items()
            },
            "schemas": {
                "OperatorError": {
                    "type": "object",
                    "properties": {
                        "code": {"type": "integer"},
                        "fbtrace_id": {"type": "string"},
                        "message": {"type": "string"},
                        "type": {"type": "string"},
                    },
                    "required": ["code", "fbtrace_id", "message", "type"],
                    "additionalProperties": False,
                },
                "Error": {
                    "type": "object",
                    "properties": {
                        "status": {"const": "error"},
                        "message": {
                            "oneOf": [
                                {"type": "string"},
                                {
                                    "type": "object",
                                    "properties": {"message": {"type": "string"}},
                                    "required": ["message"],
                                    "additionalProperties": False,
                                },
                            ]
                        },
                        "error": {"oneOf": [{"type": "string"}, {"$ref": "#/components/schemas/OperatorError"}]},
                        "code": {"type": "integer"},
                        "details": {"type": "string"},
                    },
                    "required": ["status", "message"],
                    "additionalProperties": False,
                },
            },
        },
    }


def operation_id(row: RouteRow) -> str:
    """Return a unique name for each route: two paths may differ in letters of another case only."""
    return make_operation_id(row.name)


def endpoint_texts(row: RouteRow) -> tuple[str, str]:
    """Return a route's summary, in a line, and its description: from its endpoint's docstring."""
    text = _CITATION.sub("", inspect.getdoc(row.endpoint) or "")
    first, _, rest = text.partition("\n\n")
    rest = re.sub(r"(?ms)^(Args|Returns|Raises):\n(?:[ \t]+.*\n?)*", "", rest)
    return " ".join(first.split()), rest.strip()


def path_parts(row: RouteRow) -> list[str]:
    """Return the names of the variable parts of the path."""
    return _PART.findall(row.path)


def credential_header(row: RouteRow) -> str:
    """Return the header of a route's credential, the first of those accepted; empty: it needs none."""
    choices = SECURITY[row.credential]
    return SCHEMES[next(iter(choices[0]))][0] if choices else ""


def errors_of(row: RouteRow) -> dict[int, list[ErrorRow]]:
    """Return the errors of a route, by status, in the order of the table."""
    errors: dict[int, list[ErrorRow]] = {}
    for code in error_codes_of(row):
        error = ERRORS[code]
        errors.setdefault(error.status, []).append(error)
    return errors


def json_schema(field: RequestField) -> dict[str, Any] | None:
    """Return the JSON Schema of a JSON text's content, references resolved; None for other fields."""
    if field.json_type is None:
        return None
    schema, components = msgspec.json.schema_components([field.json_type], ref_template="{name}")
    resolved = _resolve_references(schema[0], components, ())
    return resolved if isinstance(resolved, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def is_file(schema: Mapping[str, Any]) -> bool:
    """True if a shape is the bytes of a file and not JSON."""
    return schema.get("format") == "binary"


def format_of(field: RequestField) -> str:
    """Return the name of the string format of a JSON text, which no other field has."""
    return f"waypost-{re.sub('[^a-z0-9]+', '-', field.key.lower())}"


def _operation(row: RouteRow, limit: str) -> dict[str, Any]:
    summary, description = endpoint_texts(row)
    operation: dict[str, Any] = {
        "operationId": operation_id(row),
        "tags": [row.section],
        "summary": summary,
        "description": "\n\n".join(part for part in (description, limit) if part),
        "parameters": _parameters(row),
        "security": SECURITY[row.credential],
        "responses": _responses(row),
    }
    if row.deprecation is not None:
        operation["deprecated"] = True
        for response in operation["responses"].values():
            response.setdefault("headers", {})["Deprecation"] = {
                "description": "Since when this path is deprecated (RFC 9745).",
                "schema": {"const": row.deprecation[1].decode()},
            }
    content = _content(row)
    if content:
        operation["requestBody"] = {"content": content, "required": any(field.required for field in row.fields)}
    return operation


def _parameters(row: RouteRow) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_PARTS[name][0],
            "schema": {"type": "string", "minLength": 1},
            "example": PATH_PARTS[name][1],
        }
        for name in path_parts(row)
    ]
    parameters += [
        {
            "name": field.name,
            "in": "query",
            "required": field.required,
            "description": field.meaning,
            "schema": _field_schema(field),
        }
        for field in row.query
    ]
    if row.idempotency is not IdempotencyMode.NO_KEY:
        name, meaning = IDEMPOTENCY_HEADER
        parameters.append(
            {
                "name": name,
                "in": "header",
                "required": False,
                "description": meaning,
                "schema": {"type": "string", "pattern": f"^[ -~]{{1,{MAX_KEY_CHARS}}}$"},
                "example": "8e03978e-40d5-43dd-bc93-6894a57f9324",
            }
        )
    return parameters


def _content(row: RouteRow) -> dict[str, Any]:
    match row.body_format:
        case BodyFormat.NOTHING:
            return {}
        case BodyFormat.FORM_OR_JSON:
            kinds = [BodyFormat.FORM.value, BodyFormat.JSON.value]
        case kind:
            kinds = [kind.value]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: _field_schema(field) for field in row.fields},
    }
    required = [field.name for field in row.fields if field.required]
    if required:
        schema["required"] = required
    return {kind: {"schema": schema} for kind in kinds}


def _field_schema(field: RequestField) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": field.meaning}
    match field.type:
        case FieldType.TEXT:
            schema["type"] = "string"
        case FieldType.INTEGER:
            schema |= {"type": "string", "pattern": "^[0-9]{1,15}$"}
        case FieldType.BOOLEAN:
            schema |= {"type": "string", "enum": ["true", "false"]}
        case FieldType.FILE:
            schema |= {"type": "string", "contentMediaType": "application/octet-stream"}
        case FieldType.OBJECT:
            schema |= json_schema(field) or {}
        case FieldType.JSON:
            schema |= {
                "type": "string",
                "format": format_of(field),
                "contentMediaType": "application/json",
                "contentSchema": json_schema(field) or {},
            }
    if field.example and field.type is not FieldType.OBJECT:
        schema["examples"] = [field.example]
    return schema


def _responses(row: RouteRow) -> dict[str, Any]:
    errors = errors_of(row)
    return {
        str(status): _success_response(row, status) if status < 300 else _error_response(status, errors.get(status, []))
        for status in sorted({*row.statuses, *COMMON_STATUSES, *errors})
    }


def _success_response(row: RouteRow, status: int) -> dict[str, Any]:
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if row.idempotency is not IdempotencyMode.NO_KEY:
        response["headers"] = {
            "Idempotent-Replayed": {
                "description": "Present where this is the response to an earlier request with the same key.",
                "schema": {"const": "true"},
            }
        }
    if status == HTTPStatus.NO_CONTENT or row.response_schema is None:
        return response
    schema = row.response_schema
    if is_file(schema):
        response["content"] = {"*/*": {"schema": {}}}
        return response
    response["content"] = {"application/json": {"schema": schema, "example": make_sample(schema)}}
    return response


def _error_response(status: int, errors: list[ErrorRow]) -> dict[str, Any]:
    examples = {
        f"text-{number}": {"value": {"status": "error", "message": error.text}}
        for number, error in enumerate(errors, 1)
        if error.text is not None
    }
    media: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Error"}}
    if examples:
        media["examples"] = examples
    response: dict[str, Any] = {
        "description": HTTPStatus(status).phrase,
        "content": {"application/json": media},
        "headers": {
            "Waypost-Reason": {
                "description": "Field, rule and what would be accepted, where `message` is a documented text.",
                "schema": {"type": "string"},
            }
        },
    }
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.CONFLICT):
        response["headers"]["Retry-After"] = {
            "description": "Seconds until the next request may be made.",
            "schema": {"type": "string", "pattern": "^[0-9]+$"},
        }
    return response


def _resolve_references(schema: Any, components: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """Return a schema with its references replaced; one inside itself becomes anything."""
    match schema:
        case {"$ref": str(name)}:
            if name in inside:
                return {}
            return _resolve_references(components[name], components, (*inside, name))
        case dict():
            return {
                key: _CITATION.sub("", value).strip()
                if key == "description" and isinstance(value, str)
                else _resolve_references(value, components, inside)
                for key, value in schema.items()  # pyright: ignore[reportUnknownVariableType]
                if key != "title"
            }
        case list():
            return [_resolve_references(one, components, inside) for one in cast("list[Any]", schema)]
        case _:
            return schema
