"""The history of a template as text."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.bubbles.previews import draft_message
from waypost.console.page_tools import PageTools
from waypost.console.templates.draft_text import find_samples, sample_finder
from waypost.console.templates.editor_view import EDITOR_MACROS, find_changes
from waypost.console.templates.gallery import get_template
from waypost.console.templates.sending import encode_send, send_inputs
from waypost.console.templates.submission import encode_draft
from waypost.console.templates.texts import FieldChange, compare_drafts
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import PageElement
from waypost.domain.lifecycle import EDITABLE, NOT_DELETABLE, SENDABLE
from waypost.domain.media import UploadedMedia
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.domain.templates.template import TemplateStatus as S
from waypost.store.templates.events import TemplateEvent, TemplateEventKind, template_history


@dataclass(frozen=True, slots=True)
class TemplateEventText:
    """The text of one kind of event.

    Attributes:
        kind: colour of its badge: good, warn, bad, info or quiet.
        actor: the actor.
    """

    title: str
    kind: str
    actor: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One event of the history, as shown."""

    at_ms: int
    text: TemplateEventText
    detail: str


TEMPLATE_EVENT_TEXTS: Final = {  # Source: store/templates/events.py
    # title, kind, who
    TemplateEventKind.SUBMITTED: TemplateEventText("Submitted", "info", "you"),
    TemplateEventKind.ADOPTED: TemplateEventText("Added from the operator's library", "info", "you"),
    TemplateEventKind.FOUND: TemplateEventText("Found at the operator", "info", "operator"),
    TemplateEventKind.CHANGED_AT_OPERATOR: TemplateEventText("Edited at the operator", "warn", "operator"),
    TemplateEventKind.EDITED: TemplateEventText("Edited", "info", "you"),
    TemplateEventKind.ACCEPTED: TemplateEventText("Accepted by the operator", "quiet", "operator"),
    TemplateEventKind.IN_REVIEW: TemplateEventText("Under review", "info", "operator"),
    TemplateEventKind.APPROVED: TemplateEventText("Approved", "good", "operator"),
    TemplateEventKind.REJECTED: TemplateEventText("Rejected", "bad", "operator"),
    TemplateEventKind.FAILED: TemplateEventText("Could not be submitted", "bad", "service"),
    TemplateEventKind.EDIT_REJECTED: TemplateEventText("Edit rejected", "bad", "operator"),
    TemplateEventKind.EDIT_FAILED: TemplateEventText("Edit could not be submitted", "bad", "service"),
    TemplateEventKind.PAUSED: TemplateEventText("Paused", "warn", "operator"),
    TemplateEventKind.RESUMED: TemplateEventText("Resumed", "good", "operator"),
    TemplateEventKind.DISABLED: TemplateEventText("Disabled", "bad", "operator"),
    TemplateEventKind.APPEALED: TemplateEventText("In appeal", "info", "operator"),
    TemplateEventKind.FLAGGED: TemplateEventText("Flagged", "warn", "operator"),
    TemplateEventKind.LOCKED: TemplateEventText("Locked", "warn", "operator"),
    TemplateEventKind.ARCHIVED: TemplateEventText("Archived", "quiet", "operator"),
    TemplateEventKind.QUALITY_CHANGED: TemplateEventText("Quality rated", "info", "operator"),
    TemplateEventKind.CATEGORY_CHANGE_ANNOUNCED: TemplateEventText("Category change announced", "warn", "operator"),
    TemplateEventKind.CATEGORY_CHANGED: TemplateEventText("Category changed", "warn", "operator"),
    TemplateEventKind.DELETED: TemplateEventText("Deleted", "quiet", "you or operator"),
}
FIELD_LABELS: Final[dict[str, str]] = {  # labels of the draft's fields
    "content": "body",
    "example": "sample values",
    "example_header": "header sample",
    "example_media": "media sample",
    "media_url": "sample URL",
    "template_type": "type",
}
_TEXT_BY_EVENT: Final = {kind.value: text for kind, text in TEMPLATE_EVENT_TEXTS.items()}


def describe_event(event: TemplateEvent) -> HistoryEntry:
    """Return an event as text; an unknown one of a newer process by its name."""
    text = _TEXT_BY_EVENT.get(event.kind) or TemplateEventText(event.kind.capitalize(), "quiet", "")
    return HistoryEntry(event.at_ms, text, _describe_detail(event))


def _describe_detail(event: TemplateEvent) -> str:
    detail = event.detail
    fields: list[str] = detail.get("fields", [])
    if fields:
        return ", ".join(FIELD_LABELS.get(name, name.replace("_", " ")) for name in fields)
    if "new" in detail:
        return f"{str(detail.get('old', '')).lower()} → {str(detail['new']).lower()}"
    if "operator_id" in detail:
        return f"Operator ID: {detail['operator_id']}"
    return str(detail.get("reason", ""))


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


async def send_template(tools: PageTools, page_request: PageRequest) -> Response:
    """Send it, and redirect to the message's trace; an error is shown with the values as typed.

    Raises:
        NotFound: there is no such template.
        ApiResponseError: the API returned an error to a request of a script; the guard shows it.
    """
    template = await get_template(tools, page_request, page_request.path_params["template_id"])
    form = await page_request.form()
    values = {name: value.strip() for name, value in form.items() if isinstance(value, str)}
    app = page_request.app
    fields = encode_send(template.draft, template.id, app.phone_number, app.name, values.get("destination", ""), values)
    try:
        response = await tools.services.apis.app(app).form("POST", send_path(page_request), fields)
    except ApiResponseError as error:
        if page_request.is_quiet:
            raise
        text = error.explanation or error.message
        return await template_page(tools, page_request, template, status=400, form_values=values, error=text)
    path = f"/apps/{app.id}/messages/{response['messageId']}"
    return JSONResponse({"to": path}) if page_request.is_quiet else tools.redirect(path, "Sent.")


async def delete_template(tools: PageTools, page_request: PageRequest) -> Response:
    """Delete it.

    Raises:
        NotFound: there is no such template.
        ApiResponseError: the API returned an error.
    """
    template = await get_template(tools, page_request, page_request.path_params["template_id"])
    await tools.services.apis.app(page_request.app).json("DELETE", delete_path(page_request, template))
    text = f"Template {template.draft.element_name} ({template.draft.language_code}) deleted."
    hint = "Its name can be reused here at once, and at the operator after 30 days."
    return tools.redirect(f"/apps/{page_request.app.id}/templates", text, hint=hint)
