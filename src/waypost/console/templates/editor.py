"""The editor: written on the server, so that it works without modules; with them it is live and quick."""

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
    """An empty editor, or one filled from a template to be duplicated (`?from=`).

    Raises:
        NotThere: there is no such template.
    """
    writing = new_writing()
    if template_id := visit.query("from"):
        template = await lookup.template_of(desk, visit, template_id)
        writing = writing_of(template.draft)
        writing.texts["elementName"] = ""
    elif kind := visit.query("type"):
        writing.texts["templateType"] = kind
        settle(writing)
    editing = Editing(writing, None, f"/apps/{visit.app.id}/templates/new")
    await look(desk, visit, editing, lint=bool(visit.query("from")))
    return await _page(desk, visit, editing)


async def write_new(desk: PageTools, visit: PageRequest) -> Response:
    """What the editor's buttons do; the last of them submits."""
    return await _written(desk, visit, None, f"/apps/{visit.app.id}/templates/new")


async def show_edit(desk: PageTools, visit: PageRequest) -> Response:
    """The editor, filled from a template.

    Raises:
        NotThere: there is no such template, or it cannot be edited as it stands.
    """
    template = await _editable(desk, visit)
    draft = replace(template.draft, category=template.category.value)
    editing = Editing(writing_of(draft, template.id), template, _edit_path(visit, template))
    await look(desk, visit, editing, lint=True)
    return await _page(desk, visit, editing)


async def write_edit(desk: PageTools, visit: PageRequest) -> Response:
    """What the editor's buttons do; the last of them sends the edit.

    Raises:
        NotThere: there is no such template, or it cannot be edited as it stands.
    """
    template = await _editable(desk, visit)
    return await _written(desk, visit, template, _edit_path(visit, template))


async def _editable(desk: PageTools, visit: PageRequest) -> Template:
    template = await lookup.template_of(desk, visit, visit.path["template_id"])
    if template.status not in EDITABLE:
        raise NotThere(f"A template that is {template.status.lower()} cannot be edited.")
    return template


def _edit_path(visit: PageRequest, template: Template) -> str:
    return f"/apps/{visit.app.id}/templates/{template.id}/edit"


async def _written(desk: PageTools, visit: PageRequest, template: Template | None, path: str) -> Response:
    form = await visit.form()
    pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    writing = read_writing(pairs, "" if template is None else template.id)
    editing = Editing(writing, template, path)
    deed = dict(pairs).get("do", "")
    try:
        for name, file in form.multi_items():
            if isinstance(file, UploadFile) and (file.filename or file.size):
                _put_sample(writing, name, await take_sample(desk, visit, file))
    except ApiResponseError as refused:
        editing.said = refused.explanation or refused.message
    status = 400 if editing.said else 200
    if deed == SUBMIT and not editing.said:
        settle(writing)
        gone = await _submit(desk, visit, editing)
        if gone is not None:
            return gone
        status = 400
    elif deed != PREVIEW:
        shape(writing, deed, dict(pairs))
        settle(writing)
    await look(desk, visit, editing, lint=True, asked=deed in (SUBMIT, CHECK, PREVIEW))
    if not visit.is_quiet:
        return await _page(desk, visit, editing, status)
    part = desk.parts.pages.part
    pieces = [Piece("editor", part(PARTS, "editor", visit, editing, visit, MOST, LANGUAGES))]
    if deed == PREVIEW:
        pieces = [
            Piece("preview", part(PARTS, "preview", visit, editing, visit)),
            Piece("lint", part(PARTS, "lint", visit, editing)),
            Piece("samples", part(PARTS, "samples", visit, editing)),
            Piece("header-sample", part(PARTS, "header_sample", visit, editing)),
        ]
        pieces += [
            Piece(f"card-{at}-samples", part(PARTS, "card_samples", visit, editing, at))
            for at in range(len(writing.cards))
        ]
    notes = {
        element: [{"says": one["remedy"], "by": one["refused_by"]} for one in some]
        for element, some in editing.notes.items()
    }
    return answer_with(pieces, notes=notes)


async def _submit(desk: PageTools, visit: PageRequest, editing: Editing) -> Response | None:
    """Submit it through the partner API; None: it was refused, and the editor says why."""
    door = desk.parts.apis.app(visit.app)
    base = f"/partner/app/{visit.app.id}/templates"
    fields = fields_of(editing.writing)
    try:
        if editing.template is None:
            answer = await door.form("POST", base, fields)
            template_id, said = answer["template"]["id"], "Submitted. The operator reviews it now."
        else:
            template_id, said = editing.template.id, "Changed. The operator reviews it anew."
            await door.form("PUT", f"{base}/{template_id}", fields)
    except ApiResponseError as refused:
        editing.said = refused.explanation or refused.message
        return None
    gone = desk.go(f"/apps/{visit.app.id}/templates/{template_id}", said)
    if not visit.is_quiet:
        return gone
    answer = JSONResponse({"to": gone.headers["location"]})
    answer.raw_headers.extend(one for one in gone.raw_headers if one[0] == b"set-cookie")
    return answer


def _put_sample(writing: Writing, name: str, handle: str) -> None:
    """A file input's name says whose sample it is: `file`, or `card-2-file`."""
    if name == "file":
        writing.texts["exampleMedia"] = handle
    elif name.startswith("card-") and name.endswith("-file"):
        at = name.split("-")[1]
        if at.isdecimal() and int(at) < len(writing.cards):
            writing.cards[int(at)].texts["exampleMedia"] = handle


async def _page(desk: PageTools, visit: PageRequest, editing: Editing, status: int = 200) -> Response:
    return await desk.page(
        visit, PAGE, status, editing=editing, most=MOST, languages=LANGUAGES,
    )  # fmt: skip
