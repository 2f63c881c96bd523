"""Sample values of a JSON Schema: example responses for the OpenAPI document and its pages."""

from collections.abc import Mapping
from typing import Any, Final, cast

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
