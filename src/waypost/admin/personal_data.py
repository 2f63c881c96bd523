"""The admin API's operations on the personal data of a recipient: export, erasure, and what is left of deleted rows."""

import re
from collections import Counter
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import invalid_field
from waypost.domain.phone_number import read_phone_number
from waypost.store.retention.erasure import ERASED_TABLES, ERASURE_PARTS, ErasurePosition, erase_recipient
from waypost.store.retention.export import EXPORT_KINDS, ExportPosition, export_recipient
from waypost.wire.redaction import TextVisibility, redact_callback, redact_request
from waypost.wire.responses import response

MAX_WINDOWS: Final = 50
"""How many windows of rows one call searches while it finds nothing: about a second each million rows."""
MAX_POSITION_CHARS: Final = 500
_NUMBER_RULE: Final = (
    "a phone number of 8 to 15 digits with its country code; +, spaces, hyphens and brackets are ignored; "
    "or a business-scoped user id, as in US.1349"
)
_USER_ID: Final = re.compile(r"[A-Z]{2}\.(ENT\.)?[0-9A-Za-z]{1,128}")
"""Source: operator's facts 7.5."""
_ERASURE_POSITION: Final = re.compile(
    "(?P<part>[a-z]+):(?P<waiting>[0-9]{1,17}):(?P<callbacks>[0-9]{1,17}):(?P<after>.*)", re.DOTALL
)
_POSITION_RULE: Final = "the value of next in the response before"

RecipientName = Annotated[
    str,
    Meta(
        description="A phone number as a person writes it, or a business-scoped user id. It is in the body so that no "
        "log of paths has it."
    ),
]
operation = AdminOperations()


class RecipientExport(msgspec.Struct, forbid_unknown_fields=True):
    """The next page of the export about a phone number or a business-scoped user id."""

    number: RecipientName
    position: Annotated[str | None, Meta(description="`next` of the page before; without it the export begins.")] = None


def read_number(text: str) -> str:
    """Return the digits of a phone number as a person writes it, or a business-scoped user id.

    Raises:
        ApiError: it is neither.
    """
    if _USER_ID.fullmatch(text.strip()):
        return text.strip()
    number = read_phone_number(text)
    if number is None:
        raise invalid_field("number", _NUMBER_RULE)
    return number


@operation("POST", "/admin/recipients/export", response(records=list[dict[str, Any]], next=str | None))
async def export_personal_data(context: AdminContext, request: RecipientExport) -> dict[str, Any]:
    """Return the next records about a phone number, of every partner, with texts; one-time codes stay hidden."""
    number = read_number(request.number)
    position: ExportPosition | None = _parse_export_position(request.position)
    records: list[dict[str, Any]] = []
    for _ in range(MAX_WINDOWS):
        if position is None or records:
            break
        page = await context.database.read(export_recipient, number, position)
        records, position = page.records, page.following
    following = None if position is None else f"{position.kind}:{position.after}"
    return {"records": [_show(record) for record in records], "next": following}


def _parse_export_position(text: str | None) -> ExportPosition:
    if text is None:
        return ExportPosition(EXPORT_KINDS[0])
    kind, colon, after = text.partition(":")
    if not colon or kind not in EXPORT_KINDS or len(text) > MAX_POSITION_CHARS or not after.isprintable():
        raise invalid_field("position", _POSITION_RULE)
    return ExportPosition(kind, after)


def _show(record: dict[str, Any]) -> dict[str, Any]:
    match record["record"]:
        case "message":
            visibility = TextVisibility(text=True, holds_code=record["holds_code"])
            return {**record, "request": redact_request(record["request"], visibility) if record["request"] else None}
        case "callback":
            return redact_callback(record, text=True)
        case _:
            return record


MAX_ERASED_WINDOWS: Final = 50
"""How many transactions one call makes; each searches a limited number of rows."""
MAX_ERASURE_POSITION_CHARS: Final = 1000


class RecipientErasure(msgspec.Struct, forbid_unknown_fields=True):
    """The next step of erasing what is stored about a phone number or a business-scoped user id."""

    number: RecipientName
    position: Annotated[str | None, Meta(description="`next` of the step before; without it the erasure begins.")] = (
        None
    )


class Erased(msgspec.Struct):
    """Rows of each table that were erased, and that wait for work to end; `next` continues, null: nothing is left."""

    id: str
    erased: dict[str, int]
    waiting: dict[str, int]
    complete: bool
    next: str | None


@operation("POST", "/admin/recipients/erase")
async def erase_personal_data(context: AdminContext, request: RecipientErasure) -> Erased:
    """Erase the next rows about a phone number, of every partner; return how many, and what waits for work to end.

    The audit log keeps that it was done, under a number that stands for the phone number.
    """
    number = read_number(request.number)
    position: ErasurePosition | None = _parse_erasure_position(request.position)
    erased: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    left = position.waiting
    for _ in range(MAX_ERASED_WINDOWS):
        if position is None:
            break
        page = await context.database.write(erase_recipient, number, position, context.secret_box)
        if page.files:
            await context.files.delete(sorted(page.files))
            erased["files"] += len(page.files)
        erased.update(page.erased)
        waiting.update(page.waiting)
        left += sum(page.waiting.values())
        position = page.following
    return Erased(
        id=context.secret_box.pseudonym(number),
        erased=dict(erased),
        waiting=dict(waiting),
        complete=position is None and not left,
        next=None if position is None else _format_erasure_position(position),
    )


@operation("POST", "/admin/store/compact", response(compacted=bool))
async def compact_store(context: AdminContext) -> dict[str, Any]:
    """Rewrite the tables with personal data, so that nothing of deleted rows is left in their files.

    Work that needs them waits meanwhile. The database's own logs and backups are not changed.
    """
    await context.database.compact([table.name for table in ERASED_TABLES])
    return {"compacted": True}


def _format_erasure_position(position: ErasurePosition) -> str:
    return f"{position.part}:{position.waiting}:{position.callbacks}:{position.after}"


def _parse_erasure_position(text: str | None) -> ErasurePosition:
    if text is None:
        return ErasurePosition(ERASURE_PARTS[0])
    match = _ERASURE_POSITION.fullmatch(text) if len(text) <= MAX_ERASURE_POSITION_CHARS else None
    if match is None or match["part"] not in ERASURE_PARTS or not _is_json_or_empty(match["after"]):
        raise invalid_field("position", _POSITION_RULE)
    return ErasurePosition(match["part"], match["after"], int(match["waiting"]), int(match["callbacks"]))


def _is_json_or_empty(text: str) -> bool:
    try:
        return not text or isinstance(msgspec.json.decode(text), str | int | list)
    except msgspec.DecodeError:
        return False
