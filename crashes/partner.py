"""A partner with everything needed to send, created over HTTP only."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

SOURCE: Final = "15557000000"
APP_NAME: Final = "CrashApp"
WABA_ID: Final = "1000000000000071"
PHONE_NUMBER_ID: Final = "2000000000000072"
GRAPH_APP_ID: Final = "3000000000000073"
SECRETS: Final = {"token": "a-graph-token", "app_secret": "an-app-secret"}
VERIFY_TOKEN: Final = "a verify token"
MODES: Final = "SENT,DELIVERED,READ,FAILED,MESSAGE,TEMPLATE,ENQUEUED"
THROUGHPUT: Final = 1000
READ_AFTER_MS: Final = 100

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Partner:
    """The ids and credentials of a partner."""

    app_id: str
    app_token: str
    api_key: str
    template_id: str


class ClusterApis(Protocol):
    """The APIs of a cluster, and the URLs under which its processes reach each other."""

    webhooks_url: str
    service_graph_url: str
    service_callbacks_url: str

    async def admin(self, method: str, path: str, body: Json | None = None) -> Any:
        """Call the admin API."""
        ...

    async def control(self, method: str, path: str, body: Json | None = None) -> Any:
        """Call the simulator's control API."""
        ...

    async def app_call(self, app: Json, path: str, form: Json | None = None) -> Json:
        """Call the partner API."""
        ...

    async def wait_until(
        self, condition: Callable[[], Awaitable[bool]], description: str, *, within_s: float = ...
    ) -> None:
        """Return when the condition is true."""
        ...


async def set_up(cluster: ClusterApis) -> Partner:
    """Create a partner with an app, an approved template and a subscription, over HTTP only."""
    account = {**SECRETS, "app_id": GRAPH_APP_ID}
    await cluster.control("PUT", f"accounts/{WABA_ID}", {**account, "name": "Crash Business"})
    number = {"waba_id": WABA_ID, "phone_number": SOURCE, "name": "Crash"}
    await cluster.control("PUT", f"numbers/{PHONE_NUMBER_ID}", {**number, "throughput": THROUGHPUT})
    await cluster.control("PUT", "settings", {"read_after_ms": READ_AFTER_MS, "review_delay_ms": 100})
    operator_account = await cluster.admin(
        "PUT",
        "operator-accounts/crash",
        {**account, "base_url": cluster.service_graph_url, "version": "v25.0", "verify_token": VERIFY_TOKEN},
    )
    await cluster.control(
        "PUT",
        f"apps/{GRAPH_APP_ID}/webhook",
        {"callback_uri": cluster.webhooks_url + operator_account["webhook_path"], "verify_token": VERIFY_TOKEN},
    )
    partner = await cluster.admin(
        "POST", "partners", {"email": "crash@waypost.test", "password": "Crash-1234", "name": "C"}
    )
    key = await cluster.admin("POST", f"partners/{partner['id']}/api-keys", {"name": "crash"})
    await cluster.admin(
        "POST",
        "business-accounts",
        {"id": WABA_ID, "partner_id": partner["id"], "namespace": "crash", "operator_account_id": "crash"},
    )
    app = await cluster.admin(
        "POST",
        "apps",
        {
            "partner_id": partner["id"],
            "name": APP_NAME,
            "phone_number": SOURCE,
            "phone_number_id": PHONE_NUMBER_ID,
            "business_account_id": WABA_ID,
        },
    )
    await cluster.app_call(
        app, "subscription", {"modes": MODES, "tag": "all", "url": cluster.service_callbacks_url + "/callbacks"}
    )
    template = await cluster.app_call(
        app,
        "templates",
        {
            "elementName": "parcel_ready",
            "languageCode": "en_US",
            "category": "UTILITY",
            "templateType": "TEXT",
            "vertical": "Parcels",
            "content": "Parcel {{1}} is ready. Shall we bring it?",
            "example": "Parcel [4711] is ready. Shall we bring it?",
            "buttons": json.dumps([{"type": "QUICK_REPLY", "text": text} for text in ("Yes", "No")]),
            "enableSample": "true",
        },
    )
    template_id: str = template["template"]["id"]

    async def is_approved() -> bool:
        listed = await cluster.app_call(app, "templates")
        return [template["status"] for template in listed["templates"]] == ["APPROVED"]

    await cluster.wait_until(is_approved, "the template is approved")
    return Partner(app["id"], app["app_token"], key["api_key"], template_id)
