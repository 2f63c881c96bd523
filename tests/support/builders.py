"""Domain objects for tests, with a default for every field that a test does not set."""

from collections.abc import Callable
from typing import Any, Final

from waypost.domain.app import App, BusinessAccount
from waypost.domain.message import Content, Message
from waypost.domain.partner import Partner
from waypost.domain.session_messages.plain import SessionText
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.operators.cloud.numbers import cloud_account

AT_MS: Final = 1_760_000_000_000
INSTANCE_KEY: Final = "an instance key of forty characters, for tests"

PARTNER: Final = Partner(id=7, name="Acme", email="ada@acme.test", contact_name="Ada Lovelace")
OPERATOR: Final = cloud_account(
    "main",
    "http://127.0.0.1:9",
    token="operator-token",
    app_id="3000000000000003",
    app_secret="operator-secret",
    verify_token="verify-me",
)
ACCOUNT: Final = BusinessAccount("1000000000000001", PARTNER.id, "58e6d318_b627_4112_b9c7_2961197553ea", OPERATOR.id)
APP: Final = App(
    id="01990000-0000-7000-8000-00000000000a",
    partner_id=PARTNER.id,
    name="AcmeShop",
    phone_number="15550001111",
    phone_number_id="2000000000000002",
    business_account_id=ACCOUNT.id,
    created_on_ms=AT_MS,
    modified_on_ms=AT_MS,
)
ANN: Final = "15551234567"
BEN: Final = "15551234568"


def id_number(number: int) -> str:
    """A UUID of version 7 that ends in a number."""
    return f"01990000-0000-7000-8000-{number:012d}"


def message(number: int = 1, content: Content | None = None, **more: Any) -> Message:
    """A session text to Ann."""
    fields: dict[str, Any] = {
        "id": id_number(number),
        "partner_id": PARTNER.id,
        "app_id": APP.id,
        "source": APP.phone_number,
        "destination": ANN,
        "content": content or SessionText("Hello"),
        "accepted_on_ms": AT_MS,
    }
    return Message(**(fields | more))


def draft(**more: Any) -> TemplateDraft:
    """A draft that satisfies all rules, the operator's too."""
    fields: dict[str, Any] = {
        "element_name": "order_ready",
        "category": "UTILITY",
        "template_type": "TEXT",
        "vertical": "Orders",
        "content": "Hi {{1}}, your order is ready.",
        "example": "Hi Ann, your order is ready.",
    }
    return TemplateDraft(**(fields | more))


def template(number: int = 1, of: TemplateDraft | None = None, **more: Any) -> Template:
    """A pending template."""
    of = of or draft()
    fields: dict[str, Any] = {
        "id": id_number(number),
        "partner_id": PARTNER.id,
        "app_id": APP.id,
        "business_account_id": ACCOUNT.id,
        "namespace": ACCOUNT.namespace,
        "draft": of,
        "status": TemplateStatus.PENDING,
        "created_on_ms": AT_MS,
        "modified_on_ms": AT_MS,
        "category": Category(of.category or "UTILITY"),
    }
    return Template(**(fields | more))


def is_event(type: str, /, **payload: Any) -> Callable[[dict[str, Any]], bool]:
    """Return a predicate: true of a callback of this type whose payload has these members."""

    def check(callback: dict[str, Any]) -> bool:
        actual = callback["payload"]
        return callback["type"] == type and all(actual.get(name) == value for name, value in payload.items())

    return check
