"""Detection of messages with one-time codes: those of AUTHENTICATION templates, and replies to them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from sqlalchemy import Connection, or_, select

from waypost.domain.templates.template import Category
from waypost.store.encoding import TEMPLATE_PASSTHROUGH
from waypost.store.sql import one_of
from waypost.store.tables import messages, templates

_NAMES_A_MESSAGE: Final = frozenset({"id", "gsId", "gs_id", "message_id", "msgId"})
MOST_NAMED: Final = 500
"""Maximum number of messages that one callback may refer to."""
_AUTHENTICATION: Final = Category.AUTHENTICATION.value
_decode = msgspec.json.Decoder().decode


def codes_among(connection: Connection, partner_id: int, rows: Collection[Mapping[Any, Any]]) -> set[str]:
    """Return the ids of those of a partner's messages that hold a one-time code.

    A passthrough names its template and has no template id: if no template of that name is known here, or
    one of them is for authentication, its values count as codes.

    Args:
        connection: any.
        partner_id: owner of the messages.
        rows: with `id`, `kind`, `template_id` and `content`.
    """
    template_ids = {row["template_id"] for row in rows if row["template_id"]}
    names = {row["id"]: _template_name(row) for row in rows if row["kind"] == TEMPLATE_PASSTHROUGH}
    authentication_ids = _for_authentication(connection, template_ids) if template_ids else set[str]()
    names_without_codes = _harmless(connection, partner_id, set(names.values())) if names else set[str]()
    return {
        row["id"]
        for row in rows
        if row["template_id"] in authentication_ids
        or (row["id"] in names and names[row["id"]] not in names_without_codes)
    }


def with_codes(connection: Connection, partner_id: int, rows: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, each with `holds_code`."""
    codes = codes_among(connection, partner_id, rows)
    return [{**row, "holds_code": row["id"] in codes} for row in rows]


def codes_named(connection: Connection, partner_id: int, names: Iterable[str]) -> set[str]:
    """Return those of these ids, ours or the operator's, that belong to a partner's messages with one-time codes."""
    ids = sorted(set(names))[:MOST_NAMED]
    if not ids:
        return set()
    rows: list[dict[str, Any]] = []
    for query in (_BY_ID, _BY_OPERATORS_ID):
        own = query.where(messages.c.partner_id == partner_id)
        rows += [dict(row) for row in connection.execute(own, {"ids": ids}).mappings()]
    codes = codes_among(connection, partner_id, rows)
    return {
        message_id
        for row in rows
        if row["id"] in codes
        for message_id in (row["id"], row["operator_message_id"])
        if message_id in ids
    }


def callback_holds_code(connection: Connection, row: Mapping[str, Any]) -> bool:
    """Return True if a callback is about a message with a one-time code, or about a reply to one.

    Args:
        connection: any.
        row: with `partner_id`, `message_id` and `body`, its bytes.
    """
    ids = set[str]() if row["message_id"] is None else {str(row["message_id"])}
    try:
        ids |= set(_named(_decode(row["body"])))
    except (msgspec.DecodeError, RecursionError):
        return True  # an unreadable body is not shown
    return bool(codes_named(connection, row["partner_id"], ids))


def _template_name(row: Mapping[Any, Any]) -> str:
    """Return the template name in a passthrough; empty once retention has cleared it."""
    if not row["content"]:
        return ""
    body = cast("Mapping[str, Any]", _decode(row["content"])).get("body")
    name = cast("Mapping[str, Any]", body).get("name") if isinstance(body, Mapping) else None
    return name if isinstance(name, str) else ""


def _for_authentication(connection: Connection, ids: Collection[str]) -> set[str]:
    return set(connection.execute(_OF_CODES, {"ids": sorted(ids)}).scalars())


def _harmless(connection: Connection, partner_id: int, names: Collection[str]) -> set[str]:
    """Return the names that are known here, but not of a template for authentication."""
    query = _BY_NAME.where(templates.c.partner_id == partner_id)
    rows = connection.execute(query, {"names": sorted(names)}).all()
    authentication_names = {row.element_name for row in rows if _AUTHENTICATION in (row.category, row.old_category)}
    return {row.element_name for row in rows} - authentication_names


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, member in cast("Mapping[str, Any]", value).items():
            if name in _NAMES_A_MESSAGE and isinstance(member, str):
                yield member
            else:
                yield from _named(member)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from _named(member)


_MESSAGE: Final = select(
    messages.c.id, messages.c.operator_message_id, messages.c.kind, messages.c.template_id, messages.c.content
)  # fmt: skip
_BY_ID: Final = _MESSAGE.where(one_of(messages.c.id, "ids"))
_BY_OPERATORS_ID: Final = _MESSAGE.where(one_of(messages.c.operator_message_id, "ids"))
_OF_CODES: Final = select(templates.c.id).where(
    one_of(templates.c.id, "ids"),
    or_(templates.c.category == _AUTHENTICATION, templates.c.old_category == _AUTHENTICATION),
)
_BY_NAME: Final = select(templates.c.element_name, templates.c.category, templates.c.old_category).where(
    one_of(templates.c.element_name, "names")
)
