"""The page of one template: preview, status, history, sending and code snippets."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.bubbles.drafts import draft_message
from waypost.console.page_tools import PageTools
from waypost.console.templates.editor_view import EDITOR_MACROS, find_changes
from waypost.console.templates.history import HistoryEntry, describe_event
from waypost.console.templates.lookup import get_template
from waypost.console.templates.samples import find_samples, sample_finder
from waypost.console.templates.sending import encode_send, send_inputs
from waypost.console.templates.submission import encode_draft
from waypost.console.templates.texts.changes import FieldChange, compare_drafts
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import PageElement
from waypost.domain.lifecycle import EDITABLE, NOT_DELETABLE, SENDABLE
from waypost.domain.media import UploadedMedia
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.domain.templates.template import TemplateStatus as S
from waypost.store.templates.events import template_history

TOKEN_VARIABLE: Final = "APP_TOKEN"  # noqa: S105
"""The environment variable with the app token in snippets, which never contain the token itself."""


def format_curl(method: str, url: str, fields: Mapping[str, str]) -> str:
    """Return a request as a curl command."""
    lines = [
        f"curl -X {method} {shlex.quote(url)}",
        f'-H "Authorization: ${TOKEN_VARIABLE}"',
        *(f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in fields.items()),
    ]
    return " \\\n  ".join(lines)


def format_python(method: str, url: str, fields: Mapping[str, str]) -> str:
    """Return a request as Python code that needs only the standard library."""
    rows = "".join(f"    {name!r}: {value!r},\n" for name, value in fields.items())
    return (
        "import os\n"
        "from urllib.parse import urlencode\n"
        "from urllib.request import Request, urlopen\n\n"
        f"fields = {{\n{rows}}}\n"
        "request = Request(\n"
        f"    {url!r},\n"
        "    data=urlencode(fields).encode(),\n"
        f'    headers={{"Authorization": os.environ["{TOKEN_VARIABLE}"]}},\n'
        f"    method={method!r},\n"
        ")\n"
        "with urlopen(request) as response:\n"
        "    print(response.read().decode())\n"
    )


@dataclass(frozen=True, slots=True)
class StatusText:
    """The text of one status.

    Attributes:
        meaning: its meaning.
        fix_hint: what to do; empty if nothing.
    """

    meaning: str
    fix_hint: str = ""


STATUS_TEXTS: Final = {  # Source: facts 3.4; operator's facts 3.1 and 2.6
    S.PENDING: StatusText("The operator is reviewing it.", "Most reviews take minutes, some up to a day."),
    S.APPROVED: StatusText("It can be sent."),
    S.REJECTED: StatusText(
        "The operator rejected it; it cannot be sent.",
        "Fix what the reason says, and submit the edit for another review.",
    ),
    S.FAILED: StatusText(
        "It could not be submitted to the operator.", "Check the reason, then edit it to submit it again, or delete it."
    ),
    S.PAUSED: StatusText(
        "The operator paused it because of negative feedback from recipients.",
        "It resumes automatically after some hours. Make its purpose clearer, and send it to fewer people.",
    ),
    S.DISABLED: StatusText(
        "The operator disabled it permanently because of negative feedback.", "Create a new template with another name."
    ),
    S.IN_APPEAL: StatusText("An appeal against the operator's decision is in progress.", "Wait for the decision."),
    S.FLAGGED: StatusText(
        "Its quality is low. It can still be sent, but may be paused soon.",
        "Send it to fewer people, and only to those who expect it.",
    ),
    S.LOCKED: StatusText("The operator locked it: it cannot be sent or edited.", "Wait until it is unlocked."),
    S.ARCHIVED: StatusText(
        "It was archived because it was not used for a long time.",
        "Unarchive it at the operator, or create a new template.",
    ),
    S.SANDBOX_REQUESTED: StatusText("It was requested in a sandbox."),
    S.DELETED: StatusText("It is deleted. This page stays available for the traces of its messages."),
}


TEMPLATE_PAGE: Final = "templates/show.html"
TEMPLATE_MACROS: Final = "templates/show_parts.html"
MAX_DESTINATION_CHARS: Final = 200


async def show_template(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page.

    Raises:
        NotFound: there is no such template.
    """
    template = await get_template(tools, page_request, page_request.path_params["template_id"])
    return await template_page(tools, page_request, template)


async def template_page(
    tools: PageTools,
    page_request: PageRequest,
    template: Template,
    *,
    status: int = 200,
    form_values: Mapping[str, str] | None = None,
    error: str = "",
) -> Response:
    """Return the page; after a failed send with the values as typed and the error."""
    draft = template.draft
    uploads = await find_samples(tools, page_request, [draft])
    inputs = send_inputs(draft, _media_ids(uploads), tools.services.clock.now_ms())
    phones = await _list_phones(tools)
    typed = form_values or {}
    values = {each.name: typed.get(each.name, each.sample) for each in inputs}
    offered = page_request.query("to")[:MAX_DESTINATION_CHARS] or (phones[0]["phone"] if phones else "")
    destination = typed.get("destination", offered)
    return await tools.page(
        page_request,
        TEMPLATE_PAGE,
        status,
        template=template,
        shown=draft_message(draft, find=sample_finder(page_request, uploads)),
        status_text=STATUS_TEXTS[template.status],
        steps=await _read_history(tools, page_request, template),
        can=allowed_actions(template),
        inputs=inputs,
        values=values,
        destination=destination,
        phones=phones,
        error=error,
        changes=await _changes_since_approval(tools, template),
        snippets=_snippets(tools, page_request, template, values, destination),
        edit_changes=_edit_changes(template),
        live=f"/apps/{page_request.app.id}/templates/{template.id}/live",
    )


async def live_template(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream its content, status, history and possible actions.

    Raises:
        NotFound: there is no such template.
    """
    template_id = page_request.path_params["template_id"]
    await get_template(tools, page_request, template_id)

    async def render_pieces() -> Sequence[PageElement]:
        part = tools.services.pages.render_macro
        template = await get_template(tools, page_request, template_id)
        steps = await _read_history(tools, page_request, template)
        status_text = STATUS_TEXTS[template.status]
        app, allowed = page_request.app, allowed_actions(template)
        uploads = await find_samples(tools, page_request, [template.draft])
        message = draft_message(template.draft, find=sample_finder(page_request, uploads))
        changes = await _changes_since_approval(tools, template)
        return [
            PageElement("shown", part(TEMPLATE_MACROS, "shown", page_request, message, page_request)),
            PageElement("status", part(TEMPLATE_MACROS, "status", page_request, template, status_text)),
            PageElement("edit", part(TEMPLATE_MACROS, "edit", page_request, template, _edit_changes(template))),
            PageElement("changes", part(EDITOR_MACROS, "changes", page_request, changes or None)),
            PageElement("facts", part(TEMPLATE_MACROS, "facts", page_request, template)),
            PageElement("history", part(TEMPLATE_MACROS, "history", page_request, template, steps)),
            PageElement("acts", part(TEMPLATE_MACROS, "acts", page_request, app, template, allowed, page_request)),
            PageElement("may-send", part(TEMPLATE_MACROS, "may_send", page_request, allowed)),
        ]

    return tools.live(page_request, render_pieces)


def allowed_actions(template: Template) -> dict[str, bool]:
    """Return the actions that the status of a template allows."""
    status = template.status
    is_deleted = status is TemplateStatus.DELETED
    return {
        "send": status in SENDABLE,
        "edit": status in EDITABLE and template.pending_edit is None,
        "delete": not is_deleted and status not in NOT_DELETABLE,
    }


def send_path(page_request: PageRequest) -> str:
    """Return the partner API's path that sends a template."""
    return f"/partner/app/{page_request.app.id}/template/msg"


def delete_path(page_request: PageRequest, template: Template) -> str:
    """Return the partner API's path that deletes a template."""
    name = quote(template.draft.element_name or "", safe="")
    return f"/partner/app/{page_request.app.id}/template/{name}/{template.id}"


async def _changes_since_approval(tools: PageTools, template: Template) -> list[FieldChange] | None:
    """Return what differs from the version that was approved last, as `find_changes`."""
    return await find_changes(tools, template, replace(template.draft, category=template.category.value))


def _edit_changes(template: Template) -> list[FieldChange]:
    """Return what the edit beside the operator's version would change."""
    if template.edit is None:
        return []
    return compare_drafts(replace(template.draft, category=template.category.value), template.edit.draft)


async def _read_history(tools: PageTools, page_request: PageRequest, template: Template) -> list[HistoryEntry]:
    read: Any = partial(template_history, partner_id=page_request.partner.id, template_id=template.id)
    return [describe_event(event) for event in await tools.services.database.read(read)]


async def _list_phones(tools: PageTools) -> list[dict[str, Any]]:
    """Return the simulator's phones; an empty list if there is no simulator, or it does not respond."""
    control = tools.services.apis.control
    if control is None:
        return []
    try:
        phones: list[dict[str, Any]] = (await control.get("/control/phones?limit=50"))["phones"]
    except (ApiResponseError, ApiUnreachable):
        return []
    return phones


def _media_ids(uploads: Mapping[str, UploadedMedia]) -> dict[str, str]:
    return {name: upload.id for name, upload in uploads.items()}


def _snippets(
    tools: PageTools, page_request: PageRequest, template: Template, values: Mapping[str, str], destination: str
) -> list[dict[str, str]]:
    base = tools.services.public_url
    app, draft = page_request.app, template.draft
    create_request = (f"{base}/partner/app/{app.id}/templates", encode_draft(draft))
    send_request = (
        f"{base}{send_path(page_request)}",
        encode_send(draft, template.id, app.phone_number, app.name, destination or "15550002001", values),
    )
    return [
        {"id": "create-curl", "title": "Create with curl", "text": format_curl("POST", *create_request)},
        {"id": "create-python", "title": "Create with Python", "text": format_python("POST", *create_request)},
        {"id": "send-curl", "title": "Send with curl", "text": format_curl("POST", *send_request)},
        {"id": "send-python", "title": "Send with Python", "text": format_python("POST", *send_request)},
    ]
