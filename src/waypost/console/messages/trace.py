"""The trace page of one message: the page, its live updates, the content on request; and sending it again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from waypost.client.simulated_events import NOT_FETCHED, add_simulated_events
from waypost.console.messages.failure_explanations import explain_failure
from waypost.console.messages.list_rows import kind_label
from waypost.console.messages.trace_steps import build_steps, summarize_timing
from waypost.console.page_request import PageRequest
from waypost.console.requests import render_curl
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.console.web.streams import PageElement, elements_response
from waypost.console.web.zones import write_times_in_utc
from waypost.domain.message import TemplateSend
from waypost.domain.session_messages.plain import SessionMedia
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import render_body, render_footer, split_parameters
from waypost.domain.templates.template import Template
from waypost.domain.templates.variables import split_at_variables, variable_names
from waypost.store.callbacks.deliveries import subscription_health_by_app
from waypost.store.console.trace import app_message_content, app_message_trace
from waypost.store.encoding import (
    MARKETING_PASSTHROUGH,
    MARKETING_TEMPLATE,
    TEMPLATE_PASSTHROUGH,
    content_texts,
    decode_retained_content,
)
from waypost.store.messages.lists import template_names_by_ids
from waypost.store.templates.templates import template_by_id
from waypost.wire.redaction import HIDDEN_CODE, TextVisibility, redact_callback, redact_request, request_without_codes

LIFETIME_OVER_PREFIX: Final = "given up after the message's lifetime: "
"""Prefix of the failure reason that dispatch sets when a message's lifetime is over."""
INVALID_RESPONSE_CODE: Final = 4002
_OF_THE_PAGE: Final = ("is_open", "has_phones", "partner_id", "has_more_events")
"""Members of a trace that only its page needs."""


class DeliveryProblem(NamedTuple):
    """The delivery problem shown above the steps."""

    tone: str  # bad or warn
    what: str
    reason: str  # text of the operator or of Waypost; may be empty
    fix_hint: str
    code: int | None = None  # error code; None if there is none
    can_resend: bool = True  # True if resending makes sense


def delivery_problem(trace: Mapping[str, Any]) -> DeliveryProblem | None:
    """Return the delivery problem of a message, or None."""
    state, code, reason = trace["state"], trace["code"], trace["reason"] or ""
    if state == "uncertain":
        what = "Unconfirmed: the message may have been sent"
        hint = "The connection to the operator broke while sending. A status will confirm it; do not send it again yet."
        return DeliveryProblem("warn", what, reason, hint, can_resend=False)
    if state != "failed":
        return None
    what, hint = explain_failure(INVALID_RESPONSE_CODE if trace["unconfirmed"] else code)
    if not trace["unconfirmed"] and reason.startswith(LIFETIME_OVER_PREFIX):
        what, reason = "Not sent within its lifetime", reason.removeprefix(LIFETIME_OVER_PREFIX)
        hint = "The trace shows the failed attempts. Fix their cause, then send the message again."
    elif not trace["unconfirmed"] and code == INVALID_RESPONSE_CODE:
        what = "The operator\u2019s response could not be read"
        hint = "Send it again. If it happens often, contact the administrator of this service."
    return DeliveryProblem("bad", what, reason, hint, code)


def message_texts(row: Any, template: Template | None, *, holds_code: bool = False) -> list[str]:
    """Return the readable texts of a message in order; empty if its content was deleted.

    Args:
        row: stored message with `kind` and `content`.
        template: current version of the sent template, which may have been edited since.
        holds_code: True if its values may be one-time codes, which are then left out.
    """
    content = decode_retained_content(row.kind, row.content)
    if isinstance(content, TemplateSend) and template is not None:
        params = [HIDDEN_CODE] * len(content.params) if holds_code else content.params
        return [part for part in _template_texts(template.draft, params) if part]
    if holds_code:
        return [HIDDEN_CODE]
    return content_texts(row.content)


def _template_texts(draft: TemplateDraft, params: Sequence[str]) -> Iterator[str]:
    parameters = split_parameters(draft, params)
    yield _fill_variables(draft.header or "", parameters.header)
    yield _fill_variables(render_body(draft), parameters.body)
    yield render_footer(draft) or ""
    for card, values in zip(draft.cards or (), parameters.cards, strict=False):
        yield _fill_variables(card.body or "", values.body)
    if draft.buttons:
        yield "  ".join(f"[{button.text}]" for button in draft.buttons if button.text)


def _fill_variables(text: str, values: Sequence[str]) -> str:
    """Return a text with its variables replaced by their values; a variable without a value stays."""
    names = variable_names(text)
    in_order = sorted(dict.fromkeys(names), key=lambda name: (not name.isdecimal(), len(name), name))
    known = dict(zip(in_order, values, strict=False))
    first, *texts = split_at_variables(text)
    filled = (known.get(name, f"{{{{{name}}}}}") + text_after for name, text_after in zip(names, texts, strict=True))
    return first + "".join(filled)


TRACE_MACROS: Final = "messages/trace_parts.html"


async def show_trace(request: PageRequest) -> Response:
    """Show the trace; redirect from the operator's message id to ours."""
    trace = await _read_trace(request, request.path_params["message_id"])
    path = f"/apps/{request.app.id}/messages/{trace['id']}"
    if trace["id"] != request.path_params["message_id"]:
        return RedirectResponse(path, 303)
    values = await _page_values(request, trace)
    content = ""
    if request.services.show_text and trace["content_retained"]:
        content = Markup(await _content_html(request, is_folded=True))  # noqa: S704, rendered by a template
    return await request.page("messages/trace.html", link=request.services.public_url + path, content=content, **values)


async def live_trace(request: PageRequest) -> Response:
    """Stream the changes of the trace."""
    message_id = (await _read_trace(request, request.path_params["message_id"]))["id"]
    simulated: list[dict[str, Any]] | None = None  # once they no longer change

    async def render() -> Sequence[PageElement]:
        nonlocal simulated
        trace = await _read_trace(request, message_id, simulated=simulated)
        if trace["operator_message_id"] and not trace["has_more_events"]:
            simulated = [event for event in trace["events"] if event["event"] == NOT_FETCHED]
        now = await _page_values(request, trace)
        part = partial(request.macro, TRACE_MACROS)
        steps = part("timeline", request, trace, now["steps"], trace["request"])
        return [
            PageElement("summary", part("summary", request, trace)),
            PageElement("timing", part("timing", now["timing"])),
            PageElement("problem", part("problem_card", request, trace, now["problem"])),
            PageElement("steps", steps),
        ]

    return request.live(render)


async def show_json(request: PageRequest) -> Response:
    """Return the trace as JSON to copy, with times in UTC; texts that the page hides are hidden here too."""
    trace = await _read_trace(request, request.path_params["message_id"])
    shown = {name: value for name, value in trace.items() if name not in _OF_THE_PAGE}
    text = json.dumps(write_times_in_utc(shown), indent=2, ensure_ascii=False, default=str)
    return Response(text, media_type="application/json")


async def show_content(request: PageRequest) -> Response:
    """Return the content of a message and its request as code, on request."""
    html = await _content_html(request, is_folded=False)
    return elements_response([PageElement("content", html)])


async def _content_html(request: PageRequest, *, is_folded: bool) -> str:
    """Return the content of a message and its request as code. One-time codes are left out."""
    row, holds_code = await _read_content(request)
    sent_request = request_without_codes(row.request) if holds_code else row.request
    curl = python = ""
    try:
        resend = build_resend_request(request.app.id, row.kind, sent_request)
        json_body = None if resend.fields is not None else json.dumps(resend.body, ensure_ascii=False)
        curl = render_curl(request.services.public_url + resend.path, resend.fields, json_body=json_body)
        python = render_python(resend, request.services.public_url)
    except InvalidPageRequest:
        pass  # the request is shown as received, but cannot be resent
    template = None if row.template_id is None else await request.read(template_by_id, row.template_id)
    if template is not None and template.partner_id != request.partner.id:
        template = None
    texts = message_texts(row, template, holds_code=holds_code)
    return request.macro(TRACE_MACROS, "content", texts, sent_request, curl, python, holds_code, is_folded)


async def _read_content(request: PageRequest) -> tuple[Any, bool]:
    """Return the stored message in the path, and whether it may hold a one-time code."""
    stored = await request.read_own(app_message_content, request.path_params["message_id"])
    if stored is None:
        raise NotFound("Message not found.")
    return stored


async def _read_trace(
    request: PageRequest, message_id: str, *, simulated: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the trace of a message by our id or the operator's, with hidden texts left out.

    Args:
        simulated: events that the simulator has returned before; None: it is called.
    """
    trace = await request.read_own(app_message_trace, message_id)
    if trace is None:
        raise NotFound("No message has this ID.")
    template_id = trace["template_id"]
    names: dict[str, str] = {}
    if template_id:
        names = await request.read(template_names_by_ids, request.partner.id, [template_id])
    stored = None
    if trace["kind"] == SessionMedia.stored_as:  # its content has the kind of the medium
        stored = await request.read_own(app_message_content, trace["id"])
    trace["what"] = names.get(template_id) or kind_label(trace["kind"], stored[0].content if stored else b"")
    show_text = request.services.show_text
    sight = TextVisibility(show_text, trace["holds_code"])
    trace["request"] = redact_request(trace["request"], sight) if trace["content_retained"] else None
    trace["is_open"] = sight.is_open
    trace["callbacks"] = [redact_callback(callback, text=show_text) for callback in trace["callbacks"]]
    control = request.services.apis.control
    trace["has_phones"] = control is not None
    trace["has_more_events"] = False
    if simulated is not None:
        trace["events"] = sorted([*trace["events"], *simulated], key=lambda event: event["at_ms"])
    elif control is not None:
        trace["has_more_events"] = await add_simulated_events(lambda: control, trace)
    await _add_waits(request, trace)
    return trace


async def _add_waits(request: PageRequest, trace: dict[str, Any]) -> None:
    """Give each unfinished job of a trace the member `wait`, as the admin API explains it."""
    jobs = [job for job in (trace["waiting"], *(each["waiting"] for each in trace["callbacks"])) if job is not None]
    if not jobs:
        return
    path = "GET /admin/messages/{message_id}/waits"
    waits = (await request.services.apis.admin.call(path, message_id=trace["id"]))["waits"]
    by_job = {(wait["queue"], wait["position"]): wait for wait in waits}
    for job in jobs:
        job["wait"] = by_job.get((job["queue"], job["position"]))


async def _page_values(request: PageRequest, trace: dict[str, Any]) -> dict[str, Any]:
    subscriptions = await request.read_own(subscription_health_by_app)
    return {
        "trace": trace,
        "problem": delivery_problem(trace),
        "timing": summarize_timing(trace),
        "steps": build_steps(trace, subscriptions, request.now_ms()),
    }


RESEND_PATHS: Final = {  # others: msg. Source: api/routes.py; kinds: store/encoding.py
    "passthrough": "v3/message",
    TEMPLATE_PASSTHROUGH: "v3/message",
    MARKETING_PASSTHROUGH: "onboarding/marketing/msg",
    "template": "template/msg",
    MARKETING_TEMPLATE: "template/msg",
}
MAX_RESEND_FIELDS: Final = 200


class ResendRequest(NamedTuple):
    """A partner API request that repeats a stored one: a form, or a JSON body if there are no fields."""

    path: str
    fields: Mapping[str, str] | None
    body: Any = None


def build_resend_request(app_id: str, kind: str, request: str) -> ResendRequest:
    """Return a message's request for the partner API.

    Args:
        kind: stored kind of the message.
        request: stored body, a form or a JSON object, without credentials.

    Raises:
        InvalidPageRequest: the body was deleted or cannot be parsed.
    """
    path = f"/partner/app/{app_id}/{RESEND_PATHS.get(kind, 'msg')}"
    try:
        if request.lstrip().startswith("{"):
            return ResendRequest(path, None, json.loads(request))
        fields = dict(parse_qsl(request, keep_blank_values=True, strict_parsing=True, max_num_fields=MAX_RESEND_FIELDS))
    except (ValueError, RecursionError) as error:
        raise InvalidPageRequest(
            "This message cannot be resent: its request was deleted or has an unknown format.",
            "Send a new message through the API, or a template from its page.",
        ) from error
    return ResendRequest(path, fields)


def render_python(resend: ResendRequest, base_url: str) -> str:
    """Return a script for plain Python, with the app's token in an environment variable."""
    is_json = resend.fields is None
    message = _literal(resend.body if is_json else dict(resend.fields or {}))
    encoded = "json.dumps(message).encode()" if is_json else "urlencode(message).encode()"
    kind = "application/json" if is_json else "application/x-www-form-urlencoded"
    imports = "import json\nimport os\n" if is_json else "import os\nfrom urllib.parse import urlencode\n"
    return (
        f"{imports}from urllib.request import Request, urlopen\n\n"
        f"message = {message}\n"
        f"request = Request(\n    {base_url + resend.path!r},\n    data={encoded},\n"
        f'    headers={{"Authorization": os.environ["APP_TOKEN"], "Content-Type": "{kind}"}},\n)\n'
        "print(urlopen(request).read().decode())\n"
    )


def _literal(value: Any) -> str:
    """Return a value as a Python literal; `repr` quotes untrusted text safely."""
    if not isinstance(value, dict):
        return repr(value)
    members = cast("dict[str, Any]", value)
    lines = "".join(f"    {name!r}: {member!r},\n" for name, member in members.items())
    return f"{{\n{lines}}}"


async def resend_message(request: PageRequest) -> Response:
    """Resend a message and redirect to the new one."""
    row, _ = await _read_content(request)
    client = request.app_api
    resend = build_resend_request(request.app.id, row.kind, row.request)
    if resend.fields is None:
        response = await client.json("POST", resend.path, resend.body)
    else:
        response = await client.form("POST", resend.path, resend.fields)
    message_id = response["messageId"] if "messageId" in response else response["messages"][0]["id"]
    path, hint = f"/apps/{request.app.id}/messages/{message_id}", "The original message is unchanged."
    return request.redirect(path, "Resent as a new message with its own ID.", hint=hint)
