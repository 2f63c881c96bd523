"""A template in the editor: texts as typed, valid or not."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import UploadFile
from starlette.responses import FileResponse, Response

from waypost.console.page_request import PageRequest
from waypost.console.templates.texts import find_language
from waypost.console.web.assets import DISPLAYABLE_TYPES, SANDBOX_HEADERS
from waypost.console.web.errors import NotFound
from waypost.domain.media import UploadedMedia, handle_lines
from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind, Card, TemplateButton
from waypost.domain.templates.fields import FieldFormat, TemplateDraft, input_fields
from waypost.domain.templates.template import Category, sample_references
from waypost.domain.templates.types import HeaderMedium, TemplateTypeRow, type_row
from waypost.domain.templates.variables import named_examples, parameter_names
from waypost.store.media.media import find_uploads
from waypost.wire.media import content_disposition, content_type

_FLAGS: Final = input_fields(FieldFormat.FLAG, FieldFormat.OPTIONAL_FLAG)
_TEXTS: Final = input_fields(
    FieldFormat.TEXT, FieldFormat.OPTIONAL, FieldFormat.UPPER, FieldFormat.LANGUAGE, FieldFormat.WHOLE
)
CARD_TEXTS: Final = ("headerType", "exampleMedia", "mediaUrl", "body")
_INPUTS: Final = {name for kind in BUTTON_KINDS.values() for name in kind.editor_fields}
BUTTON_TEXTS: Final = {"type", "apps", "zero_tap_terms_accepted", "payment_link_preview", *_INPUTS}
MAX_CARDS: Final = 10
MAX_BUTTONS: Final = 20
CODE_TEXT: Final = "{{1}} is your verification code."
_BUTTON: Final = re.compile(r"button-(\d{1,2})-(\w+)")
_CARD: Final = re.compile(r"card-(\d{1,2})-(.+)")

Texts = dict[str, str]


@dataclass(slots=True)
class CardContent:
    """One card in the editor."""

    texts: Texts = field(default_factory=Texts)
    values: Texts = field(default_factory=Texts)  # sample values of its body's variables, by name
    buttons: list[Texts] = field(default_factory=list[Texts])

    @property
    def names(self) -> list[str]:
        """Return the names of the variables of its body, each once."""
        return parameter_names(self.texts.get("body", ""))

    @property
    def medium(self) -> HeaderMedium | None:
        """Return the medium above its body; None if its type is not one that cards may have."""
        return type_row(self.texts.get("headerType")).medium


@dataclass(slots=True)
class EditorContent:
    """A whole template in the editor."""

    texts: Texts = field(default_factory=Texts)
    flags: set[str] = field(default_factory=set[str])
    values: Texts = field(default_factory=Texts)  # sample values of the body's variables, by name
    header_value: str = ""  # the sample value of the header's variable
    buttons: list[Texts] = field(default_factory=list[Texts])
    cards: list[CardContent] = field(default_factory=list[CardContent])
    edited_id: str = ""  # the id of the template that is edited; empty: it is new

    @property
    def names(self) -> list[str]:
        """Return the names of the variables of the body, each once."""
        return parameter_names(self.texts.get("content", ""))

    @property
    def is_code(self) -> bool:
        """True if it carries a one-time code: then the operator writes its text."""
        return self.texts.get("category") == Category.AUTHENTICATION

    @property
    def type_row(self) -> TemplateTypeRow:
        """Return the row of its type."""
        return type_row(self.texts.get("templateType"))

    @property
    def is_carousel(self) -> bool:
        """True if it has cards."""
        return self.type_row.has_cards


def parse_content(pairs: Iterable[tuple[str, str]], edited_id: str = "") -> EditorContent:
    """Return the content of a submitted editor form. Unknown names are ignored.

    Browsers send line breaks as CR LF; they are stored as LF.
    """
    form = {name: value.replace("\r\n", "\n") for name, value in pairs}
    texts = {field.name: form.get(field.name, "") for field in _TEXTS}
    texts |= {name: text.strip() for name, text in texts.items() if name not in ("content", "header", "footer")}
    texts["languageCode"] = find_language(texts["languageCode"])
    content = EditorContent(
        texts=texts,
        flags={field.name for field in _FLAGS if form.get(field.name) in ("on", "true")},
        values=_parse_values(form),
        header_value=form.get("header-value", ""),
        buttons=_parse_buttons(form),
        edited_id=edited_id,
    )
    cards: dict[int, dict[str, str]] = {}
    for name, value in form.items():
        if match := _CARD.fullmatch(name):
            cards.setdefault(int(match[1]), {})[match[2]] = value
    content.cards = [
        CardContent({name: card.get(name, "") for name in CARD_TEXTS}, _parse_values(card), _parse_buttons(card))
        for _, card in sorted(cards.items())[: MAX_CARDS + 5]
    ]
    return content


def draft_content(draft: TemplateDraft, edited_id: str = "") -> EditorContent:
    """Return the content of the editor for a stored draft."""
    values = {field.name: getattr(draft, field.attribute) for field in _TEXTS}
    texts = {name: "" if value is None else str(value) for name, value in values.items()}
    header_values = named_examples(draft.header or "", draft.example_header or "") or {}
    return EditorContent(
        texts=texts | {"exampleMedia": texts["exampleMedia"] or draft.media_id or ""},
        flags={field.name for field in _FLAGS if getattr(draft, field.attribute)},
        values=named_examples(draft.content or "", draft.example or "") or {},
        header_value=next(iter(header_values.values()), ""),
        buttons=[_button_texts(button) for button in draft.buttons],
        cards=[_card_content(card) for card in draft.cards or ()],
        edited_id=edited_id,
    )


def _parse_values(form: Mapping[str, str]) -> Texts:
    names = [name for name in form if name.startswith("value-") and len(name) < 200]
    return {name.removeprefix("value-"): form[name] for name in names}


def _parse_buttons(form: Mapping[str, str]) -> list[Texts]:
    buttons: dict[int, Texts] = {}
    for name, value in form.items():
        match = _BUTTON.fullmatch(name)
        if match and match[2] in BUTTON_TEXTS:
            buttons.setdefault(int(match[1]), {})[match[2]] = value.strip()
    ordered = [buttons[index] for index in sorted(buttons)]
    return [button for button in ordered if button.get("type") in ButtonKind.__members__][:MAX_BUTTONS]


def _card_content(card: Card) -> CardContent:
    return CardContent(
        {
            "headerType": card.header_type,
            "exampleMedia": card.example_media or card.media_id or "",
            "mediaUrl": card.media_url or "",
            "body": card.body or "",
        },
        named_examples(card.body or "", card.sample_text or "") or {},
        [_button_texts(button) for button in card.buttons],
    )


def _button_texts(button: TemplateButton) -> Texts:
    apps = [f"{app.package_name} {app.signature_hash}".strip() for app in button.supported_apps]
    preview = button.payment_link_preview
    texts = {name: getattr(button, name) for name in _INPUTS} | {
        "type": button.kind.value,
        "example": next(iter(button.example), ""),
        "apps": "\n".join(apps),
        "zero_tap_terms_accepted": "true" if button.zero_tap_terms_accepted else "",
        "payment_link_preview": "" if preview is None else str(preview).lower(),
    }
    return {name: value for name, value in texts.items() if value}


FindSample = Callable[[str], str]
"""Returns the path of a sample by its reference; empty if there is none."""


async def find_samples(request: PageRequest, drafts: Iterable[TemplateDraft], *more: str) -> dict[str, UploadedMedia]:
    """Return the partner's unexpired uploads that drafts refer to, by reference."""
    references = [reference for draft in drafts for reference in sample_references(draft)] + list(more)
    names = {line for reference in references if reference for line in (reference, *handle_lines(reference))}
    if not names:
        return {}
    now_ms = request.now_ms()
    return await request.read(find_uploads, request.partner.id, sorted(names), now_ms)


def sample_finder(request: PageRequest, uploads: dict[str, UploadedMedia]) -> FindSample:
    """Return a function that returns the paths of these uploads."""

    def find(reference: str) -> str:
        lines = (reference, *handle_lines(reference))
        upload = next((uploads[line] for line in lines if line in uploads), None)
        return "" if upload is None else f"/apps/{request.app.id}/templates/media/{upload.id}"

    return find


async def show_sample(request: PageRequest) -> Response:
    """Return an upload of the partner, of any app: the templates of an account belong to all its apps."""
    services, media_id = request.services, request.path_params["media_id"]
    uploads = await request.read(find_uploads, request.partner.id, [media_id], request.now_ms())
    media = uploads.get(media_id)
    if media is None:
        raise NotFound("This sample does not exist, or has expired.")
    kind = "inline" if media.mime_type in DISPLAYABLE_TYPES else "attachment"
    headers = {
        **SANDBOX_HEADERS,
        "Content-Disposition": content_disposition(media.file_name or media.id, kind),
        "Cache-Control": "private, max-age=3600",
    }
    path = await services.files.local_path(media.sha256)
    return FileResponse(path, media_type=content_type(media.mime_type), headers=headers)


async def upload_sample(request: PageRequest, file: UploadFile) -> str:
    """Upload a file through the partner API, and return its handle."""
    path, media_type = f"/partner/app/{request.app.id}/upload/media", file.content_type
    response = await request.app_api.file(
        path, file, name=file.filename or "sample", media_type=media_type or "application/octet-stream"
    )
    return str(response["handleId"]["message"])
