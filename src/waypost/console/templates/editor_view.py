"""The editor of a template: its content with violations, preview and changes; and its actions."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar

from waypost.client.api_client import ApiResponseError
from waypost.console.bubbles.previews import draft_message
from waypost.console.page_tools import PageTools
from waypost.console.templates.draft_text import (
    MAX_BUTTONS,
    MAX_CARDS,
    CardContent,
    EditorContent,
    Texts,
    find_samples,
    sample_finder,
)
from waypost.console.templates.submission import encode_content, group_by_element, has_field
from waypost.console.templates.texts import (
    KIND_LABELS,
    FieldChange,
    compare_drafts,
    label_text,
    language_name,
    listed_languages,
)
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError
from waypost.domain.lifecycle import CATEGORY_FIXED
from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind
from waypost.domain.templates.field_rules import MaxLengthCheck
from waypost.domain.templates.fields import TEMPLATE_FIELDS, TemplateDraft, TemplateField
from waypost.domain.templates.rules import SPEC_RULES
from waypost.domain.templates.template import Template
from waypost.domain.templates.types import ADDED_BUTTON_TYPES, TEMPLATE_TYPES
from waypost.domain.templates.variables import variable_context
from waypost.store.templates.events import last_approved_draft
from waypost.wire.forms import Form
from waypost.wire.templates.drafts import apply_edit, read_draft

CONDITIONAL_MAX_CHARS: Final = {
    # Limits that depend on more than the field. Source: domain/templates/rules.py; a test compares each number.
    # counter, maximum, its rule in domain/templates/rules.py
    "content of an offer": (600, "lto-content"),
    "button.text": (25, "label-length"),
    "button.autofill_text": (25, "label-length"),
    "button.url": (2000, "url-usable"),
    "button.phone_number": (20, "phone-usable"),
    "button.code": (15, "copy-code-length"),
    "card.body": (160, "card-body-length"),
}
MAX_CHARS_BY_FIELD: Final = {
    rule.field: rule.check.max_chars for rule in SPEC_RULES if isinstance(rule.check, MaxLengthCheck)
} | {name: max_chars for name, (max_chars, _) in CONDITIONAL_MAX_CHARS.items()}


_ACTION: Final = re.compile(
    r"(add|remove|up|down)-(?:card-(?P<card>\d{1,2})-)?(?P<element>button|card)(?:-(?P<index>\d{1,2}))?"
)
_OFFSETS: Final = {"up": -1, "down": 1}
_MIN_CARDS: Final = 2

Element = TypeVar("Element")


def apply_action(content: EditorContent, action: str, form: Mapping[str, str]) -> None:
    """Apply an action of the editor, such as `up-card-1-button-0`, to its content; unknown actions do nothing."""
    match = _ACTION.fullmatch(action)
    if match is None:
        return
    verb, card, element = match[1], match["card"], match["element"]
    index = int(match["index"] or 0)
    if card is not None and int(card) >= len(content.cards):
        return
    if element == "card":
        _change(content.cards, verb, index, lambda: _next_card(content), MAX_CARDS)
        return
    buttons = content.buttons if card is None else content.cards[int(card)].buttons
    kind = form.get("new-button-kind" if card is None else f"card-{card}-new-button-kind", "")
    _change(buttons, verb, index, lambda: new_button(kind), MAX_BUTTONS)


def normalize(content: EditorContent) -> None:
    """Add what the type and category require, and remove buttons that they do not allow."""
    kind = content.texts.get("templateType", "")
    content.buttons = [button for button in content.buttons if _is_allowed(button, content, kind)]
    if content.is_code and not content.buttons and not content.edited_id:
        content.buttons = [new_button(ButtonKind.OTP)]
    if content.is_carousel and not content.edited_id and not content.cards:
        content.cards = [_next_card(content) for _ in range(_MIN_CARDS)]


def new_button(kind: str) -> Texts:
    """Return a new button of a kind; a quick reply if the kind is unknown."""
    button_kind = ButtonKind[kind] if kind in ButtonKind.__members__ else ButtonKind.QUICK_REPLY
    return {"type": button_kind.value, **BUTTON_KINDS[button_kind].initial}


def _next_card(content: EditorContent) -> CardContent:
    """Return an empty card with the layout of the first one: all cards must have the same layout."""
    if not content.cards:
        return CardContent({"headerType": "IMAGE"}, {}, [new_button(ButtonKind.QUICK_REPLY)])
    first = content.cards[0]
    buttons = [new_button(button["type"]) for button in first.buttons]
    return CardContent({"headerType": first.texts.get("headerType", "IMAGE")}, {}, buttons)


def _change(items: list[Element], verb: str, index: int, make: Callable[[], Element], max_count: int) -> None:
    to = index + _OFFSETS.get(verb, 0)
    if verb == "add" and len(items) < max_count:
        items.append(make())
    elif verb == "remove" and index < len(items):
        del items[index]
    elif verb in _OFFSETS and index < len(items) and 0 <= to < len(items):
        items[index], items[to] = items[to], items[index]


def _is_allowed(button: Texts, content: EditorContent, kind: str) -> bool:
    button_kind = ButtonKind(button["type"])
    if button_kind is ButtonKind.OTP:
        return content.is_code
    return ADDED_BUTTON_TYPES.get(button_kind, kind) == kind


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
        violations: violations, each as the API's check returns it, with `element`.
        notes: the same by element.
        samples: `url` and `name` of each sample, by its reference.
        changes: what differs from the last approved version; None: there is none, or a field cannot be read.
    """

    kind_labels: ClassVar = KIND_LABELS
    max_chars: ClassVar = MAX_CHARS_BY_FIELD
    types: ClassVar = [(name, row.label) for name, row in TEMPLATE_TYPES.items()]
    card_types: ClassVar = [
        (name, row.label) for name, row in TEMPLATE_TYPES.items() if row.medium and row.medium.in_cards
    ]
    all_languages: ClassVar = listed_languages()
    content: EditorContent
    template: Template | None  # that is edited; None: it is new
    path: str  # target of the form
    violations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    error: str = ""  # an error that is not among the violations
    error_field: str = ""  # the field that it names; may be empty
    shown: dict[str, Any] | None = None  # the preview
    samples: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    is_checked: bool = False  # True once the rules were checked; an untouched editor shows no violations
    changes: list[FieldChange] | None = None
    focus: str = ""  # id of the control that gets the focus when the page is loaded; empty: none
    languages: tuple[str, ...] = ()  # of other templates with the same name, when a language is added to a template

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
    def is_media_fixed(self) -> bool:
        """True if cards and their media cannot be changed. Source: facts 3.6."""
        return self.is_edit and self.content.is_carousel

    def optional_fields(self, *, editable: bool) -> list[TemplateField]:
        """Return the optional fields that can be filled in, or those that are submitted unchanged."""
        is_new = not self.is_edit
        can_edit = {
            one.name: has_field(self.content, one.name) and (one.changeable or is_new) for one in OPTIONAL_FIELDS
        }
        return [one for one in OPTIONAL_FIELDS if can_edit[one.name] == editable]


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
        text, source = error.explanation or error.message, "decision 0077"
        finding = {"field": error.field, "rule": "readable", "says": text, "remedy": text, "source": source}
        editing.violations = [_label_finding({**finding, "refused_by": "api"})]
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
