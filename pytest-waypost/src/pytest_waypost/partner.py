"""The partner under test: everything that a test does and inspects."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pytest_waypost import templates
from pytest_waypost.callback import Callback
from pytest_waypost.client import is_api_error
from pytest_waypost.failures import describe_activity, missing_callback, poll, unmet_condition
from pytest_waypost.message import Message, Trace, parse_trace
from pytest_waypost.partner_setup import RECEIVER_MODES, CallbackForwarding, ReceiverSubscription, create_partner
from pytest_waypost.phone import Phone
from pytest_waypost.service import Service
from pytest_waypost.simulator import Fault, TimeMachine, arm_fault, fault_condition
from pytest_waypost.templates import Template

__tracebackhide__ = is_api_error


class Partner:
    """A partner that no other test sees: an app with a number, credentials, phones, and callbacks.

    The fixture `waypost` makes it. Every wait ends after 5 s of real time by default, and raises
    `NotSeen`, an AssertionError whose text shows what was received instead. Every call that an API
    rejects raises `ApiResponseError` with the API's own text.

    Attributes:
        clock: of service and simulator.
    """

    def __init__(self, service: Service, seed: str) -> None:
        self._tenancy = create_partner(service, seed)
        self._phones: dict[str, Phone] = {}
        self._faults: list[Fault] = []
        self._forwarding = CallbackForwarding(self._tenancy)
        self.clock = TimeMachine(service.control)

    # Identity.

    @property
    def env(self) -> dict[str, str]:
        """The settings of the application under test, under the names of `waypost-dev.env`.

        PARTNER_URL, API_URL, APP_ID, APP_TOKEN, API_KEY, SOURCE, SRC_NAME, EMAIL, CLIENT_SECRET, GRAPH_URL,
        WABA_ID, PHONE_NUMBER_ID, GRAPH_TOKEN and so on. PASSWORD is the client secret, which login accepts too.
        """
        return self._tenancy.env

    @property
    def app_id(self) -> str:
        """The id of its app."""
        return self._tenancy.app_id

    @property
    def source(self) -> str:
        """The digits of its number."""
        return self._tenancy.names.source

    def phone(self, name: str, number: str = "") -> Phone:
        """Return the phone of a person; the same one for the same name.

        Args:
            name: of the person and of the profile.
            number: 8 to 15 digits; by default digits derived from the names of test and person, the same
                at every run.
        """
        if name not in self._phones:
            used = [phone.number for phone in self._phones.values()]
            digits = number.lstrip("+") or self._tenancy.names.phone(name, used)
            self._phones[name] = Phone(self._tenancy, name, digits)
        return self._phones[name]

    @property
    def phones(self) -> tuple[Phone, ...]:
        """The phones of the test, in the order of their first use."""
        return tuple(self._phones.values())

    # Sending, as an application would. In a test of an application, the application sends.

    def send_text(self, text: str, to: Phone | str) -> str:
        """Send a session text, and return the message id."""
        return self.send_session({"type": "text", "text": text}, to)

    def send_session(self, message: Mapping[str, Any], to: Phone | str) -> str:
        """Send a session message of any type, and return the message id."""
        return self._send("/msg", to, {"message": json.dumps(message)})

    def send_passthrough(self, message: Mapping[str, Any], to: Phone | str) -> str:
        """Send a message in the operator's format: its `type`, and the member of that name.

        Returns our id of it. Orders are sent like this: `interactive` of type `order_details`.
        """
        response = self._tenancy.partner_api.json("POST", "/v3/message", {"to": str(to), **message})
        return str(response["messages"][0]["id"])

    def send_template(
        self,
        template: Template | str,
        to: Phone | str,
        params: Sequence[str] = (),
        *,
        postback_texts: Sequence[str] = (),
        message: Mapping[str, Any] | None = None,
    ) -> str:
        """Send a template message, and return the message id.

        Args:
            template: the template or its id.
            to: a phone or its digits.
            params: values of its variables, in order.
            postback_texts: postback text of each quick reply, in order.
            message: the media, location or cards that its type needs.
        """
        template_id = template.id if isinstance(template, Template) else template
        form = {"template": json.dumps({"id": template_id, "params": list(params)})}
        if postback_texts:
            texts = [{"index": index, "text": text} for index, text in enumerate(postback_texts)]
            form["postbackTexts"] = json.dumps(texts)
        if message is not None:
            form["message"] = json.dumps(message)
        return self._send("/template/msg", to, form)

    def upload(self, content: bytes, file_type: str, name: str = "file") -> str:
        """Upload a file to send, and return the media id."""
        response = self._tenancy.partner_api.file("POST", "/media", content, file_type=file_type, name=name)
        return str(response["mediaId"])

    def upload_sample(self, content: bytes, file_type: str, name: str = "file") -> str:
        """Upload a file as a template's sample, and return the handle id."""
        response = self._tenancy.partner_api.file("POST", "/upload/media", content, file_type=file_type, name=name)
        return str(response["handleId"]["message"])

    # Templates. Their reviews wait until the test decides them, also in a running service.

    def create_template(
        self,
        name: str,
        content: str,
        *,
        example: str = "",
        category: str = "UTILITY",
        buttons: Sequence[str | Mapping[str, Any]] = (),
        language: str = "en_US",
        approved: bool = True,
        **fields: str,
    ) -> Template:
        """Submit a template, and wait until it is approved, unless `approved` is false.

        Args:
            name: its element name.
            content: the body, with variables such as {{1}}.
            example: the body with values; by default derived from the body.
            category: `UTILITY`, `MARKETING` or `AUTHENTICATION`.
            buttons: labels of quick replies, or whole buttons.
            language: its code.
            approved: approve the template before this returns.
            fields: further form fields, by their names on the wire.
        """
        __tracebackhide__ = True
        form = templates.template_form(
            name, content, example=example, category=category, buttons=buttons,
            language=language, extra_fields=fields,
        )  # fmt: skip
        template = templates.create_template(self._tenancy, form)
        return self.approve_template(template) if approved else template

    def template(self, template: Template | str) -> Template:
        """Return a template as the service has it now.

        Args:
            template: the template, its id or its name.

        Raises:
            LookupError: the partner has no such template.
        """
        record = templates.find_template(self._tenancy, template)
        if record is None:
            raise LookupError(f"the partner has no template {template}")
        return record

    def approve_template(self, template: Template | str) -> Template:
        """Approve a template; it may still be on its way to the operator."""
        __tracebackhide__ = True
        return templates.decide_template(self._tenancy, template, "approve", "APPROVED")

    def reject_template(
        self,
        template: Template | str,
        reason: str = "INVALID_FORMAT",
        *,
        explanation: str = "The reviewer rejected this template.",
    ) -> Template:
        """Reject a template in its review."""
        __tracebackhide__ = True
        body = {"reason": reason, "explanation": explanation}
        return templates.decide_template(self._tenancy, template, "reject", "REJECTED", body)

    def pause_template(self, template: Template | str) -> Template:
        """Make the operator pause a template for low quality."""
        __tracebackhide__ = True
        return templates.decide_template(self._tenancy, template, "pause", "PAUSED")

    def disable_template(self, template: Template | str) -> Template:
        """Make the operator disable a template permanently."""
        __tracebackhide__ = True
        return templates.decide_template(self._tenancy, template, "disable", "DISABLED")

    def publish_flow(self, name: str, flow_json: Mapping[str, Any], category: str = "OTHER") -> str:
        """Create a flow of one asset and publish it; return its id, for a template's button."""
        app = self._tenancy.partner_api
        body = {"name": name, "categories": [category], "flow_json": json.dumps(flow_json)}
        flow_id = str(app.json("POST", "/flows", body)["id"])
        app.json("POST", f"/flows/{flow_id}/publish", {})
        return flow_id

    # Callbacks.

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """All callbacks with a 2xx response, each once, oldest first."""
        return self._tenancy.inbox.delivered

    @property
    def attempts(self) -> tuple[Callback, ...]:
        """All attempts of callbacks, with retries and failed ones, oldest first."""
        return tuple(self._tenancy.inbox.attempts)

    def wait_for_callback(
        self,
        kind: str = "",
        *,
        message_id: str = "",
        where: Callable[[Callback], bool] | None = None,
        within_s: float | None = None,
    ) -> Callback:
        """Return the first matching callback that was not returned before: each is returned once.

        Args:
            kind: as in `Callback.kind`, such as `delivered` or `quick_reply`.
            message_id: of the message it is about.
            where: a further condition.
            within_s: real time to wait; 5 s by default.

        Raises:
            NotSeen: none arrived in time; the text shows what did, and the message's trace.
        """
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s if within_s is None else within_s

        def matches(callback: Callback) -> bool:
            if (kind and callback.kind != kind) or (message_id and callback.message_id != message_id):
                return False
            return where is None or where(callback)

        callback = self._tenancy.inbox.wait_for(matches, wait_s)
        if callback is None:
            expected = f"`{kind}` " if kind else ""
            expected += f"about {message_id} " if message_id else ""
            expected += "that matches `where` " if where else ""
            raise missing_callback(self._tenancy, expected=expected, within_s=wait_s, message_id=message_id)
        return callback

    def wait_until(
        self, condition: Callable[[], object], description: str = "", *, within_s: float | None = None
    ) -> None:
        """Return once a condition is true, such as a state in the application's database.

        Args:
            condition: called repeatedly.
            description: the condition in words, for the failure.
            within_s: real time to wait; 5 s by default.

        Raises:
            NotSeen: it did not become true in time.
        """
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s if within_s is None else within_s
        if poll(lambda: condition() or None, wait_s) is None:
            text = f"{description or 'the condition'}: not true within {wait_s:g} s"
            raise unmet_condition(text, self._tenancy, self._chats())

    def callbacks_to(
        self,
        url: str,
        *,
        version: int = 2,
        modes: Sequence[str] = RECEIVER_MODES,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Forward callbacks to the application under test.

        The receiver of this partner forwards each callback to the application with the same bytes and
        headers, and returns the application's response. So `wait_for_callback` returns a callback once the
        application has responded with 2xx, and the service retries the others on its own schedule.

        Args:
            url: of the application; empty ends forwarding.
            version: 2, or 3 for bodies in the operator's format.
            modes: of the subscription.
            headers: that the service adds to each callback.
        """
        subscription = ReceiverSubscription(version, tuple(modes), tuple(sorted((headers or {}).items())))
        self._forwarding.forward(url, subscription)

    def set_callback_status(self, status: Callable[[Callback], int] | int) -> None:
        """Set the status of the receiver's responses, while callbacks are not forwarded."""
        self._tenancy.inbox.choose_status = status if callable(status) else lambda _: status

    def trace(self, message_id: str) -> Trace:
        """Return a message's trace, as the service has it now."""
        return parse_trace(self._tenancy.service.admin.json("GET", f"/messages/{message_id}"))

    # Faults.

    def fault(
        self,
        call: str = "",
        *,
        webhook: str = "",
        next: int | None = None,
        every: int | None = None,
        probability: float | None = None,
        phone: Phone | str = "",
        template: Template | str = "",
        **effect: Any,
    ) -> Fault:
        """Arm a fault of the simulator for this partner; it is disarmed at the end of `with`, or of the test.

        Args:
            call: the operator's call that fails, such as `messages.send`; every call, if neither this
                nor `webhook` is given.
            webhook: the operator's webhook that is faulted, such as `delivered`.
            next: apply it to the next n calls.
            every: apply it to every nth call.
            probability: apply it at random, repeatable by its seed. Without any of the three: always.
            phone: for this phone's messages only.
            template: for messages of this template only, by its name.
            effect: the effect, as the reference of faults names it: `error=131016`,
                `reset="after"`, `timeout=True`, `fail=131026`; of a webhook `drop=True`,
                `duplicate=2`, `delay_ms=60000` and so on.

        Raises:
            ApiResponseError: there is no such call, webhook or effect; the text names the valid ones.
        """
        armed = arm_fault(
            self._tenancy,
            call=call,
            webhook=webhook,
            condition=fault_condition(next=next, every=every, probability=probability),
            effect=effect,
            phone=str(phone),
            template=template.name if isinstance(template, Template) else template,
        )
        self._faults.append(armed)
        return armed

    @contextmanager
    def simulator(self, **settings: Any) -> Generator[None]:
        """Change settings of the simulator, and restore them at the end; applies to all tests of the process."""
        service = self._tenancy.service
        before = service.simulator_settings()
        service.change_simulator(**settings)
        try:
            yield
        finally:
            service.change_simulator(**{name: before[name] for name in settings})

    def describe_activity(self) -> str:
        """Return a report of callbacks, unfinished messages, templates, faults and the clock."""
        return describe_activity(self._tenancy, self._chats())

    def close(self) -> None:
        """Disarm its faults, delete its subscriptions, and restore the speed of the clock."""
        for fault in self._faults:
            fault.disarm()
        self.clock.restore_speed()
        self._forwarding.close()

    def _chats(self) -> dict[str, tuple[Message, ...]]:
        return {phone.name: phone.chat for phone in self._phones.values()}

    def _send(self, path: str, to: Phone | str, fields: Mapping[str, str]) -> str:
        form = {
            "channel": "whatsapp",
            "source": self.source,
            "destination": str(to),
            "src.name": self._tenancy.names.app_name,
            **fields,
        }
        return str(self._tenancy.messaging_api.form("POST", path, form)["messageId"])
