"""Templates of the demonstration's app, by the partner API: found by name or id, created, and awaited."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from waypost.cli.connections import partner_client
from waypost.cli.errors import CommandError
from waypost.cli.polling import poll
from waypost.domain.templates.template import TemplateStatus

NEEDED: Final = ("PARTNER_URL", "APP_ID", "APP_TOKEN")
APPROVED: Final = "APPROVED"
_IN_REVIEW: Final = ("PENDING", "IN_APPEAL", "SANDBOX_REQUESTED")
_REVIEW_POLL_INTERVAL_S: Final = 0.5
"""One template may be read ten times a second, by all who read it; the list ten times a minute."""
_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")
_DEFAULTS: Final = {"category": "UTILITY", "templateType": "TEXT", "languageCode": "en_US", "vertical": "General"}


async def list_templates(variables: Mapping[str, str], **filters: str) -> list[dict[str, Any]]:
    """Return the templates of the app.

    Args:
        variables: of the environment file.
        filters: of the partner API's list, such as `status`.

    Raises:
        CommandError: the status is unknown.
        ApiResponseError: the call was rejected.
        ApiUnreachable: the service does not respond.
    """
    status = filters.get("status", "").upper()
    if status and status not in TemplateStatus.__members__:
        raise CommandError("status", f"there is no status {status} of a template", ", ".join(TemplateStatus))
    query = f"?{urlencode(filters)}" if filters else ""
    return (await partner_client(variables).json("GET", f"{_path(variables)}{query}"))["templates"]


async def find_template(variables: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return a template by its element name or id; of several languages, an approved one.

    Raises:
        CommandError: there is none; the error lists the approved ones.
        ApiResponseError: the call was rejected.
        ApiUnreachable: the service does not respond.
    """
    rows = [row for row in await list_templates(variables, elementName=name) if row["elementName"] == name]
    rows = rows or await list_templates(variables, id=name)
    if not rows:
        approved = sorted({row["elementName"] for row in await list_templates(variables, status=APPROVED)})
        accepted = ", ".join(approved) or "none is approved yet; `waypost template create` creates one"
        raise CommandError("template", f"the app has no template with the name or id {name!r}", accepted)
    return next((row for row in rows if row["status"] == APPROVED), rows[0])


def template_form(
    name: str,
    content: str,
    examples: Sequence[str] = (),
    buttons: Sequence[str] = (),
    fields: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the fields of a template's creation.

    Args:
        name: its element name.
        content: the text, with {{1}}, {{2}} … for its parameters.
        examples: a value for each parameter, in order.
        buttons: the texts of its quick replies.
        fields: further fields, which replace those made here.

    Raises:
        CommandError: there are too few examples, or too many.
    """
    names = list(dict.fromkeys(_PLACEHOLDER.findall(content)))
    if len(examples) != len(names):
        accepted = f"one for each of {', '.join(f'{{{{{each}}}}}' for each in names)}" if names else "none"
        raise CommandError("example", f"the text has {len(names)} parameters, and {len(examples)} examples", accepted)
    values = dict(zip(names, examples, strict=True))
    form: dict[str, Any] = {**_DEFAULTS, "elementName": name, "content": content}
    form["example"] = _PLACEHOLDER.sub(lambda found: f"[{values[found[1]]}]", content)
    if buttons:
        form["buttons"] = [{"type": "QUICK_REPLY", "text": text} for text in buttons]
    return form | dict(fields or {})


async def create_template(
    variables: Mapping[str, str], form: Mapping[str, Any], *, if_missing: bool = False
) -> dict[str, Any]:
    """Create a template and return it.

    Args:
        variables: of the environment file.
        form: fields of the partner API; a value that is no text is sent as JSON.
        if_missing: return the existing template of this name and language, if there is one.

    Raises:
        CommandError: it exists with another text.
        ApiResponseError: it was rejected.
        ApiUnreachable: the service does not respond.
    """
    fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in form.items()}
    if if_missing:
        language = fields.get("languageCode", _DEFAULTS["languageCode"])
        for row in await list_templates(variables, elementName=fields.get("elementName", "")):
            if (row["elementName"], row["languageCode"]) == (fields["elementName"], language):
                _check_same_text(row, fields)
                return row
    return (await partner_client(variables).form("POST", _path(variables), fields))["template"]


async def wait_for_template(variables: Mapping[str, str], name: str, within_s: float) -> dict[str, Any]:
    """Wait until a template is approved, and return it.

    Args:
        variables: of the environment file.
        name: its element name or id.
        within_s: longest time to wait.

    Raises:
        CommandError: there is no such template, it is not approved, or the time has passed.
        ApiResponseError: a call was rejected.
        ApiUnreachable: the service does not respond.
    """
    row = await find_template(variables, name)
    path = f"{_path(variables)}/{row['id']}"

    async def read() -> dict[str, Any]:
        return (await partner_client(variables).json("GET", path))["template"]

    if row["status"] in _IN_REVIEW:
        row = await poll(read, lambda row: row["status"] not in _IN_REVIEW, within_s, _REVIEW_POLL_INTERVAL_S)
    if row["status"] == APPROVED:
        return row
    if row["status"] in _IN_REVIEW:
        reason, accepted = f" after {within_s:g} s", "a longer time; if the clock is frozen, `waypost clock run`"
    else:
        reason = f": {row['reason']}" if row.get("reason") else ""
        accepted = "a template that passes the review; change this one, or create another"
    raise CommandError("template", f"the template {row['elementName']} is {row['status']}{reason}", accepted)


def _check_same_text(row: Mapping[str, Any], fields: Mapping[str, str]) -> None:
    container: dict[str, Any] = json.loads(row["containerMeta"])
    content = container.get("data")
    if "content" in fields and content != fields["content"]:
        rule = f"the template {row['elementName']} exists with the text {content!r}"
        raise CommandError("name", rule, "another name, or the same text")


def _path(variables: Mapping[str, str]) -> str:
    return f"/partner/app/{variables['APP_ID']}/templates"
