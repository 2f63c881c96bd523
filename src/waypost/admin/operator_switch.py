"""An app is switched from one operator account to another: the simulator's and the real one's, say.

The operator account belongs to the business account, so all that the business account has goes
together: its apps and its templates (decision 0033).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from waypost.admin.operator_requests import NotTold, ask
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
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.phone_number import read_phone_number
from waypost.domain.templates.filter import TemplateWish
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_status_change
from waypost.notifications.template_sync import align_templates, review_of
from waypost.store.accounts.partners import app_by_id
from waypost.store.apps.operator_history import (
    Names,
    Switch,
    Unswitchable,
    business_account_with_apps,
    carrier_of,
    names_at,
    switch_operator,
)
from waypost.store.directory import KEPT_MS
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.queue.jobs import enqueue_jobs
from waypost.store.templates.templates import change_template, find_templates, template_job, templates_on_their_way

_log = log("admin")
_NEW_SUBMISSION: Final = frozenset(TemplateStatus) - {
    TemplateStatus.DELETED,
    TemplateStatus.DISABLED,
    TemplateStatus.ARCHIVED,
}


@dataclass(frozen=True, slots=True)
class SwitchWish:
    """What an administrator asks for; an id that is not given is what it was there before, or found.

    Attributes:
        business_account_id: the one at the new operator account.
        phone_number_id: the app's there.
        submit_templates: hand in those that the new operator does not have.
    """

    operator_account_id: str
    business_account_id: str | None = None
    phone_number_id: str | None = None
    submit_templates: bool = False


@dataclass(frozen=True, slots=True)
class Switched:
    """Where things are now.

    Attributes:
        left: the operator account that carried the app before; the new one's id where nothing moved.
        apps: of the business account, all of them.
        missing: templates that the operator does not have, and was not handed.
        submitted: how many were handed in.
    """

    account: BusinessAccount
    left: str
    apps: list[App]
    missing: list[Template]
    submitted: int


async def switch_app(context: AdminContext, app_id: str, wish: SwitchWish) -> Switched:
    """Have another operator account carry an app; without a restart, and safe to repeat.

    The new operator is asked first: for its numbers, its namespace and its templates. Only when all
    three have come is anything changed, in one transaction. What is being sent at that moment ends
    under the old account, whose late news still counts.

    Raises:
        Refused: the app, its business account or the operator account is not there; the operator does
            not have the business account or a number; it does not answer; an id is taken.
    """
    app = await context.database.read(app_by_id, app_id)
    if app is None:
        raise ApiError(ErrorCode.NOT_FOUND, "There is no such app.")
    found = await context.database.read(business_account_with_apps, app.business_account_id)
    if found is None:
        raise ApiError(ErrorCode.FIELD_BROKEN, "The app has no business account yet; connect it to one first.")
    before, apps = found
    account = await context.directory.operator_account(wish.operator_account_id)
    if account is None:
        raise ApiError(ErrorCode.NOT_FOUND, "operator_account_id must name an operator account.")
    is_move = before.operator_account_id != account.id
    known = await context.database.read(names_at, [one.id for one in apps], account.id)
    there = wish.business_account_id or (
        known[app.id].business_account_id if is_move and app.id in known else before.id
    )
    if not is_move and (there != before.id or wish.phone_number_id is not None):
        raise ApiError(
            ErrorCode.ALREADY_EXISTS,
            f"The app is carried by {account.id} already; `waypost app connect` changes its ids.",
        )
    try:
        namespace, numbers, listed = await _ask_all(context, account, there)
    except NotTold as error:
        raise error.refusal() from error
    names = {
        one.id: _names_of(
            one, there, numbers, wished=wish.phone_number_id if one.id == app.id else None, known=known.get(one.id)
        )
        for one in apps
    }
    now_ms = context.clock.now_ms()
    after = replace(before, id=there, namespace=namespace or before.namespace, operator_account_id=account.id)
    switch = Switch(before, after, names, now_ms=now_ms, left_ms=now_ms + KEPT_MS)
    try:
        switched = await context.database.write(
            _switch, context.ids, switch if is_move else None, after, listed, wish, now_ms
        )
    except Unswitchable as error:
        raise ApiError(ErrorCode.ALREADY_EXISTS, str(error)) from error
    context.directory.forget()
    _log.info("an app was switched", app=app_id, left=before.operator_account_id, to=account.id)
    return replace(switched, left=before.operator_account_id)


async def _ask_all(
    context: AdminContext, account: OperatorAccount, business_account_id: str
) -> tuple[str, Sequence[OperatorNumber], Sequence[OperatorTemplate]]:
    """The namespace, the numbers and the templates that the operator has there."""
    operators = context.operators
    business = await ask(operators, account, GetBusinessAccount(business_account_id))
    numbers = await ask(operators, account, ListNumbers(business_account_id))
    listed = await ask(operators, account, ListTemplates(business_account_id, TemplateDetail.REVIEW))
    return business.namespace, numbers, listed


def _names_of(
    app: App, business_account_id: str, numbers: Sequence[OperatorNumber], *, wished: str | None, known: Names | None
) -> Names:
    """What the operator calls an app's number: as wished, as it was, by its digits, or by the same id.

    Raises:
        Refused: the operator has no such number under the business account.
    """
    if not app.phone_number_id and wished is None:
        return Names(business_account_id, "", app.phone_number)
    digits = {one.id: read_phone_number(one.shown) or "" for one in numbers}
    remembered = (
        known.phone_number_id if known is not None and known.business_account_id == business_account_id else None
    )
    by_digits = next((one for one, number in digits.items() if number == app.phone_number), None)
    candidates = [wished] if wished else [remembered, by_digits, app.phone_number_id]
    chosen = next((one for one in candidates if one and one in digits), None)
    if chosen is None:
        accepted = ", ".join(f"{one} (+{number})" for one, number in digits.items()) or "none yet"
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            f"phone_number_id must be the number of the app {app.name} at the operator; its numbers "
            f"under {business_account_id} are: {accepted}.",
        )
    return Names(business_account_id, chosen, digits[chosen] or app.phone_number)


def _switch(
    connection: Connection,
    ids: Ids,
    switch: Switch | None,
    account: BusinessAccount,
    listed: Sequence[OperatorTemplate],
    wish: SwitchWish,
    now_ms: int,
) -> Switched:
    """Switch, align the templates, and perhaps hand in what is missing: all or nothing."""
    if switch is not None:
        switch_operator(connection, switch)
    elif carrier_of(connection, account.id) != account.operator_account_id:
        raise Unswitchable("The business account has just changed; try again.")
    recorder = StateChangeRecorder(connection, ids, now_ms)
    waiting = templates_on_their_way(connection, account.id)
    there = align_templates(connection, recorder, account.id, listed, waiting=waiting, now_ms=now_ms)
    whole = find_templates(connection, account.partner_id, account.id, TemplateWish())
    missing = [one for one in whole if one.operator_template_id not in there and one.id not in waiting]
    for template in missing:  # the record keeps its status; the id says nothing any more
        change_template(connection, template.id, operator_template_id=None)
    submitted = [one for one in missing if wish.submit_templates and one.status in _NEW_SUBMISSION]
    for template in submitted:
        _submit(connection, recorder, template, now_ms)
    recorder.write()
    found = business_account_with_apps(connection, account.id)
    if found is None:
        raise LookupError(f"business account {account.id} has just been there")
    left = [one for one in missing if one not in submitted]
    return Switched(found[0], account.operator_account_id, found[1], left, len(submitted))


def _submit(connection: Connection, recorder: StateChangeRecorder, template: Template, now_ms: int) -> None:
    """Hand in a template that we know and the operator does not."""
    app = app_by_id(connection, template.app_id)
    bare = replace(template, operator_template_id=None)
    pending = TemplateStatus.PENDING
    event = review_of(bare, pending.value, None)
    apply_status_change(connection, recorder, app, bare, pending, event, now_ms)
    enqueue_jobs(connection, [template_job(bare, SubjectKind.TEMPLATE_SUBMISSION, due_ms=now_ms)])
