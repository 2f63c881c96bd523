"""Lists in the operator's shape: pages with cursors."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from waypost.simulator.errors import bad_parameter
from waypost.simulator.requests import Call

Thing = TypeVar("Thing")

_LIMIT: Final = 25
_LIMIT_AT_MOST: Final = 1000


def page(
    call: Call, things: Sequence[Thing], key: Callable[[Thing], str], shown: Callable[[Thing], dict[str, Any]]
) -> dict[str, Any]:
    """The page of a list that a request asks for with `limit`, `after` and `before`.

    Args:
        call: the request.
        things: the whole list.
        key: orders the list and makes its cursors; a thing that is deleted does not disturb them.
        shown: a thing as the list shows it.

    Raises:
        GraphRefused: code 100, a bad limit or cursor.

    Source: facts 1, "Lists".
    """
    limit = _limit(call.query.get("limit"))
    ordered = whole = sorted(things, key=key)
    after, before = call.query.get("after"), call.query.get("before")
    if after:
        ordered = [thing for thing in ordered if key(thing) > _opened(after)]
    if before:
        ordered = [thing for thing in ordered if key(thing) < _opened(before)]
    wished = ordered[-limit:] if before and not after else ordered[:limit]
    answer: dict[str, Any] = {"data": [shown(thing) for thing in wished]}
    if wished:
        first, last = _closed(key(wished[0])), _closed(key(wished[-1]))
        paging: dict[str, Any] = {"cursors": {"before": first, "after": last}}
        if ordered and wished[-1] is not ordered[-1]:
            paging["next"] = _link(call, "after", last)
        if wished[0] is not whole[0]:
            paging["previous"] = _link(call, "before", first)
        answer["paging"] = paging
    return answer


def _limit(text: str | None) -> int:
    if text is None:
        return _LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise bad_parameter("Param limit must be a positive integer.")
    return min(int(text), _LIMIT_AT_MOST)


def _closed(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _opened(cursor: str) -> str:
    try:
        padding = "=" * (-len(cursor) % 4)
        return base64.urlsafe_b64decode(cursor.encode("ascii") + padding.encode()).decode()
    except (binascii.Error, UnicodeError, ValueError) as error:
        raise bad_parameter("Param after or before is not a cursor of this list.") from error


def _link(call: Call, member: str, cursor: str) -> str:
    query = {name: value for name, value in call.query.items() if name not in ("after", "before", "access_token")}
    return f"{call.url}?{urlencode({**query, member: cursor})}"
