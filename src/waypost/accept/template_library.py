"""The operator's library of ready templates."""

from typing import Any, Final

import msgspec

from waypost.accept.auth import admitted_app
from waypost.accept.direct import account_of, ask, unavailable
from waypost.accept.idempotency import commit
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.accept.template_sync import objects_of, whole_list
from waypost.domain.app import App
from waypost.domain.buttons import Button, ButtonKind
from waypost.domain.languages import spelled
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.outcome import MOST_ID_CHARS
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template import Category, Draft, Template, TemplateStatus
from waypost.journal.template_alignment import GOING, text_of
from waypost.operators.contract import Ask
from waypost.store.templates import adopt_template, template_known_to_operator, templates_named
from waypost.wire.library_buttons import LibraryButton, read_library_buttons
from waypost.wire.template_record import template_record

_VARIABLE: Final = "{{%d}}"
_COMPARED: Final = "name,language,status,components"

# fmt: off
_FILTERS: Final = {  # Source: facts 3.6; the operator's page "Template library"
    # wire           operator
    "elementName":  "name",
    "industry":     "industry",
    "languageCode": "language",
    "topic":        "topic",
    "usecase":      "usecase",
}
_NEEDED: Final = {  # Source: facts 3.6, in this order
    "elementName":         Reason.TEMPLATE_NAME_MISSING,
    "category":            Reason.CATEGORY_MISSING,
    "languageCode":        Reason.LANGUAGE_MISSING,
    "libraryTemplateName": Reason.LIBRARY_NAME_MISSING,
}
# fmt: on


async def list_library(services: Services, request: Request) -> Answer:
    """The operator's ready templates, as it shows them. Source: facts 3.6."""
    app = await admitted_app(services, request)
    query = {theirs: value for ours, theirs in _FILTERS.items() if (value := request.query(ours))}
    if "language" in query:
        query["language"] = spelled(query["language"])
    told = await ask(services, app, Ask.TEMPLATE_LIBRARY, "", query=query)
    return Answer({"status": "success", "templates": objects_of(told.get("data"))})


async def create_from_library(services: Services, request: Request) -> Answer:
    """Make a template from a ready one; the operator approves it at once, so it is asked directly.

    Refuses in this order: 401 wrong token, 429, 400 the first missing field, 400 another category than
    UTILITY, 400 unreadable buttons, 400 the name is taken, 400 the library has no such template, 400
    the operator's refusal.

    Source: facts 3.6.
    """
    app = await admitted_app(services, request)
    form = request.form()
    for name, reason in _NEEDED.items():
        if not form.text(name):
            raise Refused(reason, f"{name} is required.")
    if form.text("category") not in Category.__members__:
        raise Refused(Reason.INVALID_CATEGORY)
    if form.text("category") != Category.UTILITY:
        raise Refused(Reason.FIELD_BROKEN, "category must be UTILITY: the library has no other.")
    inputs = read_library_buttons(form.text("buttons"))
    name, language = form.text("elementName") or "", spelled(form.text("languageCode") or "")
    business = await services.directory.business_account(account_of(app))
    if business is None:
        raise LookupError(f"app {app.id} has no business account")
    namesakes = await services.database.read(templates_named, app.partner_id, business.id, name)
    if any(one.draft.language_code == language for one in namesakes):
        raise Refused(Reason.TEMPLATE_EXISTS, f"elementName {name} is taken in {language}.")
    ready = await _ready_template(services, app, form.text("libraryTemplateName") or "", language)
    body: dict[str, Any] = {
        "name": name,
        "language": language,
        "category": Category.UTILITY.value,
        "library_template_name": form.text("libraryTemplateName"),
    }
    if inputs:
        body["library_template_button_inputs"] = msgspec.to_builtins(inputs)
    made = await _made_by_operator(services, app, body, ready)
    now_ms = services.clock.now_ms()
    template = Template(
        id=services.ids.new(),
        partner_id=app.partner_id,
        app_id=app.id,
        business_account_id=business.id,
        namespace=business.namespace,
        draft=_draft_of(ready, inputs, name, language),
        status=OPERATOR_STATUSES.get(text_of(made.get("status")), TemplateStatus.PENDING),
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        category=Category.UTILITY,
        operator_template_id=made["id"],
    )

    def answer(is_new: bool) -> Answer:
        if not is_new:
            raise Refused(Reason.TEMPLATE_EXISTS, f"elementName {name} is taken in {language}.")
        return Answer({"status": "success", "templates": template_record(template)})

    return await commit(services, request, adopt_template, template, answer=answer)


async def _made_by_operator(
    services: Services, app: App, body: dict[str, Any], ready: dict[str, Any]
) -> dict[str, Any]:
    """What the operator has made of a library template: now, or when it was last asked to.

    An answer may have been lost, or we may have stopped before we kept it. The operator then refuses
    to make it again; what it has under this name and of this text is what we asked for.

    Raises:
        Refused: the operator refuses, and has nothing of the kind; or it does not answer.
    """
    account_id = account_of(app)
    try:
        made = await ask(services, app, Ask.CREATE_FROM_LIBRARY, account_id, body=body)
    except Refused as refused:
        if refused.reason is not Reason.OPERATOR_REFUSED:
            raise
        wish = {"name": body["name"], "fields": _COMPARED}
        for node in await whole_list(services, app, account_id, wish):
            if _is_made_of(node, body, ready) and not await _is_known(services, account_id, node):
                return node
        raise
    if not 0 < len(text_of(made.get("id"))) <= MOST_ID_CHARS:
        raise unavailable(app, Ask.CREATE_FROM_LIBRARY.value, "its answer has no template id")
    return made


def _is_made_of(node: dict[str, Any], body: dict[str, Any], ready: dict[str, Any]) -> bool:
    """Whether a template of the operator's is the one that was asked for."""
    texts = [text_of(part.get("text")) for part in objects_of(node.get("components")) if part.get("type") == "BODY"]
    return (
        all(node.get(name) == body[name] for name in ("name", "language"))
        and node["status"] not in GOING
        and texts in ([], [text_of(ready.get("body"))])
    )


async def _is_known(services: Services, account_id: str, node: dict[str, Any]) -> bool:
    """Whether we have, or had, this template of the operator's: perhaps it is about to be deleted."""
    names = (node["id"], node["name"], node["language"])
    known = await services.database.read(template_known_to_operator, account_id, *names)
    return known is not None


async def _ready_template(services: Services, app: App, name: str, language: str) -> dict[str, Any]:
    """The library's template of a name in a language.

    Raises:
        Refused: it has none of this name in this language.
    """
    query = {"name": name, "language": language}
    told = await ask(services, app, Ask.TEMPLATE_LIBRARY, "", query=query)
    for ready in objects_of(told.get("data")):
        if ready.get("name") == name and ready.get("language") == language:
            return ready
    raise Refused(
        Reason.FIELD_BROKEN,
        f"libraryTemplateName must be a template of the library in {language}; see GET on this path.",
    )


def _draft_of(ready: dict[str, Any], inputs: list[LibraryButton], name: str, language: str) -> Draft:
    """What the operator has made of a library template, as a draft of ours."""
    content = text_of(ready.get("body"))
    example = content
    values: Any = ready.get("body_params")
    for nth, value in enumerate(values if isinstance(values, list) else [], start=1):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        example = example.replace(_VARIABLE % nth, text_of(value))
    buttons = [
        _button(shown, inputs[nth] if nth < len(inputs) else None)
        for nth, shown in enumerate(objects_of(ready.get("buttons")))
    ]
    return Draft(
        element_name=name,
        language_code=language,
        category=Category.UTILITY.value,
        template_type="TEXT",
        vertical=text_of(ready.get("topic")) or None,
        content=content,
        example=example,
        header=text_of(ready.get("header")) or None,
        buttons=tuple(one for one in buttons if one is not None),
    )


def _button(shown: dict[str, Any], given: LibraryButton | None) -> Button | None:
    kind = text_of(shown.get("type")).upper()
    if kind not in ButtonKind.__members__:
        return None
    url = (given.url or {}) if given else {}
    return Button(
        kind=ButtonKind[kind],
        text=text_of(shown.get("text")),
        url=url.get("base_url") or text_of(shown.get("url")),
        phone_number=(given.phone_number if given else None) or text_of(shown.get("phone_number")),
        example=(url["url_suffix_example"],) if url.get("url_suffix_example") else (),
    )
