"""Creation of a partner for a test: an account and a number at the simulator, and one set-up at the service."""

import json
from typing import Any, Final

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
        clients: of both sides.
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
