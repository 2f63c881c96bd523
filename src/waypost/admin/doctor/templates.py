"""Checks that our templates match the operator's list."""

from typing import Final

from waypost.admin.doctor.check_result import CheckResult, failed_call_results, ok, warning
from waypost.admin.operator_requests import OperatorCallFailed, call_operator
from waypost.admin.provisioning import AdminContext
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import ListTemplates, OperatorTemplate, TemplateDetail
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.templates.template import Template, TemplateFilter, TemplateStatus
from waypost.notifications.template_sync import LISTED_AS_APPROVED, name_and_language
from waypost.store.templates.templates import find_templates, queued_template_ids

MAX_NAMED_TEMPLATES: Final = 5
"""The number of templates named in one result."""

_REJECTED_STATUSES: Final = frozenset({TemplateStatus.REJECTED, TemplateStatus.FAILED})


async def check_templates(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: tuple[App, ...]
) -> list[CheckResult]:
    """Report templates whose status differs at the operator, and those it does not have."""
    subject = f"{account.id}: templates of {owner.id}"
    try:
        listed = await call_operator(context.operators, account, ListTemplates(owner.id, TemplateDetail.STATUS))
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    read = context.database.read
    pending_ids = await read(queued_template_ids, owner.id)
    stored = await read(find_templates, owner.partner_id, owner.id, TemplateFilter())
    templates = [template for template in stored if template.id not in pending_ids]
    by_id = {remote.id: remote for remote in listed}
    by_name = {(remote.name, remote.language.replace("-", "_")): remote for remote in listed}
    missing: list[str] = []
    differing: list[str] = []
    for template in templates:
        remote = by_id.get(template.operator_template_id or "") or by_name.get(name_and_language(template))
        if remote is None and _is_rejected_at_creation(template):
            continue
        if remote is None:
            missing.append(_template_label(template))
        elif not _has_same_status(template, remote):
            differing.append(f"{_template_label(template)} is {template.status} here and {remote.status} there")
    app_id = apps[0].id if apps else "APP_ID"
    align = f"waypost app operator {app_id} {account.id}"
    results: list[CheckResult] = []
    if differing:
        text = f"{len(differing)} with another status: {_shorten_list(differing)}"
        results.append(warning(subject, text, f"to apply the operator's status: {align}"))
    if missing:
        text = f"the operator does not have {len(missing)}: {_shorten_list(missing)}"
        results.append(warning(subject, text, f"to submit them: {align} --submit-templates"))
    return results or [ok(subject, f"{len(templates)}, all the same as at the operator")]


def _is_rejected_at_creation(template: Template) -> bool:
    """True if the operator never took the template, so that it is no fault that it is not listed."""
    return template.operator_template_id is None and template.status in _REJECTED_STATUSES


def _has_same_status(template: Template, remote: OperatorTemplate) -> bool:
    status = OPERATOR_STATUSES.get(remote.status)
    return status is None or status is template.status or template.status in LISTED_AS_APPROVED


def _template_label(template: Template) -> str:
    name, language = name_and_language(template)
    return f"{name} ({language})"


def _shorten_list(texts: list[str]) -> str:
    more = len(texts) - MAX_NAMED_TEMPLATES
    return ", ".join(texts[:MAX_NAMED_TEMPLATES]) + (f" and {more} more" if more > 0 else "")
