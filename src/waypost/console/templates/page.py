"""The page of a template: its status and history, the form that sends it, and the same requests as code."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.bubbles.previews import draft_message
from waypost.console.page_request import PageRequest
from waypost.console.requests import compact_json, render_curl
from waypost.console.templates.draft_text import find_samples, sample_finder
from waypost.console.templates.editor import EDITOR_MACROS, find_changes
from waypost.console.templates.gallery import get_template
from waypost.console.templates.submission import encode_draft
from waypost.console.templates.texts import compare_drafts
from waypost.console.web.streams import PageElement
from waypost.domain.app import App
from waypost.domain.lifecycle import EDITABLE, NOT_DELETABLE, SENDABLE
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import parameter_button_indexes
from waypost.domain.templates.template import Template
from waypost.domain.templates.template import TemplateStatus as S
from waypost.domain.templates.types import HeaderFormat, type_row
from waypost.domain.templates.variables import named_examples, parameter_names
from waypost.store.templates.events import TemplateEvent, TemplateEventKind, template_history

TEMPLATE_EVENT_TEXTS: Final = {  # Source: store/templates/events.py
    # title, colour of its badge, actor
    TemplateEventKind.SUBMITTED: ("Submitted", "info", "you"),
    TemplateEventKind.ADOPTED: ("Added from the operator's library", "info", "you"),
    TemplateEventKind.FOUND: ("Found at the operator", "info", "operator"),
    TemplateEventKind.CHANGED_AT_OPERATOR: ("Edited at the operator", "warn", "operator"),
    TemplateEventKind.EDITED: ("Edited", "info", "you"),
    TemplateEventKind.ACCEPTED: ("Accepted by the operator", "quiet", "operator"),
    TemplateEventKind.IN_REVIEW: ("Under review", "info", "operator"),
    TemplateEventKind.APPROVED: ("Approved", "good", "operator"),
    TemplateEventKind.REJECTED: ("Rejected", "bad", "operator"),
    TemplateEventKind.FAILED: ("Could not be submitted", "bad", "service"),
    TemplateEventKind.EDIT_REJECTED: ("Edit rejected", "bad", "operator"),
    TemplateEventKind.EDIT_FAILED: ("Edit could not be submitted", "bad", "service"),
    TemplateEventKind.PAUSED: ("Paused", "warn", "operator"),
    TemplateEventKind.RESUMED: ("Resumed", "good", "operator"),
    TemplateEventKind.DISABLED: ("Disabled", "bad", "operator"),
    TemplateEventKind.APPEALED: ("In appeal", "info", "operator"),
    TemplateEventKind.FLAGGED: ("Flagged", "warn", "operator"),
    TemplateEventKind.LOCKED: ("Locked", "warn", "operator"),
    TemplateEventKind.ARCHIVED: ("Archived", "quiet", "operator"),
    TemplateEventKind.QUALITY_CHANGED: ("Quality rated", "info", "operator"),
    TemplateEventKind.CATEGORY_CHANGE_ANNOUNCED: ("Category change announced", "warn", "operator"),
    TemplateEventKind.CATEGORY_CHANGED: ("Category changed", "warn", "operator"),
    TemplateEventKind.DELETED: ("Deleted", "quiet", "you or operator"),
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


def _history_steps(events: Iterable[TemplateEvent]) -> list[dict[str, Any]]:
    """Return events with their texts; an unknown one of a newer process with its name."""
    steps: list[dict[str, Any]] = []
    for event in events:
        title, tone, actor = _TEXT_BY_EVENT.get(event.kind) or (event.kind.capitalize(), "quiet", "")
        detail = _describe_detail(event)
        steps.append({"at_ms": event.at_ms, "title": title, "tone": tone, "actor": actor, "detail": detail})
    return steps


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


def format_python(url: str, fields: Mapping[str, str]) -> str:
    """Return a POST request as Python code that needs only the standard library."""
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
        "    method='POST',\n"
        ")\n"
        "with urlopen(request) as response:\n"
        "    print(response.read().decode())\n"
    )


STATUS_TEXTS: Final = {  # meaning, and what to do. Source: facts 3.4; operator's facts 3.1 and 2.6
    S.PENDING: ("The operator is reviewing it.", "Most reviews take minutes, some up to a day."),
    S.APPROVED: ("It can be sent.", ""),
    S.REJECTED: (
        "The operator rejected it; it cannot be sent.",
        "Fix what the reason says, and submit the edit for another review.",
    ),
    S.FAILED: (
        "It could not be submitted to the operator.",
        "Check the reason, then edit it to submit it again, or delete it.",
    ),
    S.PAUSED: (
        "The operator paused it because of negative feedback from recipients.",
        "It resumes automatically after some hours. Make its purpose clearer, and send it to fewer people.",
    ),
    S.DISABLED: (
        "The operator disabled it permanently because of negative feedback.",
        "Create a new template with another name.",
    ),
    S.IN_APPEAL: ("An appeal against the operator's decision is in progress.", "Wait for the decision."),
    S.FLAGGED: (
        "Its quality is low. It can still be sent, but may be paused soon.",
        "Send it to fewer people, and only to those who expect it.",
    ),
    S.LOCKED: ("The operator locked it: it cannot be sent or edited.", "Wait until it is unlocked."),
    S.ARCHIVED: (
        "It was archived because it was not used for a long time.",
        "Unarchive it at the operator, or create a new template.",
    ),
    S.SANDBOX_REQUESTED: ("It was requested in a sandbox.", ""),
    S.DELETED: ("It is deleted. This page stays available for the traces of its messages.", ""),
}


TEMPLATE_MACROS: Final = "templates/show_parts.html"
MAX_DESTINATION_CHARS: Final = 200


async def show_template(request: PageRequest) -> Response:
    """Return the page."""
    template = await get_template(request, request.path_params["template_id"])
    return await template_page(request, template)


async def template_page(
    request: PageRequest, template: Template, typed: Mapping[str, str] = {}, error: str = ""
) -> Response:
    """Return the page; after a failed send with the values as typed and the error."""
    app, draft, base = request.app, template.draft, request.services.public_url
    uploads = await find_samples(request, [draft])
    media = {reference: upload.id for reference, upload in uploads.items()}
    inputs = send_inputs(draft, media, request.now_ms())
    phones = await _list_phones(request)
    values = {each.name: typed.get(each.name, each.sample) for each in inputs}
    offered = request.query("to")[:MAX_DESTINATION_CHARS] or (phones[0]["phone"] if phones else "")
    destination = typed.get("destination", offered)
    to = destination or "15550002001"
    requests = {
        "create": (f"{base}/partner/app/{app.id}/templates", encode_draft(draft)),
        "send": (base + _send_path(request), encode_send(template, app, to, values)),
    }
    snippets = [
        {"id": f"{verb}-{language.lower()}", "title": f"{verb.capitalize()} with {language}", "text": text}
        for verb, (url, fields) in requests.items()
        for language, text in (
            ("curl", render_curl(url, fields, method="POST")),
            ("Python", format_python(url, fields)),
        )
    ]
    return await request.page(
        "templates/show.html", 400 if error else 200, inputs=inputs, values=values,
        destination=destination, phones=phones, error=error, snippets=snippets,
        live=f"/apps/{app.id}/templates/{template.id}/live", **await _live_values(request, template),
    )  # fmt: skip


async def _live_values(request: PageRequest, template: Template) -> dict[str, Any]:
    """Return what may change while the page is open."""
    status, draft = template.status, replace(template.draft, category=template.category.value)
    uploads = await find_samples(request, [draft])
    history: Any = partial(template_history, partner_id=request.partner.id, template_id=template.id)
    return {
        "template": template,
        "shown": draft_message(template.draft, find=sample_finder(request, uploads)),
        "status_text": STATUS_TEXTS[status],
        "steps": _history_steps(await request.read(history)),
        "can": {
            "send": status in SENDABLE,
            "edit": status in EDITABLE and template.pending_edit is None,
            "delete": status is not S.DELETED and status not in NOT_DELETABLE,
        },
        "changes": await find_changes(request, template, draft) or None,
        "edit_changes": compare_drafts(draft, template.edit.draft) if template.edit else [],
    }


async def live_template(request: PageRequest) -> Response:
    """Stream its content, status, history and possible actions."""
    template_id = request.path_params["template_id"]
    await get_template(request, template_id)

    async def render_pieces() -> Sequence[PageElement]:
        template = await get_template(request, template_id)
        now = await _live_values(request, template)
        macros: dict[str, tuple[Any, ...]] = {  # by the element's id
            "shown": (now["shown"], request),
            "status": (template, now["status_text"]),
            "edit": (template, now["edit_changes"]),
            "facts": (template,),
            "history": (template, now["steps"]),
            "acts": (request.app, template, now["can"], request),
            "may-send": (now["can"],),
        }
        return [
            PageElement("changes", request.macro(EDITOR_MACROS, "changes", now["changes"])),
            *(
                PageElement(name, request.macro(TEMPLATE_MACROS, name.replace("-", "_"), *values))
                for name, values in macros.items()
            ),
        ]

    return request.live(render_pieces)


def _send_path(request: PageRequest) -> str:
    return f"/partner/app/{request.app.id}/template/msg"


async def _list_phones(request: PageRequest) -> list[dict[str, Any]]:
    """Return the simulator's phones; an empty list if there is no simulator, or it does not respond."""
    control = request.services.apis.control
    try:
        return [] if control is None else (await control.call("GET /control/phones", limit=50))["phones"]
    except (ApiResponseError, ApiUnreachable):
        return []


async def send_template(request: PageRequest) -> Response:
    """Send it, and redirect to the message's trace; an error is shown with the values as typed, to scripts as JSON."""
    template = await get_template(request, request.path_params["template_id"])
    form = await request.form()
    values = {name: value.strip() for name, value in form.items() if isinstance(value, str)}
    app = request.app
    fields = encode_send(template, app, values.get("destination", ""), values)
    try:
        response = await request.services.apis.app(app).form("POST", _send_path(request), fields)
    except ApiResponseError as error:
        if request.is_quiet:
            raise
        return await template_page(request, template, values, error.explanation or error.message)
    path = f"/apps/{app.id}/messages/{response['messageId']}"
    return JSONResponse({"to": path}) if request.is_quiet else request.redirect(path, "Sent.")


async def delete_template(request: PageRequest) -> Response:
    """Delete it."""
    template = await get_template(request, request.path_params["template_id"])
    name = quote(template.draft.element_name or "", safe="")
    path = f"/partner/app/{request.app.id}/template/{name}/{template.id}"
    await request.app_api.json("DELETE", path)
    text = f"Template {template.draft.element_name} ({template.draft.language_code}) deleted."
    hint = "Its name can be reused here at once, and at the operator after 30 days."
    return request.redirect(f"/apps/{request.app.id}/templates", text, hint=hint)


SAMPLE_CODE: Final = "123456"
OFFER_DURATION_MS: Final = 24 * 60 * 60 * 1000
_LOCATION_INPUTS: Final = {  # label and sample by member of a location
    "latitude": ("Latitude", "52.5200"),
    "longitude": ("Longitude", "13.4050"),
    "name": ("Location name", "The shop"),
    "address": ("Location address", "Main Street 1"),
}


class SendInput(NamedTuple):
    """One input of the form, with its initial value."""

    name: str
    label: str
    sample: str = ""
    hint: str = ""


def send_inputs(draft: TemplateDraft, media: Mapping[str, str], now_ms: int) -> list[SendInput]:
    """Return the inputs for sending this template, in the order of its parameters.

    Args:
        media: media id of each sample that is an upload of the partner, by reference.
        now_ms: by the service's clock; an offer ends a day later.
    """
    inputs = _header_inputs(draft, media)
    for index, (label, sample) in enumerate(_parameters(draft)):
        inputs.append(SendInput(f"param-{index}", label[:1].upper() + label[1:], sample))
    if draft.is_lto and draft.has_expiration:
        ends = str(now_ms + OFFER_DURATION_MS)
        inputs.append(SendInput("expiration", "Offer ends", ends, "Milliseconds since 1970."))
    if any(button.kind is ButtonKind.MPM for button in draft.buttons):
        inputs.append(SendInput("products", "Products", "", "Product IDs of the catalogue, separated by commas."))
    for index, card in enumerate(draft.cards or ()):
        sample = media.get(card.example_media or card.media_id or "", card.media_url or "")
        inputs.append(SendInput(f"card-{index}", f"Media of card {index + 1}", sample, "A media ID or URL."))
    for index, button in enumerate(draft.buttons):
        if button.kind is ButtonKind.QUICK_REPLY:
            hint = "Sent as postbackText in the callback of a tap. Empty: the callback has none."
            inputs.append(SendInput(f"postback-{index}", f"Postback text of “{button.text}”", "", hint))
    return inputs


def encode_send(template: Template, app: App, destination: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the form of `POST /partner/app/{app_id}/template/msg`."""
    draft = template.draft
    params = [values.get(f"param-{index}", "") for index in range(len(_parameters(draft)))]
    content: dict[str, Any] = {"id": template.id, "params": params}
    if values.get("expiration"):
        content["expiration"] = values["expiration"]
    if products := [product.strip() for product in values.get("products", "").split(",") if product.strip()]:
        content["mpm"] = {"sections": [{"title": "Items", "products": products}]}
    sender = {"channel": "whatsapp", "source": app.phone_number, "src.name": app.name}
    fields = {**sender, "destination": destination, "template": compact_json(content)}
    message = _message_content(draft, values)
    if message is not None:
        fields["message"] = compact_json(message)
    texts = [
        {"index": index, "text": values[f"postback-{index}"]}
        for index in range(len(draft.buttons))
        if values.get(f"postback-{index}")
    ]
    if texts:
        fields["postbackTexts"] = compact_json(texts)
    return fields


def _header_inputs(draft: TemplateDraft, media: Mapping[str, str]) -> list[SendInput]:
    row = type_row(draft.template_type)
    if row.medium is not None:
        sample = media.get(draft.example_media or draft.media_id or "", draft.media_url or "")
        hint = "A media ID or public URL; the sample by default."
        return [SendInput("medium", "GIF" if row.medium.name == "gif" else row.medium.name.capitalize(), sample, hint)]
    if row.header is HeaderFormat.LOCATION:
        return [SendInput(name, label, sample) for name, (label, sample) in _LOCATION_INPUTS.items()]
    return []


def _parameters(draft: TemplateDraft) -> list[tuple[str, str]]:
    """Return label and sample of each parameter, in the order of the API (facts 9.2)."""
    if any(button.kind is ButtonKind.OTP for button in draft.buttons):
        return [("Code", SAMPLE_CODE)]
    parameters = _text_parameters("Header", draft.header, draft.example_header)
    parameters += _text_parameters("Body", draft.content, draft.example)
    parameters += _button_parameters("", draft.buttons)
    for index, card in enumerate(draft.cards or ()):
        parameters += _text_parameters(f"Card {index + 1}", card.body, card.sample_text)
        parameters += _button_parameters(f"Card {index + 1}, ", card.buttons)
    return parameters


def _text_parameters(label_prefix: str, text: str | None, example: str | None) -> list[tuple[str, str]]:
    values = named_examples(text or "", example or "") or {}
    return [(f"{label_prefix}, {{{{{name}}}}}", values.get(name, "")) for name in parameter_names(text)]


def _button_parameters(label_prefix: str, buttons: tuple[TemplateButton, ...]) -> list[tuple[str, str]]:
    parameters: list[tuple[str, str]] = []
    for index in parameter_button_indexes(buttons):
        button = buttons[index]
        if button.kind is ButtonKind.COPY_CODE:
            parameters.append((f"{label_prefix}offer code", next(iter(button.example), "")))
            continue
        prefix = button.url.partition("{{")[0]
        sample = next(iter(button.example), "").removeprefix(prefix)
        parameters.append((f"{label_prefix}URL suffix of “{button.text}”", sample))
    return parameters


def _message_content(draft: TemplateDraft, values: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the media, location or cards of the message; None if the template has none."""
    row = type_row(draft.template_type)
    if row.medium is not None and values.get("medium"):
        return {"type": row.medium.name, row.medium.name: _media_reference(values["medium"])}
    if row.header is HeaderFormat.LOCATION:
        return {"type": "location", "location": {name: values.get(name, "") for name in _LOCATION_INPUTS}}
    if draft.cards:
        media = [_media_reference(values.get(f"card-{index}", "")) for index in range(len(draft.cards))]
        return {"type": "carousel", "cardHeaderType": draft.cards[0].header_type, "cards": media}
    return None


def _media_reference(reference: str) -> dict[str, str]:
    is_url = reference.lower().startswith(("http://", "https://"))
    return {"link": reference} if is_url else {"id": reference}
