"""The editor of a template, rendered on the server: it works without JavaScript; with it the preview is live."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, TypeVar

from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.bubbles.previews import draft_message
from waypost.console.page_request import PageRequest
from waypost.console.templates import gallery as lookup
from waypost.console.templates.draft_text import (
    MAX_BUTTONS,
    MAX_CARDS,
    CardContent,
    EditorContent,
    Texts,
    draft_content,
    find_samples,
    parse_content,
    sample_finder,
    upload_sample,
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
from waypost.console.web.errors import NotFound
from waypost.console.web.streams import PageElement, elements_response
from waypost.domain.errors import ApiError
from waypost.domain.lifecycle import CATEGORY_FIXED, EDITABLE
from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind
from waypost.domain.templates.field_rules import MaxLengthCheck
from waypost.domain.templates.fields import TEMPLATE_FIELDS, TemplateDraft, TemplateField
from waypost.domain.templates.rules import SPEC_RULES
from waypost.domain.templates.template import Template
from waypost.domain.templates.types import ADDED_BUTTON_TYPES, TEMPLATE_TYPES
from waypost.domain.templates.variables import variable_context
from waypost.store.templates.events import last_approved_draft
from waypost.store.templates.templates import templates_by_name
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
    """The values of the editor page."""

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
    # violations, each as the API's check returns it, with `element`
    violations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    # the same by element
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    error: str = ""  # an error that is not among the violations
    error_field: str = ""  # the field that it names; may be empty
    shown: dict[str, Any] | None = None  # the preview
    # `url` and `name` of each sample, by its reference
    samples: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    is_checked: bool = False  # True once the rules were checked; an untouched editor shows no violations
    # what differs from the last approved version; None: there is none, or a field cannot be read
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


async def update_view(request: PageRequest, editing: EditorView, *, lint: bool, shows_missing: bool = True) -> None:
    """Render the preview and, if `lint` is set, check the rules."""
    content = editing.content
    if lint:
        await _check_rules(request, editing)
    draft = _parse_draft(editing)
    references = [content.texts.get("exampleMedia", "")]
    references += [card.texts.get("exampleMedia", "") for card in content.cards]
    uploads = await find_samples(request, [] if draft is None else [draft], *references)
    find = sample_finder(request, uploads)
    editing.samples = {
        name: {"url": find(name), "name": upload.file_name or upload.mime_type} for name, upload in uploads.items()
    }
    editing.shown = None if draft is None else draft_message(draft, find=find)
    if draft is not None and editing.template is not None:
        editing.changes = await find_changes(request, editing.template, draft)
    editing.notes = group_by_element(editing.violations, content)
    if not shows_missing:
        for element, violations in editing.notes.items():
            editing.notes[element] = [each for each in violations if not each["rule"].endswith(MISSING_VALUE_RULES)]


async def _check_rules(request: PageRequest, editing: EditorView) -> None:
    editing.is_checked = True
    fields = encode_content(editing.content)
    if editing.template is not None:
        fields["templateId"] = editing.template.id
    path = f"/partner/app/{request.app.id}/templates/check"
    try:
        response = await request.app_api.form("POST", path, fields)
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
    field, rule = finding["field"], finding["rule"]
    return {
        **finding,
        "says": label_text(finding["says"], field, rule),
        "remedy": label_text(finding["remedy"], field, rule),
    }


async def find_changes(request: PageRequest, template: Template, draft: TemplateDraft) -> list[FieldChange] | None:
    """Return what differs in a draft from the last approved version of a template; None if none was approved."""
    approved = await request.read(last_approved_draft, template)
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


SUBMIT: Final = "submit"
CHECK: Final = "check"
PREVIEW: Final = "preview"
_NEW_TEXTS: Final = {"languageCode": "en_US", "category": "UTILITY", "templateType": "TEXT", "vertical": ""}


async def show_new(request: PageRequest) -> Response:
    """Return an empty editor, or one filled from a template to duplicate (`?from=`).

    With `as=language` the duplicate keeps its name, and needs another language.
    """
    content, focus, languages = EditorContent(dict(_NEW_TEXTS)), "", tuple[str, ...]()
    if template_id := request.query("from"):
        template = await lookup.get_template(request, template_id)
        content = draft_content(template.draft)
        is_language = request.query("as") == "language"
        content.texts["languageCode" if is_language else "elementName"] = ""
        focus = "f-languageCode" if is_language else "f-elementName"
        if is_language:
            scope = (request.partner.id, template.business_account_id, template.draft.element_name or "")
            named = await request.read(templates_by_name, *scope)
            languages = tuple(sorted(one.draft.language_code for one in named))
    elif kind := request.query("type"):
        content.texts["templateType"] = kind
        normalize(content)
    path = f"/apps/{request.app.id}/templates/new"
    editing = EditorView(content, None, path, focus=focus, languages=languages)
    await update_view(request, editing, lint=bool(request.query("from")))
    return await _page(request, editing)


async def write_new(request: PageRequest) -> Response:
    """Handle the editor's buttons for a new template; one of them submits it."""
    return await _handle_form(request, None, f"/apps/{request.app.id}/templates/new")


async def show_edit(request: PageRequest) -> Response:
    """Return the editor, filled from a template."""
    template = await _get_editable(request)
    draft = template.edit.draft if template.edit else replace(template.draft, category=template.category.value)
    editing = EditorView(draft_content(draft, template.id), template, _edit_path(request, template))
    await update_view(request, editing, lint=True)
    return await _page(request, editing)


async def write_edit(request: PageRequest) -> Response:
    """Handle the editor's buttons for an edit; one of them submits it."""
    template = await _get_editable(request)
    return await _handle_form(request, template, _edit_path(request, template))


async def _get_editable(request: PageRequest) -> Template:
    """Return the template in the path; NotFound if there is none, or its status does not allow edits."""
    template = await lookup.get_template(request, request.path_params["template_id"])
    if template.status not in EDITABLE:
        raise NotFound(f"A template with the status {template.status.lower()} cannot be edited.")
    if template.pending_edit is not None:
        raise NotFound("The operator has not received the template's edit yet; it can be edited again afterwards.")
    return template


def _edit_path(request: PageRequest, template: Template) -> str:
    return f"/apps/{request.app.id}/templates/{template.id}/edit"


async def _handle_form(request: PageRequest, template: Template | None, path: str) -> Response:
    form = await request.form()
    pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    content = parse_content(pairs, "" if template is None else template.id)
    editing = EditorView(content, template, path)
    action = dict(pairs).get("do", "")
    try:
        for name, file in form.multi_items():
            if isinstance(file, UploadFile) and (file.filename or file.size):
                _set_sample(content, name, await upload_sample(request, file))
    except ApiResponseError as error:
        editing.error = error.explanation or error.message
    status = 400 if editing.error else 200
    if action == SUBMIT and not editing.error:
        normalize(content)
        response = await _submit(request, editing)
        if response is not None:
            return response
        status = 400
    elif action != PREVIEW:
        apply_action(content, action, dict(pairs))
        normalize(content)
    await update_view(request, editing, lint=True, shows_missing=action in (SUBMIT, CHECK, PREVIEW))
    if not request.is_quiet:
        if action in (SUBMIT, CHECK) and editing.violations:
            editing.focus = editing.violations[0]["element"]
        return await _page(request, editing, status)
    part = partial(request.macro, EDITOR_MACROS)
    if action == PREVIEW:
        pieces = [
            PageElement("preview", part("preview", editing, request)),
            PageElement("changes", part("changes", editing.changes)),
            *(
                PageElement(macro.replace("_", "-"), part(macro, editing))
                for macro in ("lint", "lint_brief", "samples", "header_sample")
            ),
            *(
                PageElement(f"card-{index}-samples", part("card_samples", editing, index))
                for index in range(len(content.cards))
            ),
        ]
    else:
        pieces = [PageElement("editor", part("editor", editing, request))]
    notes = {
        element: [{"says": violation["remedy"], "by": violation["refused_by"]} for violation in violations]
        for element, violations in editing.notes.items()
    }
    return elements_response(pieces, notes=notes)


async def _submit(request: PageRequest, editing: EditorView) -> Response | None:
    """Submit it through the partner API; None: the API returned an error, and the editor shows it."""
    api = request.app_api
    base = f"/partner/app/{request.app.id}/templates"
    fields = encode_content(editing.content)
    try:
        if editing.template is None:
            response = await api.form("POST", base, fields)
            template_id, text = response["template"]["id"], "Template submitted for review."
        else:
            template_id, text = editing.template.id, "Edit submitted for review."
            await api.form("PUT", f"{base}/{template_id}", fields)
    except ApiResponseError as error:
        editing.error, editing.error_field = error.explanation or error.message, error.field
        return None
    redirect = request.redirect(f"/apps/{request.app.id}/templates/{template_id}", text)
    if not request.is_quiet:
        return redirect
    quiet = JSONResponse({"to": redirect.headers["location"]})
    quiet.raw_headers.extend(header for header in redirect.raw_headers if header[0] == b"set-cookie")
    return quiet


def _set_sample(content: EditorContent, name: str, handle: str) -> None:
    if name == "file":
        content.texts["exampleMedia"] = handle
    elif name.startswith("card-") and name.endswith("-file"):
        index = name.split("-")[1]
        if index.isdecimal() and int(index) < len(content.cards):
            content.cards[int(index)].texts["exampleMedia"] = handle


async def _page(request: PageRequest, editing: EditorView, status: int = 200) -> Response:
    return await request.page("templates/editor.html", status, editing=editing)
