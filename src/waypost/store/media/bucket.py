"""Bytes of media in a bucket of an S3-compatible server; only loaded if the setting `media_url` is set.

A file is received in a local folder, as without a bucket, and is complete once the bucket has it. The folder is
only a cache: it keeps what was received or read in the last hour, and any of it may be lost.
"""

import asyncio
import hashlib
import os
import re
import secrets
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from waypost.store.contract import MediaUnavailable
from waypost.store.media.files import NAME_FILE, MediaFiles, NotEnoughSpace, ReferencedNamesQuery

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, S3Config

CONNECT_TIMEOUT_S: Final = 5
REQUEST_TIMEOUT_S: Final = 300  # of one request with its body: a file has at most 100 MiB
RETRY_TIMEOUT_S: Final = 20
MAX_RETRIES: Final = 3
EVICT_EVERY_S: Final = 600
_CONCURRENT_PARTS: Final = 2
_LIST_BATCH: Final = 500
_CHUNK_BYTES: Final = 1024 * 1024
_STATUS: Final = re.compile(r"\bstatus:? (\d{3})\b|\b(?=[45])(\d{3}) [A-Z]")
_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (FileNotFoundError, "there is no such bucket, or the file is not in it"),
    (UnauthenticatedError, "the server does not accept media_access_key_id and media_secret_key"),
    (
        PermissionDeniedError,
        "the server does not allow it: check media_access_key_id, media_secret_key and their rights",
    ),
)


@dataclass(frozen=True, slots=True)
class BucketAccess:
    """The bucket and the credentials for it."""

    url: str  # `s3://bucket/prefix`
    endpoint: str | None  # URL of the server; None: that of AWS in the region
    region: str  # of the bucket
    access_key_id: str | None  # without key and secret, those of the environment or of the machine's role
    secret_key: str | None


class BucketMedia(MediaFiles):
    """A bucket of files; `reserved_bytes` is how much space its cache leaves free on its disk."""

    def __init__(self, access: BucketAccess, folder: Path, *, reserved_bytes: int = 0) -> None:
        super().__init__(folder, reserved_bytes=reserved_bytes)
        self._store = _open_bucket(access)
        self._url = access.url.rstrip("/")
        self._downloads: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._evict_at_s = 0.0

    @property
    def location(self) -> str:
        """URL of the bucket, with the prefix."""
        return self._url

    async def ensure_name(self, new_name: str) -> str:
        """See `MediaFiles.ensure_name`; the name is an object."""
        async with self._report("write"):
            with suppress(AlreadyExistsError):
                await obstore.put_async(self._store, NAME_FILE, new_name.encode(), mode="create", use_multipart=False)
            stored = await obstore.get_async(self._store, NAME_FILE)
            return bytes(await stored.bytes_async()).decode("ascii", "replace").strip()

    async def store(self, sha256: str) -> None:
        """Upload a received file; it is complete and durable afterwards."""
        async with self._report("write"):
            await obstore.put_async(self._store, sha256, self.path(sha256), max_concurrency=_CONCURRENT_PARTS)
        await self._evict_if_due()

    async def local_path(self, sha256: str) -> Path:
        """Return the path of a copy in the cache, which stays for an hour; downloaded if it is not there."""
        lock = self._downloads.setdefault(sha256, asyncio.Lock())
        async with lock:  # several readers of one file share its download
            if not await asyncio.to_thread(self._touch, sha256):
                await self._evict_if_due()
                await self._download(sha256)
        return self.path(sha256)

    async def sweep(self, referenced: ReferencedNamesQuery) -> int:
        """Delete objects that no row refers to, unless they are recent; return how many."""
        removed = 0
        newest = datetime.fromtimestamp(self.old_before_ms() / 1000, UTC)
        async with self._report("list"):
            async for objects in self._list(None):
                names = [each["path"] for each in objects if len(each["path"]) == 64 and each["last_modified"] < newest]
                kept = await referenced(names) if names else set[str]()
                for name in names:
                    if name not in kept and await self._is_old(name, newest):
                        await obstore.delete_async(self._store, name)
                        removed += 1
        await self._evict()
        return removed

    async def delete(self, names: Sequence[str]) -> None:
        """See `MediaFiles.delete`; caches of other processes keep a copy for at most an hour after it was read."""
        async with self._report("delete"):
            for name in names:
                await obstore.delete_async(self._store, name)
        await super().delete(names)

    async def probe(self) -> str | None:
        """Write, read, list and delete an object; return why that fails."""
        name, content = f".waypost-probe-{secrets.token_hex(8)}", secrets.token_bytes(16)
        try:
            async with self._report("write"):
                await obstore.put_async(self._store, name, content, use_multipart=False)
            async with self._report("read"):
                stored = bytes(await (await obstore.get_async(self._store, name)).bytes_async())
            async with self._report("list"):
                async for _ in self._list(name):
                    pass
            async with self._report("delete"):
                await obstore.delete_async(self._store, name)
        except MediaUnavailable as error:
            return str(error)
        return None if stored == content else f"{self.location} returns other bytes than were written"

    def _list(self, prefix: str | None) -> "AsyncIterator[Sequence[ObjectMeta]]":
        # its type is of two kinds, one of them Arrow's
        return cast("Any", obstore).list(self._store, prefix, chunk_size=_LIST_BATCH)

    async def _is_old(self, name: str, newest: datetime) -> bool:
        """Check again, just before it is deleted: the same bytes may have been received meanwhile."""
        try:
            return (await obstore.head_async(self._store, name))["last_modified"] < newest
        except FileNotFoundError:
            return False

    async def _download(self, sha256: str) -> None:
        """Download a file into the cache.

        Raises:
            FileNotFoundError: the bucket does not have it.
            MediaUnavailable: the bucket cannot be reached, or there is no space for it.
        """
        async with self._report("read", missing_is_failure=False):
            found = await obstore.get_async(self._store, sha256)
            try:
                await asyncio.to_thread(self.check_space, found.meta["size"])
            except NotEnoughSpace as error:
                raise MediaUnavailable("there is no space to read a media file from its bucket") from error
            file = await asyncio.to_thread(
                tempfile.NamedTemporaryFile, dir=self._folder, prefix="incoming-", delete=False
            )
            path, digest = Path(file.name), hashlib.sha256()
            try:
                async for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                    part = bytes(chunk)
                    digest.update(part)
                    await asyncio.to_thread(file.write, part)
                await asyncio.to_thread(file.close)
                if digest.hexdigest() != sha256:
                    raise MediaUnavailable(f"{self.location}/{sha256} does not have the bytes that were stored")
                await asyncio.to_thread(path.replace, self.path(sha256))
            finally:
                file.close()
                await asyncio.to_thread(path.unlink, missing_ok=True)

    def _touch(self, sha256: str) -> bool:
        with self._rename_lock:  # so that it is not evicted before it is read
            try:
                os.utime(self.path(sha256))
            except FileNotFoundError:
                return False
            return True

    async def _evict_if_due(self) -> None:
        if time.monotonic() >= self._evict_at_s:
            await self._evict()

    async def _evict(self) -> None:
        self._evict_at_s = time.monotonic() + EVICT_EVERY_S
        before_ms = self.old_before_ms()
        names = await asyncio.to_thread(self._old_names, before_ms)
        await asyncio.to_thread(self._remove, names, before_ms)

    @asynccontextmanager
    async def _report(
        self, action: Literal["write", "read", "list", "delete"], *, missing_is_failure: bool = True
    ) -> AsyncGenerator[None]:
        """Translate errors of the bucket: it is a part of the store, and a retry may succeed."""
        try:
            yield
        except FileNotFoundError as error:  # the object, or the bucket
            if not missing_is_failure:
                raise
            raise self._unavailable(action, error) from error
        except BaseError as error:
            raise self._unavailable(action, error) from error

    def _unavailable(self, action: str, error: Exception) -> MediaUnavailable:
        return MediaUnavailable(f"cannot {action} media at media_url ({self.location}): {_reason(error)}")


def _reason(error: Exception) -> str:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    if status := _STATUS.search(str(error)):
        return f"the server responded with status {status[1] or status[2]}"
    return "the server gives no response; check media_endpoint and the network"


def _open_bucket(access: BucketAccess) -> S3Store:
    parts = urlsplit(access.url)
    config: S3Config = {"region": access.region}
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
        "timeout": timedelta(seconds=REQUEST_TIMEOUT_S),
    }
    if access.endpoint is not None:
        config["endpoint"] = access.endpoint
        client["allow_http"] = access.endpoint.startswith("http://")
    if access.access_key_id is not None and access.secret_key is not None:
        config["access_key_id"] = access.access_key_id
        config["secret_access_key"] = access.secret_key
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        config=config,
        client_options=client,
        retry_config={"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_TIMEOUT_S)},
    )
