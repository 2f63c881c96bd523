"""Routes of the Graph API, and its calls for accounts, numbers, messages and subscriptions."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from waypost.base.json_values import text_or_none
from waypost.simulator.accounts.accounts import Account, GraphApp, GraphSubscription, Number
from waypost.simulator.accounts.businesses import Business
from waypost.simulator.accounts.flow import Flow
from waypost.simulator.accounts.new_numbers import add_number
from waypost.simulator.accounts.signups import Signup
from waypost.simulator.calling.graph import act_on_call
from waypost.simulator.errors import bad_parameter
from waypost.simulator.graph.apps import OAUTH, app_token, list_app_subscriptions, subscribe_app, unsubscribe_app
from waypost.simulator.graph.flows import (
    FLOW_FILES,
    create_flow,
    delete_flow,
    deprecate_flow,
    download_asset,
    list_assets,
    list_flows,
    publish_flow,
    show_flow,
    update_flow,
    upload_asset,
)
from waypost.simulator.graph.media import ATTACHMENTS, delete_media, download_media, show_media, upload_media
from waypost.simulator.graph.nodes import account_node, number_node, subscribed_apps, template_node
from waypost.simulator.graph.numbers import (
    PICTURES,
    block_users,
    change_automation,
    change_profile,
    download_picture,
    list_blocked,
    number_view,
    show_automation,
    show_profile,
    unblock_users,
)
from waypost.simulator.graph.onboarding.businesses import list_owned_accounts, list_shared_accounts, view_account
from waypost.simulator.graph.onboarding.signups import create_signup, list_signups, show_signup, update_signup
from waypost.simulator.graph.permissions import DEBUG, debug_token
from waypost.simulator.graph.qr_codes import (
    QR_CODE,
    delete_qr_code,
    list_qr_codes,
    save_qr_code,
    show_qr_code,
    update_qr_code,
)
from waypost.simulator.graph.registration import (
    change_number,
    change_username,
    check_override,
    delete_username,
    deregister_number,
    list_username_suggestions,
    register_number,
    request_code,
    request_official_account,
    request_sync,
    shake_hands,
    show_username,
    verify_code,
)
from waypost.simulator.graph.settings import (
    change_commerce_settings,
    change_key,
    change_settings,
    show_commerce_settings,
    show_key,
    show_settings,
)
from waypost.simulator.graph.template_library import (
    LIBRARY_ID,
    change_account,
    compare_templates,
    list_library,
    preview_templates,
    show_analytics,
    upsert_templates,
)
from waypost.simulator.graph.templates import (
    archive_templates,
    create_template,
    delete_template,
    edit_template,
    list_templates,
    unarchive_templates,
    unpause_template,
)
from waypost.simulator.graph.uploads import begin_upload, continue_upload, show_upload
from waypost.simulator.groups.graph import (
    approve_join_requests,
    change_group,
    create_group,
    delete_group,
    list_groups,
    list_join_requests,
    reject_join_requests,
    remove_participants,
    reset_invite_link,
    show_group,
    show_invite_link,
)
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.lists import page
from waypost.simulator.media.media import SimulatedMedia
from waypost.simulator.media.uploads import UploadSession
from waypost.simulator.messages.marketing import SimulatedAd
from waypost.simulator.payments.graph import (
    PAYMENT_CONFIGURATION,
    PAYMENT_LOOKUP,
    PAYMENT_SETUP,
    create_configuration,
    find_payment,
    list_configurations,
    open_setup_link,
    refund_payment,
    regenerate_link,
    remove_configuration,
    show_configuration,
)
from waypost.simulator.requests import GRAPH_SUCCESS, Call, Download
from waypost.simulator.services import SimulatorServices
from waypost.simulator.templates.template import SimulatedTemplate

GraphResponse = dict[str, Any]
GraphRoute = Callable[[SimulatorServices, Call, Any], Awaitable[GraphResponse]]
FileRoute = Callable[[SimulatorServices, Call], Awaitable[Download]]


async def show_account(services: SimulatorServices, call: Call, account: Account) -> GraphResponse:
    """Return a business account's fields. Source: facts 1, "WABA node"."""
    return account_node(view_account(services, account), call.query.get("fields"))


async def show_number(services: SimulatorServices, call: Call, number: Number) -> GraphResponse:
    """Return a phone number's fields. Source: facts 1, "Phone node"."""
    return number_node(number_view(services, number, call.app_id), call.query.get("fields"))


async def show_template(_parts: SimulatorServices, call: Call, template: SimulatedTemplate) -> GraphResponse:
    """Return a template's fields. Source: facts 2.1."""
    return template_node(template, call.query.get("fields"))


async def list_numbers(services: SimulatorServices, call: Call, account: Account) -> GraphResponse:
    """Return an account's numbers. Source: facts 1, "Phone list"."""
    fields = call.query.get("fields")
    return page(
        call,
        services.accounts.numbers_of(account.waba_id),
        lambda number: number.phone_number_id,
        lambda number: number_node(number_view(services, number, call.app_id), fields),
    )


async def create_number(services: SimulatorServices, call: Call, account: Account) -> GraphResponse:
    """Add a number to an account, and return its id. Source: the operator's page "Registering phone numbers"."""
    number = await add_number(services.accounts, services.records, services.ids, account, call.fields)
    return {"id": number.phone_number_id}


async def send_message(services: SimulatorServices, call: Call, number: Number) -> GraphResponse:
    """Accept a message, or mark one as read. Source: facts 4."""
    if "status" in call.fields:
        if call.fields["status"] != "read":
            raise bad_parameter("Param status must be one of {read}.")
        await services.delivery_signals.mark_read(
            number, call.fields.get("message_id"), call.fields.get("typing_indicator")
        )
        return GRAPH_SUCCESS
    return await services.messages.accept(number, call.fields, call.raw, fail_code=call.fail_code)


async def send_marketing_message(services: SimulatorServices, call: Call, number: Number) -> GraphResponse:
    """Accept a marketing template. Source: the operator's page "Send Marketing Messages"."""
    return await services.messages.accept(number, call.fields, call.raw, fail_code=call.fail_code, to_marketing=True)


async def show_insights(services: SimulatorServices, call: Call, ad: SimulatedAd) -> GraphResponse:
    """Return the statistics of a template's marketing messages. Source: the operator's page "Viewing metrics"."""
    return {"data": [await services.marketing_insights.insights(ad.template, call.query)]}


async def subscribe(services: SimulatorServices, call: Call, account: Account) -> GraphResponse:
    """Subscribe the calling app to the account's webhooks, with an optional callback URI. Source: facts 1."""
    uri = text_or_none(call.fields.get("override_callback_uri")) or ""
    if uri:
        check_override(services, call.app_id, account.waba_id)
        await shake_hands(services, uri, text_or_none(call.fields.get("verify_token")) or "")
    await services.accounts.subscribe(GraphSubscription(account.waba_id, call.app_id, uri))
    await services.webhooks.retry_now(account.waba_id)
    return GRAPH_SUCCESS


async def unsubscribe(services: SimulatorServices, call: Call, account: Account) -> GraphResponse:
    """Stop the account's webhooks to the calling app. Source: facts 1."""
    await services.accounts.unsubscribe(account.waba_id, call.app_id)
    return GRAPH_SUCCESS


async def list_subscriptions(services: SimulatorServices, _call: Call, account: Account) -> GraphResponse:
    """Return the apps subscribed to the account. Source: facts 1."""
    return subscribed_apps(view_account(services, account))


# fmt: off
ROUTES: Final[dict[tuple[type, str, str], GraphRoute]] = {
    # object    method    edge
    (Number,            "POST",   "messages"):          send_message,
    (Number,            "POST",   "marketing_messages"): send_marketing_message,
    (SimulatedAd,       "GET",    "insights"):          show_insights,
    (Number,            "GET",    ""):                  show_number,
    (Number,            "POST",   ""):                  change_number,
    (Number,            "POST",   "register"):          register_number,
    (Number,            "POST",   "deregister"):        deregister_number,
    (Number,            "POST",   "smb_app_data"):      request_sync,
    (Number,            "POST",   "request_code"):      request_code,
    (Number,            "POST",   "verify_code"):       verify_code,
    (Account,           "GET",    ""):                  show_account,
    (Account,           "GET",    "phone_numbers"):     list_numbers,
    (Account,           "POST",   "phone_numbers"):     create_number,
    (Account,           "GET",    "signups"):           list_signups,
    (Account,           "POST",   "signups"):           create_signup,
    (Signup,            "GET",    ""):                  show_signup,
    (Signup,            "POST",   ""):                  update_signup,
    (Business,          "GET",    "client_whatsapp_business_accounts"): list_shared_accounts,
    (Business,          "GET",    "owned_whatsapp_business_accounts"):  list_owned_accounts,
    (Account,           "GET",    "message_templates"): list_templates,
    (Account,           "POST",   "message_templates"): create_template,
    (Account,           "DELETE", "message_templates"): delete_template,
    (Account,           "GET",    "subscribed_apps"):   list_subscriptions,
    (Account,           "POST",   "subscribed_apps"):   subscribe,
    (Account,           "DELETE", "subscribed_apps"):   unsubscribe,
    (Account,           "POST",   ""):                  change_account,
    (Account,           "GET",    "template_analytics"): show_analytics,
    (Account,           "GET",    LIBRARY_ID):          list_library,
    (Account,           "GET",    "flows"):             list_flows,
    (Account,           "POST",   "flows"):             create_flow,
    (Flow,              "GET",    ""):                  show_flow,
    (Flow,              "POST",   ""):                  update_flow,
    (Flow,              "DELETE", ""):                  delete_flow,
    (Flow,              "GET",    "assets"):            list_assets,
    (Flow,              "POST",   "assets"):            upload_asset,
    (Flow,              "POST",   "publish"):           publish_flow,
    (Flow,              "POST",   "deprecate"):         deprecate_flow,
    (Number,            "POST",   "media"):             upload_media,
    (Number,            "GET",    "whatsapp_business_profile"): show_profile,
    (Number,            "POST",   "whatsapp_business_profile"): change_profile,
    (Number,            "GET",    "block_users"):       list_blocked,
    (Number,            "POST",   "block_users"):       block_users,
    (Number,            "DELETE", "block_users"):       unblock_users,
    (Number,            "GET",    "whatsapp_commerce_settings"): show_commerce_settings,
    (Number,            "POST",   "whatsapp_commerce_settings"): change_commerce_settings,
    (Number,            "GET",    "whatsapp_business_encryption"): show_key,
    (Number,            "POST",   "whatsapp_business_encryption"): change_key,
    (Number,            "GET",    "settings"):          show_settings,
    (Number,            "POST",   "settings"):          change_settings,
    (Number,            "GET",    "conversational_automation"): show_automation,
    (Number,            "POST",   "conversational_automation"): change_automation,
    (Number,            "POST",   "calls"):             act_on_call,
    (Number,            "POST",   "groups"):            create_group,
    (Number,            "GET",    "groups"):            list_groups,
    (SimulatedGroup,    "GET",    ""):                  show_group,
    (SimulatedGroup,    "POST",   ""):                  change_group,
    (SimulatedGroup,    "DELETE", ""):                  delete_group,
    (SimulatedGroup,    "GET",    "invite_link"):       show_invite_link,
    (SimulatedGroup,    "POST",   "invite_link"):       reset_invite_link,
    (SimulatedGroup,    "DELETE", "participants"):      remove_participants,
    (SimulatedGroup,    "GET",    "join_requests"):     list_join_requests,
    (SimulatedGroup,    "POST",   "join_requests"):     approve_join_requests,
    (SimulatedGroup,    "DELETE", "join_requests"):     reject_join_requests,
    (Number,            "POST",   "official_business_account"): request_official_account,
    (Number,            "GET",    "username"):          show_username,
    (Number,            "POST",   "username"):          change_username,
    (Number,            "DELETE", "username"):          delete_username,
    (Number,            "GET",    "username_suggestions"): list_username_suggestions,
    (Number,            "GET",    "message_qrdls"):     list_qr_codes,
    (Number,            "POST",   "message_qrdls"):     save_qr_code,
    (Number,            "GET",    QR_CODE):             show_qr_code,
    (Number,            "POST",   QR_CODE):             update_qr_code,
    (Number,            "DELETE", QR_CODE):             delete_qr_code,
    (Number,            "GET",    PAYMENT_LOOKUP):      find_payment,
    (Number,            "POST",   "payments_refund"):   refund_payment,
    (Account,           "GET",    "payment_configurations"): list_configurations,
    (Account,           "GET",    PAYMENT_CONFIGURATION): show_configuration,
    (Account,           "POST",   "payment_configuration"): create_configuration,
    (Account,           "DELETE", "payment_configuration"): remove_configuration,
    (Account,           "POST",   "generate_payment_configuration_oauth_link"): regenerate_link,
    (SimulatedMedia,    "GET",    ""):                  show_media,
    (SimulatedMedia,    "DELETE", ""):                  delete_media,
    (GraphApp,          "POST",   "uploads"):           begin_upload,
    (GraphApp,          "GET",    "subscriptions"):     list_app_subscriptions,
    (GraphApp,          "POST",   "subscriptions"):     subscribe_app,
    (GraphApp,          "DELETE", "subscriptions"):     unsubscribe_app,
    (UploadSession,     "GET",    ""):                  show_upload,
    (UploadSession,     "POST",   ""):                  continue_upload,
    (SimulatedTemplate, "GET",    ""):                  show_template,
    (SimulatedTemplate, "POST",   ""):                  edit_template,
    (SimulatedTemplate, "GET",    "compare"):           compare_templates,
    (SimulatedTemplate, "POST",   "unpause"):           unpause_template,
    (Account,           "POST",   "message_templates/archive"):   archive_templates,
    (Account,           "POST",   "message_templates/unarchive"): unarchive_templates,
    (Account,           "POST",   "upsert_message_templates"):  upsert_templates,
    (Account,           "GET",    "message_template_previews"): preview_templates,
}

ROOT_ROUTES: Final[dict[tuple[str, str], GraphRoute]] = {
    # method first segment of the path
    ("GET", LIBRARY_ID):  list_library,
    ("GET", DEBUG):       debug_token,
    ("GET", OAUTH):       app_token,
}

FILE_ROUTES: Final[dict[tuple[str, str], FileRoute]] = {
    # method first segment of the path
    ("GET", ATTACHMENTS): download_media,
    ("GET", FLOW_FILES):  download_asset,
    ("GET", PICTURES):    download_picture,
    ("GET", PAYMENT_SETUP): open_setup_link,
}
# fmt: on
STREAMED: Final = frozenset({upload_media, upload_asset, change_group, continue_upload, show_upload})
"""The routes that read the request's body themselves."""

WITHOUT_TOKEN: Final = frozenset({FLOW_FILES, PICTURES, OAUTH, PAYMENT_SETUP})
"""First path segments without a token: signed links to files, and the endpoint where an app gets its token."""
