"""Detection of messages with one-time codes: those of AUTHENTICATION templates, and replies to them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from sqlalchemy import Connection, or_, select

from waypost.domain.templates.template import Category
from waypost.store.encoding import MARKETING_PASSTHROUGH, TEMPLATE_PASSTHROUGH
from waypost.store.sql import equals_any
from waypost.store.tables import messages, templates

_MESSAGE_ID_MEMBERS: Final = frozenset({"id", "gsId", "gs_id", "message_id", "msgId"})
MAX_NAMED_MESSAGES: Final = 500
"""Maximum number of messages that one callback may refer to."""
_AUTHENTICATION: Final = Category.AUTHENTICATION.value
_decode_json = msgspec.json.Decoder().decode


def find_messages_with_codes(connection: Connection, partner_id: int, rows: Collection[Mapping[Any, Any]]) -> set[str]:
    """Return the ids of those of a partner's messages that hold a one-time code.

    A passthrough names its template and has no template id: if no template of that name is known here, or
    one of them is for authentication, its values count as codes.

    Args:
        connection: any.
        partner_id: owner of the messages.
        rows: with `id`, `kind`, `template_id` and `content`.
    """
    template_ids = {row["template_id"] for row in rows if row["template_id"]}
    names = {row["id"]: _template_name(row) for row in rows if row["kind"] in _NAMING_KINDS}
    authentication_ids = _authentication_template_ids(connection, template_ids) if template_ids else set[str]()
    names_without_codes = _names_without_codes(connection, partner_id, set(names.values())) if names else set[str]()
    return {
        row["id"]
        for row in rows
        if row["template_id"] in authentication_ids
        or (row["id"] in names and names[row["id"]] not in names_without_codes)
    }


def add_code_flags(connection: Connection, partner_id: int, rows: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, each with `holds_code`."""
    codes = find_messages_with_codes(connection, partner_id, rows)
    return [{**row, "holds_code": row["id"] in codes} for row in rows]


def find_ids_with_codes(connection: Connection, partner_id: int, names: Iterable[str]) -> set[str]:
    """Return those of these ids, ours or the operator's, that belong to a partner's messages with one-time codes."""
    ids = sorted(set(names))[:MAX_NAMED_MESSAGES]
    if not ids:
        return set()
    rows: list[dict[str, Any]] = []
    for query in (_MESSAGES_BY_ID, _MESSAGES_BY_OPERATOR_ID):
        own = query.where(messages.c.partner_id == partner_id)
        rows += [dict(row) for row in connection.execute(own, {"ids": ids}).mappings()]
    codes = find_messages_with_codes(connection, partner_id, rows)
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
        ids |= set(_read_message_ids(_decode_json(row["body"])))
    except (msgspec.DecodeError, RecursionError):
        return True  # an unreadable body is not shown
    return bool(find_ids_with_codes(connection, row["partner_id"], ids))


def find_templates_without_codes(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return those of these ids that belong to templates that are known, and are not for authentication."""
    if not ids:
        return set()
    known = set(connection.execute(_KNOWN_TEMPLATES, {"ids": sorted(ids)}).scalars())
    return known - _authentication_template_ids(connection, ids)


def _template_name(row: Mapping[Any, Any]) -> str:
    """Return the template name in a passthrough; empty once retention has cleared it."""
    if not row["content"]:
        return ""
    body = cast("Mapping[str, Any]", _decode_json(row["content"])).get("body")
    name = cast("Mapping[str, Any]", body).get("name") if isinstance(body, Mapping) else None
    return name if isinstance(name, str) else ""


def _authentication_template_ids(connection: Connection, ids: Collection[str]) -> set[str]:
    return set(connection.execute(_AUTHENTICATION_TEMPLATES, {"ids": sorted(ids)}).scalars())


def _names_without_codes(connection: Connection, partner_id: int, names: Collection[str]) -> set[str]:
    """Return the names that are known here, but not of a template for authentication."""
    query = _TEMPLATES_BY_NAME.where(templates.c.partner_id == partner_id)
    rows = connection.execute(query, {"names": sorted(names)}).all()
    authentication_names = {row.element_name for row in rows if _AUTHENTICATION in (row.category, row.old_category)}
    return {row.element_name for row in rows} - authentication_names


def _read_message_ids(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, member in cast("Mapping[str, Any]", value).items():
            if name in _MESSAGE_ID_MEMBERS and isinstance(member, str):
                yield member
            else:
                yield from _read_message_ids(member)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from _read_message_ids(member)


_NAMING_KINDS: Final = (TEMPLATE_PASSTHROUGH, MARKETING_PASSTHROUGH)
_SELECT_MESSAGES: Final = select(
    messages.c.id, messages.c.operator_message_id, messages.c.kind, messages.c.template_id, messages.c.content
)  # fmt: skip
_MESSAGES_BY_ID: Final = _SELECT_MESSAGES.where(equals_any(messages.c.id, "ids"))
_MESSAGES_BY_OPERATOR_ID: Final = _SELECT_MESSAGES.where(equals_any(messages.c.operator_message_id, "ids"))
_AUTHENTICATION_TEMPLATES: Final = select(templates.c.id).where(
    equals_any(templates.c.id, "ids"),
    or_(templates.c.category == _AUTHENTICATION, templates.c.old_category == _AUTHENTICATION),
)
_KNOWN_TEMPLATES: Final = select(templates.c.id).where(equals_any(templates.c.id, "ids"))
_TEMPLATES_BY_NAME: Final = select(templates.c.element_name, templates.c.category, templates.c.old_category).where(
    equals_any(templates.c.element_name, "names")
)
