"""Declarations of the Graph API's operations: one for each function, beside it."""

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Final, Literal, NamedTuple, TypeVar

from waypost.simulator.state.tokens import MANAGEMENT

GraphFunction = Callable[..., Awaitable[Any]]
"""Called with the state, the call and its object; without an object where the path names none."""
Function = TypeVar("Function", bound=Callable[..., Any])

SEND: Final = "messages.send"
MARK_READ: Final = "messages.mark_read"
_CALL_NAMES: Final = {MARK_READ}  # of all operations that are declared


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
    sample: dict[str, Any] | None = None  # of its response, if it only reads memory


class GraphOperations:
    """The operations of one module, in order; calling it declares the next one above its function."""

    def __init__(self) -> None:
        self.rows: list[GraphOperation] = []

    def _add(self, operation: GraphOperation) -> None:
        self.rows.append(operation)
        _CALL_NAMES.add(operation.name)

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
        """Declare an operation: its members are those of `GraphOperation`.

        A plain function is one transaction, which it is called with in place of the state.
        """

        def declare(function: Function) -> Function:
            @wraps(function)
            async def transact(state: Any, *arguments: Any) -> Any:
                def work(transaction: object) -> Any:
                    return function(transaction, *arguments)

                return await state.transact(work)

            run = function if iscoroutinefunction(function) else transact
            self._add(GraphOperation(method, node, edge, name, run, permission, is_streamed, is_open))
            return function

        return declare

    def read(
        self,
        name: str,
        node: type,
        edge: str,
        view: Callable[..., dict[str, Any]],
        sample: dict[str, Any],
        *,
        permission: str | None = MANAGEMENT,
    ) -> None:
        """Declare an operation that only reads memory: `view` returns its response, of which there is a sample."""

        @wraps(view)
        async def run(*arguments: Any) -> Any:
            return view(*arguments)

        self._add(GraphOperation("GET", node, edge, name, run, permission, False, False, sample))


def call_names() -> tuple[str, ...]:
    """Return the names of all operations, sorted: by them faults are armed."""
    return tuple(sorted(_CALL_NAMES))
