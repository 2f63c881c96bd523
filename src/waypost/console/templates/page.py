"""One template: as its recipient sees it, where it stands, what happened to it, and what can be done."""

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
"""The variable of the environment that holds the app's token; no snippet holds the token itself."""


def as_curl(method: str, url: str, fields: Mapping[str, str]) -> str:
    """For a shell."""
    lines = [
        f"curl -X {method} {shlex.quote(url)}",
        f'-H "Authorization: ${VARIABLE}"',
        *(f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in fields.items()),
    ]
    return " \\\n  ".join(lines)


def as_python(method: str, url: str, fields: Mapping[str, str]) -> str:
    """For Python 3, without anything to install."""
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
        "with urlopen(request) as answer:\n"
        "    print(answer.read().decode())\n"
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """One status in words.

    Attributes:
        means: what it means.
        remedy: what to do; empty where there is nothing to be done.
    """

    means: str
    remedy: str = ""


# fmt: off
STANDINGS: Final = {  # Source: facts 3.4; operator's facts 3.1 and 2.6
    S.PENDING:           Standing("The operator reviews it.", "Wait; most reviews take minutes, some a day."),
    S.APPROVED:          Standing("It can be sent."),
    S.REJECTED:          Standing("The operator's review has rejected it; it cannot be sent.", "Mend what the reason says and send the edit: it is reviewed anew."),
    S.FAILED:            Standing("It could not be submitted to the operator.", "Look at the reason; then edit it, which submits it again, or delete it."),
    S.PAUSED:            Standing("Recipients have complained; the operator holds it back.", "It resumes by itself after hours. Say more clearly why you write, and to fewer people."),
    S.DISABLED:          Standing("Complaints have gone on; the operator has switched it off for good.", "Write another template, under another name."),
    S.IN_APPEAL:         Standing("Somebody has appealed against the operator's decision.", "Wait for the answer."),
    S.FLAGGED:           Standing("Its quality is low; it can still be sent, and may soon be paused.", "Send it to fewer people, and only to those who expect it."),
    S.LOCKED:            Standing("The operator has locked it: it cannot be sent or edited now.", "Wait until it is unlocked."),
    S.ARCHIVED:          Standing("It has not been used for long, and is archived.", "Have it taken out of the archive at the operator, or write a new one."),
    S.SANDBOX_REQUESTED: Standing("It is asked for in a sandbox."),
    S.DELETED:           Standing("It has been deleted. The page stays, for the traces of its messages."),
}
# fmt: on


PAGE: Final = "templates/show.html"
PARTS: Final = "templates/show_parts.html"


async def show_template(desk: PageTools, visit: PageRequest) -> Response:
    """The page.

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
    """The page, with what was typed into the form for sending where that was refused."""
    draft = template.draft
    uploads = await samples_of(desk, visit, [draft])
    asks = asks_of(draft, _media_ids(uploads), desk.parts.clock.now_ms())
    phones = await _phones(desk)
    typed = given or {}
    values = {one.name: typed.get(one.name, one.sample) for one in asks}
    destination = typed.get("destination", phones[0]["phone"] if phones else "")
    return await desk.page(
        visit,
        PAGE,
        status,
        template=template,
        shown=shown_of_draft(draft, find=finder(visit, uploads)),
        standing=STANDINGS[template.status],
        steps=await _steps(desk, visit, template),
        can=can(template),
        asks=asks,
        values=values,
        destination=destination,
        phones=phones,
        refused=refused,
        snippets=_snippets(desk, visit, template, values, destination),
        live=f"/apps/{visit.app.id}/templates/{template.id}/live",
    )


async def live_template(desk: PageTools, visit: PageRequest) -> Response:
    """Where it stands from now on.

    Raises:
        NotThere: there is no such template.
    """
    template_id = visit.path["template_id"]
    await template_of(desk, visit, template_id)

    async def look() -> Sequence[Piece]:
        part = desk.parts.pages.part
        template = await template_of(desk, visit, template_id)
        steps = await _steps(desk, visit, template)
        standing = STANDINGS[template.status]
        app, may = visit.app, can(template)
        return [
            Piece("standing", part(PARTS, "standing", visit, template, standing)),
            Piece("facts", part(PARTS, "facts", visit, template)),
            Piece("history", part(PARTS, "history", visit, template, steps)),
            Piece("acts", part(PARTS, "acts", visit, app, template, may, visit)),
            Piece("may-send", part(PARTS, "may_send", visit, may)),
        ]

    return desk.live(visit, look)


def can(template: Template) -> dict[str, bool]:
    """What can be done with a template as it stands."""
    status = template.status
    is_there = status is not TemplateStatus.DELETED
    return {
        "send": status in SENDABLE,
        "edit": status in EDITABLE,
        "delete": is_there and status not in KEPT_BY_THE_OPERATOR,
    }


def send_path(visit: PageRequest) -> str:
    """Where the partner API takes a template's message."""
    return f"/partner/app/{visit.app.id}/template/msg"


def delete_path(visit: PageRequest, template: Template) -> str:
    """Where the partner API deletes one template."""
    name = quote(template.draft.element_name or "", safe="")
    return f"/partner/app/{visit.app.id}/template/{name}/{template.id}"


async def _steps(desk: PageTools, visit: PageRequest, template: Template) -> list[Step]:
    read: Any = partial(template_history, partner_id=visit.partner.id, template_id=template.id)
    return [told(one) for one in await desk.parts.database.read(read)]


async def _phones(desk: PageTools) -> list[dict[str, Any]]:
    """The simulator's phones; none where there is no simulator, or it does not answer."""
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
    creates = (f"{base}/partner/app/{app.id}/templates", fields_of_draft(draft))
    sends = (
        f"{base}{send_path(visit)}",
        fields_of_send(draft, template.id, app.phone_number, app.name, destination or "15550002001", values),
    )
    return [
        {"id": "create-curl", "title": "Create it, with curl", "text": as_curl("POST", *creates)},
        {"id": "create-python", "title": "Create it, with Python", "text": as_python("POST", *creates)},
        {"id": "send-curl", "title": "Send it, with curl", "text": as_curl("POST", *sends)},
        {"id": "send-python", "title": "Send it, with Python", "text": as_python("POST", *sends)},
    ]
