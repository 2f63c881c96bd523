"""Templates: a draft is held against every rule before it is submitted. Nothing is kept."""

from dataclasses import asdict, replace

from waypost.api.auth.authorisation import admitted_app
from waypost.api.http.requests import Answer, Request
from waypost.api.services import Services
from waypost.api.templates.edit import check_editable
from waypost.api.templates.lists import template_of
from waypost.api.templates.samples import check_samples
from waypost.domain.app import App
from waypost.domain.errors import ApiError
from waypost.domain.lifecycle import FILED
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.template import Template
from waypost.domain.templates.violations import Finding, RefusedBy, findings_of
from waypost.store.templates.templates import templates_named
from waypost.wire.templates.changes import edited_draft
from waypost.wire.templates.drafts import read_draft


async def check_template(services: Services, request: Request) -> Answer:
    """Say everything that is wrong with a draft: what creation would refuse, and what the review would.

    Beside the rules of the table: the name is free, samples are of their headers' kinds, what is edited
    can be, and an edit leaves the category of an approved template alone. Addresses of samples are not
    fetched.

    Refuses in this order: 401 wrong token, 429, 400 unknown `templateId`, 400 a field that cannot be
    read at all.

    Source: ours; decision 0057.
    """
    app = await admitted_app(services, request)
    form = request.form()
    edited: Template | None = None
    if template_id := form.text("templateId"):
        edited = await template_of(services, app, template_id)
        draft = edited_draft(replace(edited.draft, category=edited.category.value), form)
    else:
        draft = read_draft(form)
    found = findings_of(draft, strict=services.strict, hosting=app.hosting)
    found += await _of_the_store(services, app, draft, edited)
    return Answer({"status": "success", "findings": [asdict(one) for one in found]})


async def _of_the_store(services: Services, app: App, draft: Draft, edited: Template | None) -> list[Finding]:
    """What only the store can tell."""
    found: list[Finding] = []
    if edited is not None:
        try:
            check_editable(edited)
        except ApiError as refused:
            says = refused.explanation
            remedy = "Wait until it has been reviewed, or make another template."
            source = "operator's facts 2.6"
            found.append(_finding("templateId", "status-editable", says, source, remedy))
    if edited is not None and edited.status in FILED and draft.category != edited.category:
        says = f"category must stay {edited.category}: that of an approved template cannot be edited."
        remedy = "Choose the category that it has, or make another template."
        found.append(_finding("category", "category-stays", says, "facts 3.6", remedy))
    if edited is None and await _is_taken(services, app, draft):
        name = f"elementName {draft.element_name}"
        says = f"{name} is taken in {draft.language_code}."
        remedy = "Choose another name, or delete the template that has it."
        found.append(_finding("elementName", "name-free", says, "facts 3.3", remedy))
    try:
        await check_samples(services, app, draft)
    except ApiError as refused:
        remedy = "Upload a sample of the header's kind."
        found.append(_finding(refused.field, "sample-kind", refused.explanation, "facts 8", remedy))
    return found


async def _is_taken(services: Services, app: App, draft: Draft) -> bool:
    if not app.business_account_id or not draft.element_name:
        return False
    namesakes = await services.database.read(
        templates_named, app.partner_id, app.business_account_id, draft.element_name
    )
    return any(one.draft.language_code == draft.language_code for one in namesakes)


def _finding(field: str, rule: str, says: str, source: str, remedy: str) -> Finding:
    return Finding(field, rule, says, source, remedy, RefusedBy.API)
