"""The beginning of an HTTP/1.1 request: where it goes, its first line and its headers."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from yarl import URL

from waypost.base.http.connection_pools import PoolKey

CLIENT_HEADERS: Final = frozenset({"content-length", "transfer-encoding", "connection", "host"})
"""Headers that only the client sets."""


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """A parsed URL, ready for requests."""

    request_head: bytes  # the request line and the Host header, with the URL's own credentials
    pool_key: PoolKey


def parse_target(method: str, url: str | URL) -> RequestTarget:
    """Parse a URL. Raises ValueError: it is not a URL of http or https."""
    parsed = URL(url)
    text = str(url)[:200]
    if parsed.scheme not in ("http", "https") or not parsed.raw_host or not parsed.port:
        raise ValueError(f"{text} is not a URL of http or https")
    opening = f"{method} {parsed.raw_path_qs or '/'} HTTP/1.1\r\nHost: {parsed.host_port_subcomponent}\r\n"
    if parsed.user is not None:
        secret = base64.b64encode(f"{parsed.user}:{parsed.password or ''}".encode()).decode()
        opening += f"Authorization: Basic {secret}\r\n"
    if "\r" in opening.replace("\r\n", "") or opening.isascii() is False:
        raise ValueError(f"{text} cannot be sent")
    return RequestTarget(opening.encode(), (parsed.raw_host, parsed.port, parsed.scheme == "https"))


def header_lines(headers: Mapping[str, str], framing: str) -> bytes:
    """Return a request's headers, and the empty line that ends them.

    Args:
        headers: the last of one name counts; those of `CLIENT_HEADERS` are dropped.
        framing: the lines that give the length of the body, each with its end.

    Raises:
        ValueError: a header has a line break or a zero.
    """
    if _are_names_plain(tuple(headers)):
        text, lines = "", len(headers)
        for name, value in headers.items():
            text += f"{name}: {value}\r\n"
    else:
        by_name = {name.lower(): f"{name}: {value}\r\n" for name, value in headers.items()}
        kept = [line for name, line in by_name.items() if name not in CLIENT_HEADERS]
        text, lines = "".join(kept), len(kept)
    if not text.count("\r") == text.count("\n") == lines or "\0" in text:
        raise ValueError("a header has a line break or a zero in it")
    return f"{text}{framing}\r\n".encode()


@lru_cache(maxsize=4096)
def _are_names_plain(names: tuple[str, ...]) -> bool:
    """Return True if no header is there twice, and none is set by the client."""
    lower = {name.lower() for name in names}
    return len(lower) == len(names) and not lower & CLIENT_HEADERS
