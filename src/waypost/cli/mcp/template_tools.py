"""The tools about templates, and the subscription to callbacks: what comes before the first message."""

from typing import Any

from waypost.cli.commands.template_calls import (
    NEEDED,
    create_template,
    list_templates,
    template_form,
    wait_for_template,
)
from waypost.cli.mcp.arguments import (
    CreateTemplateArguments,
    ListTemplatesArguments,
    SubscribeArguments,
    WaitForTemplateArguments,
)
from waypost.cli.mcp.connection import ServiceConnection
from waypost.cli.mcp.receiver import subscribe_url
from waypost.cli.mcp.tool_output import ToolOutput

_SHOWN = ("id", "elementName", "status", "category", "templateType", "languageCode", "data", "reason")


async def list_all_templates(connection: ServiceConnection, arguments: ListTemplatesArguments) -> ToolOutput:
    """List the app's templates: name, id, status and text."""
    filters = {"status": arguments.status} if arguments.status else {}
    rows = await list_templates(connection.variables(*NEEDED), **filters)
    return ToolOutput({"templates": [_shorten(row) for row in rows]})


async def create(connection: ServiceConnection, arguments: CreateTemplateArguments) -> ToolOutput:
    """Create a template and submit it for review: a text with parameters and quick replies; fields has everything else.

    An existing template of the same name and text is returned. wait_for_template waits for its approval.
    """
    more = {"category": arguments.category, "languageCode": arguments.language, **arguments.fields}
    form = template_form(arguments.name, arguments.text, arguments.examples, arguments.buttons, more)
    return ToolOutput(_shorten(await create_template(connection.variables(*NEEDED), form, if_missing=True)))


async def wait_until_approved(connection: ServiceConnection, arguments: WaitForTemplateArguments) -> ToolOutput:
    """Wait until a template is approved, and return it. One that is rejected is an error with the reason."""
    row = await wait_for_template(connection.variables(*NEEDED), arguments.template, arguments.timeout_s)
    return ToolOutput(_shorten(row))


async def subscribe(connection: ServiceConnection, arguments: SubscribeArguments) -> ToolOutput:
    """Subscribe to the app's callbacks; without a url, a receiver in this server accepts them until it ends.

    wait_for_callback needs a subscription.
    """
    variables = connection.variables(*NEEDED)
    if arguments.url is None:
        subscription = await connection.receiver.subscribe(variables, arguments.modes)
    else:
        subscription = await subscribe_url(variables, arguments.url, arguments.modes, arguments.tag)
    return ToolOutput({"subscription": subscription})


def _shorten(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _SHOWN if name in row}
