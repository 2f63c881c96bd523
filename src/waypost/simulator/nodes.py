"""Nodes of the Graph API: selection of an object's fields by a request's `fields`."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from waypost.simulator.accounts.accounts import Account
from waypost.simulator.errors import GraphApiError, bad_parameter
from waypost.simulator.requests import Call

Node = TypeVar("Node")
Fields = Mapping[str, Callable[[Node], Any]]
"""The fields of a kind of node, each with the function that returns its value."""


def node_fields(
    fields: Fields[Node], target: Node, requested: str | None, default: tuple[str, ...], kind: str
) -> dict[str, Any]:
    """Return the requested fields of a node and its id; fields without a value are omitted.

    Args:
        fields: the table of this kind of node.
        target: the object.
        requested: the query's `fields`: names joined by commas; text in braces is ignored.
        default: the fields of a request without `fields`.
        kind: the node type in the error for an unknown field.

    Raises:
        GraphApiError: code 100, for a field that this kind of node does not have.
    """
    names = default if not requested else tuple(_names(requested))
    for name in names:
        if name not in fields:
            raise unknown_field(name, kind)
    values = {name: fields[name](target) for name in dict.fromkeys((*names, "id"))}
    return {name: value for name, value in values.items() if value is not None}


def requested_fields(call: Call) -> list[str]:
    """Return the names in the query's `fields`."""
    return [name.strip() for name in call.query.get("fields", "").split(",") if name.strip()]


def unknown_field(name: str, kind: str) -> GraphApiError:
    """Return the error for a field that a kind of node does not have."""
    return bad_parameter(f"Tried accessing nonexisting field ({name}) on node type ({kind})")


def app_data(account: Account, app_id: str) -> dict[str, str]:
    """Return an app as its account shows it; apps have no names here. Source: facts 1."""
    return {
        "id": app_id,
        "name": account.name if app_id == account.app_id else f"App {app_id}",
        "link": f"https://www.facebook.com/games/?app_id={app_id}",
    }


def _names(requested: str) -> list[str]:
    flat, previous = requested, ""
    while flat != previous:
        flat, previous = re.sub(r"\{[^{}]*\}", "", flat), flat
    return [name.strip() for name in flat.split(",") if name.strip()]
