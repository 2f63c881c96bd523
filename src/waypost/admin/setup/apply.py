"""The admin API's operation on a set-up: compare the document with the store, and carry out what differs."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.admin.setup.document import SetupDocument, SetupPart
from waypost.admin.setup.plans import Action, Step, plan_app, plan_business_account, plan_operator_account, plan_partner
from waypost.domain.errors import ApiError

operation = AdminOperations()


class SetupRequest(SetupPart, frozen=True):
    """A document to apply."""

    setup: Annotated[SetupDocument, Meta(description="The document; `set-up-from-a-file` describes it.")]
    dry_run: Annotated[bool, Meta(description="True if only the plan is returned.")] = False


class AppliedStep(msgspec.Struct):
    """A step: what it does to which part; `shown` are values that are shown once, `error` why it failed."""

    kind: str
    name: str
    action: Action
    fields: tuple[str, ...]
    shown: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    error: str | msgspec.UnsetType = msgspec.UNSET


class AppliedSetup(msgspec.Struct):
    """The steps of a document, and the one that failed."""

    dry_run: bool
    steps: list[AppliedStep]
    failed: AppliedStep | None


@operation("POST", "/admin/setup")
async def apply_setup(context: AdminContext, request: SetupRequest) -> AppliedSetup:
    """Create and change what differs from a document; what it does not name stays as it is.

    Everything is checked and planned before the first step, so that an invalid document changes nothing. A step
    may still fail, as when the operator is away: then the response names it, the steps before it are done, and the
    same document continues.

    Raises:
        ApiError: a part is invalid; the text names it.
    """
    steps = await plan_setup(context, request.setup)
    done: list[AppliedStep] = []
    failed: AppliedStep | None = None
    for step in steps:
        applied = AppliedStep(step.kind, step.name, step.action, step.fields)
        if step.run is not None and not request.dry_run:
            try:
                applied.shown = dict(await step.run())
            except ApiError as error:
                applied.error = error.explanation
                failed = applied
                break
        done.append(applied)
    return AppliedSetup(request.dry_run, done, failed)


async def plan_setup(context: AdminContext, setup: SetupDocument) -> list[Step]:
    """Return the steps of a document, in an order in which each finds what it needs.

    Raises:
        ApiError: a part is invalid; the text names it.
    """
    context.directory.invalidate()  # another process may have changed an account
    steps: list[Step] = []
    for account_id, members in setup.operator_accounts.items():
        with _naming(f"operator_accounts.{account_id}"):
            steps.append(await plan_operator_account(context, account_id, members))
    for partner in setup.partners:
        with _naming(f"partner {partner.email}"):
            steps += await plan_partner(context, partner)
            for account in partner.business_accounts:
                steps += await plan_business_account(context, partner.email, account, setup.operator_accounts)
            accounts = {account.id for account in partner.business_accounts}
            for app in partner.apps:
                with _naming(f"app {app.name}"):
                    steps += await plan_app(context, partner.email, app, accounts)
    return steps


@contextmanager
def _naming(part: str) -> Generator[None]:
    """Add the name of the part to the text of an error."""
    try:
        yield
    except ApiError as error:
        raise ApiError(
            error.code, f"{part}: {error.explanation}", field=error.field, accepted=error.accepted
        ) from error
