"""Results of checks, and the checks on this machine: queues, messages, files, processes, receivers, and a simulator."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from waypost.admin.operator_accounts import OperatorCallFailed
from waypost.admin.provisioning import AdminContext
from waypost.admin.waits import summarize_waits
from waypost.base.files import readable_by_others
from waypost.client.api_client import ApiUnreachable, HttpTransport
from waypost.domain.app import OperatorAccount
from waypost.domain.onboarding import describe_missing, list_missing
from waypost.domain.wait_reasons import WAIT_EXPLANATIONS, WaitReason
from waypost.queue.plans import stage_of_queue
from waypost.store.accounts.partners import all_apps
from waypost.store.apps.progress import list_progress
from waypost.store.callbacks.receivers import list_paused_or_failing
from waypost.store.console.trace import message_counts
from waypost.store.postgresql_connections import ConnectionBudget, count_server_connections
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import count_jobs_by_state
from waypost.store.queue.leases import leased_queues


class CheckState(StrEnum):
    """The severity: `wrong` prevents something from working, `warning` soon may or should be known."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report. No secret is ever part of it."""

    subject: str  # the subject of the check, such as `operator account cloud`
    state: CheckState
    text: str  # the result in one sentence
    fix_hint: str = ""  # how to fix it; empty if there is nothing to fix


def ok(subject: str, text: str) -> CheckResult:
    """Return the result of a passed check."""
    return CheckResult(subject, CheckState.OK, text)


def warning(subject: str, text: str, fix_hint: str) -> CheckResult:
    """Return a result that does not prevent anything from working but should be known."""
    return CheckResult(subject, CheckState.WARNING, text, fix_hint)


def failure(subject: str, text: str, fix_hint: str) -> CheckResult:
    """Return the result of a failed check."""
    return CheckResult(subject, CheckState.WRONG, text, fix_hint)


def failed_call_results(subject: str, account_id: str, error: OperatorCallFailed) -> list[CheckResult]:
    """Return the result of a failed call, with the operator's own text; none if the operator has no such call."""
    if not error.is_offered:
        return []
    if error.code is None:
        text, fix_hint = (
            error.text,
            (
                "check that it is running and the connection to it works; if its address is wrong: "
                "waypost account operator {account} --base-url …"
            ),
        )
    elif error.problem is None:
        text = f"the operator returned an error: {error.text} ({error.code})"
        fix_hint = "look the code up in docs/reference/operator-codes.md"
    else:
        text, fix_hint = f"{error.problem.text}: {error.text} ({error.code})", error.problem.fix_hint
    is_serious = error.problem is None or error.problem.is_serious
    return [
        CheckResult(
            subject, CheckState.WRONG if is_serious else CheckState.WARNING, text, fix_hint.format(account=account_id)
        )
    ]


CONTROL_TIMEOUT_S: Final = 5
DAMAGE_SEARCH_S: Final = 5
MAX_NAMED_FILES: Final = 5


async def check_store(context: AdminContext) -> list[CheckResult]:
    """Check jobs, dead letters, apps and uncertain messages."""
    read = context.database.read
    depths = [await read(count_jobs_by_state, queue_name) for queue_name in QueueName]
    messages, apps = await read(message_counts), await read(all_apps)
    open_jobs = sum(sum(depth.values()) for depth in depths)
    dead_letters = sum(count for depth in depths for state, count in depth.items() if state >= JobState.DEAD_LETTER)
    uncertain = messages.get("uncertain", 0)
    results = [
        ok("store", f"{sum(messages.values())} messages, {open_jobs} open jobs"),
        ok("apps", f"{len(apps)}") if apps else warning("apps", "there are none", "add one with: waypost app add"),
    ]
    if dead_letters:
        fix_hint = "list them with: waypost dead-letter list; then retry or delete each"
        results.append(failure("queue", f"{dead_letters} dead letter{'' if dead_letters == 1 else 's'}", fix_hint))
    if uncertain:
        text = f"{uncertain} messages may or may not have been sent"
        fix_hint = "wait: the operator's next status decides, or the message fails with code 4002"
        results.append(warning("messages", text, fix_hint))
    return results


def check_waits(context: AdminContext) -> list[CheckResult]:
    """Return a result for each reason for which due jobs wait; none for those of receivers, which have their own."""
    results: list[CheckResult] = []
    for wait in summarize_waits(context):
        if wait.queue == QueueName.CALLBACKS.name.lower():
            continue
        text = f"{wait.jobs} {'job waits' if wait.jobs == 1 else 'jobs wait'}: {wait.text}"
        subject = f"queue {wait.queue}"
        is_problem = WAIT_EXPLANATIONS[WaitReason(wait.reason)].is_problem
        results.append(warning(subject, text, f"ends with: {wait.ends}") if is_problem else ok(subject, text))
    return results


async def check_onboarding(
    context: AdminContext, *, partner_id: int | None = None, operator_account_id: str = ""
) -> list[CheckResult]:
    """Return a result for each app that lacks something on its way to the first message, with the next action."""
    read = partial(list_progress, partner_id=partner_id, operator_account_id=operator_account_id)
    results: list[CheckResult] = []
    for progress in reversed(await context.database.read(read)):
        missing = list_missing(progress)
        if not missing:
            continue
        first, subject = missing[0], f"onboarding of {progress.app.name}"
        hint = first.command or (f"{first.action}: see Onboarding in the console" if first.action else "")
        if first.is_problem:
            results.append(failure(subject, describe_missing(missing), f"mend the cause, then: {hint}"))
        else:
            results.append(CheckResult(subject, CheckState.OK, describe_missing(missing), hint and f"next: {hint}"))
    return results


async def check_damage(context: AdminContext) -> list[CheckResult]:
    """Check that what the store has on disk can be read, as far as the time allows."""
    fix_hint = "stop the service and restore a backup: docs/how-to/back-up-and-restore.md"
    search = await context.database.find_damage(DAMAGE_SEARCH_S)
    found = [context.database.damage] if context.database.damage else search.damage
    if found:
        return [failure("damage", f"the store is damaged: {'; '.join(found)}", fix_hint)]
    return [ok("damage", f"none was found; checked: {search.scope}")]


async def check_files(context: AdminContext) -> list[CheckResult]:
    """Check that other users of this machine cannot read our files: messages, media and encrypted secrets."""
    exposed = await asyncio.to_thread(readable_by_others, context.data)
    if not exposed:
        return [ok("files", "no other user of this machine can read them")]
    named = ", ".join(f"{path.relative_to(context.data)} ({mode:04o})" for path, mode in exposed[:MAX_NAMED_FILES])
    others = f" and {len(exposed) - MAX_NAMED_FILES} more" if len(exposed) > MAX_NAMED_FILES else ""
    text = f"other users of this machine can read {named}{others}"
    return [warning("files", text, f"remove their access with: chmod -R go= {context.data}")]


async def check_processes(context: AdminContext) -> list[CheckResult]:
    """Check that every queue has a process, if several share a store: without one, its jobs wait."""
    if context.database.is_exclusive:
        return []
    leased = await context.database.write(leased_queues, context.clock.real_ms())
    idle_stages = sorted({stage_of_queue(queue_name) for queue_name in QueueName if queue_name not in leased})
    if not idle_stages:
        return [ok("processes", "every stage has a process")]
    text = f"no process runs {' and '.join(idle_stages)}: their jobs wait"
    fix_hint = f"start one with: waypost serve --stages {','.join(idle_stages)}"
    return [failure("processes", text, fix_hint)]


async def check_connections(context: AdminContext) -> list[CheckResult]:
    """Check that another process could connect to the database, if several share a store."""
    if context.database.is_exclusive:
        return []
    connections = await context.database.read(count_server_connections)
    text = f"{connections.used} of {connections.allowed} connections to PostgreSQL are in use"
    if connections.used + ConnectionBudget().total <= connections.allowed:
        return [ok("connections", text)]
    fix_hint = "raise max_connections (or the limit of the role or the database), or set database_connections lower"
    return [warning("connections", f"{text}: another process may not be able to start", fix_hint)]


async def check_media(context: AdminContext) -> list[CheckResult]:
    """Check that the bucket of the media can be written, read and deleted from; a folder has no result."""
    if "://" not in context.files.location:
        return []
    problem = await context.files.probe()
    if problem is None:
        return [ok("media", f"{context.files.location} can be written, read and deleted from")]
    fix_hint = "check media_url, media_endpoint, media_region and the rights of the access key"
    return [failure("media", problem, fix_hint)]


async def check_simulator(account: OperatorAccount) -> list[CheckResult]:
    """Check for armed faults and a changed clock, if the operator is a simulator on this machine.

    Only URLs on this machine are called. Without a control API, or if it rejects the call, there is no
    result.
    """
    if not is_local(account.base_url):
        return []
    subject = f"{account.id}: simulator"
    faults, clock = await _read_control(account, "faults"), await _read_control(account, "clock")
    results: list[CheckResult] = []
    fault_list = cast(list[dict[str, Any]], (faults or {}).get("faults") or [])
    armed = [fault for fault in fault_list if fault.get("is_armed") is not False]
    if armed:
        armed_text = "1 fault is" if len(armed) == 1 else f"{len(armed)} faults are"
        text = f"{armed_text} armed: errors may be intentional"
        fix_hint = f"to disarm them: curl -X DELETE {account.base_url}/control/faults"
        results.append(warning(subject, text, fix_hint))
    ahead_ms = (clock or {}).get("ahead_ms") or 0
    if isinstance(ahead_ms, int) and abs(ahead_ms) >= 1000:
        direction = "ahead of" if ahead_ms > 0 else "behind"
        text = f"its clock is {timedelta(seconds=round(abs(ahead_ms) / 1000))} {direction} this machine's"
        results.append(warning(subject, text, "nothing to do if this is intended"))
    if (clock or {}).get("is_frozen") is True:
        fix_hint = f"to resume it: waypost clock run, or POST {account.base_url}/control/clock/run"
        results.append(warning(subject, "its clock is frozen", fix_hint))
    if results or (faults is None and clock is None):
        return results
    return [ok(subject, "no faults armed, its clock equals this machine's")]


def is_local(base_url: str) -> bool:
    """True if a URL is on this machine."""
    host = urlsplit(base_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


async def _read_control(account: OperatorAccount, resource: str) -> dict[str, Any] | None:
    call = HttpTransport(account.base_url, timeout_s=CONTROL_TIMEOUT_S)
    try:
        reply = await call("GET", f"/control/{resource}", {}, None)
        content = msgspec.json.decode(reply.body) if reply.status == 200 else None
    except (ApiUnreachable, msgspec.DecodeError):
        return None
    return cast(dict[str, Any], content) if isinstance(content, dict) else None


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
