"""The partners: they send messages, create templates and change their subscriptions, through the documented APIs."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final

from simulation.accounts import MODES, PORTS, AppAccount, PartnerAccount
from simulation.agreement import Change, ExpectedTerms
from simulation.choices import Choices, declare
from simulation.client import Response, request
from simulation.observed import Acknowledged, Observed, SentRequest, SubscriptionTerms
from simulation.sending import send_until_answered
from simulation.story import tell

WITHIN_S: Final = (3, 0.02, 30)
PHONES: Final = ("15560000001", "15560000002", "15560000003")
TURNS: Final = 4
TURN_EVERY_S: Final = 7
REPEATED_AFTER_S: Final = (0, 1, 10)
LONG_TEXT: Final = "x" * 300
"""Longer than what the operator returns of a button: then the service sends a reference to its own message."""
LABEL: Final = "sent once: "
"""Followed in the text of a message by a name of its own: the operator must get each at most once."""
_SESSION_MESSAGES: Final = (
    {"type": "text", "text": LABEL},
    {"type": "location", "longitude": 13.4, "latitude": 52.5, "name": "Office", "address": "Main Street 1"},
    {"type": "image", "originalUrl": f"http://127.0.0.1:{PORTS['receiver 2']}/a.jpg", "previewUrl": ""},
)

declare(
    {
        "partner sends a session message": "a partner sent a session message",
        "partner sends twice in a row": "a partner sent two messages to one recipient, the second after the first",
        "partner repeats a request": "a partner sent a request again with its idempotency key",
        "partner gives long postback texts": "a partner gave the buttons of a message texts of 300 characters",
        "partner creates a template": "a partner created a template",
        "partner creates a bad template": "a partner created a template that the operator rejects",
        "partner adds a subscription": "a partner added a subscription",
        "partner changes a subscription": "a partner changed the modes of a subscription",
        "partner pauses a subscription": "a partner paused and resumed a subscription",
        "partner deletes a subscription": "a partner deleted a subscription",
    }
)


class PartnerActor:
    """One partner at work.

    Args:
        ports: of the processes of the service.
        check_acknowledged: called with the id of what was just acknowledged, and its table.
    """

    def __init__(
        self,
        account: PartnerAccount,
        choices: Choices,
        observed: Observed,
        ports: Sequence[int],
        check_acknowledged: Callable[[str, str], None],
    ) -> None:
        self._account, self._choices, self._observed = account, choices, observed
        self._ports, self._check_acknowledged = ports, check_acknowledged
        self._name = f"partner {account.number}"
        self._labels = 0
        self._within_s = choices.pick(f"{self._name} sends within", WITHIN_S)

    async def send_messages(self, count: int) -> None:
        """Send so many messages, each on its own, or some after the one before."""
        await asyncio.gather(*(self._send_one(nth) for nth in range(count)))

    async def work(self) -> None:
        """Do what a partner does beside sending, in a few turns."""
        for turn in range(TURNS):
            await asyncio.sleep(self._choices.between(f"{self._name} pause", 0.1, TURN_EVERY_S))
            app = self._choices.pick(f"{self._name} app", self._account.apps)
            if self._choices.happens("partner creates a template", 0.3):
                await self._create_template(app, turn)
            await self._change_subscriptions(app, turn)

    async def _send_one(self, nth: int) -> None:
        choices = self._choices
        await asyncio.sleep(choices.between(f"{self._name} sends after", 0, self._within_s))
        app = choices.pick(f"{self._name} sends by", self._account.apps)
        to = choices.pick(f"{self._name} sends to", PHONES)
        for _ in range(2 if choices.happens("partner sends twice in a row", 0.3) else 1):
            if choices.happens("partner sends a session message", 0.4):
                message = choices.pick("session message", _SESSION_MESSAGES, of="partner sends a session message")
                message = {name: self._label() if text == LABEL else text for name, text in message.items()}
                await self.send(app, to, {"message": json.dumps(message)}, "/wa/api/v1/msg")
            else:
                template = {"id": self._account.template_id, "params": ["Ann", self._label()]}
                more = LONG_TEXT if choices.happens("partner gives long postback texts", 0.3) else ""
                texts = [f"yes-{nth}{more}", f"no-{nth}{more}"]
                form = {"template": json.dumps(template), "postbackTexts": write_postbacks(texts)}
                await self.send(app, to, form, "/wa/api/v1/template/msg", texts)

    async def send(
        self, app: AppAccount, to: str, form: dict[str, str], path: str, postbacks: Sequence[str] = ()
    ) -> SentRequest:
        """Send one message, at times again with its idempotency key; note it if it is acknowledged.

        Args:
            postbacks: the texts of its buttons, which are in the form too.
        """
        began_s = _now_s()
        form = {"channel": "whatsapp", "source": app.source, "destination": to, "src.name": app.name} | form
        repeated_after_s: list[float] = []
        if self._choices.happens("partner repeats a request", 0.4):
            repeated_after_s = [self._choices.pick("seconds", REPEATED_AFTER_S, of="partner repeats a request")]
        sent = SentRequest(app.id, to, f"{self._name}-{len(self._observed.sent)}" if repeated_after_s else "")
        self._observed.sent.append(sent)
        for pause_s in (0, *repeated_after_s):
            await asyncio.sleep(pause_s)
            await send_until_answered(self._choose_port, path, lambda: self._account.api_keys[-1], sent, form)
            if sent.ids and sent.ids[-1] not in self._observed.postbacks:
                self._observed.postbacks[sent.ids[-1]] = list(postbacks)
                self._acknowledge(Acknowledged(sent.ids[-1], app.id, to, began_s, _now_s()), "messages")
        tell(f"{app.name} sent a message to {to}, and got {sent.statuses}")
        return sent

    def _acknowledge(self, one: Acknowledged, table: str) -> None:
        self._observed.acknowledged.append(one)
        self._check_acknowledged(one.id, table)

    def _label(self) -> str:
        self._labels += 1
        return f"{LABEL}{self._account.number}.{self._labels}"

    def _choose_port(self) -> int:
        return self._choices.pick(f"{self._name} port", self._ports)

    async def _create_template(self, app: AppAccount, turn: int) -> None:
        is_bad = self._choices.happens("partner creates a bad template", 0.3)
        text = "{{1}}, welcome" if is_bad else "Welcome {{1}}, good to see you."
        form = {
            "elementName": f"welcome_{app.source[-1]}_{turn}",
            "category": "UTILITY",
            "templateType": "TEXT",
            "vertical": "Greetings",
            "content": text,
            "example": text.replace("{{1}}", "Ann"),
        }
        began_s = _now_s()
        response = await self._call("POST", app, "templates", form)
        if response is not None and response.status == 200 and response.body is not None:
            template_id = response.body["template"]["id"]
            self._acknowledge(Acknowledged(template_id, app.id, "", began_s, _now_s()), "templates")

    async def _change_subscriptions(self, app: AppAccount, turn: int) -> None:
        happens, known = self._choices.happens, self._account.subscriptions
        if happens("partner adds a subscription", 0.3):
            path = f"/{app.name}/later-{turn}"
            url = f"http://127.0.0.1:{self._account.receiver_port}{path}"
            modes = self._choices.pick("modes", MODES, of="partner adds a subscription")
            self._observed.subscriptions[path] = SubscriptionTerms(app.id, modes, is_steady=False)
            form = {"modes": ",".join(modes), "tag": path, "url": url, "version": "2", "doCheck": "false"}
            self._account.expected_terms[path] = ExpectedTerms()
            response = await self._call("POST", app, "subscription", form)
            self._note(path, Change(frozenset(modes), active=True, creates=True), response)
            if response is not None and response.status == 200 and response.body is not None:
                known[path] = response.body["subscription"]["id"]
        of_app = [(path, number) for path, number in known.items() if path.startswith(f"/{app.name}/")]
        shares = {"pauses": 0.4, "changes": 0.25, "deletes": 0.25}
        happening = [kind for kind, share in shares.items() if happens(f"partner {kind} a subscription", share)]
        if not of_app or not happening:
            return
        path, number = of_app[-1]
        if happening[0] == "changes":
            self._observed.subscriptions[path].modes = MODES[0]  # it may get any of both
            response = await self._call("PUT", app, f"subscription/{number}", {"modes": "READ,MESSAGE"})
            self._note(path, Change(frozenset({"READ", "MESSAGE"})), response)
        elif happening[0] == "pauses":
            response = await self._call("PUT", app, f"subscription/{number}", {"active": "false"})
            self._note(path, Change(active=False), response)
            is_paused, paused_s = _succeeded(response), _now_s()
            await asyncio.sleep(self._choices.between("seconds", 0, 12, of="partner pauses a subscription"))
            if is_paused:
                self._observed.subscriptions[path].paused.append((paused_s, _now_s()))
            for _ in range(100):
                response = await self._call("PUT", app, f"subscription/{number}", {"active": "true"})
                self._note(path, Change(active=True), response)
                if _succeeded(response):
                    break
                await asyncio.sleep(1)
        else:
            response = await self._call("DELETE", app, f"subscription/{number}", None)
            self._note(path, Change(deletes=True), response)
            if _succeeded(response):
                self._observed.subscriptions[path].deleted_s = _now_s()
                del known[path]

    def _note(self, path: str, change: Change, response: Response | None) -> None:
        self._account.expected_terms[path].note(change, response)

    async def _call(self, method: str, app: AppAccount, path: str, form: dict[str, str] | None) -> Response | None:
        headers = {"Authorization": app.token}
        return await request(self._choose_port(), method, f"/partner/app/{app.id}/{path}", headers, form=form)


def write_postbacks(texts: Sequence[str]) -> str:
    """Return the field `postbackTexts` of a form, with a text for each button."""
    return json.dumps([{"index": index, "text": text} for index, text in enumerate(texts)])


def _succeeded(response: Response | None) -> bool:
    return response is not None and response.status in (200, 204)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
