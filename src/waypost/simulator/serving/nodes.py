"""The nodes and edges of the Graph API that only read memory, each with a sample of its response.

The reference page shows the samples, and a test holds them to the responses of a running simulator.
"""

from typing import Any, Final

from waypost.simulator.accounts.graph import (
    list_app_subscriptions,
    list_owned_accounts,
    list_shared_accounts,
    list_subscribed_apps,
    show_account,
)
from waypost.simulator.flows.graph import list_flows, show_flow
from waypost.simulator.flows.model import Flow
from waypost.simulator.groups.graph import list_groups, list_join_requests, show_group, show_invite_link
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.numbers.graph import list_numbers, show_automation, show_number
from waypost.simulator.numbers.names import show_username, suggest_usernames
from waypost.simulator.numbers.qr_codes import list_qr_codes
from waypost.simulator.numbers.settings import show_commerce, show_key, show_settings
from waypost.simulator.payments.graph import list_configurations, show_configuration
from waypost.simulator.state.accounts import Account, Business, GraphApp, Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.tokens import MESSAGING
from waypost.simulator.templates.nodes import show_template
from waypost.simulator.templates.template import SimulatedTemplate

operation = GraphOperations()

_WABA_ID: Final = "1000000000000001"
_NUMBER_ID: Final = "2000000000000002"
_APP_ID: Final = "3000000000000003"
_ACCOUNT: Final = {
    "id": _WABA_ID,
    "name": "Acme",
    "timezone_id": "1",
    "message_template_namespace": "58e6d318_b627_4112_b9c7_2961197553ea",
}
_NUMBER: Final = {
    "verified_name": "Acme Shop",
    "code_verification_status": "VERIFIED",
    "display_phone_number": "+1 555-000-1111",
    "quality_rating": "GREEN",
    "platform_type": "CLOUD_API",
    "throughput": {"level": "STANDARD"},
    "webhook_configuration": {"application": "https://shop.example/hook"},
    "id": _NUMBER_ID,
}
_FLOW: Final = {
    "id": "5000000000000005",
    "name": "booking",
    "status": "DRAFT",
    "categories": ["APPOINTMENT_BOOKING"],
    "validation_errors": [],
}
_GROUP_ID: Final = "Y2FwaV9ncm91cDoxNTU1MDAwMTExMTo4NjE1MTU1NDg1MDAwNDExNzc"
_QR_CODE: Final = {
    "code": "ZIKCBIL24SA7B1",
    "prefilled_message": "I would like to book a table",
    "deep_link_url": "https://wa.me/message/ZIKCBIL24SA7B1",
}
_CONFIGURATION: Final = {
    "configuration_name": "shop",
    "merchant_category_code": {"code": "5411", "description": ""},
    "purpose_code": {"code": "00", "description": ""},
    "status": "Active",
    "provider_mid": "mid_123456789012",
    "provider_name": "razorpay",
    "created_timestamp": 1760000000,
    "updated_timestamp": 1760000600,
}
_KEY: Final = {
    "business_public_key": "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----",
    "business_public_key_signature_status": "VALID",
}


def _page(item: dict[str, Any], cursor: str) -> dict[str, Any]:
    """Return a page of a list with one item."""
    return {"data": [item], "paging": {"cursors": {"before": cursor, "after": cursor}}}


_ACCOUNTS: Final = _page(_ACCOUNT, "MTAwMDAwMDAwMDAwMDAwMQ")
_CODES: Final = _page(_QR_CODE, "OTk4MjM5OTk5OTk5OTk5IFpJS0NCSUwyNFNBN0Ix")
_APP_SUBSCRIPTIONS: Final = {
    "data": [
        {
            "object": "whatsapp_business_account",
            "callback_url": "https://business.example/webhooks",
            "active": True,
            "fields": [{"name": "messages", "version": "v25.0"}],
        }
    ]
}
_AUTOMATION: Final = {
    "conversational_automation": {
        "prompts": ["Book a table"],
        "commands": [{"command_name": "book", "command_description": "Book a table"}],
        "enable_welcome_message": True,
        "id": _NUMBER_ID,
    },
    "id": _NUMBER_ID,
}
_COMMERCE: Final = {"data": [{"is_catalog_visible": False, "is_cart_enabled": True, "id": _NUMBER_ID}]}
_ENCRYPTION: Final = {**_KEY, "data": [_KEY]}
_FLOWS: Final = _page(_FLOW, "MDAxNzYwMDAwMDAwMDAwLjU")
_GROUPS: Final = _page(
    {"id": _GROUP_ID, "subject": "Tea lovers", "creation_timestamp": 1760000000}, "MDAxNzYwMDAwMDAwMDAw"
)
_JOIN_REQUESTS: Final = _page(
    {
        "join_request_id": "MTU1NTEyMzQ1Njc6ODYxNTE1NTQ4NTAwMDQxMTc3",
        "creation_timestamp": 1760000000,
        "wa_id": "15551234567",
        "user_id": "US.339559662758292759",
    },
    "MDAxNzYwMDAwMDAwMDAw",
)
_GROUP: Final = {"messaging_product": "whatsapp", "id": _GROUP_ID, "subject": "Tea lovers"}
_INVITE_LINK: Final = {
    "messaging_product": "whatsapp",
    "invite_link": "https://chat.whatsapp.com/e3bbab6d7cf877cedd2b0f",
}
_NUMBERS: Final = _page(_NUMBER, "MjAwMDAwMDAwMDAwMDAwMg")
_SETTINGS: Final = {"calling": {"status": "ENABLED"}}
_CONFIGURATIONS: Final = {"data": [{"payment_configurations": [_CONFIGURATION]}]}
_ONE_CONFIGURATION: Final = {"data": [_CONFIGURATION]}
_SUBSCRIPTIONS: Final = {
    "data": [
        {
            "whatsapp_business_api_data": {
                "id": _APP_ID,
                "name": "Acme",
                "link": f"https://www.facebook.com/games/?app_id={_APP_ID}",
            }
        }
    ]
}
_TEMPLATE: Final = {
    "name": "order_update",
    "parameter_format": "POSITIONAL",
    "components": [
        {"type": "BODY", "text": "Hello {{1}}, your order is on its way.", "example": {"body_text": [["Ann"]]}}
    ],
    "language": "en_US",
    "status": "APPROVED",
    "category": "UTILITY",
    "id": "1000000000000004",
}
_USERNAME: Final = {"username": "acme.shop", "status": "reserved"}
_SUGGESTIONS: Final = {"data": [{"username_suggestions": ["acmeshop", "acme_shop", "acme_shop_official"]}]}

operation.read("accounts.list_owned", Business, "owned_whatsapp_business_accounts", list_owned_accounts, _ACCOUNTS)
operation.read("accounts.list_shared", Business, "client_whatsapp_business_accounts", list_shared_accounts, _ACCOUNTS)
operation.read("accounts.read", Account, "", show_account, _ACCOUNT)
operation.read(
    "apps.read_subscriptions", GraphApp, "subscriptions", list_app_subscriptions, _APP_SUBSCRIPTIONS, permission=None
)
operation.read("automation.read", Number, "conversational_automation", show_automation, _AUTOMATION)
operation.read("commerce.read", Number, "whatsapp_commerce_settings", show_commerce, _COMMERCE)
operation.read("encryption.read", Number, "whatsapp_business_encryption", show_key, _ENCRYPTION)
operation.read("flows.list", Account, "flows", list_flows, _FLOWS)
operation.read("flows.read", Flow, "", show_flow, _FLOW)
operation.read("groups.list", Number, "groups", list_groups, _GROUPS, permission=MESSAGING)
operation.read(
    "groups.list_join_requests",
    SimulatedGroup,
    "join_requests",
    list_join_requests,
    _JOIN_REQUESTS,
    permission=MESSAGING,
)
operation.read("groups.read", SimulatedGroup, "", show_group, _GROUP, permission=MESSAGING)
operation.read(
    "groups.read_invite_link", SimulatedGroup, "invite_link", show_invite_link, _INVITE_LINK, permission=MESSAGING
)
operation.read("numbers.list", Account, "phone_numbers", list_numbers, _NUMBERS)
operation.read("numbers.read", Number, "", show_number, _NUMBER)
operation.read("numbers.read_settings", Number, "settings", show_settings, _SETTINGS)
operation.read("payment_configurations.list", Account, "payment_configurations", list_configurations, _CONFIGURATIONS)
operation.read(
    "payment_configurations.read", Account, "payment_configuration/{}", show_configuration, _ONE_CONFIGURATION
)
operation.read("qr_codes.list", Number, "message_qrdls", list_qr_codes, _CODES)
operation.read("qr_codes.read", Number, "message_qrdls/{}", list_qr_codes, _CODES)
operation.read("subscriptions.list", Account, "subscribed_apps", list_subscribed_apps, _SUBSCRIPTIONS)
operation.read("templates.read", SimulatedTemplate, "", show_template, _TEMPLATE)
operation.read("username.read", Number, "username", show_username, _USERNAME)
operation.read("username.suggestions", Number, "username_suggestions", suggest_usernames, _SUGGESTIONS)
