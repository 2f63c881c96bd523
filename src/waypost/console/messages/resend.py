"""The stored request of a message, rebuilt to resend it or to show it as code."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qsl

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import InvalidPageRequest, NotFound, PageRequest
from waypost.store.console.trace import app_message_content
from waypost.store.encoding import MARKETING_PASSTHROUGH, MARKETING_TEMPLATE, TEMPLATE_PASSTHROUGH

RESEND_PATHS: Final = {  # Source: api/routes.py; kinds: store/encoding.py
    "passthrough": "v3/message",
    TEMPLATE_PASSTHROUGH: "v3/message",
    MARKETING_PASSTHROUGH: "onboarding/marketing/msg",
    "template": "template/msg",
    MARKETING_TEMPLATE: "template/msg",
}
_SESSION_PATH: Final = "msg"
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
    path = f"/partner/app/{app_id}/{RESEND_PATHS.get(kind, _SESSION_PATH)}"
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


async def resend_message(tools: PageTools, page_request: PageRequest) -> Response:
    """Resend a message and redirect to the new one."""
    stored = await tools.services.database.read(
        app_message_content, page_request.partner.id, page_request.app.id, page_request.path_params["message_id"]
    )
    if stored is None:
        raise NotFound("Message not found.")
    row, _ = stored
    client = tools.services.apis.app(page_request.app)
    resend = build_resend_request(page_request.app.id, row.kind, row.request)
    if resend.fields is None:
        response = await client.json("POST", resend.path, resend.body)
    else:
        response = await client.form("POST", resend.path, resend.fields)
    message_id = response["messageId"] if "messageId" in response else response["messages"][0]["id"]
    path, hint = f"/apps/{page_request.app.id}/messages/{message_id}", "The original message is unchanged."
    return tools.redirect(path, "Resent as a new message with its own ID.", hint=hint)
