"""A partner for a test: its names, creation, credentials and phones, and the clients of the APIs that serve it."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from waypost.assembly.dev.partners.inbox import INBOX_PATH, CallbackOptions, PartnerInbox
from waypost.assembly.dev.service_and_simulator import BaseUrls
from waypost.client.api_client import ApiClient, ApiResponseError, Transport
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.dev_partners import CallbackSettings, PartnerView

# Area code 555 is not assigned. Two halves of it, so that no phone has a business's number.
_SOURCE_PREFIXES: Final = ("15550", "15551", "15552", "15553", "15554")
_PHONE_PREFIXES: Final = ("15555", "15556", "15557", "15558", "15559")
_MAX_PHONE_ATTEMPTS: Final = 100


class DerivedNames:
    """Everything of a partner that is known before it is created.

    Args:
        seed: such as the test's name.
        attempt: counts up while another partner already has the names.

    Attributes:
        source: the app's phone number, 11 digits.
        waba_id: the business account's id, 16 digits; the operator account has the same.
        phone_number_id: the operator's id of the number, 16 digits.
        graph_app_id: the id of the app at the operator, 16 digits.
        email: the partner's e-mail address, for login.
        namespace: of its templates, an underscored UUID.
    """

    def __init__(self, seed: str, attempt: int = 0) -> None:
        self._seed = f"{seed}\n{attempt}"
        self.source = self._number(_SOURCE_PREFIXES, "source")
        self.waba_id = "7" + self._digits("account", 15)
        self.phone_number_id = "8" + self._digits("number", 15)
        self.graph_app_id = "9" + self._digits("app", 15)
        self.app_name = f"Shop{self._digits('name', 8)}"
        self.email = f"{self.app_name.lower()}@waypost.test"
        text = self.secret("namespace")
        self.namespace = f"{text[:8]}_{text[8:12]}_4{text[13:16]}_8{text[17:20]}_{text[20:32]}"

    def phone(self, name: str, used: Collection[str]) -> str:
        """Return the 11 digits of a person's phone, which are not among those that are used."""
        for turn in range(_MAX_PHONE_ATTEMPTS):
            digits = self._number(_PHONE_PREFIXES, f"phone {name} {turn or ''}")
            if digits not in used:
                return digits
        raise LookupError(f"no digits are left for {name}")

    def secret(self, purpose: str) -> str:
        """Return 64 hex digits for a purpose."""
        return sha256(f"{self._seed}\n{purpose}".encode()).hexdigest()

    def _number(self, prefixes: tuple[str, ...], purpose: str) -> str:
        number = int(self.secret(purpose)[:16], 16)
        return f"{prefixes[number % 5]}{number // 5 % 10**6:06d}"

    def _digits(self, purpose: str, count: int) -> str:
        return f"{int(self.secret(purpose), 16) % 10**count:0{count}d}"


INBOX_MODES: Final = (
    "ENQUEUED", "SENT", "DELIVERED", "READ", "DELETED", "FAILED", "MESSAGE", "TEMPLATE", "ACCOUNT",
    "OTHERS", "PAYMENTS", "FLOWS_MESSAGE",
)  # fmt: skip
"""Modes of an inbox's subscription: all except billing."""
DEFAULT_OPTIONS: Final = CallbackOptions(forward_to="", status=200, version=2, modes=INBOX_MODES, headers=())


@dataclass(frozen=True, slots=True)
class PartnerApiClients:
    """Clients of the APIs of both sides, in this process."""

    admin: ApiClient
    control: ApiClient
    service: Transport  # sends requests to the service; a partner's own credential is added


@dataclass(slots=True)
class PartnerForTest:
    """A partner that no other test uses."""

    id: str  # the service's id of it, as text
    name: str  # as the test named it; may be empty
    names: DerivedNames
    variables: Mapping[str, str]  # of the application under test
    inbox_url: str
    created_on_ms: int  # by the clock of both sides
    clients: PartnerApiClients
    inbox: PartnerInbox = field(default_factory=lambda: PartnerInbox(DEFAULT_OPTIONS))
    phones: dict[str, str] = field(default_factory=dict[str, str])  # digits by the names of persons
    subscription_id: str = ""  # of its inbox's subscription; empty before the first
    returned_wamids: set[str] = field(default_factory=set[str])  # the messages that a wait has returned
    end_reason: str = ""  # why its waits end; empty while it exists

    @property
    def app_id(self) -> str:
        """The id of its app."""
        return self.variables["APP_ID"]

    def view(self) -> PartnerView:
        """Return it as the control API shows it."""
        options = self.inbox.options
        return PartnerView(
            id=self.id,
            name=self.name,
            created_on_ms=self.created_on_ms,
            env=dict(self.variables),
            phones=self.phones,
            inbox_url=self.inbox_url,
            callbacks=CallbackSettings(
                options.forward_to, options.status, options.version, options.modes, dict(options.headers)
            ),
        )

    def check_exists(self) -> None:
        """Raise a ControlApiError, 404, if it was deleted meanwhile."""
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


GRAPH_VERSION: Final = "v25.0"
_CREDENTIAL_NAME: Final = "waypost-dev"
_MAX_NAME_ATTEMPTS: Final = 1000


async def create_partner(
    clients: PartnerApiClients,
    urls: BaseUrls,
    visible_urls: BaseUrls,
    *,
    name: str,
    seed: str,
    now_ms: int,
    in_creation: set[str],
) -> PartnerForTest:
    """Create a partner with its own app, number, business account and operator account.

    Args:
        urls: under which both sides reach each other.
        visible_urls: base URLs in the variables of the application.
        name: as the test named it.
        seed: of its names and numbers; if they are in use, others are derived.
        now_ms: by the clock of both sides.
        in_creation: e-mail addresses of partners that are being created; this one is added meanwhile.

    Raises:
        ApiResponseError: an API rejected a request.
        ControlApiError: the set-up failed, or no name is free.
    """
    for attempt in range(_MAX_NAME_ATTEMPTS):
        names = DerivedNames(seed, attempt)
        if names.email in in_creation:
            continue
        in_creation.add(names.email)
        try:
            created = await _create_if_free(clients, urls, names)
        finally:
            in_creation.discard(names.email)
        if created is None:
            continue
        partner_id = str(created["partner"]["id"])
        return PartnerForTest(
            id=partner_id,
            name=name,
            names=names,
            variables={
                "PARTNER_URL": visible_urls.base_url,
                "API_URL": visible_urls.base_url,
                "GRAPH_URL": visible_urls.graph_url,
                "CONTROL_URL": f"{visible_urls.graph_url}/control",
                "EMAIL": names.email,
                "PASSWORD": names.secret("client secret"),  # login accepts either
                "CLIENT_SECRET": names.secret("client secret"),
                "APP_ID": created["app"]["id"],
                "APP_TOKEN": created["app"]["app_token"],
                "API_KEY": created["API key"]["api_key"],
                "SOURCE": names.source,
                "SRC_NAME": names.app_name,
                "WABA_ID": names.waba_id,
                "PHONE_NUMBER_ID": names.phone_number_id,
                "GRAPH_TOKEN": names.secret("graph token"),
            },
            inbox_url=f"{urls.graph_url}{INBOX_PATH}{partner_id}",
            created_on_ms=now_ms,
            clients=clients,
        )
    raise ControlApiError("name", f"{_MAX_NAME_ATTEMPTS} partners had this name", "another name", status=409)


async def _create_if_free(
    clients: PartnerApiClients, urls: BaseUrls, names: DerivedNames
) -> dict[str, dict[str, Any]] | None:
    """Return what each step of the set-up shows, by kind; None if anything with these names exists."""
    control, setup = clients.control, _setup(urls.graph_url, names)
    account = {
        "name": names.app_name,
        "namespace": names.namespace,
        "token": names.secret("graph token"),
        "app_id": names.graph_app_id,
        "app_secret": names.secret("app secret"),
        "manual_reviews": True,
    }
    number = {"waba_id": names.waba_id, "phone_number": names.source, "name": names.app_name}
    try:
        plan = await clients.admin.json("POST", "/admin/setup", {"setup": setup, "dry_run": True})
        if any(step["action"] != "create" for step in plan["steps"]):
            return None
        await control.json("PUT", f"/control/accounts/{names.waba_id}", account)
        await control.json("PUT", f"/control/numbers/{names.phone_number_id}", number)
        applied = await clients.admin.json("POST", "/admin/setup", {"setup": setup})
    except ApiResponseError as error:
        if error.status == 409:
            return None
        raise
    if applied["failed"] is not None:
        raise ControlApiError("partner", applied["failed"]["error"], "", status=503)
    webhook = {
        "callback_uri": f"{urls.base_url}/operator/webhook/{names.waba_id}",
        "verify_token": names.secret("verify token"),
    }
    await control.json("PUT", f"/control/apps/{names.graph_app_id}/webhook", webhook)
    return {step["kind"]: step["shown"] for step in applied["steps"]}


def _setup(graph_url: str, names: DerivedNames) -> dict[str, Any]:
    """Return the document of the set-up of a partner."""
    operator_account = {
        "base_url": graph_url,
        "version": GRAPH_VERSION,
        "token": names.secret("graph token"),
        "app_id": names.graph_app_id,
        "app_secret": names.secret("app secret"),
        "verify_token": names.secret("verify token"),
    }
    business_account = {"id": names.waba_id, "operator_account": names.waba_id, "namespace": names.namespace}
    app = {
        "name": names.app_name,
        "phone_number": names.source,
        "phone_number_id": names.phone_number_id,
        "business_account": names.waba_id,
    }
    partner = {
        "email": names.email,
        "name": names.app_name,
        "client_secrets": [{"value": names.secret("client secret")}],
        "api_keys": [{"name": _CREDENTIAL_NAME}],
        "business_accounts": [business_account],
        "apps": [app],
    }
    return {"operator_accounts": {names.waba_id: operator_account}, "partners": [partner]}


async def subscribe_inbox(partner: PartnerForTest) -> None:
    """Subscribe the partner's inbox as its options say; an earlier subscription of it is deleted."""
    if partner.subscription_id:
        await partner.call_partner_api("DELETE", f"/subscription/{partner.subscription_id}")
    options = partner.inbox.options
    fields = {
        "tag": _CREDENTIAL_NAME,
        "url": partner.inbox_url,
        "version": str(options.version),
        "modes": ",".join(options.modes),
        "doCheck": "false",
    }
    if options.headers:
        fields["meta"] = json.dumps({"headers": dict(options.headers)})
    response = await partner.call_partner_api("POST", "/subscription", fields)
    partner.subscription_id = str(response["subscription"]["id"])
