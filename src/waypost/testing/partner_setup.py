"""Making a partner with all that one needs, at both sides, through the doors that anybody may use."""

import json
from dataclasses import dataclass
from typing import Any, Final

from waypost.client.blocking_client import BlockingApiClient
from waypost.client.responses import ApiResponseError, is_told
from waypost.testing.names import Names
from waypost.testing.runtime.receiver import Box
from waypost.testing.runtime.service import Service

__tracebackhide__ = is_told

GRAPH_VERSION: Final = "v25.0"
MODES: Final = (
    "ENQUEUED", "SENT", "DELIVERED", "READ", "DELETED", "FAILED", "MESSAGE", "TEMPLATE", "ACCOUNT",
    "OTHERS", "PAYMENTS", "FLOWS_MESSAGE",
)  # fmt: skip
"""What the receiver of a test is told: all but the price of each message."""
TAG: Final = "waypost-testing"
_MOST_ATTEMPTS: Final = 50


@dataclass(frozen=True, slots=True)
class Tenancy:
    """A partner of a test, as its doors know it.

    Attributes:
        partner_id: the service's number of it.
        app_id: of its app.
        app_token: credential of the partner API.
        api_key: credential of the messaging API.
        client_secret: logs in, as the password does elsewhere.
        graph_token: credential of its account at the simulator.
    """

    service: Service
    names: Names
    box: Box
    partner_id: int
    app_id: str
    app_token: str
    api_key: str
    client_secret: str
    graph_token: str

    @property
    def app_door(self) -> BlockingApiClient:
        """The partner API of its app."""
        url = f"{self.service.api_url}/partner/app/{self.app_id}"
        return BlockingApiClient(url, {"Authorization": self.app_token})

    @property
    def api_door(self) -> BlockingApiClient:
        """The messaging API."""
        return BlockingApiClient(f"{self.service.api_url}/wa/api/v1", {"apikey": self.api_key})

    @property
    def env(self) -> dict[str, str]:
        """What an application needs to know, under the names that `waypost dev` uses.

        PASSWORD is the client secret: login takes it for either. DESTINATION and TEMPLATE_ID are not there:
        phones and templates are the test's to make.
        """
        return {
            "PARTNER_URL": self.service.api_url,
            "API_URL": self.service.api_url,
            "GRAPH_URL": self.service.graph_url,
            "CONTROL_URL": self.service.control.base_url,
            "EMAIL": self.names.email,
            "PASSWORD": self.client_secret,
            "CLIENT_SECRET": self.client_secret,
            "APP_ID": self.app_id,
            "APP_TOKEN": self.app_token,
            "API_KEY": self.api_key,
            "SOURCE": self.names.source,
            "SRC_NAME": self.names.app_name,
            "WABA_ID": self.names.waba_id,
            "PHONE_NUMBER_ID": self.names.phone_number_id,
            "GRAPH_TOKEN": self.graph_token,
            "ADMIN_URL": self.service.variables["ADMIN_URL"],
            "ADMIN_TOKEN": self.service.variables["ADMIN_TOKEN"],
        }


@dataclass(frozen=True, slots=True)
class Subscription:
    """What the receiver is told.

    Attributes:
        version: of the bodies.
        modes: which callbacks.
        headers: pairs that the service sends along.
    """

    version: int = 2
    modes: tuple[str, ...] = MODES
    headers: tuple[tuple[str, str], ...] = ()


def found(service: Service, seed: str) -> Tenancy:
    """Make a partner that nobody else has, named after the seed.

    It has an app, a number, a business account and an operator account of its own, so that nothing
    that happens to it is seen by another. Nobody is subscribed to its callbacks yet.

    Raises:
        DoorRefused: a door would not; never because names are taken, for then others are chosen.
    """
    for attempt in range(_MOST_ATTEMPTS):
        names = Names(seed, attempt)
        partner_id = _claimed(service, names)
        if partner_id is not None:
            return _furnished(service, names, partner_id)
    raise LookupError(f"{_MOST_ATTEMPTS} partners are named after {seed!r} already")


def _claimed(service: Service, names: Names) -> int | None:
    """The partner's number once it and its source number are ours; None when somebody has either."""
    try:
        wish = {"email": names.email, "name": names.app_name}
        partner = service.admin.json("POST", "/partners", wish)
        _open_at_the_operator(service, names)
    except ApiResponseError as refused:
        if refused.status == 409:
            return None
        raise
    return int(partner["id"])


def _open_at_the_operator(service: Service, names: Names) -> None:
    control = service.control
    account: dict[str, Any] = {
        "name": names.app_name,
        "namespace": names.namespace,
        "token": names.secret("graph token"),
        "app_id": names.graph_app_id,
        "app_secret": names.secret("app secret"),
    }
    control.json("PUT", f"/accounts/{names.waba_id}", account)
    number = {"waba_id": names.waba_id, "phone_number": names.source, "name": names.app_name}
    control.json("PUT", f"/numbers/{names.phone_number_id}", number)


def _furnished(service: Service, names: Names, partner_id: int) -> Tenancy:
    admin, operator_account = service.admin, names.waba_id
    token, verify_token = names.secret("graph token"), names.secret("verify token")
    made = admin.json(
        "PUT",
        f"/operator-accounts/{operator_account}",
        {
            "base_url": service.graph_url,
            "version": GRAPH_VERSION,
            "token": token,
            "app_id": names.graph_app_id,
            "app_secret": names.secret("app secret"),
            "verify_token": verify_token,
        },
    )
    admin.json(
        "POST",
        "/business-accounts",
        {
            "id": names.waba_id,
            "partner_id": partner_id,
            "namespace": names.namespace,
            "operator_account_id": operator_account,
        },
    )
    app = admin.json(
        "POST",
        "/apps",
        {
            "partner_id": partner_id,
            "name": names.app_name,
            "phone_number": names.source,
            "phone_number_id": names.phone_number_id,
            "business_account_id": names.waba_id,
        },
    )
    key = admin.json("POST", f"/partners/{partner_id}/api-keys", {"name": TAG})
    secret = admin.json("POST", f"/partners/{partner_id}/client-secrets", {})
    service.control.json(
        "PUT",
        f"/apps/{names.graph_app_id}/webhook",
        {"callback_uri": service.api_url + made["webhook_path"], "verify_token": verify_token},
    )
    return Tenancy(
        service=service,
        names=names,
        box=service.receiver.open_box(names.waba_id),
        partner_id=partner_id,
        app_id=app["id"],
        app_token=app["app_token"],
        api_key=key["api_key"],
        client_secret=secret["client_secret"],
        graph_token=token,
    )


def subscribe(tenancy: Tenancy, wish: Subscription) -> str:
    """Have callbacks sent to the receiver, without a ping before; gives the subscription's id."""
    fields = {
        "tag": TAG,
        "url": tenancy.box.url,
        "version": str(wish.version),
        "modes": ",".join(wish.modes),
        "doCheck": "false",
    }
    if wish.headers:
        fields["meta"] = json.dumps({"headers": dict(wish.headers)})
    made = tenancy.app_door.form("POST", "/subscription", fields)
    return str(made["subscription"]["id"])
