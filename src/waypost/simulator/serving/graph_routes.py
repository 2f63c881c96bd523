"""The table of the Graph API's operations, and those for messages."""

from typing import Any, Final

from waypost.simulator.accounts import graph as apps
from waypost.simulator.accounts import signups
from waypost.simulator.accounts.signups import Signup
from waypost.simulator.apis.errors import bad_parameter
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.business_app import sync as business_apps
from waypost.simulator.calling import graph as calling
from waypost.simulator.flows import graph as flows
from waypost.simulator.flows import migration
from waypost.simulator.flows import uploads as flow_uploads
from waypost.simulator.flows.model import Flow
from waypost.simulator.groups import graph as groups
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.media import graph as media
from waypost.simulator.media import uploads
from waypost.simulator.media.model import SimulatedMedia
from waypost.simulator.media.uploads import UploadSession
from waypost.simulator.messages.marketing import SimulatedAd, read_insights
from waypost.simulator.messages.sending import accept_message
from waypost.simulator.numbers import graph as numbers
from waypost.simulator.numbers import names, new_numbers, profile, qr_codes, registration, settings
from waypost.simulator.onboarding import exchange, preverified
from waypost.simulator.onboarding import graph as partners
from waypost.simulator.onboarding.model import AppPartner, CreditAllocation
from waypost.simulator.onboarding.preverified import PreverifiedNumber
from waypost.simulator.payments import graph as payments
from waypost.simulator.serving import nodes
from waypost.simulator.state.accounts import Account, Business, GraphApp, Number
from waypost.simulator.state.graph_operations import GraphOperation, GraphOperations
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.tokens import MESSAGING
from waypost.simulator.templates import graph as templates
from waypost.simulator.templates.template import SimulatedTemplate

operation = GraphOperations()

GraphResponse = dict[str, Any]


@operation("messages.send", "POST", Number, "messages", permission=MESSAGING)
async def send_message(state: SimulatorState, call: Call, number: Number) -> GraphResponse:
    """Accept a message, or mark one as read. Source: facts 4."""
    if "status" in call.fields:
        if call.fields["status"] != "read":
            raise bad_parameter("Param status must be one of {read}.")
        await state.delivery_signals.mark_read(
            number, call.fields.get("message_id"), call.fields.get("typing_indicator")
        )
        return GRAPH_SUCCESS
    return await accept_message(state, number, call.fields, fail_code=call.fail_code)


@operation("messages.send", "POST", Number, "marketing_messages", permission=MESSAGING)
async def send_marketing_message(state: SimulatorState, call: Call, number: Number) -> GraphResponse:
    """Accept a marketing template. Source: the operator's page "Send Marketing Messages"."""
    return await accept_message(state, number, call.fields, fail_code=call.fail_code, to_marketing=True)


@operation("insights.read", "GET", SimulatedAd, "insights")
async def show_insights(state: SimulatorState, call: Call, ad: SimulatedAd) -> GraphResponse:
    """Return the statistics of a template's marketing messages. Source: the operator's page "Viewing metrics"."""
    return {"data": [await read_insights(state, ad.template, call.query)]}


OPERATIONS: Final = (
    *operation.rows,
    *(
        row
        for module in (
            apps,
            business_apps,
            calling,
            exchange,
            flows,
            flow_uploads,
            migration,
            groups,
            media,
            names,
            new_numbers,
            nodes,
            numbers,
            partners,
            payments,
            preverified,
            profile,
            qr_codes,
            registration,
            settings,
            signups,
            templates,
            uploads,
        )
        for row in module.operation.rows
    ),
)
NODE_IDS: Final[dict[type, str]] = {
    Account: "waba_id",
    AppPartner: "credit_line_id",
    Business: "business_id",
    CreditAllocation: "allocation_id",
    Flow: "flow_id",
    GraphApp: "app_id",
    Number: "phone_number_id",
    PreverifiedNumber: "preverified_id",
    Signup: "signup_id",
    SimulatedAd: "ad_id",
    SimulatedGroup: "group_id",
    SimulatedMedia: "media_id",
    SimulatedTemplate: "template_id",
    UploadSession: "upload_id",
}
"""The names of the ids that paths begin with."""
ROUTES: Final[dict[tuple[type, str, str], GraphOperation]] = {
    (row.node, row.method, row.edge): row for row in OPERATIONS if isinstance(row.node, type)
}
"""The operations on an object, by its type, method and edge."""
ROOT_ROUTES: Final[dict[tuple[str, str], GraphOperation]] = {
    (row.method, row.node): row for row in OPERATIONS if isinstance(row.node, str)
}
"""The other operations, by method and first segment of the path."""
