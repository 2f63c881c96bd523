"""Templates on the model's pipeline: submitted, edited and deleted under faults, and what must hold at the end."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, select

from tests.support.builders import APP
from tests.support.callback_sink import ReceivedCallback
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.store.encoding import decode_template
from waypost.store.tables import templates

DELETION: Final = "templates.delete"
CALLS: Final = ("templates.create", "templates.edit", DELETION)
FAULTS: Final = (
    {"error": 131016},
    {"error": 2, "status": 500},
    {"slow_ms": 60},
    {"reset": "after"},
    {"reset": "before"},
    {"garbage": "truncated", "status": 200, "processed": True},
)
PERMANENT_ERROR: Final = {"error": 100}
"""A permanent error. Not for deletions: a template that the operator fails to delete remains there, but not with us."""
REVIEW_MS: Final = 1000
"""The operator reports its decisions in whole seconds: two approvals within one second would be one event."""
STATUS_OK: Final = 200
_ABOUT_THE_EDIT: Final = "This is about the edit; the version before it stays"

SendRequest = Callable[..., Awaitable[tuple[int, Any] | None]]
"""Sends method, path, form and headers to a running process; returns None if there is no response."""


@dataclass
class ModelTemplate:
    """A template as the partner knows it.

    Attributes:
        id: the acknowledged id; None if there was no response.
        edits: number of attempts to edit it.
        deleted: whether a deletion was acknowledged; None before the first attempt.
    """

    name: str
    id: str | None = None
    edits: int = 0
    deleted: bool | None = None


@dataclass
class TemplateModel:
    """A partner's requests about templates, and their required results."""

    send_request: SendRequest
    chance: random.Random
    created: list[ModelTemplate] = field(default_factory=list[ModelTemplate])
    final_states: Counter[str] = field(default_factory=Counter[str])

    async def change_templates(self) -> None:
        """Submit a template, or edit or delete an existing one."""
        existing = [
            model_template
            for model_template in self.created
            if model_template.id is not None and model_template.deleted is None
        ]
        if not existing or self.chance.random() < 0.4:
            await self._submit()
        elif self.chance.random() < 0.6:
            await self._edit(self.chance.choice(existing))
        else:
            await self._delete(self.chance.choice(existing))

    def fault(self) -> dict[str, Any]:
        """Return a random fault of a call about templates."""
        call = self.chance.choice(CALLS)
        return {"call": call, "what": self.chance.choice(FAULTS if call == DELETION else (*FAULTS, PERMANENT_ERROR))}

    async def _submit(self) -> None:
        model_template = ModelTemplate(f"t{len(self.created):04d}")
        self.created.append(model_template)
        form = {
            "elementName": model_template.name,
            "category": "UTILITY",
            "templateType": "TEXT",
            "vertical": "Greetings",
            "content": f"This is the first text of {model_template.name}.",
            "example": f"This is the first text of {model_template.name}.",
        }
        key = {"Idempotency-Key": model_template.name} if self.chance.random() < 0.5 else {}
        for _ in range(5 if key else 1):  # with its key it may be repeated until a response arrives
            response = await self.send_request("POST", f"/partner/app/{APP.id}/templates", form, key)
            if response is not None and response[0] == STATUS_OK:
                model_template.id = response[1]["template"]["id"]
                return

    async def _edit(self, model_template: ModelTemplate) -> None:
        model_template.edits += 1
        text = f"This is text {model_template.edits} of {model_template.name}, and another."
        form = {"content": text, "example": text}
        await self.send_request("PUT", f"/partner/app/{APP.id}/templates/{model_template.id}", form, {})

    async def _delete(self, model_template: ModelTemplate) -> None:
        model_template.deleted = False
        response = await self.send_request("DELETE", f"/partner/app/{APP.id}/template/{model_template.name}", None, {})
        model_template.deleted = response is not None and response[0] == STATUS_OK

    def violations(
        self, stored: Sequence[Template], at_operator: Sequence[dict[str, Any]], callbacks: Sequence[ReceivedCallback]
    ) -> list[str]:
        """Describe everything that violates the model.

        Args:
            stored: every template in our store, with deleted ones.
            at_operator: every template at the operator.
            callbacks: the delivered callbacks.
        """
        return [
            *self._check_requests(stored),
            *self._check_states(stored, at_operator),
            *_check_callbacks(stored, callbacks),
        ]

    def _check_requests(self, stored: Sequence[Template]) -> list[str]:
        by_id = {template.id: template for template in stored}
        names = Counter(template.draft.element_name for template in stored)
        problems = [f"there are {count} templates {name}" for name, count in names.items() if count > 1]
        for model_template in self.created:
            if model_template.id is not None and model_template.id not in by_id:
                problems.append(f"{model_template.name} was acknowledged and is lost")
            elif model_template.id is not None and model_template.deleted and not _is_deleted(by_id[model_template.id]):
                problems.append(f"{model_template.name} was deleted and is {by_id[model_template.id].status}")
        return problems

    def _check_states(self, stored: Sequence[Template], at_operator: Sequence[dict[str, Any]]) -> list[str]:
        """Check that the operator has each template in the state that we report."""
        problems: list[str] = []
        by_name: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for operator_template in at_operator:
            by_name[operator_template["name"]].append(operator_template)
        for template in stored:
            name, status = template.draft.element_name or "", template.status
            self.final_states[status.value] += 1
            matching = by_name[name]
            actual = [(match["status"], _body(match)) for match in matching]
            if status is TemplateStatus.PENDING:
                problems.append(f"{name} stays pending; at the operator {actual}")
            elif status is TemplateStatus.DELETED and matching:
                problems.append(f"{name} is deleted, but at the operator {actual}")
            elif status is TemplateStatus.APPROVED:
                if actual != [("APPROVED", template.draft.content)]:
                    problems.append(f"{name} is approved as {template.draft.content!r}, but at the operator {actual}")
            elif status is TemplateStatus.FAILED:
                problems.append(f"{name} has failed: {template.reason}")
        return problems


def _check_callbacks(stored: Sequence[Template], callbacks: Sequence[ReceivedCallback]) -> list[str]:
    """Check that the last status callback of a template has its state, and that a deletion was sent once.

    A callback about an edit that was rejected changes no state. Source: decision 0021.
    """
    statuses_by_id: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for request in callbacks:
        if is_about_a_template(request) and request.value["payload"]["type"] == "status-update":
            payload = request.value["payload"]
            if _ABOUT_THE_EDIT in payload.get("rejectedReason", ""):
                continue
            statuses_by_id[payload["id"]].setdefault(request.callback_id, payload["status"])
    problems: list[str] = []
    for template in stored:
        sent = list(statuses_by_id[template.id].values())
        name, status = template.draft.element_name, template.status.value.lower()
        if template.status is not TemplateStatus.PENDING and sent[-1:] != [status]:
            problems.append(f"{name} is {status}, but the callbacks were {sent}")
        if sent.count("deleted") > 1:
            problems.append(f"{name} has repeated deletions: {sent}")
    return problems


def _is_deleted(template: Template) -> bool:
    return template.status is TemplateStatus.DELETED


def is_about_a_template(request: ReceivedCallback) -> bool:
    """True if a callback, of version 2, is about a template."""
    return request.value.get("type") == "template-event"


def read_all_templates(connection: Connection) -> list[Template]:
    """Return the templates of every business account, with deleted ones."""
    return [decode_template(row) for row in connection.execute(select(templates))]


def _body(operator_template: dict[str, Any]) -> str:
    components = operator_template["components"]
    if isinstance(components, str):
        components = json.loads(components)
    return next(component["text"] for component in components if component["type"] == "BODY")
