"""Templates: create and list."""

from waypost.accept.auth import app_of_app_token
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template import Category, Template, TemplateStatus
from waypost.domain.template_rules import check_draft
from waypost.store.templates import record_template, templates_of_app
from waypost.wire.drafts import read_draft
from waypost.wire.template_record import template_record


async def create_template(services: Services, request: Request) -> Answer:
    """Keep a checked draft as PENDING, journal its review, and answer with its record.

    Refuses in this order: 401 wrong token, 429 eleventh in a minute, 400 unreadable form, 400 first
    broken rule, 400 the name is taken.

    Source: spec, "Create template", "Limits"; always 200 (decision 0010).
    """
    app = await app_of_app_token(services, request)
    request.spend(services.limiter, "create_template", app.id)
    draft = read_draft(request.form())
    check_draft(draft, strict=services.strict)
    account = await services.directory.business_account(app.business_account_id)
    if account is None:
        raise LookupError(f"app {app.id} has no business account")
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
    if not await services.database.write(record_template, template):
        raise Refused(
            Reason.TEMPLATE_EXISTS,
            f"elementName {draft.element_name} is taken in {draft.language_code}; "
            "choose another name, or delete the template first.",
        )
    return Answer({"status": "success", "template": template_record(template)})


async def list_templates(services: Services, request: Request) -> Answer:
    """Every template of the app, newest first.

    Source: facts 3.5.
    """
    app = await app_of_app_token(services, request, query=True)
    request.spend(services.limiter, "list_templates", app.id)
    templates = await services.database.read(templates_of_app, app.id, app.partner_id)
    return Answer(
        {"status": "success", "templates": [template_record(template) for template in templates]}
    )
