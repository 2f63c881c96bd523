"""Onboards apps: checks the number at the operator, subscribes the account, registers the number, makes the app live.

Each step is a job of its own, is safe to repeat, and is recorded in the transaction that enqueues the next one: after
a crash the current step is run again. Source: decision 0125; ledger 1.11.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection

from waypost.admission.operators import OperatorAdmission
from waypost.admission.schedules import ONBOARDING_RETRY_SCHEDULE_S
from waypost.base.backoff import delay_ms
from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.domain.app import App, AppOnboardingProgress, OnboardingStep, OperatorAccount
from waypost.domain.direct_calls import CallNotOffered, ListNumbers, OperatorNumber, Subscribe
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain
from waypost.notifications.user_events import emit_live_event
from waypost.operators.contract import GraphRequest
from waypost.queue.context import StageContext
from waypost.queue.job import Job
from waypost.store.accounts.partners import app_by_id
from waypost.store.apps.apps import change_app
from waypost.store.apps.onboarding import onboarding_job, set_pace, set_progress
from waypost.store.queue.jobs import complete_jobs, enqueue_jobs

MAX_WAIT_MS: Final = 60_000
"""A step that is due later was recorded by a clock that ran ahead, and is looked at again then."""
MAX_PROBLEM_CHARS: Final = 500
"""Maximum length of a stored problem: the operator's text may have any length."""
_log = log("dispatch")


class OnboardingFailure(Exception):
    """A step has failed; the argument is the reason, in the operator's words where it gave one."""


@dataclass(frozen=True, slots=True)
class OnboardingOutcome:
    """The outcome of one step."""

    position: int
    app_id: str
    progress: AppOnboardingProgress | None  # as the step began; None: there was nothing to do
    problem: str = ""  # why it has failed; empty: it has not
    number: OperatorNumber | None = None  # where the step has read it


class AppOnboarding:
    """Runs the jobs that are about apps.

    Args:
        webhook_url: of the service, to which the id of an operator account is added.
        step_ms: minimum duration of a step.
    """

    def __init__(
        self,
        context: StageContext,
        admission: OperatorAdmission,
        secret_box: SecretBox,
        *,
        webhook_url: str,
        step_ms: int,
    ) -> None:
        self._context, self._admission, self._secret_box = context, admission, secret_box
        self._webhook_url = webhook_url
        self._record = partial(
            record_outcomes, clock=context.clock, ids=context.ids, chance=context.chance, step_ms=step_ms
        )
        self._steps: Final = {
            OnboardingStep.CHECK_NUMBER: self._find_number,
            OnboardingStep.SUBSCRIBE: self._subscribe,
            OnboardingStep.REGISTER: self._register,
        }

    async def run_job(self, job: Job) -> None:
        """Run the current step of an app, and complete the job with its outcome; a step that is not due yet waits."""
        app = await self._context.database.read(app_by_id, job.subject.id)
        progress = None if app is None or app.live else app.preferences.onboarding
        outcome = OnboardingOutcome(job.position, job.subject.id, progress)
        if app is not None and progress is not None and not progress.has_failed:
            now_ms = self._context.clock.now_ms()
            if now_ms < progress.due_ms:
                due_ms = min(progress.due_ms, now_ms + MAX_WAIT_MS)
                await self._context.queue.retry_later(job, due_ms=due_ms, note=progress.problem)
                return
            account = await self._context.directory.operator_account_of(app)
            if account is None:
                raise LookupError(f"app {app.id} has no operator account")
            self._admission.set_account(job, account)
            if not self._context.queue.is_lease_held(job):
                self._context.queue.abandon(job)
                return
            self._admission.begin_call(job)
            try:
                outcome = replace(outcome, number=await self._steps[progress.step](account, app))
            except OnboardingFailure as failure:
                problem = str(failure)[:MAX_PROBLEM_CHARS]
                outcome = replace(outcome, problem=problem)
                _log.warning(
                    "a step of an onboarding has failed",
                    app=app.id,
                    step=progress.step,
                    attempt=progress.failures + 1,
                    is_last=progress.record_failure(problem, now_ms).has_failed,
                    cause=problem,
                )
            finally:
                self._admission.end_call(job)
        await self._context.queue.complete(job, self._record, outcome)
        self._context.directory.invalidate()

    async def _find_number(self, account: OperatorAccount, app: App) -> OperatorNumber | None:
        """Return the app's number at the operator; None if the operator does not list numbers."""
        listed = await self._context.operators.adapter(account).call(account, ListNumbers(app.business_account_id))
        if isinstance(listed, CallNotOffered):
            return None
        if isinstance(listed, OperatorRejected | OperatorUnavailable | OutcomeUncertain):
            raise OnboardingFailure(listed.text)
        number = next((number for number in listed if number.id == app.phone_number_id), None)
        if number is None:
            raise OnboardingFailure(
                f"the operator's business account {app.business_account_id} has no number {app.phone_number_id}"
            )
        return number

    async def _subscribe(self, account: OperatorAccount, app: App) -> None:
        """Subscribe us to the business account's webhooks; the operator checks our URL first."""
        request = Subscribe(app.business_account_id, f"{self._webhook_url}/{quote(account.id, safe='')}")
        match await self._context.operators.adapter(account).call(account, request):
            case OperatorRejected(text=text) | OperatorUnavailable(text=text) | OutcomeUncertain(text=text):
                raise OnboardingFailure(text)
            case CallNotOffered():
                return
            case result:
                if not result.success:
                    raise OnboardingFailure(result.reason or "the operator has not subscribed us, and gives no reason")

    async def _register(self, account: OperatorAccount, app: App) -> OperatorNumber | None:
        """Register the number, unless it is registered or a person uses it in the WhatsApp Business app, too."""
        number = await self._find_number(account, app)
        graph = self._context.operators.adapter(account).graph
        if graph is None or number is None or number.is_registered or number.is_on_business_app:
            return number
        body = {"messaging_product": "whatsapp", "pin": self._secret_box.number_pin(number.id)}
        response = await graph.request(account, GraphRequest("POST", f"{number.id}/register", body))
        if not isinstance(response, dict):
            raise OnboardingFailure(response.text)
        if response.get("success") is False:
            raise OnboardingFailure("the operator has not registered the number, and gives no reason")
        return number


def record_outcomes(
    connection: Connection,
    outcomes: Sequence[OnboardingOutcome],
    *,
    clock: Clock,
    ids: Ids,
    chance: Random,
    step_ms: int,
) -> list[None]:
    """Record steps: the progress with the next job, or the live app with its event, in one transaction.

    An app that was changed meanwhile, by the administrator who made it live for example, is left as it is.
    """
    at_ms = clock.now_ms()
    completed = complete_jobs(connection, [outcome.position for outcome in outcomes])
    for outcome in outcomes:
        seen = outcome.progress
        if seen is None or outcome.position not in completed:
            continue
        before = app_by_id(connection, outcome.app_id)
        if before is None or before.live or before.preferences.onboarding != seen:
            continue
        if outcome.problem:
            wait_ms = delay_ms(ONBOARDING_RETRY_SCHEDULE_S, seen.failures + 1, chance)
            after = seen.record_failure(outcome.problem, at_ms + wait_ms)
        else:
            after = seen.advance(at_ms + step_ms)

        def apply(
            app: App, after: AppOnboardingProgress | None = after, number: OperatorNumber | None = outcome.number
        ) -> App:
            app = replace(set_progress(app, after), modified_on_ms=at_ms)
            app = app if number is None else set_pace(app, number)
            if after is not None:
                return app
            return replace(app, live=True, preferences=replace(app.preferences, live_since_ms=at_ms))

        changed = change_app(connection, outcome.app_id, apply)
        if changed is None:
            continue
        if after is None:
            emit_live_event(connection, ids, changed, at_ms)
        elif not after.has_failed:
            enqueue_jobs(connection, [onboarding_job(changed, at_ms=at_ms)])
    return [None] * len(outcomes)
