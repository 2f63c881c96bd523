"""Templates: ours against the operator's list."""

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
"""How many are named in a line."""


async def look_at_templates(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: tuple[App, ...]
) -> list[Finding]:
    """Which templates stand otherwise at the operator, and which it does not have."""
    about = f"{account.id}: templates of {owner.id}"
    try:
        listed = await ask(context.operators, account, ListTemplates(owner.id, TemplateDetail.STATUS))
    except NotTold as error:
        return refused(about, account.id, error)
    read = context.database.read
    waiting = await read(templates_on_their_way, owner.id)
    ours = [
        one for one in await read(find_templates, owner.partner_id, owner.id, TemplateWish()) if one.id not in waiting
    ]
    by_id = {one.id: one for one in listed}
    by_name = {(one.name, one.language.replace("-", "_")): one for one in listed}
    missing: list[str] = []
    differing: list[str] = []
    for template in ours:
        there = by_id.get(template.operator_template_id or "") or by_name.get(names_of(template))
        if there is None:
            missing.append(_named(template))
        elif not _is_alike(template, there):
            differing.append(f"{_named(template)} is {template.status} here and {there.status} there")
    app_id = apps[0].id if apps else "APP_ID"
    align = f"waypost app operator {app_id} {account.id}"
    findings: list[Finding] = []
    if differing:
        text = f"{len(differing)} stand otherwise: {_few(differing)}"
        findings.append(warning(about, text, f"to take over the operator's word: {align}"))
    if missing:
        text = f"the operator does not have {len(missing)}: {_few(missing)}"
        findings.append(warning(about, text, f"to hand them in: {align} --submit-templates"))
    return findings or [ok(about, f"{len(ours)}, each as the operator has it")]


def _is_alike(template: Template, there: OperatorTemplate) -> bool:
    theirs = OPERATOR_STATUSES.get(there.status)
    return theirs is None or theirs is template.status or template.status in KEPT


def _named(template: Template) -> str:
    name, language = names_of(template)
    return f"{name} ({language})"


def _few(texts: list[str]) -> str:
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")
