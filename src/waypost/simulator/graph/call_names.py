"""What each call of the Graph side is called when a fault is armed for it; made over the tables of routes."""

from collections.abc import Mapping
from typing import Any, Final

from waypost.simulator.graph.routes import FILE_ROUTES, ROOT_ROUTES, ROUTES

SEND: Final = "messages.send"
MARK_READ: Final = "messages.mark_read"

# fmt: off
_NAMES: Final = {  # what the rule of `_named` would make less readable
    # object and method  edge                           name
    ("Number",   "POST",   "messages"):                  SEND,
    ("Number",   "POST",   "media"):                     "media.upload",
    ("Number",   "GET",    "whatsapp_business_profile"): "profile.read",
    ("Number",   "POST",   "whatsapp_business_profile"): "profile.change",
    ("Number",   "GET",    "conversational_automation"): "automation.read",
    ("Number",   "POST",   "conversational_automation"): "automation.change",
    ("Number",   "GET",    "whatsapp_commerce_settings"): "commerce.read",
    ("Number",   "POST",   "whatsapp_commerce_settings"): "commerce.change",
    ("Number",   "GET",    "block_users"):               "blocks.list",
    ("Number",   "POST",   "block_users"):               "blocks.create",
    ("Number",   "DELETE", "block_users"):               "blocks.delete",
    ("Number",   "GET",    "whatsapp_business_encryption"): "encryption.read",
    ("Number",   "POST",   "whatsapp_business_encryption"): "encryption.change",
    ("Account",  "GET",    "subscribed_apps"):           "subscriptions.list",
    ("Account",  "POST",   "subscribed_apps"):           "subscriptions.create",
    ("Account",  "DELETE", "subscribed_apps"):           "subscriptions.delete",
    ("Account",  "GET",    "message_templates"):         "templates.list",
    ("Account",  "POST",   "message_templates"):         "templates.create",
    ("Account",  "DELETE", "message_templates"):         "templates.delete",
    ("Account",  "GET",    "message_template_previews"): "templates.preview",
    ("Account",  "POST",   "upsert_message_templates"):  "templates.upsert",
    ("Account",  "POST",   "message_templates/archive"): "templates.archive",
    ("Account",  "POST",   "message_templates/unarchive"): "templates.unarchive",
    ("Account",  "GET",    "phone_numbers"):             "numbers.list",
    ("Account",  "GET",    "template_analytics"):        "analytics.read",
    ("Account",  "GET",    "message_template_library"):  "library.list",
    ("Account",  "GET",    "flows"):                     "flows.list",
    ("Account",  "POST",   "flows"):                     "flows.create",
    ("Flow",     "GET",    "assets"):                    "assets.list",
    ("Flow",     "POST",   "assets"):                    "assets.upload",
    ("Upload",   "POST",   ""):                          "uploads.continue",
    ("App",      "POST",   "uploads"):                   "uploads.begin",
    ("Template", "POST",   ""):                          "templates.edit",
}
_ROOTS: Final = {  # of the tables whose rows belong to no object
    # first segment              name
    "whatsapp_business":         "media.download",
    "message_template_library":  "library.list",
}
_NODES: Final = {"Media": "media"}
_VERBS: Final = {"GET": "read", "POST": "change", "DELETE": "delete"}
# fmt: on


def _named(kind: str, method: str, edge: str) -> str:
    """`flows.read` for an object itself; `flows.publish` for what is done to one; `flows.read_x` else."""
    exact = _NAMES.get((kind, method, edge))
    if exact is not None:
        return exact
    node = _NODES.get(kind, f"{kind.lower()}s")
    if not edge:
        return f"{node}.{_VERBS[method]}"
    return f"{node}.{edge}" if method == "POST" else f"{node}.{_VERBS[method]}_{edge}"


NAMES: Final[dict[tuple[type, str, str], str]] = {
    (kind, method, edge): _named(kind.__name__, method, edge) for kind, method, edge in ROUTES
}
"""Of the calls about an object: kind of object, method and edge."""

ROOT_NAMES: Final[dict[tuple[str, str], str]] = {
    (method, root): _ROOTS.get(root, f"{root}.{_VERBS[method]}") for method, root in (*FILE_ROUTES, *ROOT_ROUTES)
}
"""Of the others: method and first segment of the path."""

CALL_NAMES: Final = (*sorted({*NAMES.values(), MARK_READ, *ROOT_NAMES.values()}),)
"""Every name, once."""

WITH_TEMPLATE: Final = frozenset({SEND, *(name for name in CALL_NAMES if name.startswith("templates."))})
"""The calls that may name a template; only `messages.send` names a phone."""


def name_of(key: tuple[type, str, str], fields: Mapping[str, Any]) -> str:
    """The name of a call about an object; reading a message goes the way that sending one goes."""
    name = NAMES[key]
    return MARK_READ if name == SEND and "status" in fields else name
