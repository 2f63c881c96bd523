"""The Flows of the app's business account, and the form that creates one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from starlette.responses import Response

from waypost.base.json_values import list_of, object_of, objects_in
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import error_notice, form_texts
from waypost.console.bubbles.items import text_of
from waypost.console.flows.sample import NEW_FLOW_JSON
from waypost.console.page_request import PageRequest

LISTED_MEMBERS: Final = "id,name,status,categories,validation_errors,json_version,endpoint_uri"
FLOW_CATEGORIES: Final = (  # Source: the operator's page "Flows API", categories
    "SIGN_UP", "SIGN_IN", "APPOINTMENT_BOOKING", "LEAD_GENERATION", "CONTACT_US", "CUSTOMER_SUPPORT", "SURVEY", "OTHER",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OperatorFlow:
    """A Flow as the operator lists it; what it leaves out is empty."""

    id: str
    name: str
    status: str  # in capitals, such as DRAFT
    categories: tuple[str, ...]
    json_version: str
    endpoint_uri: str
    preview_url: str
    validation_errors: list[dict[str, Any]]

    @classmethod
    def read(cls, flow: Mapping[str, Any]) -> Self:
        """Return a Flow of the operator's response."""
        return cls(
            *(text_of(flow.get(name)) for name in ("id", "name")),
            status=text_of(flow.get("status")).upper(),
            categories=tuple(text_of(one) for one in list_of(flow.get("categories"))),
            json_version=text_of(flow.get("json_version")),
            endpoint_uri=text_of(flow.get("endpoint_uri")),
            preview_url=text_of(object_of(flow.get("preview")).get("preview_url")),
            validation_errors=objects_in(list_of(flow.get("validation_errors"))),
        )


async def show_flows(request: PageRequest) -> Response:
    """Return the list, newest first."""
    return await _page(request, {})


async def create_flow(request: PageRequest) -> Response:
    """Create a draft with two screens to begin from, and open it in the editor; an error is shown above the form."""
    typed = await form_texts(request)
    fields = {
        "name": typed.get("name", "").strip(),
        "categories": json.dumps([typed.get("category", "OTHER")]),
        "flow_json": NEW_FLOW_JSON,
    }
    try:
        flow = await request.app_api.form("POST", f"/partner/app/{request.app.id}/flows", fields)
    except ApiResponseError as error:
        return await _page(request, typed, explain_rejection(error))
    return request.redirect(f"/apps/{request.app.id}/flows/{flow['id']}", "Flow created as a draft.")


def explain_rejection(error: ApiResponseError) -> str:
    """Return in words why the API, or the operator behind it, refuses a change."""
    if error.explanation:
        return error.explanation if error.message in error.explanation else f"{error.message} {error.explanation}"
    return " ".join(filter(None, error_notice(error))).replace("..", ".")


async def _page(request: PageRequest, typed: Mapping[str, str], wrong: str = "") -> Response:
    flows: list[OperatorFlow] = []
    unavailable = ""
    if request.app.business_account_id:
        try:
            path = f"/partner/app/{request.app.id}/flows?fields={LISTED_MEMBERS}"
            flows = [OperatorFlow.read(flow) for flow in objects_in(await request.app_api.json("GET", path))]
        except ApiResponseError as error:
            unavailable = explain_rejection(error)
    return await request.page(
        "flows/list.html", 400 if wrong else 200, flows=flows[::-1], unavailable=unavailable, typed=typed, wrong=wrong,
        categories=FLOW_CATEGORIES,
    )  # fmt: skip
