"""The editor as shown: the content, its preview, and its rule violations."""

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
"""Name endings of rules about missing values: shown at the field only after a check or submission."""


@dataclass(slots=True)
class Editing:
    """The values of the editor page.

    Attributes:
        template: that is edited; None: it is new.
        path: target of the form.
        findings: violations, each as the API's check returns it, with `element`.
        notes: the same by element.
        said: an error that is not among the violations.
        shown: the preview.
        samples: `url` and `name` of each sample, by its reference.
        is_checked: True once the rules were checked; an untouched editor shows no violations.
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
        """True if an existing template is edited."""
        return self.template is not None

    @property
    def category_stays(self) -> bool:
        """True if the category cannot be changed. Source: operator's facts 2.6."""
        return self.template is not None and self.template.status in FILED

    @property
    def types(self) -> list[tuple[str, str]]:
        """Return the types to choose from, each with its label."""
        return [(name, row.label) for name, row in TEMPLATE_TYPES.items()]

    @property
    def card_types(self) -> list[tuple[str, str]]:
        """Return the media types of cards, each with its label."""
        return [(name, row.label) for name, row in TEMPLATE_TYPES.items() if row.medium and row.medium.in_cards]

    @property
    def media_stay(self) -> bool:
        """True if cards and their media cannot be changed. Source: facts 3.6."""
        return self.is_edit and self.writing.is_carousel

    @property
    def more(self) -> list[TemplateField]:
        """Return the optional fields that can be filled in."""
        return [field for field in LABELLED if self._takes(field)]

    @property
    def kept(self) -> list[TemplateField]:
        """Return the optional fields that are submitted unchanged."""
        return [field for field in LABELLED if not self._takes(field)]

    def _takes(self, field: TemplateField) -> bool:
        return has(self.writing, field.name) and (field.changeable or not self.is_edit)

    @property
    def refused_now(self) -> int:
        """Return the number of violations that the API itself rejects."""
        return sum(violation["refused_by"] == "api" for violation in self.findings)


async def look(desk: PageTools, visit: PageRequest, editing: Editing, *, lint: bool, asked: bool = True) -> None:
    """Render the preview and, if `lint` is set, check the rules."""
    content = editing.writing
    if lint:
        await _lint(desk, visit, editing)
    draft = _draft_of(editing)
    references = [content.texts.get("exampleMedia", "")]
    references += [card.texts.get("exampleMedia", "") for card in content.cards]
    uploads = await samples_of(desk, visit, [] if draft is None else [draft], *references)
    find = finder(visit, uploads)
    editing.samples = {
        name: {"url": find(name), "name": upload.file_name or upload.mime_type} for name, upload in uploads.items()
    }
    editing.shown = None if draft is None else shown_of_draft(draft, find=find)
    editing.notes = noted(editing.findings, content)
    if not asked:
        for element, violations in editing.notes.items():
            editing.notes[element] = [each for each in violations if not each["rule"].endswith(UNWRITTEN)]


async def _lint(desk: PageTools, visit: PageRequest, editing: Editing) -> None:
    """Check the rules through the API."""
    editing.is_checked = True
    fields = fields_of(editing.writing)
    if editing.template is not None:
        fields["templateId"] = editing.template.id
    path = f"/partner/app/{visit.app.id}/templates/check"
    try:
        response = await desk.parts.apis.app(visit.app).form("POST", path, fields)
    except ApiResponseError as error:
        text = error.explanation or error.message
        editing.findings = [
            {
                "field": error.field, "rule": "readable", "says": text, "source": "decision 0077",
                "remedy": text, "refused_by": "api",
            }
        ]  # fmt: skip
        return
    editing.findings = response["findings"]
    if editing.said in {violation["says"] for violation in editing.findings}:
        editing.said = ""


def _draft_of(editing: Editing) -> Draft | None:
    """Return the content as a draft; None if a field cannot be read at all."""
    form = Form(list(fields_of(editing.writing, gaps=True).items()))
    try:
        if editing.template is None:
            return read_draft(form)
        return edited_draft(editing.template.draft, form)
    except ApiError:
        return None
