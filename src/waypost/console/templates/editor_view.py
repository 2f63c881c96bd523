"""The editor as shown: the content, its preview, and its rule violations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.client.api_client import ApiResponseError
from waypost.console.bubbles.drafts import draft_message
from waypost.console.page_tools import PageTools
from waypost.console.templates.draft_text import EditorContent
from waypost.console.templates.samples import find_samples, sample_finder
from waypost.console.templates.submission import encode_content, has_field
from waypost.console.templates.texts.changes import FieldChange, compare_drafts
from waypost.console.templates.texts.labels import KIND_LABELS, label_text
from waypost.console.templates.texts.languages import language_name
from waypost.console.templates.violation_fields import group_by_element
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError
from waypost.domain.lifecycle import CATEGORY_FIXED
from waypost.domain.templates.fields import TEMPLATE_FIELDS, TemplateDraft, TemplateField
from waypost.domain.templates.template import Template
from waypost.domain.templates.types import TEMPLATE_TYPES
from waypost.domain.templates.variables import variable_context
from waypost.store.templates.events import last_approved_draft
from waypost.wire.forms import Form
from waypost.wire.templates.changes import apply_edit
from waypost.wire.templates.drafts import read_draft

EDITOR_MACROS: Final = "templates/editor_parts.html"
MAX_CONTEXT_CHARS: Final = 24
"""Of the text before and after a variable that its sample shows."""
OPTIONAL_FIELDS: Final = [field for field in TEMPLATE_FIELDS if field.label]
MISSING_VALUE_RULES: Final = ("-given", "-fields", "-sample", "sample-document", "sample-media", "example-fits")
"""Name endings of rules about missing values: shown at the field only after a check or submission."""


@dataclass(slots=True)
class EditorView:
    """The values of the editor page.

    Attributes:
        template: that is edited; None: it is new.
        path: target of the form.
        violations: violations, each as the API's check returns it, with `element`.
        notes: the same by element.
        error: an error that is not among the violations.
        error_field: the field that it names; may be empty.
        shown: the preview.
        samples: `url` and `name` of each sample, by its reference.
        is_checked: True once the rules were checked; an untouched editor shows no violations.
        changes: what differs from the last approved version; None: there is none, or a field cannot be read.
        focus: id of the control that gets the focus when the page is loaded; empty: none.
        languages: of other templates with the same name, when a language is added to a template.
    """

    content: EditorContent
    template: Template | None
    path: str
    violations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    error: str = ""
    error_field: str = ""
    shown: dict[str, Any] | None = None
    samples: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    is_checked: bool = False
    changes: list[FieldChange] | None = None
    focus: str = ""
    languages: tuple[str, ...] = ()

    @property
    def kind_labels(self) -> Mapping[str, str]:
        """Return the label of each kind of button."""
        return KIND_LABELS

    @property
    def language_name(self) -> str:
        """Return the name of its language; empty if the operator does not have it."""
        return language_name(self.content.texts.get("languageCode", ""))

    def context(self, text: str, name: str) -> tuple[str, str]:
        """Return the words before and after a variable of a text."""
        return variable_context(text, name, MAX_CONTEXT_CHARS)

    @property
    def is_edit(self) -> bool:
        """True if an existing template is edited."""
        return self.template is not None

    @property
    def is_category_fixed(self) -> bool:
        """True if the category cannot be changed. Source: operator's facts 2.6."""
        return self.template is not None and self.template.status in CATEGORY_FIXED

    @property
    def types(self) -> list[tuple[str, str]]:
        """Return the types to choose from, each with its label."""
        return [(name, row.label) for name, row in TEMPLATE_TYPES.items()]

    @property
    def card_types(self) -> list[tuple[str, str]]:
        """Return the media types of cards, each with its label."""
        return [(name, row.label) for name, row in TEMPLATE_TYPES.items() if row.medium and row.medium.in_cards]

    @property
    def is_media_fixed(self) -> bool:
        """True if cards and their media cannot be changed. Source: facts 3.6."""
        return self.is_edit and self.content.is_carousel

    @property
    def optional_fields(self) -> list[TemplateField]:
        """Return the optional fields that can be filled in."""
        return [field for field in OPTIONAL_FIELDS if self._is_editable(field)]

    @property
    def unchanged_fields(self) -> list[TemplateField]:
        """Return the optional fields that are submitted unchanged."""
        return [field for field in OPTIONAL_FIELDS if not self._is_editable(field)]

    def _is_editable(self, field: TemplateField) -> bool:
        return has_field(self.content, field.name) and (field.changeable or not self.is_edit)

    @property
    def api_error_count(self) -> int:
        """Return the number of violations that the API itself rejects."""
        return sum(violation["refused_by"] == "api" for violation in self.violations)


async def update_view(
    tools: PageTools, page_request: PageRequest, editing: EditorView, *, lint: bool, shows_missing: bool = True
) -> None:
    """Render the preview and, if `lint` is set, check the rules."""
    content = editing.content
    if lint:
        await _check_rules(tools, page_request, editing)
    draft = _parse_draft(editing)
    references = [content.texts.get("exampleMedia", "")]
    references += [card.texts.get("exampleMedia", "") for card in content.cards]
    uploads = await find_samples(tools, page_request, [] if draft is None else [draft], *references)
    find = sample_finder(page_request, uploads)
    editing.samples = {
        name: {"url": find(name), "name": upload.file_name or upload.mime_type} for name, upload in uploads.items()
    }
    editing.shown = None if draft is None else draft_message(draft, find=find)
    if draft is not None and editing.template is not None:
        editing.changes = await find_changes(tools, editing.template, draft)
    editing.notes = group_by_element(editing.violations, content)
    if not shows_missing:
        for element, violations in editing.notes.items():
            editing.notes[element] = [each for each in violations if not each["rule"].endswith(MISSING_VALUE_RULES)]


async def _check_rules(tools: PageTools, page_request: PageRequest, editing: EditorView) -> None:
    """Check the rules through the API."""
    editing.is_checked = True
    fields = encode_content(editing.content)
    if editing.template is not None:
        fields["templateId"] = editing.template.id
    path = f"/partner/app/{page_request.app.id}/templates/check"
    try:
        response = await tools.services.apis.app(page_request.app).form("POST", path, fields)
    except ApiResponseError as error:
        text = error.explanation or error.message
        editing.violations = [
            {
                "field": error.field,
                "rule": "readable",
                "says": label_text(text, error.field),
                "source": "decision 0077",
                "remedy": label_text(text, error.field),
                "refused_by": "api",
            }
        ]
        return
    if editing.error in {finding["says"] for finding in response["findings"]}:
        editing.error = ""
    editing.error = label_text(editing.error, editing.error_field)
    editing.violations = [_label_finding(finding) for finding in response["findings"]]


def _label_finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding of the API in the words of the editor's labels."""
    field, rule = finding["field"], finding["rule"]
    return {
        **finding,
        "says": label_text(finding["says"], field, rule),
        "remedy": label_text(finding["remedy"], field, rule),
    }


async def find_changes(tools: PageTools, template: Template, draft: TemplateDraft) -> list[FieldChange] | None:
    """Return what differs in a draft from the last approved version of a template; None if none was approved."""
    approved = await tools.services.database.read(last_approved_draft, template)
    return None if approved is None else compare_drafts(approved, draft)


def _parse_draft(editing: EditorView) -> TemplateDraft | None:
    """Return the content as a draft; None if a field cannot be read at all."""
    form = Form(list(encode_content(editing.content, gaps=True).items()))
    try:
        if editing.template is None:
            return read_draft(form)
        return apply_edit(editing.template.draft, form)
    except ApiError:
        return None
