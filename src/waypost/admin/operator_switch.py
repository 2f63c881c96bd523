"""The switch of an app from one operator account to another, for example from the simulator's to a real one.

An operator account belongs to a business account, so everything of the business account switches
together: its apps and its templates (decision 0033).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from sqlalchemy import Connection

from waypost.admin.operation import AdminOperations
from waypost.admin.operator_accounts import OperatorCallFailed, call_operator, callback_url
from waypost.admin.provisioning import AdminContext
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import (
    GetBusinessAccount,
    ListNumbers,
    ListTemplates,
    OperatorNumber,
    OperatorTemplate,
    TemplateDetail,
)
from waypost.domain.errors import ApiError, ErrorCode, resource_not_found
from waypost.domain.phone_number import read_phone_number
from waypost.domain.templates.template import Template, TemplateFilter, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_status_change, make_review_event, name_and_language
from waypost.notifications.template_sync import align_templates, present_ids
from waypost.store.accounts.partners import app_by_id
from waypost.store.apps.operator_history import (
    AppOperatorIds,
    OperatorAccountSwitch,
    SwitchConflict,
    business_account_with_apps,
    current_operator_account_id,
    former_operator_ids,
    switch_operator,
)
from waypost.store.directory import DIRECTORY_CACHE_MS
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.queue.jobs import enqueue_jobs
from waypost.store.templates.templates import change_template, find_templates, queued_template_ids, template_job

_log = log("admin")
_NEW_SUBMISSION: Final = frozenset(TemplateStatus) - {
    TemplateStatus.DELETED,
    TemplateStatus.DISABLED,
    TemplateStatus.ARCHIVED,
}


operation = AdminOperations()


class OperatorSwitch(msgspec.Struct, forbid_unknown_fields=True):
    """A requested switch of an app to an operator account; an absent id is the one used before, or the operator's."""

    operator_account_id: Annotated[str, Meta(description="Id of its new operator account.")]
    business_account_id: Annotated[
        str | None, Meta(description="Its id at that operator. [default: its earlier id there, or the same]")
    ] = None
    phone_number_id: Annotated[
        str | None, Meta(description="The number's id there. [default: its earlier id there, or found by its digits]")
    ] = None
    submit_templates: Annotated[bool, Meta(description="Submit templates that are missing there.")] = False
    dry_run: Annotated[bool, Meta(description="True if only the effect is reported.")] = False


class SwitchedApp(msgspec.Struct):
    """An app of a business account."""

    id: str
    name: str
    phone_number: str
    phone_number_id: str


class MissingTemplate(msgspec.Struct):
    """A template that the operator does not have."""

    id: str
    element_name: str | None
    language_code: str
    status: str


class Switched(msgspec.Struct):
    """The result of a switch, or of a dry run."""

    operator_account_id: str
    left: str  # id of the app's previous operator account; the same as the new one's if nothing moved
    business_account_id: str
    namespace: str
    callback_url: str
    apps: list[SwitchedApp]  # all apps of the business account
    templates_submitted: int  # their number
    templates_missing: list[MissingTemplate]  # those that the operator does not have and that were not submitted


@operation("PUT", "/admin/apps/{app_id}/operator")
async def switch_app(context: AdminContext, request: OperatorSwitch, app_id: str) -> Switched:
    """Switch an app, with its whole business account, to another operator account, or only report the effect.

    Raises:
        ApiError: the app, its business account or the operator account does not exist; the operator does
            not have the business account or a number; it does not respond; an id is in use.
    """
    # The new operator's numbers, namespace and templates are requested first. Only with all three is anything changed,
    # in one transaction; a dry run ends before it. So it is safe to repeat. Messages in flight at that moment complete
    # under the old account, whose late events still count.
    app = await context.database.read(app_by_id, app_id)
    if app is None:
        raise resource_not_found("app", "app_id", app_id)
    stored = await context.database.read(business_account_with_apps, app.business_account_id)
    if stored is None:
        raise ApiError(ErrorCode.FIELD_BROKEN, "The app has no business account yet; connect it to one first.")
    before, apps = stored
    account = await context.directory.operator_account(request.operator_account_id)
    if account is None:
        raise resource_not_found("operator account", "operator_account_id", request.operator_account_id)
    is_move = before.operator_account_id != account.id
    previous = await context.database.read(former_operator_ids, [each_app.id for each_app in apps], account.id)
    target_id = request.business_account_id or (
        previous[app.id].business_account_id if is_move and app.id in previous else before.id
    )
    if not is_move and (target_id != before.id or request.phone_number_id is not None):
        raise ApiError(
            ErrorCode.ALREADY_EXISTS,
            f"The app already uses the operator account {account.id}; `waypost app connect` changes its ids.",
        )
    try:
        namespace, numbers, templates = await _fetch_operator_state(context, account, target_id)
    except OperatorCallFailed as error:
        raise error.api_error() from error
    names = {
        each_app.id: _names_of(
            each_app,
            target_id,
            numbers,
            requested=request.phone_number_id if each_app.id == app.id else None,
            before=previous.get(each_app.id),
        )
        for each_app in apps
    }
    now_ms = context.clock.now_ms()
    after = replace(before, id=target_id, namespace=namespace or before.namespace, operator_account_id=account.id)
    if request.dry_run:
        return await _preview(context, before, after, apps, names, templates, request)
    switch = OperatorAccountSwitch(before, after, names, now_ms=now_ms, left_ms=now_ms + DIRECTORY_CACHE_MS)
    try:
        current, apps, missing, submitted = await context.database.write(
            _switch, context.ids, switch if is_move else None, after, templates, request, now_ms
        )
    except SwitchConflict as error:
        raise ApiError(ErrorCode.ALREADY_EXISTS, str(error)) from error
    context.directory.invalidate()
    _log.info("an app was switched", app=app_id, left=before.operator_account_id, to=account.id)
    return _report(context, current, before.operator_account_id, apps, missing, submitted)


def _report(
    context: AdminContext,
    account: BusinessAccount,
    left: str,
    apps: Sequence[App],
    missing: Sequence[Template],
    submitted: Sequence[Template],
) -> Switched:
    unsubmitted = [each for each in missing if each not in submitted]
    return Switched(
        operator_account_id=account.operator_account_id,
        left=left,
        business_account_id=account.id,
        namespace=account.namespace,
        callback_url=callback_url(context, account.operator_account_id),
        apps=[SwitchedApp(app.id, app.name, app.phone_number, app.phone_number_id) for app in apps],
        templates_submitted=len(submitted),
        templates_missing=[
            MissingTemplate(each.id, each.draft.element_name, each.draft.language_code, each.status.value)
            for each in unsubmitted
        ],
    )


async def _preview(
    context: AdminContext,
    before: BusinessAccount,
    after: BusinessAccount,
    apps: Sequence[App],
    names: Mapping[str, AppOperatorIds],
    listed: Sequence[OperatorTemplate],
    request: OperatorSwitch,
) -> Switched:
    """Return what a switch would result in, without the numbers of a change meanwhile."""
    read = context.database.read
    pending_ids = await read(queued_template_ids, before.id)
    templates = await read(find_templates, before.partner_id, before.id, TemplateFilter())
    known = {(each.name, each.language.replace("-", "_")) for each in listed if not each.is_being_deleted}
    missing = [each for each in templates if name_and_language(each) not in known and each.id not in pending_ids]
    submitted = [each for each in missing if request.submit_templates and each.status in _NEW_SUBMISSION]
    moved = [
        replace(
            app,
            business_account_id=after.id,
            phone_number_id=names[app.id].phone_number_id,
            phone_number=names[app.id].phone_number,
        )
        for app in apps
    ]
    return _report(context, after, before.operator_account_id, moved, missing, submitted)


async def _fetch_operator_state(
    context: AdminContext, account: OperatorAccount, business_account_id: str
) -> tuple[str, Sequence[OperatorNumber], Sequence[OperatorTemplate]]:
    """Return the namespace, numbers and templates that the operator has in a business account."""
    operators = context.operators
    business = await call_operator(operators, account, GetBusinessAccount(business_account_id))
    numbers = await call_operator(operators, account, ListNumbers(business_account_id))
    templates = await call_operator(operators, account, ListTemplates(business_account_id, TemplateDetail.REVIEW))
    return business.namespace, numbers, templates


def _names_of(
    app: App,
    business_account_id: str,
    numbers: Sequence[OperatorNumber],
    *,
    requested: str | None,
    before: AppOperatorIds | None,
) -> AppOperatorIds:
    """Return the operator's ids of an app's number: as requested, as before, by its digits, or the same id."""
    if not app.phone_number_id and requested is None:
        return AppOperatorIds(business_account_id, "", app.phone_number)
    digits_by_id = {number.id: read_phone_number(number.display_number) or "" for number in numbers}
    previous = (
        before.phone_number_id if before is not None and before.business_account_id == business_account_id else None
    )
    by_digits = next((number_id for number_id, digits in digits_by_id.items() if digits == app.phone_number), None)
    candidates = [requested] if requested else [previous, by_digits, app.phone_number_id]
    chosen = next((number_id for number_id in candidates if number_id and number_id in digits_by_id), None)
    if chosen is None:
        accepted = ", ".join(f"{number_id} (+{digits})" for number_id, digits in digits_by_id.items()) or "none yet"
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            f"phone_number_id must be the number of the app {app.name} at the operator; its numbers "
            f"under {business_account_id} are: {accepted}.",
        )
    return AppOperatorIds(business_account_id, chosen, digits_by_id[chosen] or app.phone_number)


def _switch(
    connection: Connection,
    ids: Ids,
    switch: OperatorAccountSwitch | None,
    account: BusinessAccount,
    listed: Sequence[OperatorTemplate],
    request: OperatorSwitch,
    now_ms: int,
) -> tuple[BusinessAccount, list[App], list[Template], list[Template]]:
    """Switch, align the templates, and submit the missing ones if requested: all or nothing.

    Returns:
        The business account and its apps as they are now, and the missing and the submitted templates.
    """
    if switch is not None:
        switch_operator(connection, switch)
    elif current_operator_account_id(connection, account.id) != account.operator_account_id:
        raise SwitchConflict("The business account has just changed; try again.")
    recorder = StateChangeRecorder(connection, ids, now_ms)
    pending_ids = queued_template_ids(connection, account.id)
    align_templates(connection, recorder, account.id, listed, pending_ids=pending_ids, now_ms=now_ms)
    operator_ids = present_ids(listed)
    templates = find_templates(connection, account.partner_id, account.id, TemplateFilter())
    missing = [
        template
        for template in templates
        if template.operator_template_id not in operator_ids and template.id not in pending_ids
    ]
    for template in missing:  # the record keeps its status; the old operator's id is no longer valid
        change_template(connection, template.id, operator_template_id=None)
    submitted = [template for template in missing if request.submit_templates and template.status in _NEW_SUBMISSION]
    for template in submitted:
        _submit(connection, recorder, template, now_ms)
    recorder.write()
    stored = business_account_with_apps(connection, account.id)
    if stored is None:
        raise LookupError(f"business account {account.id} existed a moment ago")
    return *stored, missing, submitted


def _submit(connection: Connection, recorder: StateChangeRecorder, template: Template, now_ms: int) -> None:
    """Submit a template that exists here and not at the operator."""
    app = app_by_id(connection, template.app_id)
    unsubmitted = replace(template, operator_template_id=None)
    pending = TemplateStatus.PENDING
    event = make_review_event(unsubmitted, pending.value, None)
    apply_status_change(connection, recorder, app, unsubmitted, pending, event, now_ms)
    enqueue_jobs(connection, [template_job(unsubmitted, SubjectKind.TEMPLATE_SUBMISSION, due_ms=now_ms)])
