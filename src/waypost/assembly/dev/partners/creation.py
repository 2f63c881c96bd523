"""Creation of a partner for a test through the APIs of both sides, as a person would do it."""

import json
from dataclasses import dataclass
from typing import Final

from waypost.assembly.dev.partners.names import DerivedNames
from waypost.assembly.dev.partners.partner import PartnerApiClients, PartnerForTest
from waypost.assembly.dev.service_and_simulator import BaseUrls
from waypost.client.api_client import ApiResponseError
from waypost.simulator.control_error import ControlApiError

GRAPH_VERSION: Final = "v25.0"
INBOX_PATH: Final = "/callbacks/"
"""Path of the inboxes on the simulator's port; followed by the partner's id."""
_CREDENTIAL_NAME: Final = "waypost-dev"
_MAX_NAME_ATTEMPTS: Final = 1000


@dataclass(frozen=True, slots=True)
class PartnerCreator:
    """Creates partners.

    Attributes:
        urls: under which both sides reach each other.
    """

    clients: PartnerApiClients
    urls: BaseUrls

    async def create(self, name: str, seed: str, visible_urls: BaseUrls, now_ms: int) -> PartnerForTest:
        """Create a partner with its own app, number, business account and operator account.

        Args:
            name: as the test named it.
            seed: of its names and numbers; if they are in use, others are derived.
            visible_urls: base URLs in the variables of the application.
            now_ms: by the clock of both sides.

        Raises:
            ApiResponseError: an API rejected a request.
        """
        for attempt in range(_MAX_NAME_ATTEMPTS):
            names = DerivedNames(seed, attempt)
            partner_id = await self._create_if_free(names)
            if partner_id:
                return await self._complete(name, names, partner_id, visible_urls, now_ms)
        raise ControlApiError("name", f"{_MAX_NAME_ATTEMPTS} partners had this name", "another name", status=409)

    async def _create_if_free(self, names: DerivedNames) -> str:
        """Create partner, operator account and number; return the partner's id, or an empty text if they exist."""
        control = self.clients.control
        try:
            body = {"email": names.email, "name": names.app_name}
            partner = await self.clients.admin.json("POST", "/admin/partners", body)
            account = {
                "name": names.app_name,
                "namespace": names.namespace,
                "token": names.secret("graph token"),
                "app_id": names.graph_app_id,
                "app_secret": names.secret("app secret"),
                "manual_reviews": True,
            }
            await control.json("PUT", f"/control/accounts/{names.waba_id}", account)
            number = {"waba_id": names.waba_id, "phone_number": names.source, "name": names.app_name}
            await control.json("PUT", f"/control/numbers/{names.phone_number_id}", number)
        except ApiResponseError as error:
            if error.status == 409:
                return ""
            raise
        return str(partner["id"])

    async def _complete(
        self, name: str, names: DerivedNames, partner_id: str, visible_urls: BaseUrls, now_ms: int
    ) -> PartnerForTest:
        admin, waba_id = self.clients.admin, names.waba_id
        graph_token, verify_token = names.secret("graph token"), names.secret("verify token")
        operator_account = {
            "base_url": self.urls.graph_url,
            "version": GRAPH_VERSION,
            "token": graph_token,
            "app_id": names.graph_app_id,
            "app_secret": names.secret("app secret"),
            "verify_token": verify_token,
        }
        account = await admin.json("PUT", f"/admin/operator-accounts/{waba_id}", operator_account)
        business_account = {
            "id": waba_id,
            "partner_id": int(partner_id),
            "namespace": names.namespace,
            "operator_account_id": waba_id,
        }
        await admin.json("POST", "/admin/business-accounts", business_account)
        new_app = {
            "partner_id": int(partner_id),
            "name": names.app_name,
            "phone_number": names.source,
            "phone_number_id": names.phone_number_id,
            "business_account_id": waba_id,
        }
        app = await admin.json("POST", "/admin/apps", new_app)
        path = f"/admin/partners/{partner_id}"
        api_key = (await admin.json("POST", f"{path}/api-keys", {"name": _CREDENTIAL_NAME}))["api_key"]
        client_secret = (await admin.json("POST", f"{path}/client-secrets", {}))["client_secret"]
        webhook = {"callback_uri": self.urls.base_url + account["webhook_path"], "verify_token": verify_token}
        await self.clients.control.json("PUT", f"/control/apps/{names.graph_app_id}/webhook", webhook)
        variables = {
            "PARTNER_URL": visible_urls.base_url,
            "API_URL": visible_urls.base_url,
            "GRAPH_URL": visible_urls.graph_url,
            "CONTROL_URL": f"{visible_urls.graph_url}/control",
            "EMAIL": names.email,
            "PASSWORD": client_secret,  # login accepts either
            "CLIENT_SECRET": client_secret,
            "APP_ID": app["id"],
            "APP_TOKEN": app["app_token"],
            "API_KEY": api_key,
            "SOURCE": names.source,
            "SRC_NAME": names.app_name,
            "WABA_ID": waba_id,
            "PHONE_NUMBER_ID": names.phone_number_id,
            "GRAPH_TOKEN": graph_token,
        }
        return PartnerForTest(
            id=partner_id,
            name=name,
            names=names,
            variables=variables,
            inbox_url=f"{self.urls.graph_url}{INBOX_PATH}{partner_id}",
            created_on_ms=now_ms,
            clients=self.clients,
        )


async def subscribe_inbox(partner: PartnerForTest) -> None:
    """Subscribe the partner's inbox as its options say; an earlier subscription of it is deleted."""
    if partner.subscription_id:
        await partner.call_partner_api("DELETE", f"/subscription/{partner.subscription_id}")
    options = partner.options
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
