"""The check that operations of the admin API and of the simulator's control API return what they declare."""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from starlette.responses import Response

from waypost.admin.operation import AdminRoute
from waypost.base.written_numbers import encode_json
from waypost.simulator.apis import control_operations


def difference(response_type: Any, response: Any) -> str:
    """Return how the JSON of a response differs from its declared type; empty if it does not.

    Members that the type lacks are lost when the JSON is read as it, and those that it has besides are an error.
    """
    sent = encode_json(response)
    try:
        read = encode_json(msgspec.json.decode(sent, type=response_type))
    except msgspec.ValidationError as error:
        return str(error)
    return "" if json.loads(read) == json.loads(sent) else f"{sent.decode()} is not {read.decode()}"


@contextmanager
def checked_responses() -> Generator[list[str]]:
    """Collect the differences of the responses of all operations meanwhile."""
    found: list[str] = []
    respond = AdminRoute.respond

    async def checked(self: AdminRoute, *arguments: Any) -> Any:
        response = await respond(self, *arguments)
        if text := difference(self.response_type, response):
            found.append(f"{self.name}: {text}")
        return response

    async def call_function(function: control_operations.Endpoint, values: Sequence[Any]) -> Any:
        response = await function(*values)
        struct, sent = control_operations.response_type(function), response
        if isinstance(sent, Response) and struct is not None and sent.status_code < 400:
            sent = json.loads(bytes(sent.body))
        if struct is not None and not isinstance(sent, Response) and (text := difference(struct, sent)):
            found.append(f"{function.__name__}: {text}")
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_operations, "call_function", call_function)
        patch.setattr(AdminRoute, "respond", checked)
        yield found
