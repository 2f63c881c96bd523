"""Edits and deletes templates, when a job sends the change to the operator; and checks a draft before its submission.

A deletion changes the record at once. An edit is beside it until the operator accepts it (decision 0021).
"""

from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final, Literal, Self

from msgspec import Struct
from sqlalchemy import Connection

from waypost.api.authorisation import Credential, tokens_of
from waypost.api.operation import APP, NO_ACCOUNT, AppCall, Operations
from waypost.api.requests import Request
from waypost.api.route import BodyFormat
from waypost.api.services import Services
from waypost.api.templates.create import TEMPLATE_CHANGE, TEMPLATE_CHECK
from waypost.api.templates.lists import KEY_TEMPLATE, ONE_TEMPLATE, template_of
from waypost.api.templates.samples import add_sample_handles, check_samples
from waypost.base.encryption import hash_secret
from waypost.base.ids import Ids, is_uuid
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.event import ReviewEvent
from waypost.domain.lifecycle import CATEGORY_FIXED, EDITABLE, NOT_DELETABLE
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rules import check_draft
from waypost.domain.templates.template import Template, TemplateEdit, TemplateStatus
from waypost.domain.templates.violations import RejectedBy, Violation, find_violations
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_status_change
from waypost.store.accounts.partners import app_by_id
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.queue.jobs import enqueue_jobs
from waypost.store.templates.templates import edit_template, template_by_id, template_job, templates_by_name
from waypost.wire.responses import Success, success
from waypost.wire.templates.drafts import apply_edit, read_draft

operation = Operations("facts 3.6", operator_errors=())
_EDIT_ERRORS: Final = (
    ErrorCode.FIELD_MISSING,
    ErrorCode.FIELD_BROKEN,
    ErrorCode.INVALID_CATEGORY,
    ErrorCode.TEMPLATE_NOT_FOUND,
    ErrorCode.TEMPLATE_NOT_EDITABLE,
)
_DELETE_ERRORS: Final = (
    ErrorCode.SANDBOX_DELETION,
    ErrorCode.APP_NOT_APPROVED,
    ErrorCode.TEMPLATE_NAME_UNKNOWN,
    ErrorCode.TEMPLATE_NOT_DELETABLE,
)
_DELETE_ONE_ERRORS: Final = (*_DELETE_ERRORS, ErrorCode.INVALID_APP_ID, ErrorCode.NOT_APP_OWNER)


class TemplateDeletionCall(AppCall):
    """A call that deletes templates of a live app that has a business account."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        try:
            call = await super().authorise(services, request)
        except ApiError as error:
            if error.code is ErrorCode.NOT_FOR_THIS_APP:
                await _raise_if_other_app(services, request)
            raise
        if not call.app.live:
            raise ApiError(
                ErrorCode.SANDBOX_DELETION,
                (
                    "The app must be live; this one is a sandbox app, which the administrator makes live with `waypost "
                    "app connect`."
                ),
            )
        if not call.app.business_account_id:
            raise ApiError(ErrorCode.APP_NOT_APPROVED, NO_ACCOUNT)
        return call


_change: Final = partial(
    operation,
    "PUT",
    returns=Success,
    rate="templates",
    body=TEMPLATE_CHANGE,
    body_format=BodyFormat.FORM,
    errors=_EDIT_ERRORS,
)


@_change(path=ONE_TEMPLATE)
@_change(path=KEY_TEMPLATE, source="facts 3.6; the self-serve route is ours", credential=Credential.API_KEY)
async def change_template(call: AppCall) -> None:
    """Apply the form to the draft, check the whole draft, and submit it for another review.

    Errors in this order: 401 wrong token, 429 eleventh in a minute, 400 unknown id, 400 a status in
    which it cannot be edited, 400 unreadable form, 400 the category of an approved one, 400 first
    violated rule, 400 a sample that is no upload, of another type, or a URL that yields none.

    Source: facts 3.6; operator's facts 2.6; decision 0021.
    """
    services, request, app = call
    before = await template_of(services, app, request.path["template_id"])
    check_editable(before)
    category = before.category.value
    draft = apply_edit(replace(before.draft, category=category), request.form())
    if before.status in CATEGORY_FIXED and draft.category != category:
        raise ApiError(
            ErrorCode.FIELD_BROKEN, f"category must stay {category}: that of an approved template cannot be edited."
        )
    check_draft(draft, strict=services.strict, hosting=app.hosting)
    draft = await add_sample_handles(services, app, draft, before.draft)
    now_ms = services.clock.now_ms()
    after = replace(before, edit=TemplateEdit(draft, now_ms), modified_on_ms=now_ms)
    if not before.operator_template_id:  # the operator has no version that would have to stay
        after = replace(after.edited_version, edit=None, status=TemplateStatus.PENDING, reason=None)
    if not await services.database.write(edit_template, before, after):
        check_editable(await template_of(services, app, before.id))  # it has changed meanwhile
        raise ApiError(ErrorCode.TEMPLATE_NOT_EDITABLE, "The template has just changed; try again.")
    services.directory.invalidate()  # so that every process sends it as edited


def check_editable(template: Template) -> None:
    """Check that the operator accepts edits of a template.

    Raises:
        ApiError: not in its current status, or not before it has decided on an edit.

    Source: operator's facts 2.6.
    """
    if template.status not in EDITABLE:
        accepted = ", ".join(sorted(EDITABLE))
        raise ApiError(
            ErrorCode.TEMPLATE_NOT_EDITABLE,
            f"A template that is {template.status} cannot be edited; one that is {accepted} can.",
        )
    if template.pending_edit is not None:
        raise ApiError(
            ErrorCode.TEMPLATE_NOT_EDITABLE, "The operator has not received the template's edit yet; try again later."
        )


@operation("DELETE", f"{APP}/template/{{element_name}}", Success, at_operator=False, errors=_DELETE_ONE_ERRORS)
async def delete_templates_by_name(call: TemplateDeletionCall) -> None:
    """Delete the templates of a name in all its languages.

    Errors in this order: 401 wrong token, 403 the token of another app of the partner, 429, 400 a
    sandbox app, 400 an app without a business account, 400 unknown name, 400 the operator does not delete it.
    """
    await _delete_by_name(call, call.request.path["element_name"])


@operation(
    "DELETE",
    KEY_TEMPLATE,
    Success,
    source="facts 3.5, self-serve twin",
    credential=Credential.API_KEY,
    at_operator=False,
    errors=_DELETE_ERRORS,
)
async def delete_templates_by_name_self_serve(call: TemplateDeletionCall) -> None:
    """Delete the templates of a name, by the self-serve route; its path has the form of one template's."""
    await _delete_by_name(call, call.request.path["template_id"])


@operation(
    "DELETE",
    f"{APP}/template/{{element_name}}/{{template_id}}",
    Success,
    at_operator=False,
    errors=(*_DELETE_ONE_ERRORS, ErrorCode.TEMPLATE_MISMATCH),
)
async def delete_template(call: TemplateDeletionCall) -> None:
    """Delete one template; name and id must match.

    Errors as of the deletion by name, and after an unknown name: 403 a template of another of the
    partner's business accounts, 403 an id that has another name.
    """
    services, request, app = call
    template_id, name = request.path["template_id"], request.path["element_name"]
    template = await services.database.read(template_by_id, template_id)
    is_there = template is not None and template.status is not TemplateStatus.DELETED
    if template is None or not is_there or template.partner_id != app.partner_id:
        return await _delete(services, [])
    if template.business_account_id != app.business_account_id:
        raise ApiError(ErrorCode.NOT_APP_OWNER, "The template belongs to another of your business accounts.")
    if template.draft.element_name != name:
        raise ApiError(ErrorCode.TEMPLATE_MISMATCH, f"The template {template_id} has another name than {name}.")
    return await _delete(services, [template])


async def _raise_if_other_app(services: Services, request: Request) -> None:
    """Raise a specific error for a valid token of another app of the same partner; return for any other caller."""
    app_id = request.path["app_id"]
    if not is_uuid(app_id):
        raise ApiError(
            ErrorCode.INVALID_APP_ID, "The path must have the id of an app: a UUID, as GET /partner/app/list shows it."
        )
    app = await services.directory.app(app_id)
    for token in tokens_of(request):
        partner_id = await services.directory.partner_of_app_token(hash_secret(token))
        if app is not None and partner_id == app.partner_id:
            raise ApiError(
                ErrorCode.NOT_APP_OWNER,
                "The token is that of another of your apps; send the token of the app in the path.",
            )


async def _delete_by_name(call: TemplateDeletionCall, name: str) -> None:
    account = (call.app.partner_id, call.app.business_account_id)
    await _delete(call.services, await call.services.database.read(templates_by_name, *account, name))


async def _delete(services: Services, templates: list[Template]) -> None:
    if not templates:
        raise ApiError(ErrorCode.TEMPLATE_NAME_UNKNOWN, "The path must name a template of the app's business account.")
    if any(template.status in NOT_DELETABLE for template in templates):
        raise ApiError(ErrorCode.TEMPLATE_NOT_DELETABLE, "The operator does not delete a disabled template.")
    ids = [template.id for template in templates]
    now_ms = services.clock.now_ms()
    await services.database.write(_delete_all, services.ids, ids, now_ms)
    services.directory.invalidate()  # so that no process sends it from now on


def _delete_all(connection: Connection, ids: Ids, template_ids: list[str], now_ms: int) -> None:
    """Mark templates deleted, emit callbacks, and enqueue the deletion at the operator, in one transaction."""
    recorder = StateChangeRecorder(connection, ids, now_ms)
    for template_id in template_ids:
        template = template_by_id(connection, template_id)
        if template is None:
            continue
        app = app_by_id(connection, template.app_id)  # its subscriptions get the callbacks
        event = ReviewEvent(
            business_account_id=template.business_account_id,
            operator_template_id="",
            element_name=template.draft.element_name or "",
            language_code=template.draft.language_code,
            status=TemplateStatus.DELETED.value,
        )
        deleted = TemplateStatus.DELETED
        if apply_status_change(connection, recorder, app, template, deleted, event, now_ms):
            job = template_job(template, SubjectKind.TEMPLATE_DELETION, due_ms=now_ms)
            enqueue_jobs(connection, [job])
    recorder.write()


check_operation = Operations("ours; decision 0057", at_operator=False)


class Finding(Struct):
    """A rule that a draft breaks."""

    field: str
    rule: str
    says: str  # the error text
    source: str
    remedy: str  # the fix hint
    refused_by: Literal["api", "review"]


@check_operation(
    "POST",
    f"{APP}/templates/check",
    success(findings=list[Finding]),
    body=TEMPLATE_CHECK,
    body_format=BodyFormat.FORM,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.TEMPLATE_NOT_FOUND),
)
async def check_template(call: AppCall) -> dict[str, Any]:
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
    return {"status": "success", "findings": [asdict(violation) for violation in violations]}


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
    same_name: list[Template] = []
    if edited is None and app.business_account_id and draft.element_name:
        names = (app.partner_id, app.business_account_id, draft.element_name)
        same_name = await services.database.read(templates_by_name, *names)
    if any(template.draft.language_code == draft.language_code for template in same_name):
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


def _violation(field: str, rule: str, text: str, source: str, fix_hint: str) -> Violation:
    return Violation(field, rule, text, source, fix_hint, RejectedBy.API)
