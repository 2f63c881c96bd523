"""The editor, rendered on the server: it works without JavaScript; with it the preview is live."""

from dataclasses import replace
from typing import Final

from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.templates import lookup
from waypost.console.templates.character_limits import MOST
from waypost.console.templates.draft_text import Writing, new_writing, read_writing, writing_of
from waypost.console.templates.editor_buttons import settle, shape
from waypost.console.templates.editor_view import Editing, look
from waypost.console.templates.samples import take_sample
from waypost.console.templates.submission import fields_of
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece, answer_with
from waypost.domain.lifecycle import EDITABLE
from waypost.domain.templates.languages import LANGUAGES
from waypost.domain.templates.template import Template

PAGE: Final = "templates/editor.html"
PARTS: Final = "templates/editor_parts.html"
SUBMIT: Final = "submit"
CHECK: Final = "check"
PREVIEW: Final = "preview"


async def show_new(desk: PageTools, visit: PageRequest) -> Response:
    """Return an empty editor, or one filled from a template to duplicate (`?from=`).

    Raises:
        NotThere: there is no such template.
    """
    content = new_writing()
    if template_id := visit.query("from"):
        template = await lookup.template_of(desk, visit, template_id)
        content = writing_of(template.draft)
        content.texts["elementName"] = ""
    elif kind := visit.query("type"):
        content.texts["templateType"] = kind
        settle(content)
    editing = Editing(content, None, f"/apps/{visit.app.id}/templates/new")
    await look(desk, visit, editing, lint=bool(visit.query("from")))
    return await _page(desk, visit, editing)


async def write_new(desk: PageTools, visit: PageRequest) -> Response:
    """Handle the editor's buttons for a new template; one of them submits it."""
    return await _written(desk, visit, None, f"/apps/{visit.app.id}/templates/new")


async def show_edit(desk: PageTools, visit: PageRequest) -> Response:
    """Return the editor, filled from a template.

    Raises:
        NotThere: there is no such template, or its status does not allow edits.
    """
    template = await _editable(desk, visit)
    draft = replace(template.draft, category=template.category.value)
    editing = Editing(writing_of(draft, template.id), template, _edit_path(visit, template))
    await look(desk, visit, editing, lint=True)
    return await _page(desk, visit, editing)


async def write_edit(desk: PageTools, visit: PageRequest) -> Response:
    """Handle the editor's buttons for an edit; one of them submits it.

    Raises:
        NotThere: there is no such template, or its status does not allow edits.
    """
    template = await _editable(desk, visit)
    return await _written(desk, visit, template, _edit_path(visit, template))


async def _editable(desk: PageTools, visit: PageRequest) -> Template:
    template = await lookup.template_of(desk, visit, visit.path["template_id"])
    if template.status not in EDITABLE:
        raise NotThere(f"A template with the status {template.status.lower()} cannot be edited.")
    return template


def _edit_path(visit: PageRequest, template: Template) -> str:
    return f"/apps/{visit.app.id}/templates/{template.id}/edit"


async def _written(desk: PageTools, visit: PageRequest, template: Template | None, path: str) -> Response:
    form = await visit.form()
    pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    content = read_writing(pairs, "" if template is None else template.id)
    editing = Editing(content, template, path)
    action = dict(pairs).get("do", "")
    try:
        for name, file in form.multi_items():
            if isinstance(file, UploadFile) and (file.filename or file.size):
                _put_sample(content, name, await take_sample(desk, visit, file))
    except ApiResponseError as error:
        editing.said = error.explanation or error.message
    status = 400 if editing.said else 200
    if action == SUBMIT and not editing.said:
        settle(content)
        response = await _submit(desk, visit, editing)
        if response is not None:
            return response
        status = 400
    elif action != PREVIEW:
        shape(content, action, dict(pairs))
        settle(content)
    await look(desk, visit, editing, lint=True, asked=action in (SUBMIT, CHECK, PREVIEW))
    if not visit.is_quiet:
        return await _page(desk, visit, editing, status)
    part = desk.parts.pages.part
    pieces = [Piece("editor", part(PARTS, "editor", visit, editing, visit, MOST, LANGUAGES))]
    if action == PREVIEW:
        pieces = [
            Piece("preview", part(PARTS, "preview", visit, editing, visit)),
            Piece("lint", part(PARTS, "lint", visit, editing)),
            Piece("samples", part(PARTS, "samples", visit, editing)),
            Piece("header-sample", part(PARTS, "header_sample", visit, editing)),
        ]
        pieces += [
            Piece(f"card-{index}-samples", part(PARTS, "card_samples", visit, editing, index))
            for index in range(len(content.cards))
        ]
    notes = {
        element: [{"says": violation["remedy"], "by": violation["refused_by"]} for violation in violations]
        for element, violations in editing.notes.items()
    }
    return answer_with(pieces, notes=notes)


async def _submit(desk: PageTools, visit: PageRequest, editing: Editing) -> Response | None:
    """Submit it through the partner API; None: the API returned an error, and the editor shows it."""
    api = desk.parts.apis.app(visit.app)
    base = f"/partner/app/{visit.app.id}/templates"
    fields = fields_of(editing.writing)
    try:
        if editing.template is None:
            response = await api.form("POST", base, fields)
            template_id, text = response["template"]["id"], "Template submitted for review."
        else:
            template_id, text = editing.template.id, "Edit submitted for review."
            await api.form("PUT", f"{base}/{template_id}", fields)
    except ApiResponseError as error:
        editing.said = error.explanation or error.message
        return None
    redirect = desk.go(f"/apps/{visit.app.id}/templates/{template_id}", text)
    if not visit.is_quiet:
        return redirect
    quiet = JSONResponse({"to": redirect.headers["location"]})
    quiet.raw_headers.extend(header for header in redirect.raw_headers if header[0] == b"set-cookie")
    return quiet


def _put_sample(writing: Writing, name: str, handle: str) -> None:
    """Set the sample that a file input names: `file`, or `card-2-file`."""
    if name == "file":
        writing.texts["exampleMedia"] = handle
    elif name.startswith("card-") and name.endswith("-file"):
        index = name.split("-")[1]
        if index.isdecimal() and int(index) < len(writing.cards):
            writing.cards[int(index)].texts["exampleMedia"] = handle


async def _page(desk: PageTools, visit: PageRequest, editing: Editing, status: int = 200) -> Response:
    return await desk.page(
        visit, PAGE, status, editing=editing, most=MOST, languages=LANGUAGES,
    )  # fmt: skip
