"""The page of one template: preview, status, history, sending and code snippets."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError, NotReached
from waypost.console.bubbles.drafts import shown_of_draft
from waypost.console.page_tools import PageTools
from waypost.console.templates.history import Step, told
from waypost.console.templates.lookup import template_of
from waypost.console.templates.samples import finder, samples_of
from waypost.console.templates.sending import asks_of, fields_of_send
from waypost.console.templates.submission import fields_of_draft
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece
from waypost.domain.lifecycle import EDITABLE, KEPT_BY_THE_OPERATOR, SENDABLE
from waypost.domain.media import Media
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.domain.templates.template import TemplateStatus as S
from waypost.store.templates.events import template_history

VARIABLE: Final = "APP_TOKEN"
"""The environment variable with the app token in snippets, which never contain the token itself."""


def as_curl(method: str, url: str, fields: Mapping[str, str]) -> str:
    """Return a request as a curl command."""
    lines = [
        f"curl -X {method} {shlex.quote(url)}",
        f'-H "Authorization: ${VARIABLE}"',
        *(f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in fields.items()),
    ]
    return " \\\n  ".join(lines)


def as_python(method: str, url: str, fields: Mapping[str, str]) -> str:
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
        f'    headers={{"Authorization": os.environ["{VARIABLE}"]}},\n'
        f"    method={method!r},\n"
        ")\n"
        "with urlopen(request) as response:\n"
        "    print(response.read().decode())\n"
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """The text of one status.

    Attributes:
        means: its meaning.
        remedy: what to do; empty if nothing.
    """

    means: str
    remedy: str = ""


# fmt: off
STANDINGS: Final = {  # Source: facts 3.4; operator's facts 3.1 and 2.6
    S.PENDING:           Standing("The operator is reviewing it.", "Most reviews take minutes, some up to a day."),
    S.APPROVED:          Standing("It can be sent."),
    S.REJECTED:          Standing("The operator rejected it; it cannot be sent.", "Fix what the reason says, and submit the edit for another review."),
    S.FAILED:            Standing("It could not be submitted to the operator.", "Check the reason, then edit it to submit it again, or delete it."),
    S.PAUSED:            Standing("The operator paused it because of negative feedback from recipients.", "It resumes automatically after some hours. Make its purpose clearer, and send it to fewer people."),
    S.DISABLED:          Standing("The operator disabled it permanently because of negative feedback.", "Create a new template with another name."),
    S.IN_APPEAL:         Standing("An appeal against the operator's decision is in progress.", "Wait for the decision."),
    S.FLAGGED:           Standing("Its quality is low. It can still be sent, but may be paused soon.", "Send it to fewer people, and only to those who expect it."),
    S.LOCKED:            Standing("The operator locked it: it cannot be sent or edited.", "Wait until it is unlocked."),
    S.ARCHIVED:          Standing("It was archived because it was not used for a long time.", "Unarchive it at the operator, or create a new template."),
    S.SANDBOX_REQUESTED: Standing("It was requested in a sandbox."),
    S.DELETED:           Standing("It is deleted. This page stays available for the traces of its messages."),
}
# fmt: on


PAGE: Final = "templates/show.html"
PARTS: Final = "templates/show_parts.html"


async def show_template(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page.

    Raises:
        NotThere: there is no such template.
    """
    template = await template_of(desk, visit, visit.path["template_id"])
    return await page_of(desk, visit, template)


async def page_of(
    desk: PageTools,
    visit: PageRequest,
    template: Template,
    *,
    status: int = 200,
    given: Mapping[str, str] | None = None,
    refused: str = "",
) -> Response:
    """Return the page; after a failed send with the values as typed and the error."""
    draft = template.draft
    uploads = await samples_of(desk, visit, [draft])
    inputs = asks_of(draft, _media_ids(uploads), desk.parts.clock.now_ms())
    phones = await _phones(desk)
    typed = given or {}
    values = {each.name: typed.get(each.name, each.sample) for each in inputs}
    destination = typed.get("destination", phones[0]["phone"] if phones else "")
    return await desk.page(
        visit,
        PAGE,
        status,
        template=template,
        shown=shown_of_draft(draft, find=finder(visit, uploads)),
        status_text=STANDINGS[template.status],
        steps=await _steps(desk, visit, template),
        can=can(template),
        inputs=inputs,
        values=values,
        destination=destination,
        phones=phones,
        error=refused,
        snippets=_snippets(desk, visit, template, values, destination),
        live=f"/apps/{visit.app.id}/templates/{template.id}/live",
    )


async def live_template(desk: PageTools, visit: PageRequest) -> Response:
    """Stream its status, history and possible actions.

    Raises:
        NotThere: there is no such template.
    """
    template_id = visit.path["template_id"]
    await template_of(desk, visit, template_id)

    async def render_pieces() -> Sequence[Piece]:
        part = desk.parts.pages.part
        template = await template_of(desk, visit, template_id)
        steps = await _steps(desk, visit, template)
        status_text = STANDINGS[template.status]
        app, allowed = visit.app, can(template)
        return [
            Piece("status", part(PARTS, "status", visit, template, status_text)),
            Piece("facts", part(PARTS, "facts", visit, template)),
            Piece("history", part(PARTS, "history", visit, template, steps)),
            Piece("acts", part(PARTS, "acts", visit, app, template, allowed, visit)),
            Piece("may-send", part(PARTS, "may_send", visit, allowed)),
        ]

    return desk.live(visit, render_pieces)


def can(template: Template) -> dict[str, bool]:
    """Return the actions that the status of a template allows."""
    status = template.status
    is_deleted = status is TemplateStatus.DELETED
    return {
        "send": status in SENDABLE,
        "edit": status in EDITABLE,
        "delete": not is_deleted and status not in KEPT_BY_THE_OPERATOR,
    }


def send_path(visit: PageRequest) -> str:
    """Return the partner API's path that sends a template."""
    return f"/partner/app/{visit.app.id}/template/msg"


def delete_path(visit: PageRequest, template: Template) -> str:
    """Return the partner API's path that deletes a template."""
    name = quote(template.draft.element_name or "", safe="")
    return f"/partner/app/{visit.app.id}/template/{name}/{template.id}"


async def _steps(desk: PageTools, visit: PageRequest, template: Template) -> list[Step]:
    read: Any = partial(template_history, partner_id=visit.partner.id, template_id=template.id)
    return [told(event) for event in await desk.parts.database.read(read)]


async def _phones(desk: PageTools) -> list[dict[str, Any]]:
    """Return the simulator's phones; an empty list if there is no simulator, or it does not respond."""
    control = desk.parts.apis.control
    if control is None:
        return []
    try:
        phones: list[dict[str, Any]] = (await control.get("/control/phones?limit=50"))["phones"]
    except (ApiResponseError, NotReached):
        return []
    return phones


def _media_ids(uploads: Mapping[str, Media]) -> dict[str, str]:
    return {name: upload.id for name, upload in uploads.items()}


def _snippets(
    desk: PageTools, visit: PageRequest, template: Template, values: Mapping[str, str], destination: str
) -> list[dict[str, str]]:
    base = desk.parts.public_url
    app, draft = visit.app, template.draft
    create_request = (f"{base}/partner/app/{app.id}/templates", fields_of_draft(draft))
    send_request = (
        f"{base}{send_path(visit)}",
        fields_of_send(draft, template.id, app.phone_number, app.name, destination or "15550002001", values),
    )
    return [
        {"id": "create-curl", "title": "Create with curl", "text": as_curl("POST", *create_request)},
        {"id": "create-python", "title": "Create with Python", "text": as_python("POST", *create_request)},
        {"id": "send-curl", "title": "Send with curl", "text": as_curl("POST", *send_request)},
        {"id": "send-python", "title": "Send with Python", "text": as_python("POST", *send_request)},
    ]
