"""Nodes and lists in the operator's format: the fields that a request selects, and pages with cursors."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from waypost.simulator.apis.errors import GraphApiError, bad_parameter
from waypost.simulator.apis.requests import Call
from waypost.simulator.state.accounts import Account

Node = TypeVar("Node")


@dataclass(frozen=True)
class NodeKind(Generic[Node]):
    """A kind of node: its name in errors, its fields with their values, and the fields of a request without `fields`.

    The value of a field is the same for all nodes, or a function that returns it.
    """

    name: str
    default: tuple[str, ...]
    fields: Mapping[str, Callable[[Node], Any] | str | bool | None]

    def show(self, target: Node, requested: str | None) -> dict[str, Any]:
        """Return the requested fields of a node and its id; fields without a value are omitted.

        Args:
            target: what the functions get.
            requested: the query's `fields`: names joined by commas; text in braces is ignored.

        Raises:
            GraphApiError: code 100, for a field that this kind of node does not have.
        """
        names = _names(requested) if requested else self.default
        for name in names:
            if name not in self.fields:
                raise unknown_field(name, self.name)
        fields = {name: self.fields[name] for name in dict.fromkeys((*names, "id"))}
        values = {name: value(target) if callable(value) else value for name, value in fields.items()}
        return {name: value for name, value in values.items() if value is not None}


def requested_fields(call: Call) -> list[str]:
    """Return the names in the query's `fields`."""
    return [name.strip() for name in call.query.get("fields", "").split(",") if name.strip()]


def unknown_field(name: str, kind: str) -> GraphApiError:
    """Return the error for a field that a kind of node does not have."""
    return bad_parameter(f"Tried accessing nonexisting field ({name}) on node type ({kind})")


def show_time(at_ms: int | None) -> str | None:
    """Return a time as nodes show it; None if there is none."""
    return None if at_ms is None else datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S%z")


def app_data(account: Account, app_id: str) -> dict[str, str]:
    """Return an app as its account shows it; apps have no names here. Source: facts 1."""
    return {
        "id": app_id,
        "name": account.name if app_id == account.app_id else f"App {app_id}",
        "link": f"https://www.facebook.com/games/?app_id={app_id}",
    }


def health_status(kind: str, node_id: str, can_send: str = "AVAILABLE") -> dict[str, Any]:
    """Return the field `health_status` of a node: whether messages can be sent with it. Source: facts 1."""
    entity = {"entity_type": kind, "id": node_id, "can_send_message": can_send}
    return {"can_send_message": can_send, "entities": [entity]}


def _names(requested: str) -> list[str]:
    flat, previous = requested, ""
    while flat != previous:
        flat, previous = re.sub(r"\{[^{}]*\}", "", flat), flat
    return [name.strip() for name in flat.split(",") if name.strip()]


ListItem = TypeVar("ListItem")

_DEFAULT_LIMIT: Final = 25
_MAX_LIMIT: Final = 1000


def page(
    call: Call, items: Sequence[ListItem], key: Callable[[ListItem], str], view: Callable[[ListItem], dict[str, Any]]
) -> dict[str, Any]:
    """Return the page of a list that a request selects with `limit`, `after` and `before`.

    Args:
        key: sort key of an item, encoded as its cursor; deleting the item does not invalidate the cursor.

    Raises:
        GraphApiError: code 100, an invalid limit or cursor.

    Source: facts 1, "Lists".
    """
    limit = _limit(call.query.get("limit"))
    ordered = whole = sorted(items, key=key)
    after, before = call.query.get("after"), call.query.get("before")
    if after:
        ordered = [item for item in ordered if key(item) > _decode_cursor(after)]
    if before:
        ordered = [item for item in ordered if key(item) < _decode_cursor(before)]
    page_items = ordered[-limit:] if before and not after else ordered[:limit]
    response: dict[str, Any] = {"data": [view(item) for item in page_items]}
    if page_items:
        first, last = _encode_cursor(key(page_items[0])), _encode_cursor(key(page_items[-1]))
        paging: dict[str, Any] = {"cursors": {"before": first, "after": last}}
        if ordered and page_items[-1] is not ordered[-1]:
            paging["next"] = _link(call, "after", last)
        if page_items[0] is not whole[0]:
            paging["previous"] = _link(call, "before", first)
        response["paging"] = paging
    return response


def _limit(text: str | None) -> int:
    if text is None:
        return _DEFAULT_LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise bad_parameter("Param limit must be a positive integer.")
    return min(int(text), _MAX_LIMIT)


def _encode_cursor(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        padding = "=" * (-len(cursor) % 4)
        return base64.urlsafe_b64decode(cursor.encode("ascii") + padding.encode()).decode()
    except (binascii.Error, UnicodeError, ValueError) as error:
        raise bad_parameter("Param after or before is not a cursor of this list.") from error


def _link(call: Call, member: str, cursor: str) -> str:
    query = {name: value for name, value in call.query.items() if name not in ("after", "before", "access_token")}
    return f"{call.url}?{urlencode({**query, member: cursor})}"
