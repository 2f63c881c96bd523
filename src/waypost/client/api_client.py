"""The asynchronous client of one API, over HTTP or directly to the service in this process."""

import re
from collections.abc import AsyncGenerator, Mapping
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import urlencode

from waypost.base.written_numbers import encode_json
from waypost.client.operations import operation_request
from waypost.client.responses import ApiResponseError, ApiUnreachable, ClientResponse, read_json_response
from waypost.client.transports import (
    STREAM_CHUNK_BYTES,
    Application,
    HttpTransport,
    InProcessTransport,
    StreamedResponse,
    Transport,
)


class RereadableFile(Protocol):
    """A file that can be read more than once, such as a file of a form on disk."""

    async def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes; empty at the end."""
        ...

    async def seek(self, offset: int, /) -> Any:
        """Continue reading at this offset."""
        ...


async def file_chunks(file: bytes | RereadableFile) -> AsyncGenerator[bytes]:
    """Yield the bytes of a file from its beginning."""
    if isinstance(file, bytes):
        yield file
        return
    await file.seek(0)
    while chunk := await file.read(STREAM_CHUNK_BYTES):
        yield chunk


__all__ = (
    "ApiClient",
    "ApiResponseError",
    "ApiUnreachable",
    "Application",
    "ClientResponse",
    "HttpTransport",
    "InProcessTransport",
    "StreamedResponse",
    "Transport",
)  # fmt: skip


class ApiClient:
    """A client of one API, whose headers have its credential.

    Every call raises ApiResponseError for a status other than 2xx, and ApiUnreachable if there is no response.
    """

    def __init__(self, transport: Transport, headers: Mapping[str, str]) -> None:
        self._transport = transport
        self._headers = dict(headers)

    async def call(self, operation: str, /, **values: Any) -> Any:
        """Call an operation of the admin or the control API and return the JSON response.

        Args:
            operation: method and path as declared, such as `GET /admin/partners/{partner_id}/quotas`.
            values: of its parameters and fields, by name.
        """
        return await self.json(*operation_request(operation, values))

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """Send a JSON body and return the JSON response."""
        headers = {**self._headers, "Content-Type": "application/json"}
        content = None if body is None else encode_json(body)
        return read_json_response(await self._transport(method, path, headers, content), f"{method} {path}")

    async def file(
        self, path: str, content: bytes | RereadableFile, *, name: str, media_type: str, method: str = "POST"
    ) -> Any:
        """Upload a file as the field `file` of a multipart form; return the JSON response."""
        digest = sha256()
        async for chunk in file_chunks(content):
            digest.update(chunk)
        boundary = f"waypost-{digest.hexdigest()}"  # a text cannot hold its own digest
        file_name = re.sub(r'["\r\n]', "_", name)
        content_type = re.sub(r"[\r\n]", "", media_type)
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{file_name}"\r\n'
            f"Content-Type: {content_type}\r\n\r\n"
        )
        parts = (head.encode(), content, f"\r\n--{boundary}--\r\n".encode())
        body = (chunk for part in parts async for chunk in file_chunks(part))
        headers = {**self._headers, "Content-Type": f"multipart/form-data; boundary={boundary}"}
        return read_json_response(await self._transport(method, path, headers, body), f"{method} {path}")

    async def plain_file(self, path: str, content: RereadableFile) -> Any:
        """Upload a file as the body itself, in chunks; return the JSON response."""
        headers = {**self._headers, "Content-Type": "application/octet-stream"}
        response = await self._transport("POST", path, headers, file_chunks(content))
        return read_json_response(response, f"POST {path}")

    async def form(self, method: str, path: str, fields: Mapping[str, str]) -> Any:
        """Send a form and return the JSON response."""
        headers = {**self._headers, "Content-Type": "application/x-www-form-urlencoded"}
        return read_json_response(await self._transport(method, path, headers, urlencode(fields).encode()))
