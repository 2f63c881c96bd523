"""Direct calls: a table of what each asks, and one function that asks it."""

import io
from dataclasses import dataclass
from typing import Final

import aiohttp

from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import Rejected, Sent, Unavailable, Uncertain
from waypost.operators.cloud.calls import Calls
from waypost.operators.cloud.loose import as_dict
from waypost.operators.cloud.template_calls import name_is_taken
from waypost.operators.cloud.usage import Kind
from waypost.operators.contract import Ask, Question, Told

WITHIN_S: Final = 10
"""For a whole direct call. Source: decision 0026."""

FLOW_FILE: Final = "flow.json"
FLOW_TYPE: Final = "FLOW_JSON"


@dataclass(frozen=True, slots=True)
class _Row:
    """One row.

    Attributes:
        edge: the path after the object's id.
        fields: what is asked for where the question does not say.
        is_list: an answer has a list called `data`; one without it says nothing, least of all that
            nothing is there.
        spends: whose limit it counts against.
    """

    method: str
    edge: str = ""
    fields: str = ""
    is_list: bool = False
    spends: Kind = Kind.MANAGEMENT


_PROFILE: Final = "about,address,description,email,profile_picture_url,websites,vertical"
_NUMBER: Final = (
    "id,display_phone_number,verified_name,quality_rating,status,code_verification_status,name_status,"
    "platform_type,throughput,whatsapp_business_manager_messaging_limit,webhook_configuration"
)
_ACCOUNT: Final = "id,name,timezone_id,message_template_namespace,account_review_status"
_TEMPLATE: Final = "id,name,language,status,category,previous_category,components,quality_score,rejected_reason"

# fmt: off
ASKS: Final = {  # Source: operator's facts 1, 2.1, 6.1; its pages "Business profiles", "Block users", "Conversational components", "Flows API"
    Ask.NUMBER:               _Row("GET",    "", _NUMBER),
    Ask.ACCOUNT:              _Row("GET",    "", _ACCOUNT),
    Ask.MARK_READ:            _Row("POST",   "messages", spends=Kind.MESSAGES),
    Ask.BUSINESS_PROFILE:     _Row("GET",    "whatsapp_business_profile", _PROFILE, is_list=True),
    Ask.SET_BUSINESS_PROFILE: _Row("POST",   "whatsapp_business_profile"),
    Ask.BLOCK:                _Row("POST",   "block_users"),
    Ask.UNBLOCK:              _Row("DELETE", "block_users"),
    Ask.BLOCK_LIST:           _Row("GET",    "block_users", is_list=True),
    Ask.COMPONENTS:           _Row("GET",    "", "conversational_automation"),
    Ask.SET_COMPONENTS:       _Row("POST",   "conversational_automation"),
    Ask.TEMPLATES:            _Row("GET",    "message_templates", is_list=True),
    Ask.TEMPLATE_LIBRARY:     _Row("GET",    "message_template_library", is_list=True),
    Ask.CREATE_FROM_LIBRARY:  _Row("POST",   "message_templates"),
    Ask.TEMPLATE_ANALYTICS:   _Row("GET",    "template_analytics", is_list=True),
    Ask.CREATE_FLOW:          _Row("POST",   "flows"),
    Ask.FLOWS:                _Row("GET",    "flows", is_list=True),
    Ask.FLOW:                 _Row("GET"),
    Ask.CHANGE_FLOW:          _Row("POST"),
    Ask.DELETE_FLOW:          _Row("DELETE"),
    Ask.FLOW_ASSETS:          _Row("GET",    "assets", is_list=True),
    Ask.PUT_FLOW_ASSETS:      _Row("POST",   "assets"),
    Ask.PUBLISH_FLOW:         _Row("POST",   "publish"),
    Ask.DEPRECATE_FLOW:       _Row("POST",   "deprecate"),
    Ask.PHONE_NUMBERS:        _Row("GET",    "phone_numbers", _NUMBER, is_list=True),
    Ask.SUBSCRIBED_APPS:      _Row("GET",    "subscribed_apps", is_list=True),
    Ask.SUBSCRIBE:            _Row("POST",   "subscribed_apps"),
    Ask.UNSUBSCRIBE:          _Row("DELETE", "subscribed_apps"),
    Ask.TOKEN:                _Row("GET",    "debug_token"),
    Ask.TEMPLATE:             _Row("GET",    "", _TEMPLATE),
    Ask.UNPAUSE_TEMPLATE:     _Row("POST",   "unpause"),
    Ask.MEDIUM:               _Row("GET",    spends=Kind.MESSAGES),
    Ask.DELETE_MEDIUM:        _Row("DELETE", spends=Kind.MESSAGES),
}
# fmt: on
OF_A_BUSINESS: Final = frozenset(
    {
        Ask.ACCOUNT,
        Ask.TEMPLATES,
        Ask.CREATE_FROM_LIBRARY,
        Ask.TEMPLATE_ANALYTICS,
        Ask.CREATE_FLOW,
        Ask.FLOWS,
        Ask.PHONE_NUMBERS,
        Ask.SUBSCRIBED_APPS,
        Ask.SUBSCRIBE,
        Ask.UNSUBSCRIBE,
    }
)  # fmt: skip
"""What is asked of a business account itself, and so surely spends of it alone."""


async def ask(call: Calls, account: OperatorAccount, question: Question) -> Told | Rejected | Unavailable | Uncertain:
    """Make a direct call.

    A question whose `about` is empty is asked of no object: the library of templates is nobody's, and
    what the operator knows of our own token it tells under no object's name either.
    """
    row = ASKS[question.ask]
    query = {"fields": row.fields} if row.fields else {}
    if question.ask is Ask.TOKEN:
        query["input_token"] = account.token
    answer = await call(
        account,
        row.method,
        "/".join(part for part in (question.about, row.edge) if part),
        None if question.body is None else dict(question.body),
        query | dict(question.query),
        form=_form(question),
        within_s=WITHIN_S,
        kind=row.spends,
        business=question.about if question.ask in OF_A_BUSINESS else "",
    )
    match answer:
        case {"error": error}:  # a template's name is taken: everything else is an outcome already
            return name_is_taken(as_dict(error))
        case dict() if row.is_list and not isinstance(answer.get("data"), list):
            return Unavailable("the operator's answer has no list")
        case dict():
            return Told(answer)
        case Sent():
            raise AssertionError("a call has no message to send")
        case _:
            return answer


def _form(question: Question) -> aiohttp.FormData | None:
    if question.file is None:
        return None
    name, mime_type, content = question.file
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("name", FLOW_FILE)
    form.add_field("asset_type", FLOW_TYPE)
    form.add_field("file", io.BytesIO(content), filename=name, content_type=mime_type)
    return form
