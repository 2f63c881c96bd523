"""The operator's nodes: tables of the fields of each kind of object, and the calls that only read them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from waypost.simulator.apis.errors import bad_parameter
from waypost.simulator.apis.parameters import is_missing
from waypost.simulator.apis.requests import Call
from waypost.simulator.flows.graph import flow_node, list_flows
from waypost.simulator.flows.model import Flow
from waypost.simulator.groups.graph import list_groups, list_join_requests, show_group
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.messages.marketing import find_marketing_status
from waypost.simulator.numbers.model import find_restriction
from waypost.simulator.numbers.names import show_username, suggest_usernames
from waypost.simulator.numbers.qr_codes import list_qr_codes
from waypost.simulator.numbers.settings import show_commerce, show_key, show_settings
from waypost.simulator.payments.graph import list_configurations
from waypost.simulator.payments.model import find_configuration
from waypost.simulator.state.accounts import Account, Business, GraphApp, Number, owner_id
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import Fields, app_data, health_status, node_fields, page
from waypost.simulator.state.records import ALLOWED, AUTOMATION, NAMES, NUMBER_STATUS, REGISTRATION
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.tokens import MANAGEMENT, MESSAGING, check_token, debug_view
from waypost.simulator.templates.nodes import template_node
from waypost.simulator.templates.template import SimulatedTemplate

operation = GraphOperations()

Node = TypeVar("Node")


@dataclass(frozen=True)
class NodeView(Generic[Node]):
    """An object with what its fields are made of; a number is shown as one app sees it."""

    state: SimulatorState
    node: Node
    app_id: str = ""

    def record(self, kind: str) -> dict[str, Any]:
        """Return a record of a number."""
        return self.state.record(self.node.phone_number_id, kind) if isinstance(self.node, Number) else {}

    def status(self, name: str, usual: str) -> str:
        """Return a status that the control API has set, or the default."""
        return str(self.record(NUMBER_STATUS).get(name, usual))


def _display(number: Number) -> str:
    # Imported on first use: the tables of the world's numbering plans are large.
    import phonenumbers

    try:
        parsed = phonenumbers.parse("+" + number.phone_number)
    except phonenumbers.NumberParseException:
        return "+" + number.phone_number
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


def _country(number: Number) -> tuple[str, str] | tuple[None, None]:
    """Return the calling code and the code of a number's country."""
    import phonenumbers

    try:
        code = phonenumbers.parse("+" + number.phone_number).country_code or 0
    except phonenumbers.NumberParseException:
        return None, None
    return str(code), phonenumbers.region_code_for_country_code(code)


def subscribed_apps(state: SimulatorState, account: Account) -> dict[str, Any]:
    """Return the apps subscribed to an account, with their overriding callback URIs. Source: facts 1."""
    return {
        "data": [
            {
                "whatsapp_business_api_data": app_data(account, subscription.app_id),
                **({"override_callback_uri": subscription.override_uri} if subscription.override_uri else {}),
            }
            for subscription in state.accounts.subscriptions_of(account.waba_id)
        ]
    }


def _webhooks(view: NodeView[Number]) -> dict[str, str] | None:
    """Return the callback URIs of a number, by their source. Source: facts 7.1, "One callback per app"."""
    accounts, number = view.state.accounts, view.node
    subscription, app = accounts.subscription(number.waba_id, view.app_id), accounts.apps.get(view.app_id)
    uris = {
        "phone_number": accounts.number_override(view.app_id, number.phone_number_id),
        "whatsapp_business_account": subscription.override_uri if subscription is not None else "",
        "application": app.callback_uri if app is not None else "",
    }
    return {name: uri for name, uri in uris.items() if uri} or None


def _marketing_status(view: NodeView[Account]) -> str:
    return find_marketing_status(view.state, view.node.waba_id)


def _number_status(view: NodeView[Number]) -> str:
    restriction = find_restriction(view.state, view.node.phone_number_id)
    return (restriction.status if restriction is not None else "") or view.status("status", "CONNECTED")


ACCOUNT_FIELDS: Final[Fields[NodeView[Account]]] = {  # Source: facts 1, "WABA node"
    "id": lambda view: view.node.waba_id,
    "name": lambda view: view.node.name,
    "timezone_id": lambda _: "1",
    "message_template_namespace": lambda view: view.node.namespace,
    "account_review_status": lambda _: "APPROVED",
    "business_verification_status": lambda _: "verified",
    "currency": lambda _: "USD",
    "country": lambda _: "US",
    "status": lambda _: "ACTIVE",
    "ownership_type": lambda _: "CLIENT_OWNED",
    "health_status": lambda view: health_status("WABA", view.node.waba_id),
    "subscribed_apps": lambda view: subscribed_apps(view.state, view.node),
    "is_enabled_for_insights": lambda _: True,
    "owner_business_info": lambda view: {"id": owner_id(view.node), "name": view.node.name},
    "on_behalf_of_business_info": lambda _: None,
    "primary_funding_id": lambda _: None,
    "purchase_order_number": lambda _: None,
    "marketing_messages_lite_api_status": _marketing_status,
    "marketing_messages_onboarding_status": _marketing_status,
    "disable_marketing_messages_on_cloud_api": lambda _: False,
}
ACCOUNT_DEFAULT: Final = ("id", "name", "timezone_id", "message_template_namespace")

NUMBER_FIELDS: Final[Fields[NodeView[Number]]] = {  # Source: facts 1, "Phone node"
    "id": lambda view: view.node.phone_number_id,
    "display_phone_number": lambda view: _display(view.node),
    "verified_name": lambda view: view.node.name,
    "quality_rating": lambda view: view.status("quality_rating", "GREEN"),
    "quality_score": lambda view: {"score": view.status("quality_rating", "GREEN")},
    "throughput": lambda view: {"level": "STANDARD" if view.node.throughput <= 80 else "HIGH"},
    "status": _number_status,
    "code_verification_status": lambda view: (
        "NOT_VERIFIED" if view.record(REGISTRATION).get("needs_code") else "VERIFIED"
    ),
    "name_status": lambda view: view.status("name_status", "APPROVED"),
    "platform_type": lambda _: "CLOUD_API",
    "account_mode": lambda view: "LIVE" if view.record(ALLOWED).get("phones") is None else "SANDBOX",
    "is_pin_enabled": lambda view: bool(view.record(REGISTRATION).get("pin")),
    "is_official_business_account": lambda view: view.record(NAMES).get("oba_status") == "APPROVED",
    "whatsapp_business_manager_messaging_limit": lambda view: view.status("messaging_limit", "TIER_UNLIMITED"),
    "messaging_limit_tier": lambda view: view.status("messaging_limit", "TIER_UNLIMITED"),
    "webhook_configuration": _webhooks,
    "conversational_automation": lambda view: {
        "prompts": [],
        "commands": [],
        "enable_welcome_message": False,
        **view.record(AUTOMATION),
        "id": view.node.phone_number_id,
    },
    "health_status": lambda view: health_status("PHONE_NUMBER", view.node.phone_number_id),
    "country_dial_code": lambda view: _country(view.node)[0],
    "country_code": lambda view: _country(view.node)[1],
    "is_on_biz_app": lambda view: view.node.is_on_business_app,
    "is_preverified_number": lambda _: False,
    "search_visibility": lambda _: "NON_VISIBLE",
    "eligibility_for_api_business_global_search": lambda _: "NON_ELIGIBLE_UNDEFINED_COUNTRY",
    "last_onboarded_time": lambda _: None,
    "new_name_status": lambda view: view.record(NAMES).get("requested_status", "NONE"),
    "new_display_name": lambda view: view.record(NAMES).get("requested_name"),
    "official_business_account": lambda view: {"oba_status": view.record(NAMES).get("oba_status", "NOT_STARTED")},
    "certificate": lambda _: None,
    "new_certificate": lambda _: None,
}
NUMBER_DEFAULT: Final = ("id", "display_phone_number", "verified_name", "quality_rating")


def account_node(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return a business account as the operator shows it. Source: facts 1, "WABA node"."""
    view = NodeView(state, account)
    return node_fields(ACCOUNT_FIELDS, view, call.query.get("fields"), ACCOUNT_DEFAULT, "WhatsAppBusinessAccount")


def number_node(state: SimulatorState, call: Call, number: Number, requested: str | None = None) -> dict[str, Any]:
    """Return a business phone number as the operator shows it to an app. Source: facts 1, "Phone node"."""
    view, names = NodeView(state, number, call.app_id), requested or call.query.get("fields")
    return node_fields(NUMBER_FIELDS, view, names, NUMBER_DEFAULT, "WhatsAppBusinessPhoneNumber")


def list_numbers(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return an account's numbers. Source: facts 1, "Phone list"."""
    numbers = state.accounts.numbers_of(account.waba_id)
    return page(call, numbers, lambda number: number.phone_number_id, lambda number: number_node(state, call, number))


def list_accounts(state: SimulatorState, call: Call, accounts: Iterable[Account]) -> dict[str, Any]:
    """Return a business's accounts, as far as the token is for them. Source: the operator's page "Manage accounts"."""
    for name in ("filtering", "sort"):
        if name in call.query:
            raise bad_parameter(f"Param {name}: simulated accounts have no creation time to filter or sort by.")
    token = check_token(state, call.token)
    return page(
        call,
        [account for account in accounts if account.waba_id in token.waba_ids],
        lambda account: account.waba_id,
        lambda account: account_node(state, call, account),
    )


def app_subscriptions(app: GraphApp) -> dict[str, Any]:
    """Return an app's webhook subscription. Source: the operator's page "App subscriptions"."""
    if not app.callback_uri:
        return {"data": []}
    fields = [{"name": name, "version": "v25.0"} for name in app.fields]
    subscription = {"object": "whatsapp_business_account", "callback_url": app.callback_uri, "active": True}
    return {"data": [{**subscription, "fields": fields}]}


@operation("debug_token.read", "GET", "debug_token")
async def debug_token(state: SimulatorState, call: Call) -> dict[str, Any]:
    """Return the debug data of a token. Source: the operator's page "Debug-Token"."""
    token = call.query.get("input_token")
    if not token:
        raise is_missing("input_token")
    return {"data": debug_view(state, token)}


ReadOnly = tuple[str, type, str, str | None, Callable[[SimulatorState, Call, Any], dict[str, Any]]]
# fmt: off
READ_ONLY: Final[tuple[ReadOnly, ...]] = (  # the nodes and edges that only read memory
    #  name                         node               edge                                  permission  returns
    ("accounts.list_owned",         Business,          "owned_whatsapp_business_accounts",   MANAGEMENT,
        lambda state, call, business: list_accounts(state, call, business.owned)),
    ("accounts.list_shared",        Business,          "client_whatsapp_business_accounts",  MANAGEMENT,
        lambda state, call, business: list_accounts(state, call, business.shared)),
    ("accounts.read",               Account,           "",                                   MANAGEMENT, account_node),
    ("apps.read_subscriptions",     GraphApp,          "subscriptions",                      None,
        lambda _state, _call, app: app_subscriptions(app)),
    ("automation.read",             Number,            "conversational_automation",          MANAGEMENT,
        lambda state, call, number: number_node(state, call, number, "conversational_automation")),
    ("commerce.read",               Number,            "whatsapp_commerce_settings",         MANAGEMENT, show_commerce),
    ("encryption.read",             Number,            "whatsapp_business_encryption",       MANAGEMENT, show_key),
    ("flows.list",                  Account,           "flows",                              MANAGEMENT, list_flows),
    ("flows.read",                  Flow,              "",                                   MANAGEMENT, flow_node),
    ("groups.list",                 Number,            "groups",                             MESSAGING,  list_groups),
    ("groups.list_join_requests",   SimulatedGroup,    "join_requests",                      MESSAGING,
        list_join_requests),
    ("groups.read",                 SimulatedGroup,    "",                                   MESSAGING,  show_group),
    ("groups.read_invite_link",     SimulatedGroup,    "invite_link",                        MESSAGING,
        lambda _state, _call, group: {"messaging_product": "whatsapp", "invite_link": group.invite_link}),
    ("numbers.list",                Account,           "phone_numbers",                      MANAGEMENT, list_numbers),
    ("numbers.read",                Number,            "",                                   MANAGEMENT, number_node),
    ("numbers.read_settings",       Number,            "settings",                           MANAGEMENT, show_settings),
    ("payment_configurations.list", Account,           "payment_configurations",             MANAGEMENT,
        list_configurations),
    ("payment_configurations.read", Account,           "payment_configuration/{}",           MANAGEMENT,
        lambda state, call, account: {"data": [find_configuration(state, account.waba_id, call.names[0]).view()]}),
    ("qr_codes.list",               Number,            "message_qrdls",                      MANAGEMENT,
        lambda state, call, number: list_qr_codes(state, call, number, call.query.get("code"))),
    ("qr_codes.read",               Number,            "message_qrdls/{}",                   MANAGEMENT,
        lambda state, call, number: list_qr_codes(state, call, number, call.names[0])),
    ("subscriptions.list",          Account,           "subscribed_apps",                    MANAGEMENT,
        lambda state, _call, account: subscribed_apps(state, account)),
    ("templates.read",              SimulatedTemplate, "",                                   MANAGEMENT,
        lambda _state, call, template: template_node(template, call.query.get("fields"))),
    ("username.read",               Number,            "username",                           MANAGEMENT, show_username),
    ("username.suggestions",        Number,            "username_suggestions",               MANAGEMENT,
        suggest_usernames),
)
# fmt: on
for row in READ_ONLY:
    operation.read(*row)
