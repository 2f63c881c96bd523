"""Graph API calls that list, create, edit, unpause, archive and delete templates."""

from collections.abc import Callable
from typing import Any, Final

from waypost.base.json_values import list_or_none, text_or_none
from waypost.simulator.accounts.accounts import Account
from waypost.simulator.errors import bad_parameter
from waypost.simulator.graph.nodes import template_node
from waypost.simulator.graph.template_library import create_from_library
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.lists import page
from waypost.simulator.requests import GRAPH_SUCCESS, Call
from waypost.simulator.services import SimulatorServices
from waypost.simulator.templates.changes import decide_action
from waypost.simulator.templates.filters import matches_query
from waypost.simulator.templates.template import SimulatedTemplate

operation = GraphOperations()

_MAX_DELETED_TEMPLATES: Final = 100  # Source: facts 2.1, "hsm_ids"


@operation("templates.list", "GET", Account, "message_templates")
async def list_templates(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Return an account's templates, filtered, with an optional summary. Source: facts 2.1."""
    fields = call.query.get("fields")
    templates = services.templates.list_templates(account.waba_id)
    response = page(
        call,
        [template for template in templates if matches_query(template, call.query)],
        lambda template: f"{template.created_ms:015d}.{template.template_id}",
        lambda template: template_node(template, fields),
    )
    names = [name.strip() for name in call.query.get("summary", "").split(",") if name.strip()]
    if names:
        response["summary"] = _summary(services, templates, names)
    return response


@operation("templates.create", "POST", Account, "message_templates")
async def create_template(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Create a template for review, or one from the library. Source: facts 2.1."""
    if call.fields.get("library_template_name"):
        template = await create_from_library(services, call, account)
    else:
        template = await services.templates.create(account.waba_id, call.fields)
    return {"id": template.template_id, "status": template.status, "category": template.category}


@operation("templates.edit", "POST", SimulatedTemplate)
async def edit_template(services: SimulatorServices, call: Call, template: SimulatedTemplate) -> dict[str, Any]:
    """Change a template; it is reviewed again. Source: facts 2.6.

    No page documents the id, name and category, but a public client needs them in the response.
    """
    await services.templates.edit(template, call.fields)
    edited = services.templates.by_id.get(template.template_id, template)
    return {**GRAPH_SUCCESS, "id": edited.template_id, "name": edited.name, "category": edited.category}


@operation("templates.unpause", "POST", SimulatedTemplate, "unpause")
async def unpause_template(services: SimulatorServices, _call: Call, template: SimulatedTemplate) -> dict[str, Any]:
    """End a template's pause. Source: facts 2.1, "unpause"."""
    reason = await services.templates.unpause(template)
    return {"success": False, "reason": reason} if reason else GRAPH_SUCCESS


@operation("templates.delete", "DELETE", Account, "message_templates")
async def delete_template(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Delete one language of a template, all of them, or up to 100 templates. Source: facts 2.1."""
    name = text_or_none(call.fields.get("name"))
    template_id = call.fields.get("hsm_id")
    if "hsm_ids" in call.fields:
        if name or template_id is not None:
            raise bad_parameter("Param hsm_ids cannot be used together with name or hsm_id.")
        await services.templates.delete_all(account.waba_id, _ids(call.fields["hsm_ids"]))
        return GRAPH_SUCCESS
    if not name:
        raise bad_parameter("The parameter name is required.")
    await services.templates.delete(account.waba_id, name, None if template_id is None else str(template_id))
    return GRAPH_SUCCESS


@operation("templates.archive", "POST", Account, "message_templates/archive")
async def archive_templates(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Archive approved templates; they are deleted after 28 days. Source: facts 1, 2.6."""
    return await _apply_action(services, call, account, "archive", "APPROVED")


@operation("templates.unarchive", "POST", Account, "message_templates/unarchive")
async def unarchive_templates(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Unarchive templates. Source: facts 1, 2.6."""
    return await _apply_action(services, call, account, "unarchive", "ARCHIVED")


async def _apply_action(
    services: SimulatorServices, call: Call, account: Account, act: str, only_from: str
) -> dict[str, Any]:
    """Apply an action to several templates; return the changed ones, and the reasons of the failed ones."""
    changed: list[str] = []
    failed: dict[str, str] = {}
    for template_id in _ids(call.fields.get("hsm_ids", "")):
        template = services.templates.by_id.get(template_id)
        if template is None or template.waba_id != account.waba_id:
            failed[template_id] = "The template does not exist in this account."
        elif template.status != only_from:
            failed[template_id] = f"The template is {template.status}, not {only_from}."
        elif await services.templates.decide(template, decide_action(act, template)):
            changed.append(template_id)
    return {f"{act}d_templates": changed, "failed_templates": failed}


def _ids(value: object) -> list[str]:
    items = list_or_none(value)
    if items is None:
        items = str(value).strip("[]").split(",")
    ids = list(dict.fromkeys(str(item).strip().strip("'\"") for item in items))
    if not 1 <= len(ids) <= _MAX_DELETED_TEMPLATES or not all(ids):
        raise bad_parameter(f"Param hsm_ids must be an array of 1 to {_MAX_DELETED_TEMPLATES} ids.")
    return ids


_SUMMARY: Final[
    dict[str, Callable[[SimulatorServices, list[SimulatedTemplate]], Any]]
] = {  # Source: facts 2.1, `summary`
    "total_count": lambda _, templates: len(templates),
    "message_template_count": lambda _, templates: len(templates),
    "message_template_limit": lambda services, _: services.settings.value.templates_at_most,
    "are_translations_complete": lambda _, __: True,
}


def _summary(services: SimulatorServices, templates: list[SimulatedTemplate], names: list[str]) -> dict[str, Any]:
    for name in names:
        if name not in _SUMMARY:
            raise bad_parameter(f"Param summary must be of {{{', '.join(_SUMMARY)}}}.")
    return {name: _SUMMARY[name](services, templates) for name in names}
