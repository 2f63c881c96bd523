"""A second operator beside the pipeline's: another simulator, with other ids and other secrets."""

import json
from dataclasses import replace
from typing import Any, Final

from tests.support.builders import ANN, APP, OPERATOR
from tests.support.pipeline import ADMIN_TOKEN, TWO_REPLIES, HttpResponse, PipelineHarness
from waypost.admin import provisioning
from waypost.assembly.components import WEBHOOK_PATH
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.base.ids import SeededIds
from waypost.operators.cloud.numbers import cloud_account
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings

CLOUD: Final = cloud_account(
    "cloud", "", token="cloud-token", app_id="6000000000000003", app_secret="cloud-secret", verify_token="cloud-verify"
)
WABA_ID: Final = "6000000000000001"
NUMBER_ID: Final = "6000000000000002"
NAMESPACE: Final = "6aae0001_b627_4112_b9c7_2961197553ea"


class SecondOperator:
    """A second simulator, and its operator account.

    Args:
        pipeline: its service uses this operator.
        waba_id: its id of the business account.
        number_id: its id of the app's number.
    """

    def __init__(self, pipeline: PipelineHarness, *, waba_id: str = WABA_ID, number_id: str = NUMBER_ID) -> None:
        self._pipeline = pipeline
        self.waba_id = waba_id
        self.number_id = number_id
        self.url = ""

    async def open(self) -> None:
        """Start it, and create our account at it."""
        pipeline = self._pipeline
        bound = bind_socket("127.0.0.1", 0, option="--simulator-port")
        self.url = f"http://127.0.0.1:{port_of(bound)}"
        settings = SimulatorSettings(
            path=pipeline.folder / "second.db", review_delay_ms=0, deliver_after_ms=0, gather_ms=0, limits=False
        )
        self.simulator = Simulator(settings, pipeline.clock, SeededIds(pipeline.clock, "second"))
        await self.simulator.open()
        self._server = HttpServer(self.simulator.application, bound)
        await self._server.start()
        await self.simulator.seed(
            AccountSeed(
                waba_id=self.waba_id,
                name="Acme, for real",
                namespace=NAMESPACE,
                token=CLOUD["token"],
                app_id=CLOUD["app_id"],
                app_secret=CLOUD["app_secret"],
                verify_token=CLOUD["verify_token"],
                callback_uri=f"{pipeline.service_url}{WEBHOOK_PATH}/{CLOUD.id}",
            ),
            [NumberSeed(self.number_id, self.waba_id, APP.phone_number, "Acme Shop")],
        )
        account = replace(CLOUD, base_url=self.url)
        await provisioning.put_operator_account(pipeline.waypost.admin_context, account)

    async def close(self) -> None:
        """Stop it."""
        await self._server.stop()
        await self.simulator.close()

    async def control(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to its control API, and return the body of the response."""
        async with self._pipeline.http.request(
            method, f"{self.url}/control/{path}", json=None if method == "GET" else body
        ) as response:
            content = await response.json()
            assert response.status == 200, content
            return content

    async def deliveries(self, message_id: str) -> list[dict[str, Any]]:
        """Return the messages that it has accepted under our id."""
        return (await self.control("GET", f"deliveries?callback_data={message_id}"))["deliveries"]

    async def seed_greeting(self) -> None:
        """Create the pipeline's template with two quick replies here too, approved, under another id."""
        body = {"type": "BODY", "text": "Hi {{1}}, shall we come today?", "example": {"body_text": [["Ann"]]}}
        buttons = [dict(button) for button in TWO_REPLIES]
        await self.simulator.seed_template(
            template_id="6000000000000009",
            waba_id=self.waba_id,
            name="greeting",
            language="en_US",
            category="UTILITY",
            components=[body, {"type": "BUTTONS", "buttons": buttons}],
        )

    async def open_window(self, phone: str = ANN) -> None:
        """Send a message from the phone to the number here; return when the operator has recorded it."""
        await self.control("POST", f"phones/{phone}/messages", {"to": APP.phone_number, "text": "Hello?"})

    async def switch(self, **more: Any) -> HttpResponse:
        """Switch the app to this operator."""
        body = {"business_account_id": self.waba_id, **more}
        return await switch_operator(self._pipeline, CLOUD.id, **body)

    async def switch_back(self, **more: Any) -> HttpResponse:
        """Switch the app back to the pipeline's own operator."""
        return await switch_operator(self._pipeline, OPERATOR.id, **more)


async def switch_operator(pipeline: PipelineHarness, account_id: str, **body: Any) -> HttpResponse:
    """Switch the app to an operator account through the admin API."""
    return await send_admin_request(
        pipeline, "PUT", f"/admin/apps/{APP.id}/operator", {"operator_account_id": account_id, **body}
    )


async def send_admin_request(pipeline: PipelineHarness, method: str, path: str, body: Any = None) -> HttpResponse:
    """Send a request to the admin API."""
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
    async with pipeline.http.request(
        method, pipeline.service_url + path, data=None if body is None else json.dumps(body), headers=headers
    ) as response:
        raw = await response.read()
        return HttpResponse(response.status, json.loads(raw), response.headers, raw)
