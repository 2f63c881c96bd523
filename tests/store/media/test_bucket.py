"""Media in a bucket: complete once the bucket has it; the folder is only a cache."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.closed_port import closed_port
from tests.support.s3_server import BUCKET, S3Server, running_s3_server
from waypost.store.contract import StoreUnavailable
from waypost.store.media import bucket
from waypost.store.media import files as media_files
from waypost.store.media.bucket import BucketAccess, BucketMedia

CONTENT = os.urandom(6_300_000)  # more than one part of a multipart upload


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server with a bucket."""
    with running_s3_server() as server:
        yield server


def open_media(server: S3Server, folder: Path, **changed: str) -> BucketMedia:
    settings = {**server.settings, **changed}
    access = BucketAccess(
        settings["media_url"],
        endpoint=settings["media_endpoint"],
        region=settings["media_region"],
        access_key_id=settings["media_access_key_id"],
        secret_key=settings["media_secret_key"],
    )
    return BucketMedia(access, folder)


async def store_file(media: BucketMedia, content: bytes) -> str:
    await media.open(exclusive=False)
    incoming = await media.begin()
    try:
        await incoming.add(content)
        return await incoming.commit()
    finally:
        await incoming.discard()


async def test_file_of_one_process_is_read_by_another_and_from_its_cache_afterwards(
    server: S3Server, tmp_path: Path
) -> None:
    url = f"s3://{BUCKET}/shared"
    sha256 = await store_file(open_media(server, tmp_path / "one", media_url=url), CONTENT)
    reader = open_media(server, tmp_path / "two", media_url=url)
    await reader.open(exclusive=False)

    path = await reader.local_path(sha256)

    assert path.read_bytes() == CONTENT
    assert f"shared/{sha256}" in server.object_names()
    assert [each.name for each in path.parent.iterdir()] == [sha256]
    path.write_bytes(b"cached")
    assert (await reader.local_path(sha256)).read_bytes() == b"cached"


async def test_cache_may_be_lost_and_deleted_file_is_in_no_place(server: S3Server, tmp_path: Path) -> None:
    media = open_media(server, tmp_path / "cache", media_url=f"s3://{BUCKET}/lost")
    sha256 = await store_file(media, CONTENT)
    shutil.rmtree(tmp_path / "cache")
    await media.open(exclusive=False)
    assert (await media.local_path(sha256)).read_bytes() == CONTENT

    await media.delete([sha256])

    with pytest.raises(FileNotFoundError):
        await media.local_path(sha256)
    assert f"lost/{sha256}" not in server.object_names()
    assert list((tmp_path / "cache").iterdir()) == []


async def test_sweep_deletes_old_files_without_a_row(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    media = open_media(server, tmp_path, media_url=f"s3://{BUCKET}/swept")
    kept, unreferenced = await store_file(media, b"kept"), await store_file(media, b"unreferenced")

    async def referenced(names: Sequence[str]) -> set[str]:
        return {kept} & set(names)

    assert await media.sweep(referenced) == 0  # both are recent
    monkeypatch.setattr(media_files, "MIN_SWEEP_AGE_MS", -5_000)  # the server's clock cannot be moved
    assert await media.sweep(referenced) == 1

    assert f"swept/{kept}" in server.object_names()
    assert f"swept/{unreferenced}" not in server.object_names()


async def test_changed_bytes_are_not_served(server: S3Server, tmp_path: Path) -> None:
    media = open_media(server, tmp_path / "one", media_url=f"s3://{BUCKET}/changed")
    sha256 = await store_file(media, CONTENT)
    (tmp_path / "one" / sha256).write_bytes(b"others")
    await media.store(sha256)  # as a damaged disk would
    reader = open_media(server, tmp_path / "two", media_url=f"s3://{BUCKET}/changed")
    await reader.open(exclusive=False)

    with pytest.raises(StoreUnavailable, match="does not have the bytes that were stored"):
        await reader.local_path(sha256)

    assert list((tmp_path / "two").iterdir()) == []


async def test_first_name_of_a_bucket_stays(server: S3Server, tmp_path: Path) -> None:
    media = open_media(server, tmp_path, media_url=f"s3://{BUCKET}/named")

    assert [await media.ensure_name("first"), await media.ensure_name("second")] == ["first", "first"]


async def test_check_names_what_cannot_be_done(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "MAX_RETRIES", 0)
    assert await open_media(server, tmp_path).probe() is None
    assert str(await open_media(server, tmp_path, media_url="s3://no-such-bucket").probe()) == (
        "cannot write media at media_url (s3://no-such-bucket): there is no such bucket, or the file is not in it"
    )
    with closed_port() as port:
        unreachable = open_media(server, tmp_path, media_endpoint=f"http://127.0.0.1:{port}")
        problem = str(await unreachable.probe())
        with pytest.raises(StoreUnavailable):
            await store_file(unreachable, b"not acknowledged")
    assert problem.startswith("cannot write media at media_url")
    assert problem.endswith(": the server gives no response; check media_endpoint and the network")
    assert server.settings["media_secret_key"] not in problem
