"""An app that its partner creates for a number is onboarded at the operator, in stages, and becomes live."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import MakePipeline
from tests.support.builders import ACCOUNT, APP, OPERATOR, PARTNER, is_event
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.polling import poll_until
from waypost.base.clock import VirtualClock
from waypost.base.encryption import hash_secret
from waypost.domain.onboarding import describe_missing, list_missing
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import app_by_id
from waypost.store.apps.progress import progress_of_app

pytestmark = pytest.mark.content_only

SECRET = "client-secret-of-acme"
STEP_S = 60
RUNNING = [  # creationStage, embedStage, pipeLineStage, uiFormStage, whatsappVerificationStatus
    ("IN_PROGRESS", "EMBED_PHONE_SELECTION", "GET_CERTIFICATE", "GO_LIVE_FLOW_SELECTED", "WABA_APPROVED"),
    ("IN_PROGRESS", "EMBED_STARTED", "GET_CERTIFICATE", "GO_LIVE_FLOW_SELECTED", "WABA_APPROVED"),
    ("DOCKER_PROVISIONING", "EMBED_STARTED", "GET_CERTIFICATE", "COMPLETE_VERIFICATION", "WHATSAPP_VERIFICATION_DONE"),
]
DONE = (
    "WHATSAPP_PROVISIONING_DONE",
    "EMBED_STARTED",
    "FINALIZE",
    "COMPLETE_VERIFICATION",
    "WHATSAPP_VERIFICATION_DONE",
)
FAILED = ("ERROR", "EMBED_PENDING", "CREATE_DOCKER", "GET_WHATSAPP_APPROVAL", "PN_DN_APPROVED")
NAMES = ("creationStage", "embedStage", "pipeLineStage", "uiFormStage", "whatsappVerificationStatus")


@dataclass
class Onboarding:
    """The harness without its app, and a partner who can link the number to a new one."""

    pipeline: PipelineHarness
    by_partner: dict[str, str]
    app_id: str = ""
    by_app: dict[str, str] | None = None

    async def link(self) -> None:
        """Create the app, and subscribe to its events."""
        app = {"name": "Linked Shop", "wabaId": ACCOUNT.id, "phone": APP.phone_number}
        self.app_id = await self._body("POST", "/partner/tpp/app", app, "appId")
        token = await self._body("GET", f"/partner/app/{self.app_id}/token", None, "token")
        self.by_app = {"Authorization": token["token"]}
        subscription = {"modes": "ACCOUNT", "tag": "all", "url": self.pipeline.sink.url, "version": "2"}
        path = f"/partner/app/{self.app_id}/subscription"
        response = await self.pipeline.send_request("POST", path, subscription, self.by_app)
        assert response.status == 200, response

    async def link_with_callback_url(self) -> None:
        """Create the app with a callback URL, and no subscription."""
        app = {"name": "Linked Shop", "wabaId": ACCOUNT.id, "phone": APP.phone_number}
        self.app_id = await self._body(
            "POST", "/partner/tpp/app", {**app, "callbackUrl": self.pipeline.sink.url}, "appId"
        )

    async def stages(self) -> tuple[str, ...]:
        """Return the stages; the list of apps has the same."""
        state = await self._body("GET", f"/partner/app/{self.app_id}/pipeline", None, "whatsapp")
        [listed] = await self._body("GET", "/partner/app/list", None, "apps")
        assert listed["pipelineStage"] == state["pipeLineStage"]
        assert all(listed[name] == state[name] for name in NAMES if name in listed)
        return tuple(state[name] for name in NAMES)

    async def graph(self, path: str, body: dict[str, Any]) -> None:
        """Call the operator as the owner of the number."""
        url = f"{self.pipeline.operator_url}/v23.0/{path}"
        headers = {"Authorization": f"Bearer {OPERATOR['token']}"}
        async with self.pipeline.http.post(url, json=body, headers=headers) as response:
            assert response.status == 200, await response.text()

    async def administrate(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Call the admin API."""
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        async with self.pipeline.http.request(
            method,
            f"{self.pipeline.service_url}/admin/{path}",
            json=(body or {}) if method == "POST" else None,
            headers=headers,
        ) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def _body(self, method: str, path: str, form: dict[str, str] | None, member: str) -> Any:
        response = await self.pipeline.send_request(method, path, form, self.by_partner)
        assert response.status == 200, response
        return response.body[member]


@pytest.fixture
async def onboarding(make_pipeline: MakePipeline) -> Onboarding:
    pipeline = await make_pipeline(clock=VirtualClock(), changes={"onboarding_step_s": STEP_S})
    await pipeline.waypost.admin_context.database.write(
        add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, hash_secret(SECRET), pipeline.clock.now_ms()
    )
    login = {"email": PARTNER.email, "password": SECRET}
    response = await pipeline.send_request("POST", "/partner/account/login", login)
    by_partner = {"Authorization": response.body["token"]}
    deleted = await pipeline.send_request("DELETE", f"/partner/app/{APP.id}?deleteLiveApp=true", None, by_partner)
    assert deleted.status == 200, deleted
    return Onboarding(pipeline, by_partner)


async def test_stages_follow_each_other_until_the_app_is_live(onboarding: Onboarding) -> None:
    pipeline = onboarding.pipeline
    await onboarding.graph(f"{APP.phone_number_id}/deregister", {})
    await onboarding.link()

    stages = [await onboarding.stages()]
    for _ in RUNNING:
        await pipeline.travel(ms=STEP_S * 1000)
        stages.append(await onboarding.stages())

    assert stages == [*RUNNING, DONE]
    event = await pipeline.wait_for_callback(is_event("onboarding-event"))
    assert event["appId"] == onboarding.app_id
    assert event["payload"]["payload"]["status"] == "live"
    assert onboarding.by_app is not None
    health = await pipeline.send_request("GET", f"/partner/app/{onboarding.app_id}/health", None, onboarding.by_app)
    assert health.body["healthy"] is True or health.body["healthy"] == "true", health


async def test_number_of_a_joint_solution_is_linked_after_its_window(onboarding: Onboarding) -> None:
    """The partner's page opens the window; the vendor's own token reaches the account, and registers the number."""
    pipeline = onboarding.pipeline
    setup = {"setup": {"solutionID": "4711"}, "featureType": "", "sessionInfoVersion": "3"}
    session = await pipeline.control("POST", "onboarding/play", {"app_id": OPERATOR["app_id"], "extras": setup})
    account = {"id": session["waba_id"], "partner_id": PARTNER.id, "operator_account_id": OPERATOR.id}
    app = {"name": "Linked Shop", "wabaId": session["waba_id"], "phone": session["phone_number"]}
    early = await pipeline.send_request("POST", "/partner/tpp/app", app, onboarding.by_partner)
    await onboarding.administrate("POST", "business-accounts", account)

    linked = await pipeline.send_request("POST", "/partner/tpp/app", app, onboarding.by_partner)
    onboarding.app_id = linked.body["appId"]
    await pipeline.travel(ms=len(RUNNING) * STEP_S * 1000)

    assert (early.status, linked.status) == (400, 200)
    assert await onboarding.stages() == DONE
    registration = await pipeline.control("GET", f"numbers/{session['phone_number_id']}/registration")
    assert registration["pin"]


async def test_callback_url_gets_the_live_event_without_a_subscription(onboarding: Onboarding) -> None:
    pipeline = onboarding.pipeline
    await onboarding.link_with_callback_url()

    await pipeline.travel(ms=len(RUNNING) * STEP_S * 1000)

    event = await pipeline.wait_for_callback(is_event("onboarding-event"))
    assert (event["appId"], event["payload"]["payload"]["status"]) == (onboarding.app_id, "live")


async def test_step_that_fails_three_times_is_an_error_until_it_is_begun_again(onboarding: Onboarding) -> None:
    pipeline = onboarding.pipeline
    await onboarding.graph(APP.phone_number_id, {"pin": "123456"})
    await onboarding.graph(f"{APP.phone_number_id}/deregister", {})
    await onboarding.link()
    await pipeline.travel(ms=3 * STEP_S * 1000)
    assert await onboarding.stages() == RUNNING[2]  # it is tried again

    await pipeline.travel(ms=60_000)

    assert await onboarding.stages() == FAILED
    report = await onboarding.administrate("GET", "doctor")
    [result] = [one for one in report["results"] if "Linked Shop" in one["subject"] and "onboarding" in one["subject"]]
    assert result["state"] == "wrong"
    progress = await pipeline.waypost.admin_context.database.read(progress_of_app, onboarding.app_id)
    assert progress is not None
    assert result["text"] == describe_missing(list_missing(progress))  # the words of the console
    assert "it has failed to register the number" in result["text"]
    assert "The PIN does not match." in result["text"]
    assert result["fix_hint"] == f"mend the cause, then: waypost app onboard {onboarding.app_id}"
    assert onboarding.by_app is not None
    path = f"/partner/app/{onboarding.app_id}/onboarding/register"
    registered = await pipeline.send_request("POST", path, {"pin": "123456"}, onboarding.by_app)
    assert registered.status == 200, registered
    await onboarding.administrate("POST", f"apps/{onboarding.app_id}/onboard")
    await pipeline.travel(ms=3 * STEP_S * 1000)
    assert await onboarding.stages() == DONE
    report = await onboarding.administrate("GET", f"doctor?partner_id={PARTNER.id}")
    [result] = [one for one in report["results"] if "onboarding of Linked Shop" in one["subject"]]
    assert result["state"] == "ok"
    assert result["text"] == "missing: an approved template; a first message; a message from a user"
    assert result["fix_hint"] == "next: Submit sample template: see Onboarding in the console"


async def test_number_of_the_business_app_is_not_registered_and_has_its_own_pace(onboarding: Onboarding) -> None:
    pipeline = onboarding.pipeline
    await onboarding.graph(APP.phone_number_id, {"pin": "123456"})
    await onboarding.graph(f"{APP.phone_number_id}/deregister", {})
    number = {"waba_id": ACCOUNT.id, "phone_number": APP.phone_number, "name": "Acme", "is_on_business_app": True}
    await pipeline.control("PUT", f"numbers/{APP.phone_number_id}", number)
    await onboarding.link()

    await pipeline.travel(ms=3 * STEP_S * 1000)

    app = await pipeline.waypost.database.read(app_by_id, onboarding.app_id)
    assert await onboarding.stages() == DONE
    assert app is not None
    assert (app.throughput, app.preferences.is_shared) == (20, True)  # Source: operator's facts 8


@pytest.mark.both_engines
async def test_onboarding_continues_after_a_restart(onboarding: Onboarding) -> None:
    pipeline = onboarding.pipeline
    await onboarding.link()
    await pipeline.travel(ms=STEP_S * 1000)

    await pipeline.close_service()
    await pipeline.open_service()

    assert await onboarding.stages() == RUNNING[1]

    async def take_step() -> object:
        await pipeline.travel(ms=STEP_S * 1000)
        return await onboarding.stages()

    await poll_until(take_step, lambda stages: stages == DONE)  # the first may find that nobody has the lease yet
