"""The service and the simulator that the tools use, with the commands' credentials; a receiver; errors of calls."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.cli.commands.listen import DEFAULT_MODES
from waypost.cli.commands.listener import (
    ListenerSubscription,
    ListeningReceiver,
    ListenOptions,
    delete_abandoned_subscriptions,
)
from waypost.cli.connections import find_admin_api, find_control_api, poll, read_environment
from waypost.cli.errors import CommandError
from waypost.client.api_client import ApiClient, ApiResponseError, ApiUnreachable
from waypost.client.dev_variables import MissingVariable

if TYPE_CHECKING:
    from waypost.config import Settings


class ToolReceiver:
    """A receiver with a subscription of its own, until it is closed."""

    def __init__(self) -> None:
        bound = bind_socket("127.0.0.1", 0, option="--port")
        self._port = port_of(bound)
        self._server = HttpServer(ListeningReceiver(ListenOptions(DEFAULT_MODES), lambda _: None), bound)
        self._is_started = False
        self._subscription: ListenerSubscription | None = None

    async def subscribe(self, variables: Mapping[str, str], modes: str) -> dict[str, Any]:
        """Subscribe to the callbacks of the app with these modes, instead of an earlier subscription of its own."""
        if not self._is_started:
            await self._server.start()
            self._is_started = True
        await self._unsubscribe()
        await delete_abandoned_subscriptions(variables)
        url = f"http://127.0.0.1:{self._port}/callbacks"
        fields = {"modes": modes, "tag": f"mcp-{self._port}", "url": url, "version": "2"}
        self._subscription = ListenerSubscription(variables, fields)
        return await self._subscription.create()

    async def close(self) -> None:
        """Delete the subscription, and stop."""
        try:
            await self._unsubscribe()
        finally:
            await self._server.stop()

    async def _unsubscribe(self) -> None:
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            await subscription.delete()


REQUEST_LOG_DELAY_S: Final = 3
"""A failed request is in the request log after this time: entries are written about once a second."""
BUSY_REQUEST_LOG_DELAY_S: Final = 15
"""Likewise on a busy machine, for a request that has just failed."""
_NOT_FOUND: Final = 404


class ServiceConnection:
    """The running service and the simulator; credentials are read for each call, so a restarted one is found."""

    def __init__(self, settings: "Settings", env_file: Path) -> None:
        self._settings = settings
        self._env_file = env_file
        self._receiver: ToolReceiver | None = None

    @property
    def receiver(self) -> ToolReceiver:
        """Return the receiver of callbacks of this server; the first use opens it."""
        if self._receiver is None:
            self._receiver = ToolReceiver()
        return self._receiver

    async def close(self) -> None:
        """Close the receiver, if there is one."""
        if self._receiver is not None:
            await self._receiver.close()

    def variables(self, *names: str) -> dict[str, str]:
        """Return the variables of `waypost dev`."""
        return read_environment(self._env_file, *names)

    @property
    def admin(self) -> ApiClient:
        """Return a client of the admin API."""
        admin_api = find_admin_api(self._settings, self._env_file)
        if admin_api is None:
            raise MissingVariable(
                f"there is no admin token: start `waypost dev`, which writes {self._env_file}, or set "
                "WAYPOST_ADMIN_TOKEN and WAYPOST_ADMIN_URL"
            )
        return admin_api.client

    @property
    def control(self) -> ApiClient:
        """Return a client of the simulator's control API."""
        return find_control_api(self._env_file)

    async def find_request(self, request_id: str, within_s: float = REQUEST_LOG_DELAY_S) -> dict[str, Any] | None:
        """Return a request of the request log, which may still have to be written; None if it is not there in time."""

        async def read() -> dict[str, Any] | None:
            try:
                return await self.admin.call("GET /admin/requests/{request_id}", request_id=request_id)
            except ApiResponseError as error:
                if error.status != _NOT_FOUND:
                    raise
                return None

        return await poll(read, lambda entry: entry is not None, within_s)


REPORTED_ERRORS = (ApiResponseError, ApiUnreachable, MissingVariable, CommandError)
"""Errors whose text is for the caller of a tool; any other exception is a defect."""


class ToolError(Exception):
    """A tool cannot do what it was called for.

    Args:
        field: the invalid argument, or the field of the API; empty: the error is not about one.
        rule: the rule that it breaks.
        accepted: what would be accepted, or what to do.
        details: further members of the error; `hint` says what to do.
    """

    def __init__(self, field: str, rule: str, accepted: str, **details: Any) -> None:
        subject = f"{field}: " if field and not rule.startswith(field) else ""
        hint = details.get("hint", "")
        super().__init__(
            f"{subject}{rule}" + (f"; accepted: {accepted}" if accepted else "") + (f"; {hint}" if hint else "")
        )
        self.members = {"field": field, "rule": rule, "accepted": accepted, **details}


async def describe_error(connection: ServiceConnection, error: Exception) -> ToolError:
    """Return the error of a call as the tool's; the request log completes one that does not name its field."""
    match error:
        case ApiResponseError(field="", request_id=request_id, status=status) if request_id:
            entry = await _find_entry(connection, request_id)
            if entry is not None:
                rule = entry["explanation"] or entry["message"]
                return ToolError(
                    entry["field"], rule, entry["accepted"], message=error.message, status=status, request_id=request_id
                )
            return ToolError("", str(error), "", message=error.message, status=status, request_id=request_id)
        case ApiResponseError():
            rule = str(error) if error.rule in ("", error.message) or not error.expected else error.rule
            return ToolError(error.field, rule, error.accepted, message=error.message, status=error.status)
        case CommandError():
            return ToolError(error.field, error.rule, error.accepted)
        case ApiUnreachable():
            return ToolError("", str(error), "", hint="start `waypost dev`")
        case _:
            return ToolError("", str(error), "")


async def _find_entry(connection: ServiceConnection, request_id: str) -> dict[str, Any] | None:
    try:
        return await connection.find_request(request_id, BUSY_REQUEST_LOG_DELAY_S)
    except (ApiResponseError, ApiUnreachable, MissingVariable):
        return None
