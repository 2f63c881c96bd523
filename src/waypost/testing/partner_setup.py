"""Creation of a partner for a test, at service and simulator, through their public APIs."""

import json
from dataclasses import dataclass
from typing import Any, Final

from waypost.client.blocking_client import BlockingApiClient
from waypost.client.responses import ApiResponseError, is_api_error
from waypost.testing.names import PartnerNames
from waypost.testing.runtime.receiver import CallbackInbox
from waypost.testing.runtime.service import Service

__tracebackhide__ = is_api_error

GRAPH_VERSION: Final = "v25.0"
RECEIVER_MODES: Final = (
    "ENQUEUED", "SENT", "DELIVERED", "READ", "DELETED", "FAILED", "MESSAGE", "TEMPLATE", "ACCOUNT",
    "OTHERS", "PAYMENTS", "FLOWS_MESSAGE",
)  # fmt: skip
"""Modes of a test's own subscription: all except billing."""
SUBSCRIPTION_TAG: Final = "waypost-testing"
_MAX_ATTEMPTS: Final = 50


@dataclass(frozen=True, slots=True)
class Tenancy:
    """A partner of a test, with its ids and credentials.

    Attributes:
        partner_id: the service's id of it.
        app_id: of its app.
        app_token: credential of the partner API.
        api_key: credential of the messaging API.
        client_secret: for login, in place of the password.
        graph_token: credential of its account at the simulator.
    """

    service: Service
    names: PartnerNames
    inbox: CallbackInbox
    partner_id: int
    app_id: str
    app_token: str
    api_key: str
    client_secret: str
    graph_token: str

    @property
    def partner_api(self) -> BlockingApiClient:
        """The partner API of its app."""
        url = f"{self.service.api_url}/partner/app/{self.app_id}"
        return BlockingApiClient(url, {"Authorization": self.app_token})

    @property
    def messaging_api(self) -> BlockingApiClient:
        """The messaging API."""
        return BlockingApiClient(f"{self.service.api_url}/wa/api/v1", {"apikey": self.api_key})

    @property
    def env(self) -> dict[str, str]:
        """The settings of an application, under the names that `waypost dev` uses.

        PASSWORD is the client secret: login accepts either. DESTINATION and TEMPLATE_ID are missing:
        the test creates phones and templates.
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
class ReceiverSubscription:
    """The subscription of the test's receiver.

    Attributes:
        version: of the bodies.
        modes: of the subscription.
        headers: pairs that the service adds to each callback.
    """

    version: int = 2
    modes: tuple[str, ...] = RECEIVER_MODES
    headers: tuple[tuple[str, str], ...] = ()


def create_partner(service: Service, seed: str) -> Tenancy:
    """Create a partner for one test only, named after the seed.

    It has its own app, number, business account and operator account, so that no other partner is
    affected by it. It has no subscription yet.

    Raises:
        ApiResponseError: an API rejected a request; not if names are in use: then others are chosen.
    """
    for attempt in range(_MAX_ATTEMPTS):
        names = PartnerNames(seed, attempt)
        partner_id = _create_if_free(service, names)
        if partner_id is not None:
            return _complete_tenancy(service, names, partner_id)
    raise LookupError(f"{_MAX_ATTEMPTS} partners are named after {seed!r} already")


def _create_if_free(service: Service, names: PartnerNames) -> int | None:
    """Create the partner and its source number, and return its id; None if either exists already."""
    try:
        body = {"email": names.email, "name": names.app_name}
        partner = service.admin.json("POST", "/partners", body)
        _create_operator_account(service, names)
    except ApiResponseError as error:
        if error.status == 409:
            return None
        raise
    return int(partner["id"])


def _create_operator_account(service: Service, names: PartnerNames) -> None:
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


def _complete_tenancy(service: Service, names: PartnerNames, partner_id: int) -> Tenancy:
    admin, operator_account = service.admin, names.waba_id
    token, verify_token = names.secret("graph token"), names.secret("verify token")
    account = admin.json(
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
    key = admin.json("POST", f"/partners/{partner_id}/api-keys", {"name": SUBSCRIPTION_TAG})
    secret = admin.json("POST", f"/partners/{partner_id}/client-secrets", {})
    service.control.json(
        "PUT",
        f"/apps/{names.graph_app_id}/webhook",
        {"callback_uri": service.api_url + account["webhook_path"], "verify_token": verify_token},
    )
    return Tenancy(
        service=service,
        names=names,
        inbox=service.receiver.open_inbox(names.waba_id),
        partner_id=partner_id,
        app_id=app["id"],
        app_token=app["app_token"],
        api_key=key["api_key"],
        client_secret=secret["client_secret"],
        graph_token=token,
    )


def subscribe(tenancy: Tenancy, subscription: ReceiverSubscription) -> str:
    """Subscribe the receiver, without a ping, and return the subscription's id."""
    fields = {
        "tag": SUBSCRIPTION_TAG,
        "url": tenancy.inbox.url,
        "version": str(subscription.version),
        "modes": ",".join(subscription.modes),
        "doCheck": "false",
    }
    if subscription.headers:
        fields["meta"] = json.dumps({"headers": dict(subscription.headers)})
    response = tenancy.partner_api.form("POST", "/subscription", fields)
    return str(response["subscription"]["id"])
