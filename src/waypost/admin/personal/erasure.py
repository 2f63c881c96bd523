"""The admin API's operations that erase the personal data of a recipient, and what is left of deleted rows."""

from collections import Counter
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.personal.export import read_number
from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import invalid_field
from waypost.store.retention.erasure import ERASED_TABLES, ERASURE_PARTS, ErasurePosition, erase_recipient

MAX_WINDOWS: Final = 50
"""How many transactions one call makes; each searches a limited number of rows."""
MAX_POSITION_CHARS: Final = 1000
_POSITION_RULE: Final = "the value of next in the response before"

operation = AdminOperations()


class RecipientErasure(msgspec.Struct, forbid_unknown_fields=True):
    """The next step of erasing what is stored about a phone number or a business-scoped user id."""

    number: Annotated[
        str,
        Meta(
            description=(
                "A phone number as a person writes it, or a business-scoped user id. It is in the body so "
                "that no log of paths has it."
            )
        ),
    ]
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


class Compacted(msgspec.Struct):
    """The confirmation of rewritten tables."""

    compacted: bool = True


@operation("POST", "/admin/recipients/erase")
async def erase_personal_data(context: AdminContext, request: RecipientErasure) -> Erased:
    """Erase the next rows about a phone number, of every partner; return how many, and what waits for work to end.

    The audit log keeps that it was done, under a number that stands for the phone number.
    """
    number = read_number(request.number)
    position: ErasurePosition | None = _parse_position(request.position)
    erased: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    left = position.waiting
    for _ in range(MAX_WINDOWS):
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
        next=None if position is None else f"{position.part}:{position.waiting}:{position.after}",
    )


@operation("POST", "/admin/store/compact")
async def compact_store(context: AdminContext) -> Compacted:
    """Rewrite the tables with personal data, so that nothing of deleted rows is left in their files.

    Work that needs them waits meanwhile. The database's own logs and backups are not changed.
    """
    await context.database.compact([table.name for table in ERASED_TABLES])
    return Compacted()


def _parse_position(text: str | None) -> ErasurePosition:
    if text is None:
        return ErasurePosition(ERASURE_PARTS[0])
    part, _, rest = text.partition(":")
    waiting, colon, after = rest.partition(":")
    is_valid = colon and part in ERASURE_PARTS and waiting.isascii() and waiting.isdecimal() and len(waiting) < 18
    if not is_valid or len(text) > MAX_POSITION_CHARS or not _is_json_or_empty(after):
        raise invalid_field("position", _POSITION_RULE)
    return ErasurePosition(part, after, int(waiting))


def _is_json_or_empty(text: str) -> bool:
    try:
        return not text or isinstance(msgspec.json.decode(text), str | int | list)
    except msgspec.DecodeError:
        return False
