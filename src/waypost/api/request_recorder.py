"""Records requests in the request log: every failed one, and one of some successful ones.

An endpoint redacts the request and appends it to a queue in memory; a task writes what is there in batches, about
once a second. What waits holds no request, no body and no exception: the traceback of one would keep all three.
Source: decision 0108.
"""

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

from waypost.api.access_log import TrustedProxies, rate_limit_address
from waypost.api.authorisation import Credential, tokens_of
from waypost.api.requests import UNCOUNTED, Request, Scope
from waypost.api.route import BodyFormat, RouteRow
from waypost.base.clock import Clock
from waypost.base.encryption import hash_secret
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.domain.errors import ApiError
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database
from waypost.store.requests.request_log import (
    CallerNames,
    RequestLogEntry,
    add_request_entries,
    read_caller_names,
    trim_request_log,
)
from waypost.wire.errors import ERRORS, INTERNAL_TEXT
from waypost.wire.redaction import HIDDEN_SECRET, TextVisibility, mask_logged_request, mask_logged_response

MAX_QUEUED: Final = 2_000
"""Requests that wait to be written; further ones are counted and not logged."""
MAX_QUEUED_OF_PARTNER: Final = 500
"""Of these, those of one partner, so that none takes the place of all others."""
MAX_UNAUTHENTICATED_OF_ADDRESS: Final = 20
"""Requests without a valid credential that are logged in a minute, of one address."""
MAX_UNAUTHENTICATED: Final = 200
"""Likewise, of all addresses: nobody can fill the log without a credential."""
BATCH_ENTRIES: Final = 100
"""Of one transaction."""
FLUSH_EVERY_S: Final = 1.0
_MINUTE_MS: Final = 60_000
_NAMED_FIELD: Final = re.compile(r"(?P<header>The header )?(?P<field>[\w\[\]-]+(?:\.[\w\[\]-]+)*)")
"""The header or field that an explanation begins with."""
_ACCEPTED: Final = re.compile(r" must (?:be|hold|have) (.+?)\.?$", re.DOTALL)
"""What an explanation says to be accepted."""
MAX_LOGGED_BODY_BYTES: Final = 16 * 1024
"""Of a longer body only the size is logged."""
MAX_LOGGED_CHARS: Final = 8_000
"""Of a redacted body; of a longer one only the size is logged."""
MAX_TEXT_CHARS: Final = 500
_SHOWN_PARAMETERS: Final = frozenset({  # of a path; other values may be secret keys
    "app_id", "app_name", "element_name", "template_id", "message_id", "subscription_id", "flow_id", "group_id",
    "key_id", "phone", "reference_id", "configuration_name",
})  # fmt: skip
_RECIPIENT_MEMBERS: Final = ("destination", "to", "recipient", "user", "phone", "phoneNumber")
_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
_defects: Final = log("api")
_log: Final = ThrottledLog(_defects)


class RecordedRequest(NamedTuple):
    """A request that waits to be written: texts and numbers only."""

    entry: RequestLogEntry  # what is known without the store; its app is that of the path, another partner's too
    row: RouteRow
    token_hashes: tuple[str, ...]  # of its credentials
    source: str = ""  # the phone number of the app
    template_id: str = ""  # of the template that it sends
    # its content with the template's values, for a template without one-time codes; empty: the values are not shown
    content_with_params: str = ""


class RequestRecorder:
    """The log of requests of one process.

    Args:
        database: stores the entries.
        clock: provides their times.
        ids: makes their ids.
        proxies: those in front of the service.
        sample: one of how many successful requests is logged; 0: none.
        max_rows: how many entries a partner has at most.
        show_text: True if texts are stored, without secrets and one-time codes.

    Attributes:
        show_text: as given.
        counts: entries written, and those that were not, by reason.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        ids: Ids,
        proxies: TrustedProxies,
        *,
        sample: int,
        max_rows: int,
        show_text: bool = False,
    ) -> None:
        self.show_text = show_text
        self._database = database
        self._clock = clock
        self._ids = ids
        self._proxies = proxies
        self._sample = sample
        self._max_rows = max_rows
        self._successes = 0
        self._queue: list[RecordedRequest] = []
        self._queued_by_partner: Counter[int] = Counter()
        self._unauthenticated: Counter[str] = Counter()  # by address, within this minute
        self._minute = 0
        self._untrimmed: Counter[int | None] = Counter()
        self._stopped = asyncio.Event()
        self._queued = asyncio.Event()
        self.counts: Counter[str] = Counter()

    def is_sampled(self) -> bool:
        """Count a successful request; return True if it is to be logged."""
        if not self._sample:
            return False
        self._successes += 1
        return self._successes % self._sample == 0

    def record(
        self,
        scope: Scope,
        request: Request | None,
        row: RouteRow,
        status: int,
        error: ApiError | None,
        *,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes | None,
        took_s: float,
        request_id: str,
    ) -> None:
        """Queue one request to be written; count it if there is no room. The arguments are `describe_request`'s."""
        if UNCOUNTED in scope:
            return
        partner_id = None if request is None else request.partner_id
        reason = self._reason_against(scope, partner_id, status)
        if reason:
            self.counts[reason] += 1
            return
        self._queue.append(
            describe_request(
                request,
                row,
                status,
                error,
                headers=headers,
                body=body,
                id=self._ids.new(),
                at_ms=self._clock.now_ms(),
                took_s=took_s,
                request_id=request_id,
                show_text=self.show_text,
            )
        )
        self._queued.set()

    async def run(self) -> None:
        """Write what is queued, at most once a second, until `stop`; then write the rest."""
        while not self._stopped.is_set():
            await self._queued.wait()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), FLUSH_EVERY_S)
            self._queued.clear()
            await self.flush()

    def stop(self) -> None:
        """Make `run` write the rest and return."""
        self._stopped.set()
        self._queued.set()

    async def flush(self) -> None:
        """Write what is queued; entries that cannot be written are counted and dropped."""
        queued, self._queue = self._queue, []
        self._queued_by_partner.clear()
        for start in range(0, len(queued), BATCH_ENTRIES):
            batch = queued[start : start + BATCH_ENTRIES]
            try:
                await self._write(batch)
            except StoreUnavailable as error:
                self.counts["store unavailable"] += len(batch)
                _log.warning(str(error), entries=len(batch))
            except Exception:  # noqa: BLE001  the log of requests must not stop for one of them
                self.counts["defect"] += len(batch)
                _defects.exception("the request log could not be written")
        await self._trim()

    def _reason_against(self, scope: Scope, partner_id: int | None, status: int) -> str:
        """Return why a request is not logged; empty if it is."""
        if len(self._queue) >= MAX_QUEUED:
            return "queue full"
        if partner_id is not None:
            if self._queued_by_partner[partner_id] >= MAX_QUEUED_OF_PARTNER:
                return "partner"
            self._queued_by_partner[partner_id] += 1
            return ""
        minute = self._clock.now_ms() // _MINUTE_MS
        if minute != self._minute:
            self._minute = minute
            self._unauthenticated.clear()
        if self._unauthenticated.total() >= MAX_UNAUTHENTICATED:
            return "unauthenticated"
        address = rate_limit_address(self._proxies.client_address(scope))
        if self._unauthenticated[address] >= MAX_UNAUTHENTICATED_OF_ADDRESS:
            return "address"
        self._unauthenticated[address] += 1
        return ""

    async def _write(self, batch: Sequence[RecordedRequest]) -> None:
        app_ids = {one.entry.app_id for one in batch if one.entry.app_id}
        numbers = {one.source for one in batch if one.source}
        hashes = {token_hash for one in batch for token_hash in one.token_hashes}
        template_ids = {one.template_id for one in batch if one.content_with_params}
        names = CallerNames({}, {}, {}, ())
        if app_ids or numbers or hashes or template_ids:
            names = await self._database.read(read_caller_names, app_ids, numbers, hashes, template_ids)
        entries = [make_entry(one, names) for one in batch]
        await self._database.write_in_background(add_request_entries, entries)
        self.counts["written"] += len(entries)
        self._untrimmed.update(entry.partner_id for entry in entries)

    async def _trim(self) -> None:
        """Delete the oldest entries of partners that have got many new ones."""
        limit = max(self._max_rows // 10, 1)
        for partner_id in [one for one, count in self._untrimmed.items() if count >= limit]:
            try:
                while await self._database.write_in_background(trim_request_log, partner_id, self._max_rows):
                    pass
            except StoreUnavailable:
                return
            del self._untrimmed[partner_id]


def describe_request(
    request: Request | None,
    row: RouteRow,
    status: int,
    error: ApiError | None,
    *,
    headers: Sequence[tuple[bytes, bytes]],
    body: bytes | None,
    id: str,
    at_ms: int,
    took_s: float,
    request_id: str,
    show_text: bool,
) -> RecordedRequest:
    """Return what the log says of a request; its content and its response only if it had a valid credential.

    Args:
        request: None: it could not be read.
        row: of its route.
        status: of its response.
        error: that it ended in.
        headers: of its response as they are sent, except those of the server.
        body: of its response: JSON; empty: none; None: a file.
        id: of the entry.
        at_ms: the time of the response.
        took_s: from the request's headers to the response.
        request_id: as of the entry.
        show_text: True if texts are stored.
    """
    partner_id = None if request is None else request.partner_id
    message, explanation = _error_texts(error, status)
    entry = RequestLogEntry(
        id=id,
        at_ms=at_ms,
        partner_id=partner_id,
        app_id="" if request is None else request.app_id or request.path.get("app_id", ""),
        route=row.name,
        credential="",
        status=status,
        error=_error_name(error, status),
        message=_clean(message),
        explanation=_clean(explanation),
        field="" if error is None else _clean(_find_field(error, row)),
        accepted="" if error is None else _clean(_describe_accepted(error, row)),
        request="",
        response="",
        recipient="",
        size_bytes=0 if request is None else len(request.body),
        took_us=int(took_s * 1_000_000),
        request_id=request_id,
    )
    key = None if request is None else request.header(b"apikey")
    tokens = [*([key] if key else []), *(() if request is None else tokens_of(request))]
    recorded = RecordedRequest(entry, row, tuple(map(hash_secret, tokens)))
    if request is None or partner_id is None:
        return recorded
    entry = replace(entry, response=_render_response(headers, body, entry.message, show_text=show_text))
    return _add_content(recorded._replace(entry=entry), request, show_text=show_text)


def make_entry(recorded: RecordedRequest, names: CallerNames) -> RequestLogEntry:
    """Return the entry of a request, with the names of its caller."""
    entry = recorded.entry
    app_id = entry.app_id or names.apps.get(recorded.source, "")
    owner_id = names.partners.get(app_id)
    if entry.partner_id is not None and owner_id not in (None, entry.partner_id):
        owner_id = None  # another partner's app does not exist for this one
    return replace(
        entry,
        # A request without a valid credential is shown to the partner of the app in its path, without its content.
        partner_id=owner_id if entry.partner_id is None else entry.partner_id,
        app_id=_clean(app_id) if owner_id is not None else "",
        credential=_describe_credential(recorded, names),
        request=recorded.content_with_params if recorded.template_id in names.templates else entry.request,
    )


def _error_texts(error: ApiError | None, status: int) -> tuple[str, str]:
    """Return the message of an error response and its explanation; both empty for any other."""
    if error is None:
        return INTERNAL_TEXT if status >= 500 else "", ""
    text = error.text or ERRORS[error.code].text
    return (error.explanation, "") if text is None else (text, error.explanation)


def _error_name(error: ApiError | None, status: int) -> str:
    if error is not None:
        return error.code.value
    return "" if status < 400 else "unavailable" if status == 503 else "internal error"


def _describe_credential(recorded: RecordedRequest, names: CallerNames) -> str:
    if recorded.row.credential is Credential.NONE:
        return ""
    if recorded.entry.partner_id is None:
        return "not valid" if recorded.token_hashes else "not sent"
    known = (names.credentials.get(token_hash) for token_hash in recorded.token_hashes)
    return next((name for name in known if name), recorded.row.credential.value)


def _find_field(error: ApiError, row: RouteRow) -> str:
    """Return the invalid field: as the error names it, or the header or field that its explanation begins with."""
    named = _NAMED_FIELD.match(error.explanation)
    if error.field or named is None:
        return error.field
    outer = re.split(r"[.\[]", named["field"], maxsplit=1)[0]
    is_field = named["header"] or any(each.name == outer for each in (*row.fields, *row.query))
    return named["field"] if is_field else ""


def _describe_accepted(error: ApiError, row: RouteRow) -> str:
    """Return what would be accepted: what the error says, and what the reference says about the field."""
    name = re.split(r"[.\[]", _find_field(error, row), maxsplit=1)[0]
    known = next((each for each in (*row.fields, *row.query) if each.name == name), None) if name else None
    if known is None or "." in _find_field(error, row):
        rule = _ACCEPTED.search(error.explanation)
        return error.accepted or (rule[1] if rule else "")
    example = f" Example: {known.example}" if known.example else ""
    is_said = error.accepted.casefold() in known.meaning.casefold()
    return f"{'' if is_said else error.accepted + '. '}{known.meaning}{example}"


def _add_content(recorded: RecordedRequest, request: Request, *, show_text: bool) -> RecordedRequest:
    """Add the redacted request, the template and the recipient that it names, and the phone number of the app."""
    row = recorded.row
    size_bytes = len(request.body)
    is_long = size_bytes > MAX_LOGGED_BODY_BYTES
    query = request.scope.get("query_string", b"").decode("ascii", "replace")
    visibility = TextVisibility(show_text, holds_code=True)
    text = request.text() if request.body and not is_long else ""
    masked: Any = mask_logged_request(text, visibility) if text else None
    body: Any = masked
    if row.body_format is BodyFormat.MULTIPART:
        body = "(a form in parts)"
    elif is_long or len(json.dumps(masked)) > MAX_LOGGED_CHARS:
        body = f"({size_bytes} bytes)"
    masked_query: Any = mask_logged_request(query, visibility) if query and len(query) <= MAX_LOGGED_CHARS else None
    content: dict[str, Any] = {
        "path": _PARAMETER.sub(lambda match: _shown_parameter(request.path, match[1]), row.path),
        "query": masked_query if isinstance(masked_query, dict) else {},
        "type": (request.header(b"content-type") or "").partition(";")[0].strip()[:100],
        "credential": row.credential.value,
        "body": body,
    }
    members = cast("dict[str, Any]", masked if isinstance(masked, dict) else {})
    source = members.get("source")
    template = members.get("template")
    template_id = cast("dict[str, Any]", template).get("id") if isinstance(template, dict) and body is masked else None
    content_with_params = ""
    if show_text and isinstance(template_id, str):
        whole = content | {"body": mask_logged_request(text, TextVisibility(text=True))}
        content_with_params = json.dumps(whole, separators=(",", ":"))
    entry = replace(
        recorded.entry,
        request=json.dumps(content, separators=(",", ":")),
        recipient=_clean(_find_recipient(request.path, masked)),
    )
    return recorded._replace(
        entry=entry,
        template_id=template_id if isinstance(template_id, str) else "",
        content_with_params=content_with_params,
        source=source if isinstance(source, str) and source.isdecimal() else "",
    )


def _render_response(
    headers: Sequence[tuple[bytes, bytes]], body: bytes | None, message: str, *, show_text: bool
) -> str:
    """Return the redacted response as JSON; the message of an error is shown, for the entry has it anyway."""
    shown: Any = None
    if body is None:
        shown = "(a file)"
    elif len(body) > MAX_LOGGED_BODY_BYTES:
        shown = f"({len(body)} bytes)"
    elif body:
        shown = mask_logged_response(body.decode("utf-8", "replace"), TextVisibility(show_text, holds_code=True))
        if message and isinstance(shown, dict) and "message" in shown:
            shown = cast("dict[str, Any]", shown) | {"message": message}
        if len(json.dumps(shown)) > MAX_LOGGED_CHARS:
            shown = f"({len(body)} bytes)"
    texts = [[_clean(text.decode("latin-1")) for text in header] for header in headers]
    return json.dumps({"headers": texts, "body": shown}, separators=(",", ":"))


def _shown_parameter(path: Mapping[str, str], name: str) -> str:
    value = path.get(name, "")
    return quote(value[:200], safe="") if name in _SHOWN_PARAMETERS else HIDDEN_SECRET


def _find_recipient(path: Mapping[str, str], body: Any) -> str:
    """Return the first phone number, as digits, or user id of a request; empty without one."""
    members = cast("Mapping[str, Any]", body if isinstance(body, Mapping) else {})
    for value in (path.get("phone"), *(members.get(name) for name in _RECIPIENT_MEMBERS)):
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
            digits = re.sub(r"[^0-9]", "", str(value))
            return digits if re.fullmatch(r"[+0-9() .-]+", str(value)) else str(value)
    return ""


def _clean(text: str) -> str:
    """Return a text as it is stored: printable, and limited in length."""
    plain = "".join(char if char.isprintable() else " " for char in text[:MAX_TEXT_CHARS])
    return plain.encode("utf-8", "replace").decode()
