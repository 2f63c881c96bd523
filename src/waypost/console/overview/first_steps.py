"""Getting started: create a sample template, and send a template to a simulated phone, with one click each."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.page_request import PageRequest
from waypost.console.templates.submission import encode_draft
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.domain.app import App
from waypost.domain.lifecycle import SENDABLE
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Category, Template, TemplateFilter
from waypost.domain.templates.types import TemplateType
from waypost.domain.templates.variables import example_values, variable_names
from waypost.store.templates.templates import find_templates

_TEMPLATES_SEARCHED: Final = 50
SAMPLE_TEMPLATE: Final = TemplateDraft(
    element_name="order_sample",
    language_code="en_US",
    category=Category.UTILITY,
    template_type=TemplateType.TEXT,
    vertical="Order updates",
    content="Hi {{1}}, your order {{2}} is packed. Shall we bring it today?",
    example="Hi Ann, your order 4711 is packed. Shall we bring it today?",
    buttons=(
        TemplateButton(ButtonKind.QUICK_REPLY, "Yes please"),
        TemplateButton(ButtonKind.QUICK_REPLY, "Another day"),
    ),
)


async def find_first_message(request: PageRequest) -> dict[str, Any] | None:
    """Return the newest `template` that can be sent with its examples, the `parameters`, and a `phone`; or None."""
    control, app = request.services.apis.control, request.app
    if control is None or not app.phone_number:
        return None
    try:
        phones = (await control.get("/control/phones?limit=1"))["phones"]
    except (ApiResponseError, ApiUnreachable):
        return None
    if not phones:
        return None
    query = replace(
        TemplateFilter(), statuses=tuple(SENDABLE), template_types=(TemplateType.TEXT,),
        at_most=_TEMPLATES_SEARCHED,
    )  # fmt: skip
    templates = await request.read(
        partial(find_templates, partner_id=request.partner.id, business_account_id=app.business_account_id, query=query)
    )
    for template in templates:
        parameters = _parameters(template)
        if parameters is not None:
            return {"template": template, "parameters": parameters, "phone": phones[0]}
    return None


async def create_sample_template(request: PageRequest) -> Response:
    """Submit a template with two buttons through the partner API; the simulator reviews it.

    Raises:
        ApiResponseError: the partner API rejected it; its error page says why.
        NotFound: there is no simulator, and an operator's reviewers get no samples.
    """
    if request.services.apis.control is None:
        raise NotFound("This service has no simulator.")
    await submit_sample_template(request, request.app)
    return request.redirect(f"/apps/{request.app.id}", "Template submitted for review.")


async def submit_sample_template(request: PageRequest, app: App) -> None:
    """Submit the sample template of an app through the partner API."""
    await request.services.apis.app(app).form("POST", f"/partner/app/{app.id}/templates", encode_draft(SAMPLE_TEMPLATE))


async def send_first_message(request: PageRequest) -> Response:
    """Send it through the partner API with the app's token, as a script would."""
    first = await find_first_message(request)
    if first is None:
        raise InvalidPageRequest(
            "There is no phone, or no approved template that can be sent with example values.",
            "Open Templates and send one from its page.",
        )
    message_id = await send_message(request, first)
    return request.redirect(
        f"/phones?show={first['phone']['phone']}",
        "Template sent.",
        hint=f"Tap a button on the phone. Message ID: {message_id}.",
    )


async def send_message(request: PageRequest, first: Mapping[str, Any]) -> str:
    """Send a template with its examples, as `find_first_message` has returned it; return the message's ID."""
    app = request.app
    fields: dict[str, str] = {
        "channel": "whatsapp",
        "source": app.phone_number,
        "destination": first["phone"]["phone"],
        "src.name": app.name,
        "template": json.dumps({"id": first["template"].id, "params": first["parameters"]}),
    }
    response: dict[str, Any] = await request.services.apis.app(app).form(
        "POST", f"/partner/app/{app.id}/template/msg", fields
    )
    return response["messageId"]


def _parameters(template: Template) -> list[str] | None:
    """Return the values of a template's example; None if it needs more than its body's values."""
    draft = template.draft
    needs_more = (
        draft.category == Category.AUTHENTICATION
        or draft.is_lto
        or variable_names(draft.header)
        or any(variable_names(json.dumps(str(button))) for button in draft.buttons)
    )
    return None if needs_more else example_values(draft.content or "", draft.example or "")
