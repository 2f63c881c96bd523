"""Lists that the operator returns page by page."""

from collections.abc import AsyncIterator
from typing import Any, Final

from waypost.base.json_values import object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import OperatorUnavailable, Outcome
from waypost.operators.cloud.error_codes import name_conflict
from waypost.operators.cloud.http_calls import CloudHttpClient

_MAX_PAGES: Final = 60  # of 100 items: as many templates as an account may have. Source: operator's facts 2.3


async def list_pages(
    calls: CloudHttpClient,
    account: OperatorAccount,
    path: str,
    query: dict[str, str],
    *,
    name: str,
    business: str,
    timeout_s: float | None = None,
) -> AsyncIterator[list[Any] | Outcome]:
    """Yield the items of each page; an outcome comes last if the list is not complete.

    A list that is cut short or cannot be read proves nothing about missing items: `OperatorUnavailable`.

    Args:
        calls: of the adapter.
        account: credentials and base URL.
        path: below the version.
        query: of the first page, without its limit.
        name: of the items, for the text of an outcome.
        business: the business account whose limits it counts toward.
        timeout_s: for each page.
    """
    query = {**query, "limit": "100"}
    for _ in range(_MAX_PAGES):
        response = await calls(account, "GET", path, query=query, business=business, timeout_s=timeout_s)
        match response:
            case {"data": [*page]}:
                yield page
            case {"error": error}:
                yield name_conflict(object_of(error))
                return
            case dict():
                yield OperatorUnavailable(f"the operator's response has no list of {name}")
                return
            case _:
                yield response
                return
        match response:
            case {"paging": {"next": str(), "cursors": {"after": str(after)}}}:
                query = {**query, "after": after}
            case {"paging": {"next": str()}}:
                break
            case _:
                return
    yield OperatorUnavailable(f"the operator's list of {name} has no end")


async def whole_list(
    calls: CloudHttpClient,
    account: OperatorAccount,
    path: str,
    query: dict[str, str],
    *,
    name: str,
    business: str,
    timeout_s: float,
) -> list[Any] | Outcome:
    """Return the items of all pages, or the outcome that prevented it; for the arguments see `pages`."""
    items: list[Any] = []
    async for page in list_pages(calls, account, path, query, name=name, business=business, timeout_s=timeout_s):
        if not isinstance(page, list):
            return page
        items += page
    return items
