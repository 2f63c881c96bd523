"""The request that a message came with, made once more: to send it again, and to take it away as code."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from waypost.console.web.not_found import NotMeant
from waypost.store.encoding import TEMPLATE_PASSTHROUGH

# fmt: off
PATHS: Final = {  # Source: api/routes.py; kinds: store/encoding.py
    "passthrough":        "v3/message",
    TEMPLATE_PASSTHROUGH: "v3/message",
    "template":           "template/msg",
}
# fmt: on
_SESSION_PATH: Final = "msg"
MOST_FIELDS: Final = 200


@dataclass(frozen=True, slots=True)
class Again:
    """A request of the partner API that says what another one said.

    Attributes:
        path: of the service.
        fields: of its form; None: its body is JSON.
        body: JSON.
    """

    path: str
    fields: Mapping[str, str] | None
    body: Any = None


def request_of(app_id: str, kind: str, request: str) -> Again:
    """The request of a message, for the partner API.

    Args:
        app_id: whose.
        kind: of the message, as it is stored.
        request: the body as it came, a form or a JSON object; it holds no credential.

    Raises:
        NotMeant: it is not kept, or cannot be read.
    """
    path = f"/partner/app/{app_id}/{PATHS.get(kind, _SESSION_PATH)}"
    try:
        if request.lstrip().startswith("{"):
            return Again(path, None, json.loads(request))
        fields = dict(parse_qsl(request, keep_blank_values=True, strict_parsing=True, max_num_fields=MOST_FIELDS))
    except (ValueError, RecursionError) as error:
        raise NotMeant(
            "The request of this message cannot be sent once more: it is not kept, or has another form.",
            "Send a new message from your program, or a template from its page.",
        ) from error
    return Again(path, fields)


def as_curl(again: Again, base_url: str) -> str:
    """A command for a shell; the app's token is taken from its environment."""
    lines = [f"curl {shlex.quote(base_url + again.path)}", '-H "Authorization: $APP_TOKEN"']
    if again.fields is None:
        lines += ["-H 'Content-Type: application/json'", f"--data {shlex.quote(_json(again.body))}"]
    else:
        lines += [f"--data-urlencode {shlex.quote(f'{name}={text}')}" for name, text in again.fields.items()]
    return " \\\n  ".join(lines)


def as_python(again: Again, base_url: str) -> str:
    """A script that needs Python alone; the app's token is taken from its environment."""
    is_json = again.fields is None
    given = _literal(again.body if is_json else dict(again.fields or {}))
    encoded = "json.dumps(message).encode()" if is_json else "urlencode(message).encode()"
    kind = "application/json" if is_json else "application/x-www-form-urlencoded"
    imports = "import json\nimport os\n" if is_json else "import os\nfrom urllib.parse import urlencode\n"
    return (
        f"{imports}from urllib.request import Request, urlopen\n\n"
        f"message = {given}\n"
        f"request = Request(\n    {base_url + again.path!r},\n    data={encoded},\n"
        f'    headers={{"Authorization": os.environ["APP_TOKEN"], "Content-Type": "{kind}"}},\n)\n'
        "print(urlopen(request).read().decode())\n"
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(value: Any) -> str:
    """A value as Python writes it; what a stranger wrote stays within quotes, for `repr` quotes it."""
    if not isinstance(value, dict):
        return repr(value)
    members = cast("dict[str, Any]", value)
    lines = "".join(f"    {name!r}: {one!r},\n" for name, one in members.items())
    return f"{{\n{lines}}}"
