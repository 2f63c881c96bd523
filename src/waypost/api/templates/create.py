"""Creation and check of templates, with the fields of their forms."""

from functools import partial
from typing import Annotated, Any, Final, cast

from msgspec import Struct, defstruct

from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.idempotency import commit
from waypost.api.operation import APP, NO_ACCOUNT, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.api.route import BodyFormat, IdempotencyMode
from waypost.api.templates.lists import KEY_TEMPLATES, ONE_RECORD
from waypost.api.templates.samples import add_sample_handles
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.fields import TEMPLATE_FIELDS, FieldFormat, TemplateField
from waypost.domain.templates.rules import check_draft
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.store.templates.templates import record_template
from waypost.wire.templates.drafts import SentButton, SentCard, read_draft
from waypost.wire.templates.record import template_record

_TYPES: Final[dict[FieldFormat, Any]] = {  # all others are texts
    FieldFormat.FLAG: bool,
    FieldFormat.OPTIONAL_FLAG: bool,
    FieldFormat.WHOLE: int,
    FieldFormat.BUTTONS: list[SentButton],
    FieldFormat.CARDS: list[SentCard],
}
_Member = tuple[str, Any] | tuple[str, Any, None]


def _define(name: str, fields: list[TemplateField], meanings: dict[str, Field], *, optional: bool) -> type[Struct]:
    """Return a struct of fields for the reference; the operation reads them itself.

    Args:
        name: of the struct.
        fields: of the form.
        meanings: of those that mean something else in it, and of fields that are in no draft.
        optional: True if the form needs none of them.
    """
    described = {
        field.name: (
            _TYPES.get(field.format, str),
            meanings.get(field.name) or Field(field.meaning, field.example),
            field.required and not optional,
        )
        for field in fields
    }
    described |= {other: (str, meaning, False) for other, meaning in meanings.items() if other not in described}
    members: list[_Member] = [
        (wire_name, Annotated[type_, meaning]) if is_required else (wire_name, Annotated[type_ | None, meaning], None)
        for wire_name, (type_, meaning, is_required) in described.items()
    ]
    return defstruct(name, cast("Any", members), kw_only=True)


NEW_TEMPLATE: Final = _define("NewTemplate", list(TEMPLATE_FIELDS), {}, optional=False)
TEMPLATE_CHECK: Final = _define(
    "TemplateCheck",
    list(TEMPLATE_FIELDS),
    {
        "elementName": Field("The template's name, if already chosen.", "order_packed"),
        "category": Field("The category, if already chosen.", "UTILITY"),
        "templateType": Field("The type, if already chosen.", "TEXT"),
        "vertical": Field("The subject of the template.", "Orders"),
        "content": Field("The body, complete or not.", "Hi {{1}}, your order is ready."),
        "example": Field("The body with each variable replaced by a value.", "Hi Ann, your order is ready."),
        "templateId": Field("For an edit: the template that the form changes."),
    },
    optional=True,
)
TEMPLATE_CHANGE: Final = _define(
    "TemplateChange",
    [field for field in TEMPLATE_FIELDS if field.changeable],
    {
        "content": Field("The body; unchanged when absent.", "Hi {{1}}, your parcel is ready."),
        "templateType": Field("Another type; a carousel cannot change its type.", "TEXT"),
        "example": Field(
            "The body with each variable replaced by a value; unchanged when absent.", "Hi Ann, your parcel is ready."
        ),
        "category": Field("Another category; that of an approved template cannot change.", "UTILITY"),
    },
    optional=True,
)


operation = Operations("facts 3.5, self-serve twin", operator_errors=())
_ERRORS: Final = (
    ErrorCode.FIELD_BROKEN,
    ErrorCode.INVALID_CATEGORY,
    ErrorCode.INVALID_ELEMENT_NAME,
    ErrorCode.TEMPLATE_EXISTS,
    ErrorCode.APP_NOT_APPROVED,
    ErrorCode.MEDIA_NOT_FETCHED,
    ErrorCode.WRONG_FILE_TYPE,
    ErrorCode.FILE_TOO_LARGE,
    ErrorCode.NO_ROOM,
    ErrorCode.MEDIA_QUOTA,
)


_create: Final = partial(
    operation,
    "POST",
    returns=ONE_RECORD,
    rate="templates",
    body=NEW_TEMPLATE,
    body_format=BodyFormat.FORM,
    idempotency=IdempotencyMode.MARKED_FIRST,
)


@_create(
    path=f"{APP}/templates",
    source="spec, Create template; ledger 1.5",
    errors=(*_ERRORS, ErrorCode.NO_PERMISSION),
    other_app=ErrorCode.APP_ID_UNKNOWN,
)
@_create(path=KEY_TEMPLATES, credential=Credential.API_KEY, errors=_ERRORS)
async def create_template(call: AppCall) -> ApiResponse:
    """Store a checked draft as PENDING, enqueue it for review, and return its record.

    Errors in this order: 401 wrong token, 400 an app that is not the partner's, 403 the token of another of its apps,
    429 eleventh in a minute, 400 unreadable form, 400 first
    violated rule, 400 an app without a business account, 400 a sample that is no upload or of another type, or a
    URL that yields none, 400 the name exists.

    Source: spec, "Create template", "Limits"; ledger 1.5; always 200 (decision 0010).
    """
    services, request, app = call
    draft = read_draft(request.form())
    check_draft(draft, strict=services.strict, hosting=app.hosting)
    account = await services.directory.business_account(app.business_account_id)
    if account is None:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, NO_ACCOUNT)
    draft = await add_sample_handles(services, app, draft)
    now_ms = services.clock.now_ms()
    template = Template(
        id=services.ids.new(),
        partner_id=app.partner_id,
        app_id=app.id,
        business_account_id=account.id,
        namespace=account.namespace,
        draft=draft,
        status=TemplateStatus.PENDING,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        category=Category(draft.category or ""),
    )

    def make_response(is_new: bool) -> ApiResponse:
        if not is_new:
            raise ApiError(
                ErrorCode.TEMPLATE_EXISTS,
                f"elementName {draft.element_name} is taken in {draft.language_code}; "
                "choose another name, or delete the template first.",
            )
        return ApiResponse({"status": "success", "template": template_record(template)})

    return await commit(services, request, record_template, template, make_response=make_response)
