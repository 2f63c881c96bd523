"""Partners' receivers of callbacks: those that are paused, and those that take nothing."""

from datetime import timedelta

from waypost.admin.doctor.check_result import Finding, warning, wrong
from waypost.admin.provisioning import AdminContext
from waypost.store.callbacks.receivers import paused_and_failing


async def look_at_receivers(context: AdminContext) -> list[Finding]:
    """A line for each subscription that hears nothing; none where all hear."""
    now_ms = context.clock.now_ms()
    findings: list[Finding] = []
    for row in await context.database.read(paused_and_failing):
        about = f"subscription {row.id}"
        if row.paused_on_ms is not None:
            remedy = f"mend the receiver, then: waypost callbacks resume {row.id}"
            findings.append(wrong(about, f"is paused: {row.pause_reason}", remedy))
        else:
            since = timedelta(seconds=(now_ms - row.failing_since_ms) // 1000)
            remedy = f"see what it answers with: waypost callbacks report --subscription {row.id}"
            findings.append(warning(about, f"has taken nothing for {since}", remedy))
    return findings
