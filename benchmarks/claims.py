"""Rates at which one process and two claim and complete jobs: leased shards against SKIP LOCKED.

Both guarantee the same: one job of a key at a time, oldest first, several keys in parallel, each job
worked once. `leases` is the service's own queue: claims in memory, one DELETE to complete a batch.
`skip locked` uses a table alone: lock the oldest unlocked job of each key, work it within the
transaction, delete it.

    python -m benchmarks.claims [--jobs 20000] [--keys 2000] [--sources 40]

Decision 0052 has the results.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from sqlalchemy import Connection

from tests.support.postgres import Server, running_server
from waypost.base.clock import SystemClock
from waypost.queue.job import Job
from waypost.queue.plans import QueuePlan
from waypost.queue.queue import JobQueue
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import NewJob, complete_jobs, enqueue_jobs, read_subject
from waypost.store.queue.leases import SHARD_COUNT

BATCH: Final = 100
QUEUE: Final = QueueName.OUTBOUND
PLANS: Final = {queue: QueuePlan(BATCH, BATCH) for queue in QueueName}

_OLDEST_OF_EACH_KEY: Final = """
    SELECT position, ordering_key FROM queue_jobs AS j
    WHERE queue = %s AND state < 2 AND due_ms <= %s
      AND NOT EXISTS (
        SELECT 1 FROM queue_jobs AS earlier
        WHERE earlier.queue = j.queue AND earlier.concurrency_group = j.concurrency_group AND earlier.ordering_key = j.ordering_key
          AND earlier.position < j.position AND earlier.state < 2)
    ORDER BY position LIMIT %s FOR UPDATE SKIP LOCKED
"""
_KEY_INDEX: Final = "CREATE INDEX journal_by_key ON queue_jobs (queue, concurrency_group, ordering_key, position)"


@dataclass(frozen=True, slots=True)
class WorkResult:
    """The work of one process: the jobs in its order, and when it began and ended."""

    refs: list[str]
    began_s: float
    ended_s: float
    processor_s: float


def work_leases(url: str, number: int, processes: int, out: Any) -> None:
    """Run one process with the service's own queue."""
    out.put(asyncio.run(_work_leases(url, number, processes)))


async def _work_leases(url: str, number: int, processes: int) -> WorkResult:
    database = Database(PostgresEngine(url))
    await database.open()
    clock = SystemClock()
    queue = JobQueue(database, clock, holder=f"bench {number}", plans=PLANS, queue_names=(QUEUE,))
    await queue.open()
    queue.start()
    while len(queue.shards.held[QUEUE]) != SHARD_COUNT // processes:  # noqa: ASYNC110  until the shards are divided among all processes
        await asyncio.sleep(0.01)
    refs: list[str] = []
    began_s = ended_s = time.monotonic()
    spent_s = time.process_time()
    while time.monotonic() - ended_s < 1:  # idle for a second: all jobs are complete
        jobs = await queue.claim(QUEUE, at_most=BATCH)
        if not jobs:
            await asyncio.sleep(0.02)
            continue
        claimed_jobs: list[tuple[Job, int]] = [(job, job.position) for job in jobs]
        failed = await queue.complete_all(claimed_jobs, _complete)
        if failed:
            raise failed[0][1]
        refs += [job.subject.ref for job in jobs]
        ended_s = time.monotonic()
    spent_s = time.process_time() - spent_s
    await queue.close()
    await database.close()
    return WorkResult(refs, began_s, ended_s, spent_s)


def work_skip_locked(url: str, _number: int, _processes: int, out: Any) -> None:
    """Run one process that claims by locking rows."""
    refs: list[str] = []
    with psycopg.connect(url) as connection:
        began_s = ended_s = time.monotonic()
        spent_s = time.process_time()
        while time.monotonic() - ended_s < 1:
            now_ms = time.time_ns() // 1_000_000
            claimed = connection.execute(_OLDEST_OF_EACH_KEY, (int(QUEUE), now_ms, BATCH)).fetchall()
            deleted = connection.execute(
                "DELETE FROM queue_jobs WHERE position = ANY(%s) RETURNING ref", ([row[0] for row in claimed],)
            ).fetchall()
            connection.commit()
            if not claimed:
                time.sleep(0.02)
                continue
            refs += [row[0] for row in deleted]
            ended_s = time.monotonic()
    out.put(WorkResult(refs, began_s, ended_s, time.process_time() - spent_s))


METHODS: Final = {"leases": work_leases, "skip locked": work_skip_locked}


def _complete(connection: Connection, positions: Sequence[int]) -> list[None]:
    complete_jobs(connection, positions)
    return [None] * len(positions)


async def enqueue_all(url: str, jobs: int, keys: int, sources: int) -> None:
    """Enqueue a number of jobs, of the keys in turn."""
    database = Database(PostgresEngine(url))
    await database.open()
    new_jobs = [
        NewJob(QUEUE, f"source {key % sources}", f"key {key}", read_subject(QUEUE, f"{key} {nth}"), 0)
        for nth in range(jobs // keys)
        for key in range(keys)
    ]
    await database.write(enqueue_jobs, new_jobs)
    await database.close()


def measure(server: Server, url: str, method: str, processes: int) -> dict[str, Any]:
    """Return jobs a second, processor time of each, and how many were out of order or worked twice."""
    context = multiprocessing.get_context("spawn")
    out: Any = context.Queue()
    before_s = _server_s(server)
    workers = [
        context.Process(target=METHODS[method], args=(url, number, processes, out)) for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    results: list[WorkResult] = [out.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join()
    took_s = max(result.ended_s for result in results) - min(result.began_s for result in results)
    refs = [ref for result in results for ref in result.refs]
    own_us = 1e6 * sum(result.processor_s for result in results) / len(refs)
    return {
        "way": method,
        "processes": processes,
        "a_second": round(len(refs) / took_s),
        "own_us": round(own_us, 1),
        "server_us": round(1e6 * (_server_s(server) - before_s) / len(refs), 1),
        "wrong": _count_out_of_order(results) + len(refs) - len(set(refs)),
    }


def _server_s(server: Server) -> float:
    """Return the processor time of a server's first process and of those that have ended."""
    if server.process is None:
        raise RuntimeError("the server is not running")
    stat = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii")
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def _count_out_of_order(results: Sequence[WorkResult]) -> int:
    """Return the number of jobs out of order: within one process the jobs of a key must count up."""
    count = 0
    for result in results:
        last: dict[str, int] = {}
        for ref in result.refs:
            key, _, nth = ref.partition(" ")
            count += int(nth) <= last.get(key, -1)
            last[key] = int(nth)
    return count


def main() -> None:
    """Measure each method with one process and with two, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=2_000)
    parser.add_argument("--sources", type=int, default=40)
    options = parser.parse_args()
    with running_server() as server:
        for round_number in range(2):
            for method in METHODS:
                for processes in (1, 2):
                    url = server.create(f"claims_{method.replace(' ', '_')}_{processes}_{round_number}")
                    asyncio.run(enqueue_all(url, options.jobs, options.keys, options.sources))
                    with psycopg.connect(url, autocommit=True) as connection:
                        connection.execute(_KEY_INDEX)
                        connection.execute("ANALYZE queue_jobs")
                    result = measure(server, url, method, processes)
                    print(json.dumps({**result, "keys": options.keys}), flush=True)


if __name__ == "__main__":
    main()
