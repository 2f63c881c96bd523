"""Creation of a partner for a test, at service and simulator, through their public APIs."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from pytest_waypost.client import ApiResponseError, BlockingApiClient, is_api_error
from pytest_waypost.receiver import CallbackInbox
from pytest_waypost.service import Service

__tracebackhide__ = is_api_error

GRAPH_VERSION: Final = "v25.0"
RECEIVER_MODES: Final = (
    "ENQUEUED", "SENT", "DELIVERED", "READ", "DELETED", "FAILED", "MESSAGE", "TEMPLATE", "ACCOUNT",
    "OTHERS", "PAYMENTS", "FLOWS_MESSAGE",
)  # fmt: skip
"""Modes of a test's own subscription: all except billing."""
SUBSCRIPTION_TAG: Final = "waypost-testing"
_MAX_ATTEMPTS: Final = 50
# Area code 555 is not assigned. Two halves of it, so that no phone has a business's number.
_SOURCES: Final = ("15550", "15551", "15552", "15553", "15554")
_PHONES: Final = ("15555", "15556", "15557", "15558", "15559")


@dataclass(frozen=True, slots=True)
class PartnerNames:
    """Names, numbers and ids of a partner that are known before it is created.

    The same test gets the same names at every run against a new service, whatever other tests run and
    in any order. Ids and secrets that the service makes are not included.

    Args:
        seed: the test's node id, or any other text.
        attempt: counts up while another partner already has the names.
    """

    seed: str
    attempt: int = 0

    @property
    def source(self) -> str:
        """The app's phone number, 11 digits."""
        return self._number(_SOURCES, "source")

    @property
    def waba_id(self) -> str:
        """The business account's id, 16 digits; the operator account is called the same."""
        return "7" + self._digits("account", 15)

    @property
    def phone_number_id(self) -> str:
        """The operator's id of the source number, 16 digits."""
        return "8" + self._digits("number", 15)

    @property
    def graph_app_id(self) -> str:
        """The id of the app at the operator, 16 digits."""
        return "9" + self._digits("app", 15)

    @property
    def app_name(self) -> str:
        """The app's name."""
        return f"Shop{self._digits('name', 8)}"

    @property
    def email(self) -> str:
        """The partner's e-mail address, for login."""
        return f"{self.app_name.lower()}@waypost.test"

    @property
    def namespace(self) -> str:
        """The namespace of its templates, an underscored UUID."""
        text = self.secret("namespace")
        return f"{text[:8]}_{text[8:12]}_4{text[13:16]}_8{text[17:20]}_{text[20:32]}"

    def phone(self, name: str, used: Collection[str] = ()) -> str:
        """Return the 11 digits of a person's phone.

        Args:
            name: of the person.
            used: digits of other phones.
        """
        for turn in range(100):
            digits = self._number(_PHONES, f"phone {name} {turn or ''}")
            if digits not in used:
                return digits
        raise ValueError(f"no digits are left for {name}")

    def secret(self, purpose: str) -> str:
        """Return 64 hex digits for a purpose."""
        return sha256(f"{self.seed}\n{self.attempt}\n{purpose}".encode()).hexdigest()

    def _number(self, prefixes: tuple[str, ...], purpose: str) -> str:
        number = int(self.secret(purpose)[:16], 16)
        return f"{prefixes[number % 5]}{number // 5 % 10**6:06d}"

    def _digits(self, purpose: str, count: int) -> str:
        return f"{int(self.secret(purpose), 16) % 10**count:0{count}d}"


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
        "manual_reviews": service.is_external,  # in a service that we start, NO_DELAYS turns reviews off
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


class CallbackForwarding:
    """The subscription of a partner's receiver, and the application that it forwards callbacks to."""

    def __init__(self, tenancy: Tenancy) -> None:
        self._tenancy = tenancy
        self._subscription = ReceiverSubscription()
        self._subscription_id = _subscribe(tenancy, self._subscription)

    def forward(self, url: str, subscription: ReceiverSubscription) -> None:
        """Forward callbacks to a URL, and replace our own subscription; others are not changed."""
        self._tenancy.inbox.forward_url = url
        if subscription == self._subscription:
            return
        self._tenancy.partner_api.json("DELETE", f"/subscription/{self._subscription_id}")
        self._subscription_id = _subscribe(self._tenancy, subscription)
        self._subscription = subscription

    def close(self) -> None:
        """Delete all subscriptions of the app, those of the application under test too, and close the inbox."""
        self._tenancy.partner_api.json("DELETE", "/subscription")
        self._tenancy.service.receiver.close_inbox(self._tenancy.names.waba_id)


def _subscribe(tenancy: Tenancy, subscription: ReceiverSubscription) -> str:
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
