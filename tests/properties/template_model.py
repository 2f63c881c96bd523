"""Templates on the model's pipeline: submitted, edited and deleted under mishaps, and what must be true at the end."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, select

from tests.support.builders import APP
from tests.support.callback_sink import Try
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
    {"garbage": "truncated", "status": 200, "taken": True},
)
REFUSAL: Final = {"error": 100}
"""For good. Not of a deletion: a template that the operator does not delete stays there, and is ours no more."""
REVIEW_MS: Final = 1000
"""The operator says in whole seconds when it has decided: two approvals in one second would be one."""
ANSWERED: Final = 200

Ask = Callable[..., Awaitable[tuple[int, Any] | None]]
"""Asks a process that is there, with method, path, form and headers; None: no answer came."""


@dataclass
class Made:
    """A template as the partner knows it.

    Attributes:
        id: what was acknowledged; None when no answer came.
        edits: how often it was tried to edit it.
        deleted: whether a deletion was acknowledged; None while none was tried.
    """

    name: str
    id: str | None = None
    edits: int = 0
    deleted: bool | None = None


@dataclass
class TemplateModel:
    """What a partner does with templates, and what must have become of it."""

    ask: Ask
    chance: random.Random
    made: list[Made] = field(default_factory=list[Made])
    ends: Counter[str] = field(default_factory=Counter[str])

    async def act(self) -> None:
        """Submit a template, or edit or delete one of before."""
        known = [one for one in self.made if one.id is not None and one.deleted is None]
        if not known or self.chance.random() < 0.4:
            await self._submit()
        elif self.chance.random() < 0.6:
            await self._edit(self.chance.choice(known))
        else:
            await self._delete(self.chance.choice(known))

    def fault(self) -> dict[str, Any]:
        """One of the ways in which a call about templates goes wrong."""
        call = self.chance.choice(CALLS)
        return {"call": call, "what": self.chance.choice(FAULTS if call == DELETION else (*FAULTS, REFUSAL))}

    async def _submit(self) -> None:
        made = Made(f"t{len(self.made):04d}")
        self.made.append(made)
        form = {
            "elementName": made.name,
            "category": "UTILITY",
            "templateType": "TEXT",
            "vertical": "Greetings",
            "content": f"This is the first text of {made.name}.",
            "example": f"This is the first text of {made.name}.",
        }
        key = {"Idempotency-Key": made.name} if self.chance.random() < 0.5 else {}
        for _ in range(5 if key else 1):  # under its key it may be submitted until an answer comes
            told = await self.ask("POST", f"/partner/app/{APP.id}/templates", form, key)
            if told is not None and told[0] == ANSWERED:
                made.id = told[1]["template"]["id"]
                return

    async def _edit(self, made: Made) -> None:
        made.edits += 1
        text = f"This is text {made.edits} of {made.name}, and another."
        form = {"content": text, "example": text}
        await self.ask("PUT", f"/partner/app/{APP.id}/templates/{made.id}", form, {})

    async def _delete(self, made: Made) -> None:
        made.deleted = False
        told = await self.ask("DELETE", f"/partner/app/{APP.id}/template/{made.name}", None, {})
        made.deleted = told is not None and told[0] == ANSWERED

    def complaints(self, kept: Sequence[Template], held: Sequence[dict[str, Any]], taken: Sequence[Try]) -> list[str]:
        """What is not as it must be.

        Args:
            kept: every template of our store, deleted ones too.
            held: every template of the operator's.
            taken: the callbacks.
        """
        return [*self._about_requests(kept), *self._about_ends(kept, held), *_about_told(kept, taken)]

    def _about_requests(self, kept: Sequence[Template]) -> list[str]:
        by_id = {one.id: one for one in kept}
        names = Counter(one.draft.element_name for one in kept)
        wrong = [f"there are {count} templates {name}" for name, count in names.items() if count > 1]
        for made in self.made:
            if made.id is not None and made.id not in by_id:
                wrong.append(f"{made.name} was acknowledged and is lost")
            elif made.id is not None and made.deleted and not _is_deleted(by_id[made.id]):
                wrong.append(f"{made.name} was deleted and is {by_id[made.id].status}")
        return wrong

    def _about_ends(self, kept: Sequence[Template], held: Sequence[dict[str, Any]]) -> list[str]:
        """What we say of a template is so at the operator."""
        wrong: list[str] = []
        theirs: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for one in held:
            theirs[one["name"]].append(one)
        for template in kept:
            name, status = template.draft.element_name or "", template.status
            self.ends[status.value] += 1
            there = theirs[name]
            shown = [(one["status"], _body(one)) for one in there]
            if status is TemplateStatus.PENDING:
                wrong.append(f"{name} is pending for ever, at the operator {shown}")
            elif status is TemplateStatus.DELETED and there:
                wrong.append(f"{name} is deleted and at the operator {shown}")
            elif status is TemplateStatus.APPROVED:
                if shown != [("APPROVED", template.draft.content)]:
                    wrong.append(f"{name} is approved as {template.draft.content!r}, not {shown}")
            elif status is TemplateStatus.FAILED:
                wrong.append(f"{name} has failed: {template.reason}")
        return wrong


def _about_told(kept: Sequence[Template], taken: Sequence[Try]) -> list[str]:
    """The last that was told of a template's status is what it is, and a deletion was told once."""
    told: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for one in taken:
        if is_of_a_template(one) and one.value["payload"]["type"] == "status-update":
            told[one.value["payload"]["id"]].setdefault(one.callback_id, one.value["payload"]["status"])
    wrong: list[str] = []
    for template in kept:
        news = list(told[template.id].values())
        name, status = template.draft.element_name, template.status.value.lower()
        if template.status is not TemplateStatus.PENDING and news[-1:] != [status]:
            wrong.append(f"{name} is {status} and was told {news}")
        if news.count("deleted") > 1:
            wrong.append(f"{name} was told {news}")
    return wrong


def _is_deleted(template: Template) -> bool:
    return template.status is TemplateStatus.DELETED


def is_of_a_template(one: Try) -> bool:
    """Whether a callback, of version 2, is about a template."""
    return one.value.get("type") == "template-event"


def every_template(connection: Connection) -> list[Template]:
    """Those of every business account, deleted ones too."""
    return [decode_template(row) for row in connection.execute(select(templates))]


def _body(held: dict[str, Any]) -> str:
    components = held["components"]
    if isinstance(components, str):
        components = json.loads(components)
    return next(one["text"] for one in components if one["type"] == "BODY")
