"""The admin API's operations that say why jobs wait, in the words of the table of reasons."""

from collections.abc import Iterable, Iterator, Set
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import resource_not_found
from waypost.domain.wait_reasons import WAIT_EXPLANATIONS, WaitReason
from waypost.queue.job import NotBefore
from waypost.store.accounts.partners import app_by_id
from waypost.store.callbacks.receivers import SubscriptionFilter, list_receivers
from waypost.store.console.trace import full_message_trace
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import live_group, replay_group
from waypost.wire.responses import response

operation = AdminOperations()


class Wait(msgspec.Struct, kw_only=True):
    """Why a job is not worked now, in words, whose the reason is, what ends it, and until when it lasts if known."""

    reason: str
    text: str
    cause: str
    ends: str
    until_ms: int | None


class JobWait(Wait, kw_only=True):
    """The wait of one job."""

    queue: str
    position: int


class QueueWait(Wait, kw_only=True):
    """The concurrency groups of a queue that wait for one reason, and how many of their jobs are in memory."""

    queue: str
    groups: int
    jobs: int


class WaitQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The app whose jobs to explain; all if it is absent."""

    app_id: Annotated[str | None, Meta(description="Only jobs of this app.")] = None


@operation("GET", "/admin/waits", response(waits=list[QueueWait]))
async def list_waits(context: AdminContext, query: WaitQuery) -> dict[str, Any]:
    """Return why due jobs are not worked now, by queue and reason, as far as this process works them."""
    groups = None if query.app_id is None else await _groups_of_app(context, query.app_id)
    return {"waits": list(summarize_waits(context, groups))}


@operation("GET", "/admin/messages/{message_id}/waits", response(waits=list[JobWait]))
async def explain_message(context: AdminContext, message_id: str) -> dict[str, Any]:
    """Return why a message's job and its callbacks wait, as far as this process works them."""
    trace = await context.database.read(full_message_trace, message_id)
    if trace is None:
        raise resource_not_found("message", "message_id", message_id)
    add_waits(context, trace)
    jobs = (job for job in (trace["waiting"], *(each["waiting"] for each in trace["callbacks"])) if job is not None)
    return {
        "waits": [
            JobWait(queue=job["queue"], position=job["position"], **msgspec.structs.asdict(job["wait"]))
            for job in jobs
            if job["wait"] is not None
        ]
    }


def add_waits(context: AdminContext, trace: dict[str, Any]) -> None:
    """Give each unfinished job of a trace the member `wait`."""
    groups = [(trace["waiting"], trace["source"])]
    groups += [(each.get("waiting"), live_group(each["subscription_id"])) for each in trace["callbacks"]]
    for job, group in groups:
        if job is not None:
            is_open = job["state"] == JobState.OPEN.name.lower()
            queue_name = QueueName[job["queue"].upper()]
            job["wait"] = explain_job(context, queue_name, group, job["position"]) if is_open else None


def explain_job(context: AdminContext, queue_name: QueueName, group: str, position: int) -> Wait | None:
    """Return why a job waits; None where it is being worked or may start, or another process works its group."""
    wait = context.queue.explain_wait(queue_name, group, position)
    return None if wait is None else Wait(**_explain(wait.reason, [wait], context.clock.now_ms()))


def summarize_waits(context: AdminContext, groups: Set[str] | None = None) -> Iterator[QueueWait]:
    """Yield the waits of each queue by reason.

    Args:
        groups: only of these concurrency groups; None: all.
    """
    now_ms = context.clock.now_ms()
    for queue_name in QueueName:
        waits: dict[WaitReason, list[NotBefore]] = {}
        jobs: dict[WaitReason, int] = {}
        for group, wait in context.queue.list_waits(queue_name):
            if groups is None or group.name in groups:
                waits.setdefault(wait.reason, []).append(wait)
                jobs[wait.reason] = jobs.get(wait.reason, 0) + group.jobs_in_memory
        for reason, of_reason in sorted(waits.items()):
            explained = _explain(reason, of_reason, now_ms)
            yield QueueWait(queue=queue_name.name.lower(), groups=len(of_reason), jobs=jobs[reason], **explained)


def _explain(reason: WaitReason, waits: Iterable[NotBefore], now_ms: int) -> dict[str, Any]:
    row = WAIT_EXPLANATIONS[reason]
    until_ms = min(wait.until_ms for wait in waits)
    return {
        "reason": reason.value,
        "text": row.text,
        "cause": row.cause.value,
        "ends": row.ends,
        "until_ms": until_ms if until_ms > now_ms else None,
    }


async def _groups_of_app(context: AdminContext, app_id: str) -> set[str]:
    app = await context.database.read(app_by_id, app_id)
    if app is None:
        raise resource_not_found("app", "app_id", app_id)
    receivers = await context.database.read(list_receivers, SubscriptionFilter(app_id=app_id))
    groups = {group_of(row["id"]) for row in receivers for group_of in (live_group, replay_group)}
    return groups | {app.phone_number}
