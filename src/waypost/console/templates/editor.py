"""The editor, rendered on the server: it works without JavaScript; with it the preview is live."""

from dataclasses import replace
from functools import partial
from typing import Final

from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.templates import gallery as lookup
from waypost.console.templates.draft_text import EditorContent, draft_content, parse_content, upload_sample
from waypost.console.templates.editor_view import EDITOR_MACROS, EditorView, apply_action, normalize, update_view
from waypost.console.templates.submission import encode_content
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.console.web.streams import PageElement, elements_response
from waypost.domain.lifecycle import EDITABLE
from waypost.domain.templates.template import Template
from waypost.store.templates.templates import templates_by_name

SUBMIT: Final = "submit"
CHECK: Final = "check"
PREVIEW: Final = "preview"
_NEW_TEXTS: Final = {"languageCode": "en_US", "category": "UTILITY", "templateType": "TEXT", "vertical": ""}


async def show_new(tools: PageTools, page_request: PageRequest) -> Response:
    """Return an empty editor, or one filled from a template to duplicate (`?from=`).

    With `as=language` the duplicate keeps its name, and needs another language.
    """
    content, focus, languages = EditorContent(dict(_NEW_TEXTS)), "", tuple[str, ...]()
    if template_id := page_request.query("from"):
        template = await lookup.get_template(tools, page_request, template_id)
        content = draft_content(template.draft)
        is_language = page_request.query("as") == "language"
        content.texts["languageCode" if is_language else "elementName"] = ""
        focus = "f-languageCode" if is_language else "f-elementName"
        if is_language:
            scope = (page_request.partner.id, template.business_account_id, template.draft.element_name or "")
            named = await tools.services.database.read(templates_by_name, *scope)
            languages = tuple(sorted(one.draft.language_code for one in named))
    elif kind := page_request.query("type"):
        content.texts["templateType"] = kind
        normalize(content)
    path = f"/apps/{page_request.app.id}/templates/new"
    editing = EditorView(content, None, path, focus=focus, languages=languages)
    await update_view(tools, page_request, editing, lint=bool(page_request.query("from")))
    return await _page(tools, page_request, editing)


async def write_new(tools: PageTools, page_request: PageRequest) -> Response:
    """Handle the editor's buttons for a new template; one of them submits it."""
    return await _handle_form(tools, page_request, None, f"/apps/{page_request.app.id}/templates/new")


async def show_edit(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the editor, filled from a template."""
    template = await _get_editable(tools, page_request)
    draft = template.edit.draft if template.edit else replace(template.draft, category=template.category.value)
    editing = EditorView(draft_content(draft, template.id), template, _edit_path(page_request, template))
    await update_view(tools, page_request, editing, lint=True)
    return await _page(tools, page_request, editing)


async def write_edit(tools: PageTools, page_request: PageRequest) -> Response:
    """Handle the editor's buttons for an edit; one of them submits it."""
    template = await _get_editable(tools, page_request)
    return await _handle_form(tools, page_request, template, _edit_path(page_request, template))


async def _get_editable(tools: PageTools, page_request: PageRequest) -> Template:
    """Return the template in the path; NotFound if there is none, or its status does not allow edits."""
    template = await lookup.get_template(tools, page_request, page_request.path_params["template_id"])
    if template.status not in EDITABLE:
        raise NotFound(f"A template with the status {template.status.lower()} cannot be edited.")
    if template.pending_edit is not None:
        raise NotFound("The operator has not received the template's edit yet; it can be edited again afterwards.")
    return template


def _edit_path(page_request: PageRequest, template: Template) -> str:
    return f"/apps/{page_request.app.id}/templates/{template.id}/edit"


async def _handle_form(tools: PageTools, page_request: PageRequest, template: Template | None, path: str) -> Response:
    form = await page_request.form()
    pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    content = parse_content(pairs, "" if template is None else template.id)
    editing = EditorView(content, template, path)
    action = dict(pairs).get("do", "")
    try:
        for name, file in form.multi_items():
            if isinstance(file, UploadFile) and (file.filename or file.size):
                _set_sample(content, name, await upload_sample(tools, page_request, file))
    except ApiResponseError as error:
        editing.error = error.explanation or error.message
    status = 400 if editing.error else 200
    if action == SUBMIT and not editing.error:
        normalize(content)
        response = await _submit(tools, page_request, editing)
        if response is not None:
            return response
        status = 400
    elif action != PREVIEW:
        apply_action(content, action, dict(pairs))
        normalize(content)
    await update_view(tools, page_request, editing, lint=True, shows_missing=action in (SUBMIT, CHECK, PREVIEW))
    if not page_request.is_quiet:
        if action in (SUBMIT, CHECK) and editing.violations:
            editing.focus = editing.violations[0]["element"]
        return await _page(tools, page_request, editing, status)
    part = partial(tools.services.pages.render_macro, EDITOR_MACROS)
    if action == PREVIEW:
        pieces = [
            PageElement("preview", part("preview", page_request, editing, page_request)),
            PageElement("changes", part("changes", page_request, editing.changes)),
            *(
                PageElement(macro.replace("_", "-"), part(macro, page_request, editing))
                for macro in ("lint", "lint_brief", "samples", "header_sample")
            ),
            *(
                PageElement(f"card-{index}-samples", part("card_samples", page_request, editing, index))
                for index in range(len(content.cards))
            ),
        ]
    else:
        pieces = [PageElement("editor", part("editor", page_request, editing, page_request))]
    notes = {
        element: [{"says": violation["remedy"], "by": violation["refused_by"]} for violation in violations]
        for element, violations in editing.notes.items()
    }
    return elements_response(pieces, notes=notes)


async def _submit(tools: PageTools, page_request: PageRequest, editing: EditorView) -> Response | None:
    """Submit it through the partner API; None: the API returned an error, and the editor shows it."""
    api = tools.services.apis.app(page_request.app)
    base = f"/partner/app/{page_request.app.id}/templates"
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
    redirect = tools.redirect(f"/apps/{page_request.app.id}/templates/{template_id}", text)
    if not page_request.is_quiet:
        return redirect
    quiet = JSONResponse({"to": redirect.headers["location"]})
    quiet.raw_headers.extend(header for header in redirect.raw_headers if header[0] == b"set-cookie")
    return quiet


def _set_sample(content: EditorContent, name: str, handle: str) -> None:
    """Set the sample that a file input names: `file`, or `card-2-file`."""
    if name == "file":
        content.texts["exampleMedia"] = handle
    elif name.startswith("card-") and name.endswith("-file"):
        index = name.split("-")[1]
        if index.isdecimal() and int(index) < len(content.cards):
            content.cards[int(index)].texts["exampleMedia"] = handle


async def _page(tools: PageTools, page_request: PageRequest, editing: EditorView, status: int = 200) -> Response:
    return await tools.page(page_request, "templates/editor.html", status, editing=editing)
