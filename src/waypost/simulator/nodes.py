"""What the operator shows of its objects: the fields of each kind of node, and which are asked for."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from waypost.simulator.accounts import Account, Number
from waypost.simulator.errors import bad_parameter
from waypost.simulator.loose import an_object, objects, texts
from waypost.simulator.template import Template

Node = TypeVar("Node")
Fields = Mapping[str, Callable[[Node], Any]]


def _display(number: Number) -> str:
    # The tables of the world's numbering plans are large: they load when the first node is shown.
    import phonenumbers

    try:
        parsed = phonenumbers.parse("+" + number.phone_number)
    except phonenumbers.NumberParseException:
        return "+" + number.phone_number
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


def _level(number: Number) -> dict[str, str]:
    return {"level": "STANDARD" if number.throughput <= 80 else "HIGH"}


def _quality(template: Template) -> dict[str, Any]:
    return {"score": template.quality, "date": template.updated_ms // 1000}


# fmt: off
ACCOUNT_FIELDS: Final[Fields[Account]] = {  # Source: facts 1, "WABA node"
    "id":                         lambda account: account.waba_id,
    "name":                       lambda account: account.name,
    "timezone_id":                lambda _: "1",
    "message_template_namespace": lambda account: account.namespace,
    "account_review_status":      lambda _: "APPROVED",
    "business_verification_status": lambda _: "verified",
    "currency":                   lambda _: "USD",
    "status":                     lambda _: "ACTIVE",
}
ACCOUNT_DEFAULT: Final = ("id", "name", "timezone_id", "message_template_namespace")

NUMBER_FIELDS: Final[Fields[Number]] = {  # Source: facts 1, "Phone node"
    "id":                         lambda number: number.phone_number_id,
    "display_phone_number":       _display,
    "verified_name":              lambda number: number.name,
    "quality_rating":             lambda _: "GREEN",
    "throughput":                 _level,
    "status":                     lambda _: "CONNECTED",
    "code_verification_status":   lambda _: "VERIFIED",
    "name_status":                lambda _: "APPROVED",
    "platform_type":              lambda _: "CLOUD_API",
    "whatsapp_business_manager_messaging_limit": lambda _: "TIER_UNLIMITED",
}
NUMBER_DEFAULT: Final = ("id", "display_phone_number", "verified_name", "quality_rating")

TEMPLATE_FIELDS: Final[Fields[Template]] = {  # Source: facts 2.1
    "name":                       lambda template: template.name,
    "parameter_format":           lambda template: template.parameter_format,
    "components":                 lambda template: shown_components(template.components),
    "language":                   lambda template: template.language,
    "status":                     lambda template: template.status,
    "category":                   lambda template: template.category,
    "id":                         lambda template: template.template_id,
    "previous_category":          lambda template: template.previous_category,
    "rejected_reason":            lambda template: template.rejected_reason,
    "quality_score":              _quality,
    "message_send_ttl_seconds":   lambda template: template.message_send_ttl_seconds,
    "last_updated_time":          lambda template: str(template.updated_ms // 1000),
    "sub_category":               lambda _: None,
    "library_template_name":      lambda _: None,
    "correct_category":           lambda _: None,
}
# fmt: on
TEMPLATE_DEFAULT: Final = (
    "name",
    "parameter_format",
    "components",
    "language",
    "status",
    "category",
    "previous_category",
    "id",
)  # fmt: skip


def node(
    fields: Fields[Node], of: Node, wished: str | None, default: tuple[str, ...], kind: str
) -> dict[str, Any]:
    """The wished fields of a node, its id always among them; those without a value are left out.

    Args:
        fields: the table of this kind of node.
        of: the object.
        wished: the query's `fields`: names joined by commas; what stands in braces is ignored.
        default: what is shown without a wish.
        kind: the kind's name in the refusal of an unknown field.

    Raises:
        GraphRefused: code 100, for a field that this kind of node does not have.
    """
    names = default if not wished else tuple(_names(wished))
    for name in names:
        if name not in fields:
            raise bad_parameter(f"Tried accessing nonexisting field ({name}) on node type ({kind})")
    values = {name: fields[name](of) for name in dict.fromkeys((*names, "id"))}
    return {name: value for name, value in values.items() if value is not None}


def account_node(account: Account, wished: str | None) -> dict[str, Any]:
    """A business account as the operator shows it."""
    return node(ACCOUNT_FIELDS, account, wished, ACCOUNT_DEFAULT, "WhatsAppBusinessAccount")


def number_node(number: Number, wished: str | None) -> dict[str, Any]:
    """A business phone number as the operator shows it."""
    return node(NUMBER_FIELDS, number, wished, NUMBER_DEFAULT, "WhatsAppBusinessPhoneNumber")


def template_node(template: Template, wished: str | None) -> dict[str, Any]:
    """A template as the operator shows it."""
    return node(TEMPLATE_FIELDS, template, wished, TEMPLATE_DEFAULT, "WhatsAppMessageTemplate")


def shown_components(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Components as they are read back: uploads have become addresses.

    Source: facts 2.1, "Read-back differences".
    """
    return [_shown(component) for component in components]


def _shown(component: dict[str, Any]) -> dict[str, Any]:
    example = an_object(component.get("example")) or {}
    handles = texts(example.get("header_handle"))
    if handles:
        addresses = [_address(handle) for handle in handles]
        return {**component, "example": {**example, "header_handle": addresses}}
    if component.get("type") == "CAROUSEL":
        cards = [
            {**card, "components": shown_components(objects(card.get("components")))}
            for card in objects(component.get("cards"))
        ]
        return {**component, "cards": cards}
    return component


def _address(handle: str) -> str:
    return f"https://scontent.whatsapp.net/v/t61.29466-34/{hashlib.sha256(handle.encode()).hexdigest()[:32]}"


def _names(wished: str) -> list[str]:
    flat, before = wished, ""
    while flat != before:
        flat, before = re.sub(r"\{[^{}]*\}", "", flat), flat
    return [name.strip() for name in flat.split(",") if name.strip()]
