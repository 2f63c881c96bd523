"""The actions of a test's partner, against the real service and simulator."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pytest_waypost.client import ApiResponseError, BlockingApiClient
from pytest_waypost.failures import NotSeen
from pytest_waypost.partner import Partner
from pytest_waypost.service import Service
from tests.testing.conftest import MakePartner

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


def test_message_is_traced_from_its_sending_to_its_reading(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")

    message_id = partner.send_text("Good morning", ann)

    message = ann.wait_for_message("morning")
    assert (message.message_id, message.text, message.from_phone) == (message_id, "Good morning", False)
    partner.wait_for_callback("delivered", message_id=message_id)
    assert ann.read() == 1
    partner.wait_for_callback("read", message_id=message_id)
    assert [step.event for step in partner.trace(message_id).steps] == [
        "accepted",
        "enqueued",
        "sent",
        "delivered",
        "read",
    ]


def test_tap_is_called_back_with_the_postback_text_of_its_button(partner: Partner) -> None:
    ann = partner.phone("Ann")
    template = partner.create_template("order_ready", "Hi {{1}}, all right?", buttons=["Yes", "No"])

    message_id = partner.send_template(template, ann, ["Ann"], postback_texts=["y-1", "n-1"])
    ann.tap("No")

    tapped = partner.wait_for_callback("quick_reply")
    assert (tapped.text, tapped.postback_text, tapped.message_id) == ("No", "n-1", message_id)


def test_each_message_and_each_callback_is_returned_once(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")
    for text in ("Hello 1", "Hello 2"):
        partner.send_text(text, ann)

    texts = [ann.wait_for_message("Hello").text for _ in range(2)]
    ids = {partner.wait_for_callback("delivered").message_id for _ in range(2)}

    assert texts == ["Hello 1", "Hello 2"]
    assert len(ids) == 2
    with pytest.raises(NotSeen):
        ann.wait_for_message("Hello", within_s=0.05)
    with pytest.raises(NotSeen):
        partner.wait_for_callback("delivered", within_s=0.05)


def test_two_partners_are_isolated_from_each_other(make_partner: MakePartner) -> None:
    mine, other = make_partner("mine"), make_partner("other")
    number = "4915112345678"
    ann_of_mine, ann_of_other = mine.phone("Ann", number), other.phone("Ann", number)
    ann_of_mine.write("Only for mine")
    mine.wait_for_callback("text")

    mine.send_text("Only from mine", ann_of_mine)
    ann_of_mine.wait_for_message("Only from mine")
    mine.clock.wait_until_idle()

    assert ann_of_other.chat == ()
    assert other.callbacks == ()
    assert mine.source != other.source
    assert not set(mine.env.values()) & {other.app_id, other.source, other.env["API_KEY"]}


def test_fault_of_one_partner_does_not_affect_another(make_partner: MakePartner) -> None:
    mine, other = make_partner("mine"), make_partner("other")
    ann, ben = mine.phone("Ann"), other.phone("Ben")
    ann.write("Hi")
    ben.write("Hi")

    with mine.fault("messages.send", error=131026):
        mine.send_text("Lost", ann)
        other.send_text("Found", ben)
        failed = mine.wait_for_callback("failed")

    ben.wait_for_message("Found")
    assert failed.reason.startswith("131026")


def test_same_seed_twice_makes_two_partners(service: Service) -> None:
    first = Partner(service, "the same")
    second = Partner(service, "the same")

    assert first.source != second.source
    first.close()
    second.close()


def test_env_has_the_credentials_for_every_api_of_the_partner(partner: Partner) -> None:
    env = partner.env
    api = BlockingApiClient(env["PARTNER_URL"])
    login = {"email": env["EMAIL"], "password": env["PASSWORD"]}

    partner_token = api.form("POST", "/partner/account/login", login)["token"]
    client = BlockingApiClient(env["PARTNER_URL"], {"Authorization": partner_token})
    shown = client.json("GET", f"/partner/app/{env['APP_ID']}/token")

    assert shown["token"]["token"] == env["APP_TOKEN"]
    graph = BlockingApiClient(env["GRAPH_URL"], {"Authorization": f"Bearer {env['GRAPH_TOKEN']}"})
    assert graph.json("GET", f"/v25.0/{env['PHONE_NUMBER_ID']}")["id"] == env["PHONE_NUMBER_ID"]


def test_partner_without_a_password_logs_in_with_its_client_secret_only(partner: Partner) -> None:
    api = BlockingApiClient(partner.env["PARTNER_URL"])

    with pytest.raises(ApiResponseError) as raised:
        api.form("POST", "/partner/account/login", {"email": partner.env["EMAIL"], "password": "Guessed-1"})

    assert raised.value.status == 403


@pytest.mark.parametrize("what", ["messages", "templates"])
def test_unknown_app_is_an_error_of_the_admin_api(service: Service, what: str) -> None:
    with pytest.raises(ApiResponseError, match="There is no app nobody"):
        service.admin.json("GET", f"/apps/nobody/{what}")


def test_admin_api_lists_the_newest_messages_and_templates_of_an_app(partner: Partner, service: Service) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")
    partner.create_template("order_ready", "Hi {{1}}, it is ready.", approved=False)

    ids = [partner.send_text(f"Hello {at}", ann) for at in range(3)]

    path = f"/apps/{partner.app_id}"
    messages = service.admin.json("GET", f"{path}/messages")["messages"]
    templates = service.admin.json("GET", f"{path}/templates")["templates"]
    assert [message["id"] for message in messages] == ids[::-1]
    assert {message["destination"] for message in messages} == {ann.number}
    assert [(template["element_name"], template["status"]) for template in templates] == [("order_ready", "PENDING")]


def test_uploaded_picture_reaches_the_phone(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Show me")

    media_id = partner.upload(PIXEL, "image/png", "pixel.png")
    partner.send_session({"type": "image", "id": media_id, "caption": "So small"}, ann)

    message = ann.wait_for_message("So small")
    assert message.type == "image"
    assert partner.upload_sample(PIXEL, "image/png").startswith("4::")


def test_callbacks_are_forwarded_to_the_application_and_its_responses_are_used(
    partner: Partner, application: "Application"
) -> None:
    ann = partner.phone("Ann")
    application.statuses = [500, 200]
    partner.callbacks_to(application.url, headers={"X-Shop": "tea"})

    ann.write("Hi")
    partner.clock.advance(minutes=10)

    delivered = partner.wait_for_callback("text")
    assert delivered.text == "Hi"
    assert [attempt.status for attempt in partner.attempts] == [500, 200]
    assert [json.loads(body)["payload"]["payload"]["text"] for body in application.bodies] == ["Hi", "Hi"]
    assert {headers["X-Shop"] for headers in application.headers} == {"tea"}
    assert len({headers["Waypost-Callback-Id"] for headers in application.headers}) == 1


def test_subscription_that_the_application_makes_itself_is_kept(partner: Partner, application: "Application") -> None:
    env = partner.env
    app = BlockingApiClient(f"{env['PARTNER_URL']}/partner/app/{env['APP_ID']}", {"token": env["APP_TOKEN"]})
    subscription = {"modes": "MESSAGE", "tag": "own", "url": application.url, "version": "2"}
    app.form("POST", "/subscription", subscription | {"doCheck": "false"})

    partner.callbacks_to("", version=3)
    partner.phone("Ann").write("Hi")

    partner.wait_for_callback("text")
    partner.wait_until(lambda: application.bodies, "the application has been called")
    assert [json.loads(body)["type"] for body in application.bodies] == ["message"]


def test_callbacks_of_version_3_are_read_too(partner: Partner) -> None:
    ann = partner.phone("Ann")
    partner.callbacks_to("", version=3)
    ann.write("Hi")

    inbound = partner.wait_for_callback("text")
    message_id = partner.send_text("Hello", ann)
    delivered = partner.wait_for_callback("delivered")

    assert (inbound.text, inbound.phone) == ("Hi", ann.number)
    assert (delivered.message_id, delivered.phone) == (message_id, ann.number)


def test_callbacks_that_fail_are_retried(partner: Partner) -> None:
    ann = partner.phone("Ann")
    partner.set_callback_status(503)
    ann.write("Hi")
    partner.wait_until(lambda: partner.attempts, "a callback has been tried")

    partner.set_callback_status(200)
    partner.clock.advance(minutes=10)

    assert [callback.text for callback in partner.callbacks] == ["Hi"]
    assert len(partner.attempts) > 1


def test_settings_of_the_simulator_are_restored(partner: Partner, service: Service) -> None:
    before = service.simulator_settings()

    with partner.simulator(review_delay_ms=0, deliver_after_ms=1):
        template = partner.create_template("by_itself", "Approved by nobody", approved=False)
        partner.wait_until(lambda: partner.template(template).status == "APPROVED")

    assert service.simulator_settings() == before


class Application:
    """A receiver like that of a project under test.

    Attributes:
        statuses: of its responses, one after the other; the last is repeated.
    """

    def __init__(self) -> None:
        self.statuses = [200]
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        application = self

        class CallbackHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                application.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                application.headers.append(dict(self.headers.items()))
                statuses = application.statuses
                self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), CallbackHandler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?shop=1"


@pytest.fixture
def application() -> Iterator[Application]:
    """Start the application for the time of the test."""
    application = Application()
    server_thread = threading.Thread(target=application.server.serve_forever, args=(0.02,))
    server_thread.start()
    yield application
    application.server.shutdown()
    application.server.server_close()
    server_thread.join()
