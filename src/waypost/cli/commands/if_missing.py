"""`--if-missing` of the commands that add something: what exists already, as requested, is shown instead of an error."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from waypost.cli.admin_client import call_admin_api, show
from waypost.cli.errors import fail
from waypost.cli.output.printing import print_view
from waypost.client.api_client import ApiClient
from waypost.client.responses import ApiResponseError

IfMissing = Annotated[
    bool, typer.Option("--if-missing", help="Show the existing one, if it is as requested, instead of an error.")
]
_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True)
class Existing:
    """The call that lists what may exist already.

    Attributes:
        path: of the call that lists.
        members: names of the lists in its response, each within the members of the one before.
        identity: the fields of the request that identify it.
    """

    path: str
    members: tuple[str, ...]
    identity: tuple[str, ...]


def add(path: str, body: Mapping[str, Any], existing: Existing, *, if_missing: bool, as_json: bool) -> None:
    """Add something by POST and print the response; with `if_missing`, print what exists as requested.

    What exists with other values ends the command with an error that names the first of them.
    """
    if not if_missing:
        show("POST", path, body, as_json=as_json)
        return

    async def call(client: ApiClient, _running: bool) -> Any:
        found = await _find(client, body, existing)
        if found is None:
            try:
                return await client.json("POST", path, body)
            except ApiResponseError as error:  # added meanwhile?
                found = await _find(client, body, existing) if error.status == _CONFLICT else None
                if found is None:
                    raise
        _check_equal(found, body)
        return found

    print_view(asyncio.run(call_admin_api(call)), as_json=as_json)


async def _find(client: ApiClient, body: Mapping[str, Any], existing: Existing) -> dict[str, Any] | None:
    rows: list[dict[str, Any]] = [await client.json("GET", existing.path)]
    for member in existing.members:
        rows = [nested for row in rows for nested in row[member]]
    for row in rows:
        if all(_normal(name, row[name]) == _normal(name, body[name]) for name in existing.identity):
            return row
    return None


def _check_equal(found: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    for name, wanted in body.items():
        is_shown = wanted is not None and name in found  # a password is not
        if is_shown and _normal(name, found[name]) != _normal(name, wanted):
            fail(f"it exists with {name} {found[name]}, not {wanted}; `waypost apply` changes it")


def _normal(name: str, value: Any) -> Any:
    """Return a value in the form in which it is stored."""
    match name:
        case "email":
            return str(value).lower()
        case "phone_number":
            return "".join(char for char in str(value) if char.isdecimal())
        case _:
            return value
