"""Names of the Graph API's calls, for arming faults; derived from the tables of routes."""

from collections.abc import Mapping
from typing import Any, Final

from waypost.simulator.accounts.accounts import Account, GraphApp, Number
from waypost.simulator.accounts.businesses import Business
from waypost.simulator.accounts.flow import Flow
from waypost.simulator.accounts.signups import Signup
from waypost.simulator.graph.qr_codes import QR_CODE
from waypost.simulator.graph.routes import FILE_ROUTES, ROOT_ROUTES, ROUTES
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.media.media import SimulatedMedia
from waypost.simulator.media.uploads import UploadSession
from waypost.simulator.messages.marketing import SimulatedAd
from waypost.simulator.payments.graph import PAYMENT_CONFIGURATION, PAYMENT_LOOKUP
from waypost.simulator.templates.template import SimulatedTemplate

SEND: Final = "messages.send"
MARK_READ: Final = "messages.mark_read"

_EXPLICIT_NAMES: Final[
    dict[tuple[type, str, str], str]
] = {  # exceptions to the rule of `_derive_name`, for readable names
    # object and method, edge, name
    (Number, "POST", "messages"): SEND,
    (Number, "POST", "marketing_messages"): SEND,
    (SimulatedAd, "GET", "insights"): "insights.read",
    (Number, "POST", "media"): "media.upload",
    (Number, "GET", "whatsapp_business_profile"): "profile.read",
    (Number, "POST", "whatsapp_business_profile"): "profile.change",
    (Number, "GET", "conversational_automation"): "automation.read",
    (Number, "POST", "conversational_automation"): "automation.change",
    (Number, "GET", "whatsapp_commerce_settings"): "commerce.read",
    (Number, "POST", "whatsapp_commerce_settings"): "commerce.change",
    (Number, "GET", "block_users"): "blocks.list",
    (Number, "POST", "block_users"): "blocks.create",
    (Number, "DELETE", "block_users"): "blocks.delete",
    (Number, "GET", "whatsapp_business_encryption"): "encryption.read",
    (Number, "POST", "whatsapp_business_encryption"): "encryption.change",
    (Number, "POST", "calls"): "calls.change",
    (Number, "POST", "groups"): "groups.create",
    (Number, "GET", "groups"): "groups.list",
    (SimulatedGroup, "GET", "join_requests"): "groups.list_join_requests",
    (SimulatedGroup, "POST", "join_requests"): "groups.approve_join_requests",
    (SimulatedGroup, "DELETE", "join_requests"): "groups.reject_join_requests",
    (Number, "GET", "username"): "username.read",
    (Number, "POST", "username"): "username.change",
    (Number, "DELETE", "username"): "username.delete",
    (Number, "GET", "username_suggestions"): "username.suggestions",
    (Number, "GET", "message_qrdls"): "qr_codes.list",
    (Number, "POST", "message_qrdls"): "qr_codes.create",
    (Number, "GET", QR_CODE): "qr_codes.read",
    (Number, "POST", QR_CODE): "qr_codes.change",
    (Number, "DELETE", QR_CODE): "qr_codes.delete",
    (Number, "GET", PAYMENT_LOOKUP): "payments.read",
    (Number, "POST", "payments_refund"): "payments.refund",
    (Account, "GET", "payment_configurations"): "payment_configurations.list",
    (Account, "GET", PAYMENT_CONFIGURATION): "payment_configurations.read",
    (Account, "POST", "payment_configuration"): "payment_configurations.create",
    (Account, "DELETE", "payment_configuration"): "payment_configurations.delete",
    (Account, "POST", "generate_payment_configuration_oauth_link"): "payment_configurations.renew_link",
    (Account, "GET", "subscribed_apps"): "subscriptions.list",
    (Account, "POST", "subscribed_apps"): "subscriptions.create",
    (Account, "DELETE", "subscribed_apps"): "subscriptions.delete",
    (Account, "GET", "message_templates"): "templates.list",
    (Account, "POST", "message_templates"): "templates.create",
    (Account, "DELETE", "message_templates"): "templates.delete",
    (Account, "GET", "message_template_previews"): "templates.preview",
    (Account, "POST", "upsert_message_templates"): "templates.upsert",
    (Account, "POST", "message_templates/archive"): "templates.archive",
    (Account, "POST", "message_templates/unarchive"): "templates.unarchive",
    (Account, "GET", "phone_numbers"): "numbers.list",
    (Account, "POST", "phone_numbers"): "numbers.create",
    (Account, "GET", "signups"): "signups.list",
    (Account, "POST", "signups"): "signups.create",
    (Business, "GET", "client_whatsapp_business_accounts"): "accounts.list_shared",
    (Business, "GET", "owned_whatsapp_business_accounts"): "accounts.list_owned",
    (Account, "GET", "template_analytics"): "analytics.read",
    (Account, "GET", "message_template_library"): "library.list",
    (Account, "GET", "flows"): "flows.list",
    (Account, "POST", "flows"): "flows.create",
    (Flow, "GET", "assets"): "assets.list",
    (Flow, "POST", "assets"): "assets.upload",
    (UploadSession, "POST", ""): "uploads.continue",
    (GraphApp, "POST", "uploads"): "uploads.begin",
    (SimulatedTemplate, "POST", ""): "templates.edit",
    (SimulatedTemplate, "GET", "compare"): "templates.compare",
}
_EXPLICIT_ROOT_NAMES: Final = {  # for the tables of routes without an object
    # first segment              name
    "whatsapp_business": "media.download",
    "message_template_library": "library.list",
}
_NODES: Final[dict[type, str]] = {
    Account: "accounts",
    GraphApp: "apps",
    Flow: "flows",
    SimulatedMedia: "media",
    Number: "numbers",
    SimulatedTemplate: "templates",
    UploadSession: "uploads",
    SimulatedGroup: "groups",
    SimulatedAd: "ads",
    Business: "businesses",
    Signup: "signups",
}
_VERBS: Final = {"GET": "read", "POST": "change", "DELETE": "delete"}


def _derive_name(kind: type, method: str, edge: str) -> str:
    """Return `flows.read` for an object itself, `flows.publish` for an action on one, else `flows.read_` and the edge."""
    exact = _EXPLICIT_NAMES.get((kind, method, edge))
    if exact is not None:
        return exact
    node = _NODES[kind]
    if not edge:
        return f"{node}.{_VERBS[method]}"
    return f"{node}.{edge}" if method == "POST" else f"{node}.{_VERBS[method]}_{edge}"


OBJECT_CALL_NAMES: Final[dict[tuple[type, str, str], str]] = {
    (kind, method, edge): _derive_name(kind, method, edge) for kind, method, edge in ROUTES
}
"""The names of calls for an object, by type of object, method and edge."""

ROOT_CALL_NAMES: Final[dict[tuple[str, str], str]] = {
    (method, root): _EXPLICIT_ROOT_NAMES.get(root, f"{root}.{_VERBS[method]}")
    for method, root in (*FILE_ROUTES, *ROOT_ROUTES)
}
"""The names of the other calls, by method and first path segment."""

CALL_NAMES: Final = (*sorted({*OBJECT_CALL_NAMES.values(), MARK_READ, *ROOT_CALL_NAMES.values()}),)
"""All names, sorted."""

TEMPLATE_CALL_NAMES: Final = frozenset({SEND, *(name for name in CALL_NAMES if name.startswith("templates."))})
"""The calls that may name a template; only `messages.send` names a phone."""


def call_name(key: tuple[type, str, str], fields: Mapping[str, Any]) -> str:
    """Return the name of a call for an object; marking a message as read shares the route of sending."""
    name = OBJECT_CALL_NAMES[key]
    return MARK_READ if name == SEND and "status" in fields else name
