"""The messaging API: session texts and template messages. The busiest doors."""

from waypost.accept.auth import partner_of_api_key
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.domain.app import App
from waypost.domain.message import Content, Message
from waypost.domain.refusals import Reason, Refused
from waypost.store.messages import record_messages
from waypost.wire.message_forms import (
    Addresses,
    read_addresses,
    read_session_text,
    read_template_send,
)
from waypost.wire.results import submitted


async def send_session_message(services: Services, request: Request) -> Answer:
    """Take a free-form text; 200 means that it is on disk with the entry that carries it.

    Refuses in this order: 401 wrong key, 400 unreadable form, 400 bad destination, 400 bad app
    details, 429 twenty-first in a second for the source, 400 bad message.

    Source: spec, "Send session text message".
    """
    partner_id = await partner_of_api_key(services, request)
    form = request.form()
    addresses = read_addresses(form)
    app = await _app_of(services, partner_id, addresses)
    request.spend(services.limiter, "session_text", app.phone_number)
    content = read_session_text(form)
    return await _take(services, request, app, addresses, content)


async def send_template_message(services: Services, request: Request) -> Answer:
    """Take a template message with its parameters and postback texts.

    Refuses in this order: 401 wrong key, 400 unreadable form, 400 bad destination, 400 bad app
    details, 429 eleventh in a minute, 400 bad template, parameters or postback texts.

    Source: spec, "Send template message with postback texts".
    """
    partner_id = await partner_of_api_key(services, request)
    form = request.form()
    addresses = read_addresses(form)
    app = await _app_of(services, partner_id, addresses)
    request.spend(services.limiter, "send_template", app.id)
    content = read_template_send(form)
    if not await services.directory.owns_template(app, content.template_id):
        raise Refused(
            Reason.INVALID_TEMPLATE,
            "template.id must be the id of one of this app's templates, as its creation answered it.",
        )
    return await _take(services, request, app, addresses, content, sandbox=form.flag("sandbox"))


async def _app_of(services: Services, partner_id: int, addresses: Addresses) -> App:
    app = await services.directory.app_by_source(partner_id, addresses.source)
    if app is None or app.name != addresses.app_name:
        raise Refused(
            Reason.INVALID_APP_DETAILS,
            "source must be the phone number of one of your apps, and src.name the name of that app.",
        )
    return app


async def _take(
    services: Services,
    request: Request,
    app: App,
    addresses: Addresses,
    content: Content,
    *,
    sandbox: bool = False,
) -> Answer:
    message = Message(
        id=services.ids.new(),
        partner_id=app.partner_id,
        app_id=app.id,
        source=addresses.source,
        destination=addresses.destination,
        content=content,
        accepted_on_ms=services.clock.now_ms(),
        sandbox=sandbox,
        request=request.text(),
    )
    await services.database.join(record_messages, message)
    return Answer(submitted(message.id))
