"""Declarations of the Graph API's operations: one for each function, beside it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

from waypost.simulator.accounts.tokens import MANAGEMENT

GraphFunction = Callable[..., Awaitable[Any]]
"""Called with the state, the call and its object; without an object where the path names none."""
Function = TypeVar("Function", bound=GraphFunction)

SEND: Final = "messages.send"
MARK_READ: Final = "messages.mark_read"


class GraphOperation(NamedTuple):
    """One operation."""

    method: str  # of HTTP
    node: type | str  # the type of the object that the path names, or the first segment of a path without an object
    edge: str  # the path after the object's id, with `{}` for each name in it; empty for the object itself
    name: str  # by which faults are armed
    function: GraphFunction  # carries it out
    permission: str | None  # that the token needs; None: any token of the account is accepted
    is_streamed: bool  # the function reads the request's body itself
    is_open: bool  # it needs no token: a signed link, or the endpoint where an app gets its token


class GraphOperations:
    """The operations of one module, in order; calling it declares the next one above its function."""

    def __init__(self) -> None:
        self.rows: list[GraphOperation] = []

    def __call__(
        self,
        name: str,
        method: Literal["GET", "POST", "DELETE"],
        node: type | str,
        edge: str = "",
        *,
        permission: str | None = MANAGEMENT,
        is_streamed: bool = False,
        is_open: bool = False,
    ) -> Callable[[Function], Function]:
        """Declare an operation: its members are those of `GraphOperation`."""

        def declare(function: Function) -> Function:
            row = GraphOperation(method, node, edge, name, function, permission, is_streamed, is_open)
            self.rows.append(row)
            return function

        return declare
