"""The onboarding of apps: its jobs, and the step that each app has reached."""

from dataclasses import replace

from sqlalchemy import Connection

from waypost.domain.app import App, AppOnboardingProgress, OnboardingStep
from waypost.domain.direct_calls import OperatorNumber
from waypost.store.accounts.partners import add_app, app_by_id
from waypost.store.apps.apps import change_app
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs


def onboarding_job(app: App, *, at_ms: int) -> NewJob:
    """Return the job for the current step of an app's onboarding, which waits until the step is due.

    Those of one business account share a group.
    """
    return NewJob(
        QueueName.OUTBOUND,
        concurrency_group=f"onboarding {app.business_account_id}",
        ordering_key=f"onboarding {app.id}",
        subject=JobSubject(SubjectKind.APP_ONBOARDING, app.id),
        due_ms=at_ms,
    )


def add_app_to_onboard(connection: Connection, app: App, token_hash: str) -> bool:
    """Store an app and enqueue the first step; return False if its name or its source number is in use."""
    if not add_app(connection, app, token_hash):
        return False
    enqueue_jobs(connection, [onboarding_job(app, at_ms=app.created_on_ms)])
    return True


def begin_onboarding(connection: Connection, app_id: str, *, at_ms: int, due_ms: int) -> App | None:
    """Begin the onboarding of an app that has a number and is not live, or again if it has failed; return the app.

    Returns:
        The app, unchanged if there was nothing to begin; None if it was deleted.
    """
    app = app_by_id(connection, app_id)
    if app is None or app.live or not app.phone_number_id:
        return app
    if app.preferences.onboarding is not None and not app.preferences.onboarding.has_failed:
        return app
    first = AppOnboardingProgress(OnboardingStep.CHECK_NUMBER, due_ms)
    changed = change_app(connection, app_id, lambda app: replace(set_progress(app, first), modified_on_ms=at_ms))
    enqueue_jobs(connection, [onboarding_job(app, at_ms=at_ms)])
    return changed


def set_pace(app: App, number: OperatorNumber) -> App:
    """Return the app with the pace of its number, as the operator lists it.

    That of a number in the WhatsApp Business app holds as long as it is there: its own stays beside it.
    """
    preferences = replace(app.preferences, is_shared=number.is_on_business_app)
    per_second = app.per_second if number.is_on_business_app else number.per_second or app.per_second
    return replace(app, per_second=per_second, preferences=preferences)


def set_shared(connection: Connection, app_id: str, *, is_shared: bool, at_ms: int) -> None:
    """Record whether the number of an app is in the WhatsApp Business app, too: its pace is another then."""

    def change(app: App) -> App:
        return replace(app, modified_on_ms=at_ms, preferences=replace(app.preferences, is_shared=is_shared))

    change_app(connection, app_id, change)


def set_progress(app: App, progress: AppOnboardingProgress | None) -> App:
    """Return the app with this progress of its onboarding."""
    return replace(app, preferences=replace(app.preferences, onboarding=progress))
