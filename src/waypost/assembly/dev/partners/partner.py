"""One partner for a test: its ids, credentials, phones and inbox, and the clients of the APIs that serve it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.assembly.dev.partners.inbox import PartnerInbox
from waypost.assembly.dev.partners.names import DerivedNames
from waypost.client.api_client import ApiClient, ApiResponseError, Transport
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.dev_interfaces import CallbackOptions

INBOX_MODES: Final = (
    "ENQUEUED", "SENT", "DELIVERED", "READ", "DELETED", "FAILED", "MESSAGE", "TEMPLATE", "ACCOUNT",
    "OTHERS", "PAYMENTS", "FLOWS_MESSAGE",
)  # fmt: skip
"""Modes of an inbox's subscription: all except billing."""
DEFAULT_OPTIONS: Final = CallbackOptions(forward_to="", status=200, version=2, modes=INBOX_MODES, headers=())


@dataclass(frozen=True, slots=True)
class PartnerApiClients:
    """Clients of the APIs of both sides, in this process.

    Attributes:
        admin: paths begin with `/admin`.
        control: paths begin with `/control`.
        service: sends requests to the service; a partner's own credential is added.
    """

    admin: ApiClient
    control: ApiClient
    service: Transport


@dataclass(slots=True)
class PartnerForTest:
    """A partner that no other test uses.

    Attributes:
        id: the service's id of it, as text.
        name: as the test named it; may be empty.
        variables: of the application under test.
        inbox_url: URL of its inbox.
        created_on_ms: by the clock of both sides.
        phones: digits by the names of persons.
        options: of its inbox.
        subscription_id: of its inbox's subscription; empty before the first.
        returned_wamids: the messages that a wait has returned.
        end_reason: why its waits end; empty while it exists.
    """

    id: str
    name: str
    names: DerivedNames
    variables: Mapping[str, str]
    inbox_url: str
    created_on_ms: int
    clients: PartnerApiClients
    inbox: PartnerInbox = field(default_factory=PartnerInbox)
    phones: dict[str, str] = field(default_factory=dict[str, str])
    options: CallbackOptions = DEFAULT_OPTIONS
    subscription_id: str = ""
    returned_wamids: set[str] = field(default_factory=set[str])
    end_reason: str = ""

    @property
    def app_id(self) -> str:
        """The id of its app."""
        return self.variables["APP_ID"]

    def view(self) -> dict[str, Any]:
        """Return it as the control API shows it."""
        return {
            "id": self.id,
            "name": self.name,
            "created_on_ms": self.created_on_ms,
            "env": self.variables,
            "phones": self.phones,
            "inbox_url": self.inbox_url,
            "callbacks": {
                "forward_to": self.options.forward_to,
                "status": self.options.status,
                "version": self.options.version,
                "modes": self.options.modes,
                "headers": dict(self.options.headers),
            },
        }

    def check_exists(self) -> None:
        """Raise an error if it was deleted meanwhile.

        Raises:
            ControlApiError: 404, it was.
        """
        if self.end_reason:
            raise ControlApiError("partner_id", self.end_reason, "a new partner", status=404)

    async def call_partner_api(self, method: str, path: str, fields: Mapping[str, str] | None = None) -> Any:
        """Send a form to the partner API of its app, with its token; return the JSON response.

        Raises:
            ApiResponseError: any status but 2xx.
        """
        client = ApiClient(self.clients.service, {"Authorization": self.variables["APP_TOKEN"]})
        url = f"/partner/app/{self.app_id}{path}"
        return await (client.json(method, url) if fields is None else client.form(method, url, fields))

    async def disarm_faults(self) -> None:
        """Disarm the faults of its own account."""
        faults = (await self.clients.control.json("GET", "/control/faults"))["faults"]
        for fault in faults:
            if fault.get("waba_id") == self.names.waba_id:
                try:
                    await self.clients.control.json("DELETE", f"/control/faults/{fault['id']}")
                except ApiResponseError as error:
                    if error.status != 404:
                        raise
