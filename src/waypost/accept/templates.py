"""Templates: their creation."""

import asyncio
from dataclasses import replace
from typing import Final

from waypost.accept.auth import admitted_app
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.domain.app import App
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template import Category, Draft, Template, TemplateStatus, is_by_address
from waypost.domain.template_rules import check_draft
from waypost.store.templates import record_template
from waypost.wire.drafts import read_draft
from waypost.wire.media import not_fetched
from waypost.wire.template_record import template_record

FETCH_S: Final = 10
"""How long all samples of one draft that are named by address may take. Source: design, section 3."""


async def create_template(services: Services, request: Request) -> Answer:
    """Keep a checked draft as PENDING, journal its review, and answer with its record.

    Refuses in this order: 401 wrong token, 429 eleventh in a minute, 400 unreadable form, 400 first
    broken rule, 400 an app that has no business account yet, 400 an address that gives no sample,
    400 the name is taken.

    Source: spec, "Create template", "Limits"; always 200 (decision 0010).
    """
    app = await admitted_app(services, request)
    draft = read_draft(request.form())
    check_draft(draft, strict=services.strict, hosting=app.hosting)
    account = await services.directory.business_account(app.business_account_id)
    if account is None:
        raise Refused(Reason.APP_NOT_APPROVED, "The app has no business account yet.")
    draft = await with_samples(services, app, draft)
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


async def with_samples(services: Services, app: App, draft: Draft) -> Draft:
    """The draft with a handle for each sample that it names by address only; they are fetched side by side.

    Raises:
        Refused: an address gives nothing, or not what a sample may be.

    Source: spec, "Card object": when `exampleMedia` is absent the service generates the handle.
    """
    fields = _addresses(draft)
    if not fields:
        return draft
    try:
        async with asyncio.timeout(FETCH_S):
            fetched = await asyncio.gather(
                *(
                    services.uploads.from_url(app, url, for_handle=True, field=field)
                    for url, field in fields.items()
                ),
                return_exceptions=True,
            )
    except TimeoutError as error:
        field = next(iter(fields.values()))
        raise not_fetched(field, f"all together took more than {FETCH_S} s") from error
    handles: dict[str, str | None] = {}
    for url, media in zip(fields, fetched, strict=True):
        if isinstance(media, BaseException):
            raise media
        handles[url] = media.handle
    cards = draft.cards and tuple(
        replace(card, example_media=handles[card.media_url or ""]) if is_by_address(card) else card
        for card in draft.cards
    )
    if is_by_address(draft):
        draft = replace(draft, example_media=handles[draft.media_url or ""])
    return replace(draft, cards=cards)


def _addresses(draft: Draft) -> dict[str, str]:
    """Each address to fetch once, with the field that names it first."""
    found: dict[str, str] = {}
    if is_by_address(draft):
        found[draft.media_url or ""] = "mediaUrl"
    for at, card in enumerate(draft.cards or ()):
        if is_by_address(card):
            found.setdefault(card.media_url or "", f"cards[{at}].mediaUrl")
    return found
