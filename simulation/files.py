"""The files of partners and phones: uploaded, sent, downloaded and deleted, and what must be true of each.

Promises: an upload that was acknowledged is on disk, and comes back byte for byte; nobody gets half of a file; the
operator gets what the partner has uploaded; an upload that failed leaves no row and, an hour later, no file.
"""

import asyncio
import base64
import hashlib
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simulation.accounts import PORTS, AppAccount, PartnerAccount
from simulation.choices import Choices, declare
from simulation.client import Response, request
from simulation.faults import read_body, respond
from simulation.observed import PERSON, Observed, SentRequest
from simulation.partners import PHONES
from simulation.phones import JPEG
from simulation.story import tell
from tests.support.media_samples import sample
from waypost.store.media.files import NAME_FILE

TURNS: Final = 3
TURN_EVERY_S: Final = 7
ATTEMPTS: Final = 3
AGAIN_AFTER_S: Final = (1, 5, 20)
SIZES_BYTES: Final = (100, 3000, 20_000, 700_000)
"""The last one is written in two parts."""
DOWNLOAD_EVERY_S: Final = 0.12
"""At the end: ten a second are allowed."""
LINK: Final = re.compile(rb'"https?://[^"/]+(/media/[0-9a-f]{64})[?"]')
OPERATOR_ID: Final = re.compile(r'"id": ?"(\d+)"')
REJECTED: Final = (400, 413, 422)
PHONE_FILE: Final = base64.b64decode(JPEG + "=" * (-len(JPEG) % 4))

declare(
    {
        "partner uploads a file": "a partner uploaded a file",
        "partner uploads a file by link": "a partner let the service fetch a file from a site",
        "partner uploads the same bytes": "a partner uploaded bytes that are stored already",
        "partner repeats an upload": "a partner sent an upload without a response again with its idempotency key",
        "partner sends an uploaded file": "a partner sent a file that it had uploaded",
        "partner downloads a file": "a partner downloaded a file that it had uploaded",
        "partner downloads what a phone sent": "a partner downloaded a file that a phone had sent",
        "partner deletes an upload": "a partner deleted a file that it had uploaded",
    }
)


class Site:
    """A site with the files that partners name by link."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Return a file."""
        await read_body(receive)
        content = self.files.get(scope["path"])
        headers = [(b"content-type", b"image/png")]
        await respond(send, 404 if content is None else 200, headers, content or b"")


@dataclass
class FileUpload:
    """An upload that was acknowledged; `is_kept` until its partner may have deleted it."""

    id: str
    app: AppAccount
    content: bytes
    is_kept: bool = True


class FileActor:
    """One partner with its files.

    Args:
        ports: of the processes of the service.
        folder: of the service's media.
        send: sends a message.
        check_acknowledged: called with the id of what was just acknowledged, and its table.
    """

    def __init__(
        self,
        account: PartnerAccount,
        choices: Choices,
        observed: Observed,
        ports: Sequence[int],
        folder: Path,
        site: Site,
        send: Callable[[AppAccount, str, dict[str, str], str], Awaitable[SentRequest]],
        check_acknowledged: Callable[[str, str], None],
    ) -> None:
        self._account, self._choices, self._observed = account, choices, observed
        self._ports, self._folder, self._site = ports, folder, site
        self._send, self._check_acknowledged = send, check_acknowledged
        self._name = f"partner {account.number}"
        self._count = 0
        self.uploads: list[FileUpload] = []
        self.sent: dict[str, bytes] = {}  # the file of each message, by its id

    async def work(self) -> None:
        """Do what a partner does with files, in a few turns."""
        for _ in range(TURNS):
            await asyncio.sleep(self._choices.between(f"{self._name} file pause", 0.1, TURN_EVERY_S))
            app = self._choices.pick(f"{self._name} file app", self._account.apps)
            for kind, is_link in (("partner uploads a file", False), ("partner uploads a file by link", True)):
                if self._choices.happens(kind, 0.4):
                    await self._upload(app, kind, is_link=is_link)
            kept = [one for one in self.uploads if one.app is app and one.is_kept]
            kinds = ("partner sends an uploaded file", "partner downloads a file", "partner deletes an upload")
            sends, downloads, deletes = [
                self._choices.happens(kind, share) for kind, share in zip(kinds, (0.6, 0.4, 0.15), strict=True)
            ]
            if self._choices.happens("partner downloads what a phone sent", 0.4):
                for path in list(_links(self._observed, f"/{app.name}/"))[-1:]:
                    await self._get(path, {}, PHONE_FILE)
            if not kept:
                continue
            if sends:
                await self._send_file(app, kept[-1])
            if downloads:
                await self.download(kept[-1])
            if deletes:
                kept[0].is_kept = False
                await self._call("DELETE", app, f"media/{kept[0].id}")

    async def _upload(self, app: AppAccount, kind: str, *, is_link: bool) -> None:
        content = self._make_content(self._choices.pick("bytes", SIZES_BYTES, of=kind))
        self._count += 1
        file, file_type = content, "image/png"
        if content[:2] == PHONE_FILE[:2]:
            file_type = "image/jpeg"
        if is_link:
            path = f"/{self._account.number}-{self._count}.png"
            self._site.files[path] = content
            file = f"http://127.0.0.1:{PORTS['site']}{path}".encode()
        repeats = self._choices.happens("partner repeats an upload", 0.5)
        key = f"{self._name}-file-{self._count}" if repeats else ""
        ids, statuses = set[str](), list[int | None]()
        for nth in range(ATTEMPTS if repeats else 1):
            form = _make_form(file, file_type, is_link=is_link)
            response = await self._call("POST", app, "media", form, key)
            statuses.append(None if response is None else response.status)
            if response is not None and response.status == 200 and response.body is not None:
                ids.add(response.body["mediaId"])
                break
            await asyncio.sleep(AGAIN_AFTER_S[nth])
        tell(f"{app.name} uploaded {len(content)} bytes{' by link' * is_link}, and got {statuses}")
        if not is_link and (unexpected := {*statuses} & {*REJECTED}):
            self._break(f"a valid file got {unexpected}")
        for media_id in ids:
            self.uploads.append(FileUpload(media_id, app, content))
            self._check_stored(media_id, content)

    def _make_content(self, size_bytes: int) -> bytes:
        """Return bytes of an image: its own, or those that are stored already."""
        if self._choices.happens("partner uploads the same bytes", 0.3):
            others = [PHONE_FILE, *(one.content for one in self.uploads[-1:])]
            return self._choices.pick("of", others, of="partner uploads the same bytes")
        label = f"{self._name} file {self._count} ".encode()
        return sample("png") + (label * (size_bytes // len(label) + 1))[:size_bytes]

    def _check_stored(self, media_id: str, content: bytes) -> None:
        """200 means on disk: the row and the whole file are there."""
        self._check_acknowledged(media_id, "media")
        path = self._folder / hashlib.sha256(content).hexdigest()
        if not path.exists() or path.read_bytes() != content:
            self._break(f"the upload {media_id} was acknowledged, and its bytes are not on disk")

    async def _send_file(self, app: AppAccount, upload: FileUpload) -> None:
        to = self._choices.pick("to", PHONES, of="partner sends an uploaded file")
        sent = await self._send(app, to, {"message": json.dumps({"type": "image", "id": upload.id})}, "/wa/api/v1/msg")
        self.sent |= dict.fromkeys(sent.ids, upload.content)

    async def download(self, upload: FileUpload, *, is_last: bool = False) -> None:
        """Download a file; it is the one that was uploaded. `is_last`: nothing else goes wrong."""
        headers = {"Authorization": upload.app.token}
        path = f"/partner/app/{upload.app.id}/media/{upload.id}"
        status = await self._get(path, headers, upload.content)
        is_missing = status == 404 or (is_last and status not in (200, 401))  # 401: its partner does not know its token
        if upload.is_kept and is_missing:
            self._break(f"the upload {upload.id} was acknowledged, and its download got {status}")

    async def download_of_phones(self, *, may_be_lost: bool) -> None:
        """Download, at the end, each file that a phone sent; the operator may have rejected to give it.

        One that the person has sent whose data is erased may be erased by then.
        """
        for path, is_of_person in [
            link for app in self._account.apps for link in _links(self._observed, f"/{app.name}/").items()
        ]:
            status = await self._get(path, {}, PHONE_FILE)
            if status != 200 and not (status == 404 and (may_be_lost or is_of_person)):
                self._break(f"a phone sent {path}, and its download got {status}")
            await asyncio.sleep(DOWNLOAD_EVERY_S)

    async def _get(self, path: str, headers: dict[str, str], content: bytes) -> int | None:
        response = await request(self._choose_port(), "GET", path, headers)
        if response is not None and response.status == 200 and response.content != content:
            self._break(f"{path} returned {len(response.content)} bytes, which are not those of {len(content)} bytes")
        return None if response is None else response.status

    async def _call(
        self, method: str, app: AppAccount, path: str, form: tuple[bytes, str] | None = None, key: str = ""
    ) -> Response | None:
        headers = {"Authorization": app.token} | ({"Idempotency-Key": key} if key else {})
        return await request(self._choose_port(), method, f"/partner/app/{app.id}/{path}", headers, content=form)

    def _choose_port(self) -> int:
        return self._choices.pick(f"{self._name} file port", self._ports)

    def _break(self, text: str) -> None:
        self._observed.broken.append(text)


def _make_form(file: bytes, file_type: str, *, is_link: bool) -> tuple[bytes, str]:
    """Return the body of an upload, and its type."""
    name = "" if is_link else '; filename="a.png"'
    part = f'--edge\r\nContent-Disposition: form-data; name="file"{name}\r\n'
    part += "" if is_link else f"Content-Type: {file_type}\r\n"
    return part.encode() + b"\r\n" + file + b"\r\n--edge--\r\n", "multipart/form-data; boundary=edge"


def _links(observed: Observed, prefix: str) -> dict[str, bool]:
    """Return the paths of files that phones have sent, from the callbacks to some paths.

    The values say whether the person has sent it whose data is erased.
    """
    return {
        match.decode(): PERSON.encode() in one.body
        for one in observed.exchanges
        if one.site.startswith("receiver") and one.path.startswith(prefix)
        for match in LINK.findall(one.body)
    }


async def check_downloads(actors: Iterable[FileActor], observed: Observed) -> None:
    """Check, at the end, that each file comes back."""
    may_be_lost = any(
        one.site == "operator" and one.method == "GET" and (one.status or 0) in (400, 404) for one in observed.exchanges
    )
    for actor in actors:
        for upload in actor.uploads:
            await actor.download(upload, is_last=True)
            await asyncio.sleep(DOWNLOAD_EVERY_S)
        await actor.download_of_phones(may_be_lost=may_be_lost)


def find_wrong_copies(actors: Iterable[FileActor], messages: Iterable[Any], media: Iterable[Any]) -> Iterable[str]:
    """Yield the messages whose file at the operator is not the one that was uploaded.

    Args:
        messages: of the operator: our id and more, and the content.
        media: of the operator: its id, and JSON with the digest of its bytes.
    """
    digests = {key: json.loads(body)["sha256"] for key, body in media}
    sent = {message_id: content for actor in actors for message_id, content in actor.sent.items()}
    for data, content in messages:
        expected = sent.get(data.split(" ")[0])
        for operator_id in OPERATOR_ID.findall(content) if expected is not None else ():
            if operator_id in digests and digests[operator_id] != hashlib.sha256(expected or b"").hexdigest():
                yield f"the operator got another file for {data} than was uploaded"


def find_incomplete(folder: Path) -> list[str]:
    """Return what is left of files that were not received whole: nobody receives one now."""
    return [f"the incomplete file {path.name} is left" for path in sorted(folder.glob("incoming-*"))]


def make_old(folder: Path) -> None:
    """Let every file be older than one that may belong to a row that is not written yet."""
    for path in folder.iterdir():
        os.utime(path, (0, 0))


def find_lost_files(folder: Path, named: set[str]) -> Iterable[str]:
    """Yield files that rows name and that are missing, and those that no row names.

    Args:
        named: the digests that rows have.
    """
    found = {path.name for path in folder.iterdir()} - {NAME_FILE}
    yield from (f"a row names the file {name}, which is lost" for name in sorted(named - found))
    yield from (f"the file {name} is left, and no row names it" for name in sorted(found - named))
