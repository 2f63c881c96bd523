"""How fast entries are claimed and settled by one process and by two: leased shards against SKIP LOCKED.

Both give the same: one entry of a key at a time, oldest first, several keys side by side, each entry
worked once. `leases` is the service's own journal, its claims in memory, its settling one DELETE for a
batch. `skip locked` is what a table alone can do: lock the oldest entry of each key that nobody has
locked, work it within the transaction, delete it.

    python -m benchmarks.claims [--entries 20000] [--keys 2000] [--sources 40]

Decision 0052 has the figures.
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
from waypost.store.queue.jobs import NewJob, QueueName, complete_jobs, enqueue_jobs, read_subject
from waypost.store.queue.leases import SHARD_COUNT

BATCH: Final = 100
LANE: Final = QueueName.OUTBOUND
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
class Worked:
    """What one process has done: the entries in its order, and when it began and ended."""

    refs: list[str]
    began_s: float
    ended_s: float
    processor_s: float


def work_leases(url: str, number: int, processes: int, out: Any) -> None:
    """One process with the service's own journal."""
    out.put(asyncio.run(_work_leases(url, number, processes)))


async def _work_leases(url: str, number: int, processes: int) -> Worked:
    database = Database(PostgresEngine(url))
    await database.open()
    clock = SystemClock()
    queue = JobQueue(database, clock, holder=f"bench {number}", plans=PLANS, queue_names=(LANE,))
    await queue.open()
    queue.start()
    while len(queue.shards.held[LANE]) != SHARD_COUNT // processes:  # noqa: ASYNC110  until all have come to terms
        await asyncio.sleep(0.01)
    refs: list[str] = []
    began_s = ended_s = time.monotonic()
    spent_s = time.process_time()
    while time.monotonic() - ended_s < 1:  # idle for a second: it is all done
        jobs = await queue.claim(LANE, at_most=BATCH)
        if not jobs:
            await asyncio.sleep(0.02)
            continue
        pieces: list[tuple[Job, int]] = [(job, job.position) for job in jobs]
        failed = await queue.complete_all(pieces, _settle)
        if failed:
            raise failed[0][1]
        refs += [job.subject.ref for job in jobs]
        ended_s = time.monotonic()
    spent_s = time.process_time() - spent_s
    await queue.close()
    await database.close()
    return Worked(refs, began_s, ended_s, spent_s)


def work_skip_locked(url: str, _number: int, _processes: int, out: Any) -> None:
    """One process that claims by locking rows."""
    refs: list[str] = []
    with psycopg.connect(url) as connection:
        began_s = ended_s = time.monotonic()
        spent_s = time.process_time()
        while time.monotonic() - ended_s < 1:
            now_ms = time.time_ns() // 1_000_000
            claimed = connection.execute(_OLDEST_OF_EACH_KEY, (int(LANE), now_ms, BATCH)).fetchall()
            gone = connection.execute(
                "DELETE FROM queue_jobs WHERE position = ANY(%s) RETURNING ref", ([one[0] for one in claimed],)
            ).fetchall()
            connection.commit()
            if not claimed:
                time.sleep(0.02)
                continue
            refs += [one[0] for one in gone]
            ended_s = time.monotonic()
    out.put(Worked(refs, began_s, ended_s, time.process_time() - spent_s))


WAYS: Final = {"leases": work_leases, "skip locked": work_skip_locked}


def _settle(connection: Connection, positions: Sequence[int]) -> list[None]:
    complete_jobs(connection, positions)
    return [None] * len(positions)


async def fill(url: str, jobs: int, keys: int, sources: int) -> None:
    """Append so many entries, of keys in turn."""
    database = Database(PostgresEngine(url))
    await database.open()
    new = [
        NewJob(LANE, f"source {key % sources}", f"key {key}", read_subject(LANE, f"{key} {nth}"), 0)
        for nth in range(jobs // keys)
        for key in range(keys)
    ]
    await database.write(enqueue_jobs, new)
    await database.close()


def measure(server: Server, url: str, way: str, processes: int) -> dict[str, Any]:
    """Entries a second, processor time of each, and how many were out of order or worked twice."""
    context = multiprocessing.get_context("spawn")
    out: Any = context.Queue()
    before_s = _server_s(server)
    workers = [context.Process(target=WAYS[way], args=(url, number, processes, out)) for number in range(processes)]
    for worker in workers:
        worker.start()
    done: list[Worked] = [out.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join()
    took_s = max(one.ended_s for one in done) - min(one.began_s for one in done)
    refs = [ref for one in done for ref in one.refs]
    own_us = 1e6 * sum(one.processor_s for one in done) / len(refs)
    return {
        "way": way,
        "processes": processes,
        "a_second": round(len(refs) / took_s),
        "own_us": round(own_us, 1),
        "server_us": round(1e6 * (_server_s(server) - before_s) / len(refs), 1),
        "wrong": _wrong(done) + len(refs) - len(set(refs)),
    }


def _server_s(server: Server) -> float:
    """Processor time of a server's processes that have ended, and of its first."""
    if server.process is None:
        raise RuntimeError("the server does not run")
    stat = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii")
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def _wrong(done: Sequence[Worked]) -> int:
    """Within one process the entries of a key must count up."""
    wrong = 0
    for one in done:
        last: dict[str, int] = {}
        for ref in one.refs:
            key, _, nth = ref.partition(" ")
            wrong += int(nth) <= last.get(key, -1)
            last[key] = int(nth)
    return wrong


def main() -> None:
    """Measure each way with one process and with two, and print a line of JSON for each."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--entries", type=int, default=20_000)
    given.add_argument("--keys", type=int, default=2_000)
    given.add_argument("--sources", type=int, default=40)
    wanted = given.parse_args()
    with running_server() as server:
        for round_number in range(2):
            for way in WAYS:
                for processes in (1, 2):
                    url = server.create(f"claims_{way.replace(' ', '_')}_{processes}_{round_number}")
                    asyncio.run(fill(url, wanted.entries, wanted.keys, wanted.sources))
                    with psycopg.connect(url, autocommit=True) as connection:
                        connection.execute(_KEY_INDEX)
                        connection.execute("ANALYZE queue_jobs")
                    told = measure(server, url, way, processes)
                    print(json.dumps({**told, "keys": wanted.keys}), flush=True)


if __name__ == "__main__":
    main()
