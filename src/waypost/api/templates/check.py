"""Checks a template draft against every rule before its submission. Nothing is stored."""

from dataclasses import asdict, replace
from typing import Literal

from msgspec import Struct

from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.api.route import BodyFormat
from waypost.api.services import Services
from waypost.api.templates.create import TEMPLATE_CHECK
from waypost.api.templates.edit import check_editable
from waypost.api.templates.lists import template_of
from waypost.api.templates.samples import check_samples
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.lifecycle import CATEGORY_FIXED
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Template
from waypost.domain.templates.violations import RejectedBy, Violation, find_violations
from waypost.store.templates.templates import templates_by_name
from waypost.wire.responses import success
from waypost.wire.templates.drafts import apply_edit, read_draft

operation = Operations("ours; decision 0057", at_operator=False)


class Finding(Struct):
    """A rule that a draft breaks.

    Attributes:
        says: the error text.
        remedy: the fix hint.
    """

    field: str
    rule: str
    says: str
    source: str
    remedy: str
    refused_by: Literal["api", "review"]


@operation(
    "POST",
    f"{APP}/templates/check",
    success(findings=list[Finding]),
    body=TEMPLATE_CHECK,
    body_format=BodyFormat.FORM,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.TEMPLATE_NOT_FOUND),
)
async def check_template(call: AppCall) -> ApiResponse:
    """Return every violation in a draft: those that creation would reject, and those that the review would.

    Checks in addition to the rules of the table: the name is free, samples exist and have their headers' types, an
    edited template is editable, and an edit does not change the category of an approved template. URLs of
    samples are not fetched.

    Errors in this order: 401 wrong token, 429, 400 unknown `templateId`, 400 an unreadable field.
    """
    services, request, app = call
    form = request.form()
    edited: Template | None = None
    if template_id := form.text("templateId"):
        edited = await template_of(services, app, template_id)
        draft = apply_edit(replace(edited.draft, category=edited.category.value), form)
    else:
        draft = read_draft(form)
    violations = find_violations(draft, strict=services.strict, hosting=app.hosting)
    violations += await _store_violations(services, app, draft, edited)
    return ApiResponse({"status": "success", "findings": [asdict(violation) for violation in violations]})


async def _store_violations(
    services: Services, app: App, draft: TemplateDraft, edited: Template | None
) -> list[Violation]:
    """Return the violations that depend on the store."""
    violations: list[Violation] = []
    if edited is not None:
        try:
            check_editable(edited)
        except ApiError as error:
            text = error.explanation
            fix_hint = "Wait until it has been reviewed, or create another template."
            source = "operator's facts 2.6"
            violations.append(_violation("templateId", "status-editable", text, source, fix_hint))
    if edited is not None and edited.status in CATEGORY_FIXED and draft.category != edited.category:
        text = f"category must stay {edited.category}: that of an approved template cannot be edited."
        fix_hint = "Keep its category, or create another template."
        violations.append(_violation("category", "category-stays", text, "facts 3.6", fix_hint))
    if edited is None and await _is_name_used(services, app, draft):
        name = f"elementName {draft.element_name}"
        text = f"{name} is taken in {draft.language_code}."
        fix_hint = "Choose another name, or delete the template with this name."
        violations.append(_violation("elementName", "name-free", text, "facts 3.3", fix_hint))
    try:
        await check_samples(services, app, draft, None if edited is None else edited.draft)
    except ApiError as error:
        fix_hint = "Upload a sample of the header's type, and name it as the upload's response does."
        violations.append(_violation(error.field, "sample-kind", error.explanation, "facts 8", fix_hint))
    return violations


async def _is_name_used(services: Services, app: App, draft: TemplateDraft) -> bool:
    if not app.business_account_id or not draft.element_name:
        return False
    same_name = await services.database.read(
        templates_by_name, app.partner_id, app.business_account_id, draft.element_name
    )
    return any(template.draft.language_code == draft.language_code for template in same_name)


def _violation(field: str, rule: str, text: str, source: str, fix_hint: str) -> Violation:
    return Violation(field, rule, text, source, fix_hint, RejectedBy.API)
