"""Uploads beside the queue: each once, few at a time, and every job that needs one is notified."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from waypost.dispatch.uploads import UploadFailure, UploadKey, UploadScheduler
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable

REJECTED = OperatorRejected(100, "no such file type")


@dataclass
class ControlledUploads:
    """Uploads that end when a test ends them.

    Attributes:
        started: the uploads that have been started, in order.
    """

    started: list[UploadKey] = field(default_factory=list[UploadKey])
    ends: dict[UploadKey, asyncio.Future[OperatorRejected | OperatorUnavailable | None]] = field(default_factory=dict)

    def run(self, key: UploadKey) -> Callable[[], Awaitable[OperatorRejected | OperatorUnavailable | None]]:
        """Return the function that runs one upload."""

        async def run() -> OperatorRejected | OperatorUnavailable | None:
            self.started.append(key)
            self.ends[key] = asyncio.get_running_loop().create_future()
            return await self.ends[key]

        return run

    async def end(self, key: UploadKey, outcome: OperatorRejected | OperatorUnavailable | None = None) -> None:
        """End an upload."""
        self.ends[key].set_result(outcome)
        await run_ready_tasks()


async def run_ready_tasks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def schedule(uploads: UploadScheduler, controlled: ControlledUploads, *keys: UploadKey) -> list[UploadFailure | None]:
    results: list[UploadFailure | None] = []
    uploads.schedule({key: controlled.run(key) for key in keys}, results.append)
    return results


async def test_one_medium_is_uploaded_once_for_all_jobs_that_need_it() -> None:
    uploads, controlled = UploadScheduler(), ControlledUploads()
    first = schedule(uploads, controlled, ("m", "a"))
    second = schedule(uploads, controlled, ("m", "a"))
    await run_ready_tasks()

    await controlled.end(("m", "a"))

    assert controlled.started == [("m", "a")]
    assert (first, second) == ([None], [None])


async def test_one_location_has_two_uploads_at_once_and_others_continue() -> None:
    uploads, controlled = UploadScheduler(), ControlledUploads()
    for medium in "1234":
        schedule(uploads, controlled, (medium, "a"))
    schedule(uploads, controlled, ("1", "b"))
    await run_ready_tasks()
    before = list(controlled.started)

    await controlled.end(("1", "a"))

    assert before == [("1", "a"), ("2", "a"), ("1", "b")]
    assert controlled.started[3:] == [("3", "a")]


async def test_uploads_of_a_process_are_limited_and_locations_take_turns() -> None:
    uploads, controlled = UploadScheduler(max_concurrent=2, max_per_location=2), ControlledUploads()
    for medium in "1234":
        schedule(uploads, controlled, (medium, "a"))
    schedule(uploads, controlled, ("1", "b"))
    await run_ready_tasks()

    await controlled.end(("1", "a"))
    await controlled.end(("2", "a"))

    assert controlled.started == [("1", "a"), ("2", "a"), ("3", "a"), ("1", "b")]


async def test_job_that_needs_several_is_notified_when_all_are_uploaded() -> None:
    uploads, controlled = UploadScheduler(), ControlledUploads()
    results = schedule(uploads, controlled, ("1", "a"), ("2", "a"))
    await run_ready_tasks()

    await controlled.end(("1", "a"))
    before = list(results)
    await controlled.end(("2", "a"))

    assert (before, results) == ([], [None])


async def test_first_failure_is_reported_at_once_and_nothing_after_it() -> None:
    uploads, controlled = UploadScheduler(), ControlledUploads()
    results = schedule(uploads, controlled, ("1", "a"), ("2", "a"))
    other = schedule(uploads, controlled, ("2", "a"))
    await run_ready_tasks()

    await controlled.end(("1", "a"), REJECTED)
    await controlled.end(("2", "a"))

    assert (results, other) == ([REJECTED], [None])


async def test_defect_is_reported_and_frees_its_slot() -> None:
    uploads, controlled = UploadScheduler(max_concurrent=1), ControlledUploads()
    results: list[UploadFailure | None] = []

    async def broken() -> None:
        raise FileNotFoundError("no such file")

    uploads.schedule({("1", "a"): broken}, results.append)
    schedule(uploads, controlled, ("2", "a"))
    await run_ready_tasks()

    assert [type(result) for result in results] == [FileNotFoundError]
    assert controlled.started == [("2", "a")]


async def test_failed_upload_is_started_again_for_a_later_job() -> None:
    uploads, controlled = UploadScheduler(), ControlledUploads()
    schedule(uploads, controlled, ("1", "a"))
    await run_ready_tasks()
    await controlled.end(("1", "a"), REJECTED)

    results = schedule(uploads, controlled, ("1", "a"))
    await run_ready_tasks()
    await controlled.end(("1", "a"))

    assert results == [None]


async def test_close_cancels_uploads_and_notifies_nobody() -> None:
    uploads, controlled = UploadScheduler(max_concurrent=1), ControlledUploads()
    results = schedule(uploads, controlled, ("1", "a"))
    results += schedule(uploads, controlled, ("2", "a"))
    await run_ready_tasks()

    await uploads.close()

    assert results == []
    assert controlled.started == [("1", "a")]
