"""Which messages hold one-time codes: those of AUTHENTICATION templates, and what answers them."""

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
"""Of the messages that one callback names."""
_AUTHENTICATION: Final = Category.AUTHENTICATION.value
_decode = msgspec.json.Decoder().decode


def codes_among(connection: Connection, partner_id: int, rows: Collection[Mapping[Any, Any]]) -> set[str]:
    """The ids of those of a partner's messages that hold a one-time code.

    A passthrough names its template and has no id of one: where no template of that name is known here,
    or one of them is for authentication, its values count as codes.

    Args:
        connection: any.
        partner_id: whose they are.
        rows: with `id`, `kind`, `template_id` and `content`.
    """
    ids = {row["template_id"] for row in rows if row["template_id"]}
    named = {row["id"]: _template_name(row) for row in rows if row["kind"] == TEMPLATE_PASSTHROUGH}
    of_codes = _for_authentication(connection, ids) if ids else set[str]()
    harmless = _harmless(connection, partner_id, set(named.values())) if named else set[str]()
    return {
        row["id"]
        for row in rows
        if row["template_id"] in of_codes or (row["id"] in named and named[row["id"]] not in harmless)
    }


def with_codes(connection: Connection, partner_id: int, rows: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each with `holds_code`."""
    codes = codes_among(connection, partner_id, rows)
    return [{**row, "holds_code": row["id"] in codes} for row in rows]


def codes_named(connection: Connection, partner_id: int, names: Iterable[str]) -> set[str]:
    """Those of these ids, ours or the operator's, that belong to a partner's messages with one-time codes."""
    wanted = sorted(set(names))[:MOST_NAMED]
    if not wanted:
        return set()
    rows: list[dict[str, Any]] = []
    for found in (_BY_ID, _BY_OPERATORS_ID):
        mine = found.where(messages.c.partner_id == partner_id)
        rows += [dict(row) for row in connection.execute(mine, {"ids": wanted}).mappings()]
    codes = codes_among(connection, partner_id, rows)
    return {
        name for row in rows if row["id"] in codes for name in (row["id"], row["operator_message_id"]) if name in wanted
    }


def callback_holds_code(connection: Connection, row: Mapping[str, Any]) -> bool:
    """Whether a callback is about a message with a one-time code, or about an answer to one.

    Args:
        connection: any.
        row: with `partner_id`, `message_id` and `body`, its bytes.
    """
    names = set[str]() if row["message_id"] is None else {str(row["message_id"])}
    try:
        names |= set(_named(_decode(row["body"])))
    except (msgspec.DecodeError, RecursionError):
        return True  # what cannot be read is not shown
    return bool(codes_named(connection, row["partner_id"], names))


def _template_name(row: Mapping[Any, Any]) -> str:
    """The name in a passthrough; empty where retention has cleared it."""
    if not row["content"]:
        return ""
    body = cast("Mapping[str, Any]", _decode(row["content"])).get("body")
    name = cast("Mapping[str, Any]", body).get("name") if isinstance(body, Mapping) else None
    return name if isinstance(name, str) else ""


def _for_authentication(connection: Connection, ids: Collection[str]) -> set[str]:
    return set(connection.execute(_OF_CODES, {"ids": sorted(ids)}).scalars())


def _harmless(connection: Connection, partner_id: int, names: Collection[str]) -> set[str]:
    """The names that are known here, and of no template for authentication."""
    asked = _BY_NAME.where(templates.c.partner_id == partner_id)
    rows = connection.execute(asked, {"names": sorted(names)}).all()
    of_codes = {row.element_name for row in rows if _AUTHENTICATION in (row.category, row.old_category)}
    return {row.element_name for row in rows} - of_codes


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, one in cast("Mapping[str, Any]", value).items():
            if name in _NAMES_A_MESSAGE and isinstance(one, str):
                yield one
            else:
                yield from _named(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _named(one)


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
