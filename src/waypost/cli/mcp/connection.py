"""The service and the simulator that the tools use, with the credentials that the commands use."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from waypost.cli.connections import find_admin_api, find_control_api, read_environment
from waypost.cli.mcp.receiver import ToolReceiver
from waypost.cli.polling import poll
from waypost.client.api_client import ApiClient, ApiResponseError
from waypost.client.dev_variables import MissingVariable

if TYPE_CHECKING:
    from waypost.config import Settings

REQUEST_LOG_DELAY_S: Final = 3
"""A failed request is in the request log after this time: entries are written about once a second."""
BUSY_REQUEST_LOG_DELAY_S: Final = 15
"""Likewise on a busy machine, for a request that has just failed."""
_NOT_FOUND: Final = 404


class ServiceConnection:
    """The running service and the simulator; credentials are read for each call, so a restarted one is found.

    Args:
        settings: of the command; they have the admin token.
        env_file: the variables of `waypost dev`.
    """

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
        """Return the variables of `waypost dev`.

        Raises:
            MissingVariable: there is no such file, or it lacks one of these names.
        """
        return read_environment(self._env_file, *names)

    @property
    def admin(self) -> ApiClient:
        """Return a client of the admin API.

        Raises:
            MissingVariable: there is no admin token.
        """
        admin_api = find_admin_api(self._settings, self._env_file)
        if admin_api is None:
            raise MissingVariable(
                f"there is no admin token: start `waypost dev`, which writes {self._env_file}, or set "
                "WAYPOST_ADMIN_TOKEN and WAYPOST_ADMIN_URL"
            )
        return admin_api.client

    @property
    def control(self) -> ApiClient:
        """Return a client of the simulator's control API.

        Raises:
            MissingVariable: there is no simulator.
        """
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
