"""Uploads beside the queue: each once, few at a time, and everybody who needs one is told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from waypost.dispatch.uploads import UploadFailure, UploadKey, UploadScheduler
from waypost.domain.outcome import Rejected, Unavailable

REFUSED = Rejected(100, "no such file type")


@dataclass
class Line:
    """Uploads that end when a test says so.

    Attributes:
        begun: what has been begun, in order.
    """

    begun: list[UploadKey] = field(default_factory=list[UploadKey])
    ends: dict[UploadKey, asyncio.Future[Rejected | Unavailable | None]] = field(default_factory=dict)

    def run(self, key: UploadKey) -> Callable[[], Awaitable[Rejected | Unavailable | None]]:
        """What does one."""

        async def run() -> Rejected | Unavailable | None:
            self.begun.append(key)
            self.ends[key] = asyncio.get_running_loop().create_future()
            return await self.ends[key]

        return run

    async def end(self, key: UploadKey, with_: Rejected | Unavailable | None = None) -> None:
        """One ends."""
        self.ends[key].set_result(with_)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def bring(uploads: UploadScheduler, line: Line, *keys: UploadKey) -> list[UploadFailure | None]:
    told: list[UploadFailure | None] = []
    uploads.schedule({key: line.run(key) for key in keys}, told.append)
    return told


async def test_one_medium_is_uploaded_once_for_all_who_need_it() -> None:
    uploads, line = UploadScheduler(), Line()
    first = bring(uploads, line, ("m", "a"))
    second = bring(uploads, line, ("m", "a"))
    await settle()

    await line.end(("m", "a"))

    assert line.begun == [("m", "a")]
    assert (first, second) == ([None], [None])


async def test_one_place_has_two_at_once_and_others_go_on() -> None:
    uploads, line = UploadScheduler(), Line()
    for medium in "1234":
        bring(uploads, line, (medium, "a"))
    bring(uploads, line, ("1", "b"))
    await settle()
    before = list(line.begun)

    await line.end(("1", "a"))

    assert before == [("1", "a"), ("2", "a"), ("1", "b")]
    assert line.begun[3:] == [("3", "a")]


async def test_process_has_so_many_at_once_and_places_take_turns() -> None:
    uploads, line = UploadScheduler(max_concurrent=2, max_per_location=2), Line()
    for medium in "1234":
        bring(uploads, line, (medium, "a"))
    bring(uploads, line, ("1", "b"))
    await settle()

    await line.end(("1", "a"))
    await line.end(("2", "a"))

    assert line.begun == [("1", "a"), ("2", "a"), ("3", "a"), ("1", "b")]


async def test_whoever_needs_several_is_told_when_all_are_there() -> None:
    uploads, line = UploadScheduler(), Line()
    told = bring(uploads, line, ("1", "a"), ("2", "a"))
    await settle()

    await line.end(("1", "a"))
    early = list(told)
    await line.end(("2", "a"))

    assert (early, told) == ([], [None])


async def test_first_failure_is_told_at_once_and_nothing_after_it() -> None:
    uploads, line = UploadScheduler(), Line()
    told = bring(uploads, line, ("1", "a"), ("2", "a"))
    other = bring(uploads, line, ("2", "a"))
    await settle()

    await line.end(("1", "a"), REFUSED)
    await line.end(("2", "a"))

    assert (told, other) == ([REFUSED], [None])


async def test_defect_is_told_and_frees_its_place() -> None:
    uploads, line = UploadScheduler(max_concurrent=1), Line()
    told: list[UploadFailure | None] = []

    async def broken() -> None:
        raise FileNotFoundError("no such file")

    uploads.schedule({("1", "a"): broken}, told.append)
    bring(uploads, line, ("2", "a"))
    await settle()

    assert [type(one) for one in told] == [FileNotFoundError]
    assert line.begun == [("2", "a")]


async def test_failed_upload_is_begun_anew_by_whoever_comes_later() -> None:
    uploads, line = UploadScheduler(), Line()
    bring(uploads, line, ("1", "a"))
    await settle()
    await line.end(("1", "a"), REFUSED)

    told = bring(uploads, line, ("1", "a"))
    await settle()
    await line.end(("1", "a"))

    assert told == [None]


async def test_close_cuts_off_and_tells_nobody() -> None:
    uploads, line = UploadScheduler(max_concurrent=1), Line()
    told = bring(uploads, line, ("1", "a"))
    told += bring(uploads, line, ("2", "a"))
    await settle()

    await uploads.close()

    assert told == []
    assert line.begun == [("1", "a")]
