"""Checks that our templates match the operator's list."""

from typing import Final

from waypost.admin.doctor.check_result import Finding, ok, warning
from waypost.admin.doctor.error_explanations import refused
from waypost.admin.operator_requests import NotTold, ask
from waypost.admin.provisioning import AdminContext
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import ListTemplates, OperatorTemplate, TemplateDetail
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.templates.filter import TemplateWish
from waypost.domain.templates.template import Template
from waypost.notifications.template_sync import KEPT, names_of
from waypost.store.templates.templates import find_templates, templates_on_their_way

SHOWN: Final = 5
"""The number of templates named in one result."""


async def look_at_templates(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: tuple[App, ...]
) -> list[Finding]:
    """Report templates whose status differs at the operator, and those it does not have."""
    about = f"{account.id}: templates of {owner.id}"
    try:
        listed = await ask(context.operators, account, ListTemplates(owner.id, TemplateDetail.STATUS))
    except NotTold as error:
        return refused(about, account.id, error)
    read = context.database.read
    pending_ids = await read(templates_on_their_way, owner.id)
    stored = await read(find_templates, owner.partner_id, owner.id, TemplateWish())
    templates = [template for template in stored if template.id not in pending_ids]
    by_id = {remote.id: remote for remote in listed}
    by_name = {(remote.name, remote.language.replace("-", "_")): remote for remote in listed}
    missing: list[str] = []
    differing: list[str] = []
    for template in templates:
        remote = by_id.get(template.operator_template_id or "") or by_name.get(names_of(template))
        if remote is None:
            missing.append(_named(template))
        elif not _is_alike(template, remote):
            differing.append(f"{_named(template)} is {template.status} here and {remote.status} there")
    app_id = apps[0].id if apps else "APP_ID"
    align = f"waypost app operator {app_id} {account.id}"
    results: list[Finding] = []
    if differing:
        text = f"{len(differing)} with another status: {_few(differing)}"
        results.append(warning(about, text, f"to apply the operator's status: {align}"))
    if missing:
        text = f"the operator does not have {len(missing)}: {_few(missing)}"
        results.append(warning(about, text, f"to submit them: {align} --submit-templates"))
    return results or [ok(about, f"{len(templates)}, all the same as at the operator")]


def _is_alike(template: Template, there: OperatorTemplate) -> bool:
    status = OPERATOR_STATUSES.get(there.status)
    return status is None or status is template.status or template.status in KEPT


def _named(template: Template) -> str:
    name, language = names_of(template)
    return f"{name} ({language})"


def _few(texts: list[str]) -> str:
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")
