"""What the editor shows: the writing, drawn as its recipient will see it, and held against every rule."""

from dataclasses import dataclass, field
from typing import Any, Final

from waypost.client.api_client import ApiResponseError
from waypost.console.bubbles.drafts import shown_of_draft
from waypost.console.page_tools import PageTools
from waypost.console.templates.draft_text import Writing
from waypost.console.templates.samples import finder, samples_of
from waypost.console.templates.submission import fields_of, has
from waypost.console.templates.violation_fields import noted
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError
from waypost.domain.lifecycle import FILED
from waypost.domain.templates.fields import TEMPLATE_FIELDS, Draft, TemplateField
from waypost.domain.templates.template import Template
from waypost.domain.templates.types import TEMPLATE_TYPES
from waypost.wire.forms import Form
from waypost.wire.templates.changes import edited_draft
from waypost.wire.templates.drafts import read_draft

LABELLED: Final = [field for field in TEMPLATE_FIELDS if field.label]
UNWRITTEN: Final = ("-given", "-fields", "-sample", "sample-document", "sample-media", "example-fits")
"""How rules end that are broken by what nobody has come to yet: said at the field once one asks."""


@dataclass(slots=True)
class Editing:
    """The editor as it is shown.

    Attributes:
        template: that is edited; None: a new one is written.
        path: where the form goes.
        findings: of the linter, each as the API's check gives it, with `element`.
        notes: the same by element.
        said: what was refused that no finding tells.
        shown: the preview.
        samples: what is known of each sample, by its reference: `url` and `name`.
        is_checked: whether the linter has looked; an untouched editor has no findings yet.
    """

    writing: Writing
    template: Template | None
    path: str
    findings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    said: str = ""
    shown: dict[str, Any] | None = None
    samples: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    is_checked: bool = False

    @property
    def is_edit(self) -> bool:
        """Whether a template is edited."""
        return self.template is not None

    @property
    def category_stays(self) -> bool:
        """Whether the operator keeps the category. Source: operator's facts 2.6."""
        return self.template is not None and self.template.status in FILED

    @property
    def types(self) -> list[tuple[str, str]]:
        """The types to choose from, each with its label."""
        return [(name, row.label) for name, row in TEMPLATE_TYPES.items()]

    @property
    def card_types(self) -> list[tuple[str, str]]:
        """The types of media that a card may show."""
        return [(name, row.label) for name, row in TEMPLATE_TYPES.items() if row.medium and row.medium.in_cards]

    @property
    def media_stay(self) -> bool:
        """Whether cards and their media cannot be changed. Source: facts 3.6."""
        return self.is_edit and self.writing.is_carousel

    @property
    def more(self) -> list[TemplateField]:
        """The fields under More that can be filled in."""
        return [field for field in LABELLED if self._takes(field)]

    @property
    def kept(self) -> list[TemplateField]:
        """The others of them: sent along as they are."""
        return [field for field in LABELLED if not self._takes(field)]

    def _takes(self, field: TemplateField) -> bool:
        return has(self.writing, field.name) and (field.changeable or not self.is_edit)

    @property
    def refused_now(self) -> int:
        """How many findings the API itself refuses."""
        return sum(one["refused_by"] == "api" for one in self.findings)


async def look(desk: PageTools, visit: PageRequest, editing: Editing, *, lint: bool, asked: bool = True) -> None:
    """Have it drawn and, once something has been written, held against the rules."""
    writing = editing.writing
    if lint:
        await _lint(desk, visit, editing)
    draft = _draft_of(editing)
    named = [writing.texts.get("exampleMedia", "")]
    named += [card.texts.get("exampleMedia", "") for card in writing.cards]
    uploads = await samples_of(desk, visit, [] if draft is None else [draft], *named)
    find = finder(visit, uploads)
    editing.samples = {
        name: {"url": find(name), "name": upload.file_name or upload.mime_type} for name, upload in uploads.items()
    }
    editing.shown = None if draft is None else shown_of_draft(draft, find=find)
    editing.notes = noted(editing.findings, writing)
    if not asked:
        for element, some in editing.notes.items():
            said = [one for one in some if not one["rule"].endswith(UNWRITTEN)]
            editing.notes[element] = said


async def _lint(desk: PageTools, visit: PageRequest, editing: Editing) -> None:
    """Ask the API's own check."""
    editing.is_checked = True
    fields = fields_of(editing.writing)
    if editing.template is not None:
        fields["templateId"] = editing.template.id
    path = f"/partner/app/{visit.app.id}/templates/check"
    try:
        answer = await desk.parts.apis.app(visit.app).form("POST", path, fields)
    except ApiResponseError as refused:
        says = refused.explanation or refused.message
        editing.findings = [
            {
                "field": refused.field, "rule": "readable", "says": says, "source": "decision 0077",
                "remedy": says, "refused_by": "api",
            }
        ]  # fmt: skip
        return
    editing.findings = answer["findings"]
    told = {one["says"] for one in editing.findings}
    if editing.said in told:
        editing.said = ""


def _draft_of(editing: Editing) -> Draft | None:
    """What is written as a draft; None where a field cannot be read at all."""
    form = Form(list(fields_of(editing.writing, gaps=True).items()))
    try:
        if editing.template is None:
            return read_draft(form)
        return edited_draft(editing.template.draft, form)
    except ApiError:
        return None
