"""Checks of partners' callback receivers: paused subscriptions, and failing callbacks."""

from datetime import timedelta

from waypost.admin.doctor.check_result import CheckResult, failure, warning
from waypost.admin.provisioning import AdminContext
from waypost.store.callbacks.receivers import list_paused_or_failing


async def check_receivers(context: AdminContext) -> list[CheckResult]:
    """Return a result for each subscription that is paused or whose callbacks fail."""
    now_ms = context.clock.now_ms()
    results: list[CheckResult] = []
    for row in await context.database.read(list_paused_or_failing):
        subject = f"subscription {row.id}"
        if row.paused_on_ms is not None:
            fix_hint = f"fix the receiver, then: waypost callbacks resume {row.id}"
            results.append(failure(subject, f"is paused: {row.pause_reason}", fix_hint))
        else:
            since = timedelta(seconds=(now_ms - row.failing_since_ms) // 1000)
            fix_hint = (
                f"see its responses with: waypost callbacks report --subscription {row.id}; once it works: waypost "
                f"callbacks retry {row.id}"
            )
            results.append(warning(subject, f"callbacks have been failing for {since}", fix_hint))
    return results
