"""Counters and trace records of attempts to deliver a callback."""

from waypost.base.telemetry.counters import CallCounters, status_class
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.domain.callbacks import CallbackAttempt
from waypost.queue.job import Job
from waypost.store.callbacks.callbacks import CallbackRow


class AttemptMetrics:
    """The counters of one process, since it started.

    Attributes:
        counts: attempts by the class of the response's status, and by the result for the callback.
    """

    def __init__(self) -> None:
        self.counts = CallCounters()

    def record_attempt(self, job: Job, row: CallbackRow, attempt: CallbackAttempt, *, ended: bool | None) -> None:
        """Count an attempt, and trace it where it is about a message.

        Args:
            job: of the callbacks queue.
            row: the callback's.
            attempt: the attempt.
            ended: True when it was delivered, False when it is given up, None when it is retried.
        """
        result = {True: "delivered", False: "given up", None: "retried"}[ended]
        took_s = attempt.duration_ms / 1000
        self.counts.add(took_s, status_class(attempt.status), result)
        if row.message_id is not None and (tracer.is_enabled or not ended):
            tracer.record(
                TraceStep.CALLBACK_ATTEMPTED,
                row.message_id,
                failed=not ended,
                took_s=took_s,
                callback_id=row.id,
                subscription_id=row.subscription_id,
                app_id=row.app_id,
                partner_id=row.partner_id,
                position=job.position,
                callback_event=row.event,
                sequence=row.sequence,
                attempt=job.attempt + 1,
                status=attempt.status,
            )
