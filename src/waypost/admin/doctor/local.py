"""What is on this machine: the journal, the messages, and the simulator where one is the operator."""

import asyncio
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from waypost.admin.doctor.check_result import Finding, ok, warning, wrong
from waypost.admin.provisioning import AdminContext
from waypost.base.files import readable_by_others
from waypost.client.api_client import NotReached, OverHttp
from waypost.domain.app import OperatorAccount
from waypost.queue.plans import stage_of_queue
from waypost.store.accounts.partners import all_apps
from waypost.store.console.trace import message_counts
from waypost.store.queue.jobs import JobState, QueueName, count_jobs_by_state
from waypost.store.queue.leases import queues_leased

CONTROL_WITHIN_S: Final = 5
FILES_NAMED: Final = 5


async def look_at_store(context: AdminContext) -> list[Finding]:
    """What waits, what waits for a person, and what nobody knows."""
    read = context.database.read
    depths = [await read(count_jobs_by_state, queue_name) for queue_name in QueueName]
    messages, apps = await read(message_counts), await read(all_apps)
    waiting = sum(sum(depth.values()) for depth in depths)
    aside = sum(count for depth in depths for state, count in depth.items() if state >= JobState.DEAD_LETTER)
    uncertain = messages.get("uncertain", 0)
    findings = [
        ok("store", f"{sum(messages.values())} messages, {waiting} entries to work"),
        ok("apps", f"{len(apps)}") if apps else warning("apps", "there are none", "add one with: waypost app add"),
    ]
    if aside:
        remedy = "list them with: waypost dead-letter list; then retry or delete each"
        findings.append(wrong("queue", f"{aside} dead letter{'' if aside == 1 else 's'}", remedy))
    if uncertain:
        text = f"{uncertain} messages may or may not have been sent"
        remedy = "wait: each takes the operator's next word, or fails with code 4002"
        findings.append(warning("messages", text, remedy))
    return findings


async def look_at_files(context: AdminContext) -> list[Finding]:
    """What other users of this machine can read: messages, media and sealed secrets are in these files."""
    found = await asyncio.to_thread(readable_by_others, context.data)
    if not found:
        return [ok("files", "no other user of this machine can read them")]
    named = ", ".join(f"{path.relative_to(context.data)} ({mode:04o})" for path, mode in found[:FILES_NAMED])
    others = f" and {len(found) - FILES_NAMED} more" if len(found) > FILES_NAMED else ""
    text = f"other users of this machine can read {named}{others}"
    return [warning("files", text, f"take it from them with: chmod -R go= {context.data}")]


async def look_at_processes(context: AdminContext) -> list[Finding]:
    """Queues that no process works, where several share a store: nothing is lost, and everything waits."""
    if context.database.sole:
        return []
    held = await context.database.write(queues_leased, context.clock.real_ms())
    idle = sorted({stage_of_queue(queue_name) for queue_name in QueueName if queue_name not in held})
    if not idle:
        return [ok("processes", "every stage is worked")]
    text = f"no process works {' and '.join(idle)}: what is for them waits"
    remedy = f"start one with: waypost serve --stages {','.join(idle)}"
    return [wrong("processes", text, remedy)]


async def look_at_simulator(account: OperatorAccount) -> list[Finding]:
    """Armed faults and a moved clock, where the operator is a simulator on this machine.

    Only an address on this machine is asked, and one that has no control door, or keeps it to
    itself, says nothing.
    """
    if not is_local(account.base_url):
        return []
    about = f"{account.id}: simulator"
    faults, clock = await _control(account, "faults"), await _control(account, "clock")
    findings: list[Finding] = []
    listed = cast(list[dict[str, Any]], (faults or {}).get("faults") or [])
    armed = [one for one in listed if one.get("is_armed") is not False]
    if armed:
        many = "1 fault is" if len(armed) == 1 else f"{len(armed)} faults are"
        text = f"{many} armed: what goes wrong may be meant to"
        remedy = f"to disarm them: curl -X DELETE {account.base_url}/control/faults"
        findings.append(warning(about, text, remedy))
    ahead_ms = (clock or {}).get("ahead_ms") or 0
    if isinstance(ahead_ms, int) and abs(ahead_ms) >= 1000:
        way = "ahead of" if ahead_ms > 0 else "behind"
        text = f"its clock is {timedelta(seconds=round(abs(ahead_ms) / 1000))} {way} this machine's"
        findings.append(warning(about, text, "nothing, if it is meant to be"))
    if (clock or {}).get("is_frozen") is True:
        remedy = f"to let it run: waypost clock run, or POST {account.base_url}/control/clock/run"
        findings.append(warning(about, "its clock stands still", remedy))
    if findings or (faults is None and clock is None):
        return findings
    return [ok(about, "no faults armed, its clock is this machine's")]


def is_local(base_url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(base_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


async def _control(account: OperatorAccount, what: str) -> dict[str, Any] | None:
    call = OverHttp(account.base_url, timeout_s=CONTROL_WITHIN_S)
    try:
        reply = await call("GET", f"/control/{what}", {}, None)
        told = msgspec.json.decode(reply.body) if reply.status == 200 else None
    except (NotReached, msgspec.DecodeError):
        return None
    return cast(dict[str, Any], told) if isinstance(told, dict) else None
