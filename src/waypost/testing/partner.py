"""One partner of the service, with everything a test does and looks at."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from waypost.client.responses import is_told
from waypost.testing import templates
from waypost.testing.callback import Callback
from waypost.testing.clock import TimeMachine
from waypost.testing.failures import happened, not_so
from waypost.testing.faults import Fault, arm, when_of
from waypost.testing.listener import Hearing
from waypost.testing.message import Message
from waypost.testing.partner_setup import MODES, Subscription, found
from waypost.testing.phone import Phone
from waypost.testing.runtime.service import Service
from waypost.testing.templates import Template
from waypost.testing.trace import Trace, trace_of
from waypost.testing.waiting import looked_up

__tracebackhide__ = is_told


class Partner:
    """A partner that no other test sees: an app with a number, credentials, phones, and callbacks.

    Made by the fixture `waypost`. Every wait ends after 5 s of real time unless told otherwise, and
    raises `NotSeen`, an AssertionError whose text shows what came instead. Every call that a door
    refuses raises `ApiResponseError` with the door's own text.

    Attributes:
        clock: the time of service and simulator.
    """

    def __init__(self, service: Service, seed: str) -> None:
        self._tenancy = found(service, seed)
        self._phones: dict[str, Phone] = {}
        self._faults: list[Fault] = []
        self._hearing = Hearing(self._tenancy)
        self.clock = TimeMachine(service.control)

    # Who it is.

    @property
    def env(self) -> dict[str, str]:
        """What the application under test needs to know, under the names of `waypost-dev.env`.

        PARTNER_URL, API_URL, APP_ID, APP_TOKEN, API_KEY, SOURCE, SRC_NAME, EMAIL, CLIENT_SECRET, GRAPH_URL,
        WABA_ID, PHONE_NUMBER_ID, GRAPH_TOKEN and so on. PASSWORD is the client secret, which login takes too.
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
        """The phone of a person; the same one whenever the name is the same.

        Args:
            name: of the person, and of the profile.
            number: 8 to 15 digits of the test's own; without them digits that the test's name and the
                person's name give, the same at every run.
        """
        if name not in self._phones:
            taken = [phone.number for phone in self._phones.values()]
            digits = number.lstrip("+") or self._tenancy.names.phone(name, taken)
            self._phones[name] = Phone(self._tenancy, name, digits)
        return self._phones[name]

    @property
    def phones(self) -> tuple[Phone, ...]:
        """The phones that the test has asked for, in that order."""
        return tuple(self._phones.values())

    # Sending, as an application would. A test of an application lets that do it.

    def send_text(self, text: str, to: Phone | str) -> str:
        """Send a session text; gives the message id."""
        return self.send_session({"type": "text", "text": text}, to)

    def send_session(self, message: Mapping[str, Any], to: Phone | str) -> str:
        """Send a session message of any type; gives the message id."""
        return self._send("/msg", to, {"message": json.dumps(message)})

    def send_passthrough(self, message: Mapping[str, Any], to: Phone | str) -> str:
        """Send a message in the operator's own words: its `type`, and the member of that name.

        Gives our id of it. Orders are sent like this: `interactive` of type `order_details`.
        """
        answer = self._tenancy.app_door.json("POST", "/v3/message", {"to": str(to), **message})
        return str(answer["messages"][0]["id"])

    def send_template(
        self,
        template: Template | str,
        to: Phone | str,
        params: Sequence[str] = (),
        *,
        postback_texts: Sequence[str] = (),
        message: Mapping[str, Any] | None = None,
    ) -> str:
        """Send a template message; gives the message id.

        Args:
            template: itself, or its id.
            to: a phone, or digits.
            params: for its variables, in order.
            postback_texts: what each quick reply is to bring back, in order.
            message: the medium, the place or the cards that its type needs.
        """
        template_id = template.id if isinstance(template, Template) else template
        form = {"template": json.dumps({"id": template_id, "params": list(params)})}
        if postback_texts:
            texts = [{"index": at, "text": text} for at, text in enumerate(postback_texts)]
            form["postbackTexts"] = json.dumps(texts)
        if message is not None:
            form["message"] = json.dumps(message)
        return self._send("/template/msg", to, form)

    def upload(self, content: bytes, file_type: str, name: str = "file") -> str:
        """Upload a file that is to be sent; gives the media id."""
        answer = self._tenancy.app_door.file("POST", "/media", content, file_type=file_type, name=name)
        return str(answer["mediaId"])

    def upload_sample(self, content: bytes, file_type: str, name: str = "file") -> str:
        """Upload a file as a template's sample; gives the handle id."""
        answer = self._tenancy.app_door.file("POST", "/upload/media", content, file_type=file_type, name=name)
        return str(answer["handleId"]["message"])

    # Templates. Their reviews wait until the test says what became of them.

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
        """Submit a template, and unless `approved` is false wait until it is approved.

        Args:
            name: its element name.
            content: the body, with variables such as {{1}}.
            example: the body with values; made from it where there is none.
            category: `UTILITY`, `MARKETING` or `AUTHENTICATION`.
            buttons: labels of quick replies, or whole buttons.
            language: its code.
            approved: whether its review is to end well before this returns.
            fields: further fields of the form, by their names on the wire.
        """
        __tracebackhide__ = True
        form = templates.fields_of(
            name, content, example=example, category=category, buttons=buttons,
            language=language, more=fields,
        )  # fmt: skip
        template = templates.create(self._tenancy, form)
        return self.approve_template(template) if approved else template

    def template(self, template: Template | str) -> Template:
        """A template as the service has it now.

        Args:
            template: itself, its id or its name.

        Raises:
            LookupError: the partner has none such.
        """
        record = templates.known(self._tenancy, template)
        if record is None:
            raise LookupError(f"the partner has no template {template}")
        return record

    def approve_template(self, template: Template | str) -> Template:
        """End a template's review well; it may still be on its way to the operator."""
        __tracebackhide__ = True
        return templates.decide(self._tenancy, template, "approve", "APPROVED")

    def reject_template(
        self,
        template: Template | str,
        reason: str = "INVALID_FORMAT",
        *,
        explanation: str = "The reviewer rejected this template.",
    ) -> Template:
        """End a template's review with a rejection."""
        __tracebackhide__ = True
        wish = {"reason": reason, "explanation": explanation}
        return templates.decide(self._tenancy, template, "reject", "REJECTED", wish)

    def pause_template(self, template: Template | str) -> Template:
        """Let the operator pause a template for its quality."""
        __tracebackhide__ = True
        return templates.decide(self._tenancy, template, "pause", "PAUSED")

    def disable_template(self, template: Template | str) -> Template:
        """Let the operator disable a template for good."""
        __tracebackhide__ = True
        return templates.decide(self._tenancy, template, "disable", "DISABLED")

    def publish_flow(self, name: str, flow_json: Mapping[str, Any], category: str = "OTHER") -> str:
        """Make a flow of one asset and publish it; gives its id, for a template's button."""
        app = self._tenancy.app_door
        wish = {"name": name, "categories": [category], "flow_json": json.dumps(flow_json)}
        flow_id = str(app.json("POST", "/flows", wish)["id"])
        app.json("POST", f"/flows/{flow_id}/publish", {})
        return flow_id

    # What came back.

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """Every callback that was answered with 2xx, each once, in the order in which they came."""
        return self._tenancy.box.taken

    @property
    def tries(self) -> tuple[Callback, ...]:
        """Every request of a callback, also repeated and refused ones."""
        return tuple(self._tenancy.box.tries)

    def wait_for_callback(
        self,
        kind: str = "",
        *,
        message_id: str = "",
        where: Callable[[Callback], bool] | None = None,
        within_s: float | None = None,
    ) -> Callback:
        """The first callback that fits and was not given before: each callback is given once.

        Args:
            kind: as `Callback.kind` names it, such as `delivered` or `quick_reply`.
            message_id: the message it is about.
            where: what else must be so.
            within_s: real time to wait; 5 s unless set otherwise.

        Raises:
            NotSeen: none came in time; the text shows what did, and the message's trace.
        """
        __tracebackhide__ = True
        return self._hearing.wait_for(kind=kind, message_id=message_id, where=where, within_s=within_s)

    def wait_until(self, claim: Callable[[], object], what: str = "", *, within_s: float | None = None) -> None:
        """Return once a claim of the test's own is so, such as a state in the application's database.

        Args:
            claim: asked again and again.
            what: the claim in words, for the failure.
            within_s: real time to wait; 5 s unless set otherwise.

        Raises:
            NotSeen: it was not so in time.
        """
        __tracebackhide__ = True
        wait_s = self._tenancy.service.within_s if within_s is None else within_s
        if looked_up(lambda: claim() or None, wait_s) is None:
            said = f"{what or 'the claim'}: was not so within {wait_s:g} s"
            raise not_so(said, self._tenancy, self._chats())

    def callbacks_to(
        self, url: str, *, version: int = 2, modes: Sequence[str] = MODES, headers: Mapping[str, str] | None = None
    ) -> None:
        """Let callbacks go on to the application under test.

        Each goes to the receiver of this partner, from there to the application with the same bytes and
        headers, and the application's answer goes back. So a callback counts as come, for
        `wait_for_callback`, when the application has answered it with 2xx, and one that it refuses is
        tried again by the service's own schedule.

        Args:
            url: the application's address; empty lets them end in the receiver again.
            version: 2, or 3 for the operator's own bodies.
            modes: which callbacks.
            headers: that the service is to send along.
        """
        wish = Subscription(version, tuple(modes), tuple(sorted((headers or {}).items())))
        self._hearing.pass_on(url, wish)

    def answer_callbacks(self, answer: Callable[[Callback], int] | int) -> None:
        """Choose the status that the receiver answers, while callbacks end there."""
        self._tenancy.box.answers = answer if callable(answer) else lambda _: answer

    def trace(self, message_id: str) -> Trace:
        """A message's whole way, as the service has it now."""
        return trace_of(self._tenancy.service.admin.json("GET", f"/messages/{message_id}"))

    # What goes wrong.

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
        **what: Any,
    ) -> Fault:
        """Arm a fault of the simulator for this partner; disarmed at the end of `with`, or of the test.

        Args:
            call: the operator's call that fails, such as `messages.send`; every one where neither this
                nor `webhook` is given.
            webhook: what the operator tells that goes wrong, such as `delivered`.
            next: it strikes the next so many times.
            every: it strikes every so-manyth time.
            probability: it strikes by chance, repeatable by its seed. Without any of the three: always.
            phone: for this phone's messages only.
            template: for messages of this template only, by its name.
            what: what goes wrong, as the reference of faults names it: `error=131016`,
                `reset="after"`, `timeout=True`, `fail=131026`; of a webhook `drop=True`,
                `duplicate=2`, `delay_ms=60000` and so on.

        Raises:
            DoorRefused: there is no such call, webhook or kind; the text names what there is.
        """
        armed = arm(
            self._tenancy,
            call=call,
            webhook=webhook,
            when=when_of(next=next, every=every, probability=probability),
            what=what,
            phone=str(phone),
            template=template.name if isinstance(template, Template) else template,
        )
        self._faults.append(armed)
        return armed

    @contextmanager
    def simulator(self, **settings: Any) -> Generator[None]:
        """Change settings of the simulator, and put them back: for all tests of the process meanwhile."""
        service = self._tenancy.service
        before = service.simulator_settings()
        service.change_simulator(**settings)
        try:
            yield
        finally:
            service.change_simulator(**{name: before[name] for name in settings})

    def what_happened(self) -> str:
        """Callbacks, messages under way, templates, faults and the clock, for the eye."""
        return happened(self._tenancy, self._chats())

    def close(self) -> None:
        """Disarm its faults, end its subscriptions, and let the clock run as it did."""
        for fault in self._faults:
            fault.disarm()
        self.clock.put_back()
        self._hearing.close()

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
        return str(self._tenancy.api_door.form("POST", path, form)["messageId"])
